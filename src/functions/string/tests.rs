use crate::functions::testing::{args, call, check, check_type, null};
use crate::types::TypeKind;

#[test]
fn case_changes_with_all_of_unicode() {
    check("UPPER", args!["ßtraße ŉ"], "SSTRASSE ʼN");
    check("LOWER", args!["ÀB"], "àb");
    check(
        "INITCAP",
        args!["o'neil mc-donald 2nd_one"],
        "O'Neil Mc-Donald 2nd_One",
    );
    check("INITCAP", args!["ßtraße"], "ßTraßE");
    check_type("UPPER", args!["abcd"], "CHAR(4) NOT NULL");
}

#[test]
fn substrings_count_characters_from_both_ends() {
    check("SUBSTRING", args!["añb😀c", 3, 2], "b😀");
    check("SUBSTRING", args!["abcdef", 0, 3], "abc");
    check("SUBSTRING", args!["abcdef", -2, 5], "ef");
    check("SUBSTRING", args!["abcdef", -10, 3], "");
    check("SUBSTRING", args!["abcdef", 7], "");
    check("SUBSTRING", args!["abcdef", 2, -1], "NULL");
    check("SUBSTRING", args!["abc", i32::MAX, i32::MAX], "");
    check_type("SUBSTRING", args!["abcdef", 2], "VARCHAR(6)");
    check("LEFT", args!["añb😀c", 2], "añ");
    check("RIGHT", args!["añb😀c", 2], "😀c");
    check("RIGHT", args!["abc", -1], "");
}

#[test]
fn padding_counts_utf16_units() {
    check("LPAD", args!["aé😀", 5, "*"], "*aé😀");
    check("RPAD", args!["abc", 6, "xy"], "abcxyx");
    check("RPAD", args!["😀", 1, "x"], "?");
    check("LPAD", args!["abc", 2, "x"], "ab");
    check("LPAD", args!["abc", -1, "x"], "NULL");
    check("LPAD", args!["abc", 5, ""], "NULL");
    assert!(call("LPAD", args!["abc", i32::MAX, "x"]).is_err());
}

#[test]
fn overlay_drops_the_rest_when_the_length_is_not_positive() {
    check("OVERLAY", args!["abc", "xy", 2], "axy");
    check("OVERLAY", args!["abc", "xy", 2, 1], "axyc");
    check("OVERLAY", args!["Hello", "Q", 2, -1], "HQ");
    check("OVERLAY", args!["Hello", "Q", 2, 0], "HQ");
    check("OVERLAY", args!["Hello", "Q", 100], "Hello");
    check_type("OVERLAY", args!["abcdef", "XX", 2], "VARCHAR(8) NOT NULL");
}

#[test]
fn trims_sets_of_characters() {
    check("TRIM", args!["BOTH", "xy", "xyabcyx"], "abc");
    check("TRIM", args!["LEADING", "x", "xxaxx"], "axx");
    check("LTRIM", args!["\t a"], "\t a");
    check("RTRIM", args!["abcyx", "xy"], "abc");
    check_type("RTRIM", args!["ab  "], "VARCHAR(4) NOT NULL");
    check_type("BTRIM", args!["ab  "], "STRING NOT NULL");
}

#[test]
fn null_makes_null_but_concat_ws_skips_it() {
    let none = null(TypeKind::STRING);
    check("CONCAT", args!["a", &none], "NULL");
    check("CONCAT_WS", args!["-", &none, "b", "c"], "b-c");
    check("CONCAT_WS", args![&none, "b"], "NULL");
    check("CONCAT_WS", args!["-", &none], "");
    check("REPLACE", args!["abc", "b", &none], "NULL");
}

#[test]
fn translate_takes_the_first_of_equal_characters() {
    check("TRANSLATE", args!["abcba", "aba", "xyz"], "xycyx");
    check("TRANSLATE", args!["abcba", "abc", "12"], "1221");
    check(
        "TRANSLATE",
        args!["abc", null(TypeKind::STRING), "x"],
        "abc",
    );
    check("TRANSLATE", args!["abc", "a", null(TypeKind::STRING)], "bc");
    check("REPLACE", args!["abc", "", "x"], "xaxbxcx");
}

#[test]
fn chr_takes_the_code_modulo_256() {
    check("CHR", args![353], "a");
    check("CHR", args![233], "é");
    check("CHR", args![-1], "");
}

#[test]
fn elt_picks_an_argument() {
    check("ELT", args![2, "a", "bc"], "bc");
    check("ELT", args![3, "a", "bc"], "NULL");
    check_type("ELT", args![1, "a", "bc"], "VARCHAR(2)");
}

#[test]
fn wrong_arguments_are_refused_with_the_supported_forms() {
    let error = call("UPPER", args![1]).expect_err("a number is no text");
    assert_eq!(
        error.message(),
        "Cannot apply 'UPPER' to arguments of type 'UPPER(<INTEGER>)'"
    );
    assert_eq!(error.hint_text(), Some("it is called as UPPER(s STRING)"));
    let error = call("UPPER", args!["a", 1]).expect_err("one argument too many");
    assert_eq!(
        error.message(),
        "No match found for function signature UPPER(<CHARACTER>, <NUMERIC>)"
    );
}
