use super::*;

fn at(year: i64, month: u32, day: u32, second: i64, nanos: i64) -> Local {
    Local {
        days: days_from_civil(year, month, day),
        nanos: second * NANOS_PER_SECOND + nanos,
    }
}

fn format(pattern: &str, t: Local) -> String {
    let mut out = String::new();
    let formatter = DateTimeFormatter::new(pattern).expect("a valid pattern");
    formatter.format(t, &mut out).expect("a local pattern");
    out
}

#[test]
fn every_letter_prints_as_in_java() {
    let t = at(2024, 2, 29, 86_399, 999_000_000);
    for (pattern, expected) in [
        ("yyyy-MM-dd HH:mm:ss.SSS", "2024-02-29 23:59:59.999"),
        ("YYYY ww e E EEEE EEEEE", "2024 09 5 Thu Thursday T"),
        (
            "M MM MMM MMMM MMMMM d D DD DDD",
            "2 02 Feb February F 29 60 60 060",
        ),
        ("h hh H HH k kk K KK a", "11 11 23 23 23 23 11 11 PM"),
        (
            "m s S SS SSS n N A",
            "59 59 9 99 999 999000000 86399999000000 86399999",
        ),
        (
            "y yy yyy yyyyy u uu G GGGG GGGGG",
            "2024 24 2024 02024 2024 24 AD Anno Domini A",
        ),
        ("Q QQ QQQ QQQQ q w W F", "1 01 Q1 1st quarter 1 9 5 1"),
        (
            "'quoted' '' [yyyy] ee eee eeee c ccc",
            "quoted ' 2024 05 Thu Thursday 5 Thu",
        ),
        ("L LLL LLLL pppH YY Y", "2 Feb February  23 24 2024"),
        ("B", "at night"),
        ("yyyy[ z]", "2024"),
    ] {
        assert_eq!(format(pattern, t), expected, "{pattern}");
    }
    let midnight = at(2024, 4, 1, 0, 0);
    assert_eq!(format("h k K a B", midnight), "12 24 0 AM midnight");
    assert_eq!(format("yyyy", at(12021, 1, 1, 0, 0)), "+12021");
    assert_eq!(format("yyy y", at(21, 1, 1, 0, 0)), "021 21");
}

#[test]
fn bad_patterns_are_refused() {
    for pattern in ["yyyy bb", "{", "]", "'open", "ddd", "cc", "V", "aa", "p "] {
        assert!(DateTimeFormatter::new(pattern).is_err(), "{pattern}");
    }
    let zone = DateTimeFormatter::new("z").expect("a valid pattern");
    assert!(
        zone.format(at(2024, 1, 1, 0, 0), &mut String::new())
            .is_err()
    );
}

#[test]
fn texts_are_read_strictly_and_resolved_smartly() {
    let read = |pattern: &str, text: &str| {
        DateTimeFormatter::new(pattern)
            .expect("a valid pattern")
            .parse(text)
    };
    let noon = |h: i64, m: i64, s: i64| h * 3600 + m * 60 + s;
    for (pattern, text, expected) in [
        (
            "dd.MM.yyyy HH-mm",
            "03.02.2024 04-05",
            Some(at(2024, 2, 3, noon(4, 5, 0), 0)),
        ),
        (
            "yyyyMMddHHmmss",
            "20240102030405",
            Some(at(2024, 1, 2, noon(3, 4, 5), 0)),
        ),
        (
            "yyyyMMddHHmmssSSS",
            "20240102030405678",
            Some(at(2024, 1, 2, noon(3, 4, 5), 678_000_000)),
        ),
        ("M/d/yyyy", "12/1/2024", Some(at(2024, 12, 1, 0, 0))),
        (
            "MMM d, yyyy h:mm a",
            "Jan 2, 2024 3:04 PM",
            Some(at(2024, 1, 2, noon(15, 4, 0), 0)),
        ),
        ("yyyy-MM-dd hh", "2024-01-02 10", Some(at(2024, 1, 2, 0, 0))),
        ("yyyy-MM-dd hh", "2024-01-02 13", None),
        ("yy-MM-dd", "24-01-02", Some(at(2024, 1, 2, 0, 0))),
        ("yyyy DDD", "2024 32", None),
        ("yyyy DDD", "2024 032", Some(at(2024, 2, 1, 0, 0))),
        ("HH:mm", "10:11", Some(at(1970, 1, 1, noon(10, 11, 0), 0))),
        ("yyyy-MM-dd", "2024-02-30", Some(at(2024, 2, 29, 0, 0))),
        ("yyyy-MM-dd", "2024-02-32", None),
        ("yyyy-MM-dd", "2024-1-2", None),
        ("yyyy-MM-dd", "12024-01-02", None),
        ("yyyy-MM-dd", "+12024-01-02", Some(at(12024, 1, 2, 0, 0))),
        (
            "yyyy-MM-dd HH:mm",
            "2024-02-03 24:00",
            Some(at(2024, 2, 4, 0, 0)),
        ),
        ("yyyy-MM-dd HH:mm", "2024-02-03 24:01", None),
        (
            "yyyy-MM-dd'T'HH:mm:ssXXX",
            "2024-01-02T03:04:05+02:00",
            Some(at(2024, 1, 2, noon(3, 4, 5), 0)),
        ),
        (
            "EEE d MMM yyyy",
            "Sat 3 Feb 2024",
            Some(at(2024, 2, 3, 0, 0)),
        ),
        ("EEE d MMM yyyy", "Sun 3 Feb 2024", None),
        ("d MMM yyyy", "3 feb 2024", None),
        (
            "HH:mm[:ss]",
            "10:11",
            Some(at(1970, 1, 1, noon(10, 11, 0), 0)),
        ),
        (
            "HH:mm[:ss]",
            "10:11:12",
            Some(at(1970, 1, 1, noon(10, 11, 12), 0)),
        ),
        ("yyyy-MM-dd", "2024-01-02x", None),
    ] {
        assert_eq!(read(pattern, text), expected, "{text} by {pattern}");
    }
}
