use super::*;
use crate::functions::testing::{args, call, check, null};

const DOC: &str = r#"{"a": 1, "b": "x", "c": [10, 20], "d": {"e": true}, "n": null, "f": 1.50}"#;

fn value(path: &str, on_empty: &str, on_error: &str) -> String {
    let arguments = args![DOC, path, "STRING", on_empty, "empty", on_error, "error"];
    match call("JSON_VALUE", arguments) {
        Ok((_, value)) => value,
        Err(_) => "!".to_string(),
    }
}

#[test]
fn a_value_is_a_scalar_or_something_instead() {
    for (path, expected) in [
        ("$.a", "1"),
        ("$.b", "x"),
        ("$.c[1]", "20"),
        ("$.d.e", "true"),
        ("$.f", "1.50"),
        ("$.n", "error"),
        ("$.c", "error"),
        ("$.zz", "error"),
        ("lax $.n", "empty"),
        ("lax $.c", "empty"),
        ("lax $.zz", "empty"),
        ("strict $.a", "1"),
        ("bad path[", "error"),
    ] {
        assert_eq!(value(path, "DEFAULT", "DEFAULT"), expected, "{path}");
        let other = if matches!(expected, "error" | "empty") {
            "NULL"
        } else {
            expected
        };
        assert_eq!(value(path, "NULL", "NULL"), other, "{path}");
    }
    assert_eq!(value("$.zz", "NULL", "ERROR"), "!");
    assert_eq!(value("$.zz", "ERROR", "NULL"), "NULL");
    assert_eq!(value("lax $.zz", "ERROR", "NULL"), "!");
}

#[test]
fn typed_values_are_those_of_the_type() {
    let typed = |path: &str, returning: &str| {
        let none = null(TypeKind::Null);
        let arguments = args![DOC, path, returning, "NULL", &none, "NULL", &none];
        call("JSON_VALUE", arguments).map(|(_, value)| value).ok()
    };
    assert_eq!(typed("$.a", "INTEGER").as_deref(), Some("1"));
    assert_eq!(typed("$.f", "DOUBLE").as_deref(), Some("1.5"));
    assert_eq!(typed("$.d.e", "BOOLEAN").as_deref(), Some("true"));
    assert_eq!(typed("$.b", "INTEGER").as_deref(), Some("NULL"));
    assert_eq!(typed("$.a", "BIGINT"), None);
}

#[test]
fn a_query_is_an_object_or_array() {
    let query = |path: &str, wrapper: &str| {
        let arguments = args![DOC, path, "STRING", wrapper, "NULL", "NULL"];
        call("JSON_QUERY", arguments).map(|(_, v)| v).ok()
    };
    for (path, wrapper, expected) in [
        ("$.c", "WITHOUT", "[10,20]"),
        ("$.d", "WITHOUT", r#"{"e":true}"#),
        ("$.a", "WITHOUT", "NULL"),
        ("$.c", "CONDITIONAL", "[10,20]"),
        ("$.d", "CONDITIONAL", r#"[{"e":true}]"#),
        ("$.c", "UNCONDITIONAL", "[[10,20]]"),
        ("$.b", "CONDITIONAL", r#"["x"]"#),
        ("$.zz", "CONDITIONAL", "NULL"),
    ] {
        assert_eq!(
            query(path, wrapper).as_deref(),
            Some(expected),
            "{path} {wrapper}"
        );
    }
}

#[test]
fn existence_and_kinds() {
    check("JSON_EXISTS", args![DOC, "$.a", "FALSE"], "true");
    check("JSON_EXISTS", args![DOC, "$.n", "FALSE"], "false");
    check("JSON_EXISTS", args![DOC, "$.zz", "UNKNOWN"], "NULL");
    check("JSON_EXISTS", args!["null", "lax $.a", "TRUE"], "true");
    check("IS JSON", args!["[1]", "ARRAY"], "true");
    check("IS JSON", args!["{} x", "OBJECT"], "true");
    check("IS JSON", args!["oops", "VALUE"], "false");
    check("IS JSON", args![null(TypeKind::STRING), "VALUE"], "false");
}

#[test]
fn constructors_order_keys_and_take_the_last() {
    check(
        "JSON_OBJECT",
        args!["NULL", "b", 1, "a", 2, "b", 3],
        r#"{"a":2,"b":3}"#,
    );
    let none = null(TypeKind::Int);
    check("JSON_OBJECT", args!["ABSENT", "n", &none], "{}");
    check("JSON_OBJECT", args!["NULL", "n", &none], r#"{"n":null}"#);
    check(
        "JSON_ARRAY",
        args!["ABSENT", "q\"x", &none, 1e10],
        r#"["q\"x",1.0E+10]"#,
    );
    check("JSON_STRING", args!["é"], "\"é\"");
}

#[test]
fn quotes_go_on_and_off() {
    check(
        "JSON_QUOTE",
        args!["a\"b\\c/é😀"],
        "\"a\\\"b\\\\c\\/\\u00e9\\ud83d\\ude00\"",
    );
    check("JSON_UNQUOTE", args![r#""a\"b\u00e9""#], "a\"bé");
    check("JSON_UNQUOTE", args!["[1, 2]"], "[1, 2]");
    check("JSON_UNQUOTE", args![r#""\q""#], r#""\q""#);
}
