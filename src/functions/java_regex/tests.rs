use super::*;

fn first<'a>(pattern: &str, text: &'a str) -> Option<&'a str> {
    let regex = JavaRegex::new(pattern).expect("a valid pattern");
    let found = regex.find_at(text, 0).expect("a quick match");
    found.map(|(start, end)| &text[start..end])
}

#[test]
fn classes_are_ascii_and_case_folding_too() {
    assert_eq!(first(r"\w+", "élan"), Some("lan"));
    assert_eq!(first(r"\d", "٣4"), Some("4"));
    assert_eq!(first(r"a\sb", "a\u{a0}b"), None);
    assert_eq!(first("(?i)É", "aé"), None);
    assert_eq!(first("(?iu)É", "aé"), Some("é"));
    assert_eq!(first("(?i)[a-c]+", "xABCd"), Some("ABC"));
    assert_eq!(first("a(?i)b(?-i)c", "aBc"), Some("aBc"));
    assert_eq!(first("(?:(?i)b)B", "Bb"), None);
}

#[test]
fn classes_nest_and_intersect() {
    assert_eq!(first("[a-z&&[^b]]+", "abc-def"), Some("a"));
    assert_eq!(first("[^]]+", "ab]c"), Some("ab"));
    assert_eq!(first(r"[\[]", "a[b"), Some("["));
    assert_eq!(first("[a-]+", "a-b"), Some("a-"));
    assert_eq!(first("[a[0-3]]+", "x3a4"), Some("3a"));
    assert_eq!(first(r"[\d.-]+", "x-1.5"), Some("-1.5"));
}

#[test]
fn the_end_stands_before_a_last_line_end_too() {
    assert_eq!(first("b$", "ab\n"), Some("b"));
    assert_eq!(first("b$", "ab\r\n"), Some("b"));
    assert_eq!(first("b$", "ab\n\n"), None);
    assert_eq!(first("b$", "ab"), Some("b"));
    assert_eq!(first(r"b\z", "ab\n"), None);
    assert_eq!(first("a.b", "a\u{2028}b"), None);
    assert_eq!(first("(?s)a.b", "a\nb"), Some("a\nb"));
}

#[test]
fn look_around_back_references_and_possessive_quantifiers_work() {
    assert_eq!(first("(?<=foo)bar", "foobar"), Some("bar"));
    assert_eq!(first(r"(a)\1", "aabb"), Some("aa"));
    assert_eq!(first("a++", "aaa"), Some("aaa"));
    assert_eq!(first("a++a", "aaa"), None);
    assert_eq!(first(r"(a)\2", "aa"), None);
}

#[test]
fn escapes_quotes_and_comments() {
    assert_eq!(first(r"\Q\\E", r"x\y"), Some(r"\"));
    assert_eq!(first(r"\Q.*", "a.*"), Some(".*"));
    assert_eq!(first(r"\x61\u0062\0143", "abc"), Some("abc"));
    assert_eq!(first(r"\uD83D\uDE00", "x😀"), Some("😀"));
    assert_eq!(first("(?x) a \\  b # c", "a b"), Some("a b"));
    assert_eq!(first(r"\p{Lower}+\p{L}", "fooÉ"), Some("fooÉ"));
    assert_eq!(first(r"\P{L}+", "ab12"), Some("12"));
}

#[test]
fn what_java_refuses_is_invalid_and_what_we_lack_is_said() {
    for pattern in [
        "(", ")", "[a", "*a", "a{2,1}", "[z-a]", r"\y", "a{x}", "(?q)",
    ] {
        assert!(
            matches!(JavaRegex::new(pattern), Err(Refusal::Invalid(_))),
            "{pattern}"
        );
    }
    for pattern in [r"\G", r"\p{InGreek}", r"\X"] {
        assert!(
            matches!(JavaRegex::new(pattern), Err(Refusal::Unsupported(_))),
            "{pattern}"
        );
    }
}

#[test]
fn splits_as_java_does() {
    let split = |pattern: &str, text: &'static str| {
        let regex = JavaRegex::new(pattern).expect("a valid pattern");
        regex.split(text).expect("a quick match")
    };
    assert_eq!(split(",", "a,,b,,"), ["a", "", "b"]);
    assert_eq!(split(",", ""), [""]);
    assert_eq!(split("", "abc"), ["a", "b", "c"]);
    assert_eq!(split("[0-9]", "a1b22c"), ["a", "b", "", "c"]);
}
