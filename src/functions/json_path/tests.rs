use super::*;
use crate::functions::json_tree;

/// The value at a path as JSON, or `!` for an error.
fn read(json: &str, path: &str) -> String {
    let root = json_tree::parse(json).expect("the test's JSON is well-formed");
    let mut out = String::new();
    match Path::new(path).and_then(|path| path.read(&root).map(Cow::into_owned)) {
        Ok(value) => json_tree::write(&value, &mut out),
        Err(_) => out.push('!'),
    }
    out
}

const DOC: &str = r#"{"c":[{"d":6},{"d":5}],"d":7,"b.c":1,"n":null}"#;

#[test]
fn definite_paths_lead_to_one_value() {
    for (path, expected) in [
        ("$.d", "7"),
        ("d", "7"),
        ("$.d ", "7"),
        ("$['b.c']", "1"),
        ("$[\"c\"][1][\"d\"]", "5"),
        ("$.c[-1].d", "5"),
        ("$.n", "null"),
        ("$", r#"{"b.c":1,"c":[{"d":6},{"d":5}],"d":7,"n":null}"#),
        ("$['c','d']", r#"{"c":[{"d":6},{"d":5}],"d":7}"#),
        ("$.zz", "!"),
        ("$.c[5].d", "!"),
        ("$.c.d", "!"),
        ("$.d.x", "!"),
        ("$.c.length()", "2"),
        ("$.c.keys()", "null"),
        ("", "!"),
        ("$.", "!"),
        ("$.c[", "!"),
    ] {
        assert_eq!(read(DOC, path), expected, "{path}");
    }
}

#[test]
fn other_paths_lead_to_arrays() {
    for (path, expected) in [
        ("$.c[*].d", "[6,5]"),
        ("$..d", "[7,6,5]"),
        ("$.*.d", "[]"),
        ("$.c[0:1]", r#"[{"d":6}]"#),
        ("$.c[-1:]", r#"[{"d":5}]"#),
        ("$.c[0,1].d", "[6,5]"),
        ("$.c[?(@.d > 5)]", r#"[{"d":6}]"#),
        ("$.c[?(@.d == 5 || @.d == 6)].d", "[6,5]"),
        ("$.c[?(@.d in [5])].d", "[5]"),
        ("$.c[?(!@.x)].d", "[6,5]"),
        ("$.zz[*]", "!"),
        ("$.c[*].zz", "[]"),
    ] {
        assert_eq!(read(DOC, path), expected, "{path}");
    }
    let list = r#"{"list":[{"p":1,"q":"a"},{"p":2},{"p":3,"q":"c"}]}"#;
    assert_eq!(read(list, "$.list[?(@.q =~ /[a-b]/)].p"), "[1]");
    assert_eq!(read(list, "$.list[?(@.q)].q"), r#"["a","c"]"#);
    assert_eq!(read("[1,2,3]", "$.sum()"), "6.0");
    assert_eq!(
        read(r#"{"c":[{"d":6},{"e":5}]}"#, "$..*"),
        r#"[[{"d":6},{"e":5}],{"d":6},{"e":5},6,5]"#
    );
}
