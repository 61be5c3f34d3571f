use crate::functions::Environment;
use crate::functions::testing::{Value, args, call, call_in, check, check_type};

#[test]
fn to_timestamp_takes_the_default_form_and_patterns() {
    check(
        "TO_TIMESTAMP",
        args!["2024-02-03 04:05:06.789123"],
        "2024-02-03T04:05:06.789",
    );
    check(
        "TO_TIMESTAMP",
        args!["2024-2-3 4:5:6"],
        "2024-02-03T04:05:06",
    );
    check(
        "TO_TIMESTAMP",
        args!["2024-02-30 00:00:00"],
        "2024-02-29T00:00:00",
    );
    check(
        "TO_TIMESTAMP",
        args!["2024-02-03 24:00:00"],
        "2024-02-04T00:00:00",
    );
    for none in [
        "2024-02-03T04:05:06",
        "2024-02-03 04:05",
        " 2024-02-03 04:05:06 ",
        "2024-02-03 04:05:06.1234567891",
        "2024-02-03.5",
        "bad",
    ] {
        check("TO_TIMESTAMP", args![none], "NULL");
    }
    check(
        "TO_TIMESTAMP",
        args!["2024-02-03 10:11:12", "yyyy/MM/dd"],
        "2024-02-03T10:11:12",
    );
    check(
        "TO_TIMESTAMP",
        args!["  2024-1-2", "yyyy/MM/dd"],
        "2024-01-02T00:00:00",
    );
    check("TO_TIMESTAMP", args!["2024", "yyyy bb"], "NULL");
}

#[test]
fn instants_come_of_numbers_and_texts() {
    check(
        "TO_TIMESTAMP_LTZ",
        args![1_700_000_000, 0],
        "2023-11-14T22:13:20Z",
    );
    check(
        "TO_TIMESTAMP_LTZ",
        args![1_700_000_000, 1],
        "1975-05-22T14:13:20Z",
    );
    check(
        "TO_TIMESTAMP_LTZ",
        args![1.7, 3],
        "1970-01-01T00:00:00.001Z",
    );
    check("TO_TIMESTAMP_LTZ", args![253_402_300_800i64, 0], "NULL");
    check_type("TO_TIMESTAMP_LTZ", args![1, 6], "TIMESTAMP_LTZ(6)");
    check(
        "TO_TIMESTAMP_LTZ",
        args!["2024-02-03 04:05:06", "yyyy-MM-dd HH:mm:ss", "Asia/Tokyo"],
        "2024-02-02T19:05:06Z",
    );
    check("TO_TIMESTAMP_LTZ", args!["x", "yyyy-MM-dd"], "NULL");
    assert!(call("TO_TIMESTAMP_LTZ", args!["bad"]).is_err());
    assert!(
        call(
            "TO_TIMESTAMP_LTZ",
            args!["2024-01-01", "yyyy-MM-dd", "Nowhere"]
        )
        .is_err()
    );
}

#[test]
fn old_functions_see_the_sessions_zone() {
    let env = Environment {
        time_zone: chrono_tz::America::New_York,
        ..Environment::default()
    };
    let value = |name, arg: Value| call_in(name, &[arg], &env).map(|(_, value)| value).ok();
    let unix = value("UNIX_TIMESTAMP", Value::from("2024-02-03 04:05:06"));
    assert_eq!(unix.as_deref(), Some("1706951106"));
    let gap = value("UNIX_TIMESTAMP", Value::from("2024-03-10 02:30:00"));
    assert_eq!(gap.as_deref(), Some("1710055800"));
    let text = value("FROM_UNIXTIME", Value::from(0));
    assert_eq!(text.as_deref(), Some("1969-12-31 19:00:00"));
    check("UNIX_TIMESTAMP", args!["bad"], "-9223372036854775808");
}

#[test]
fn dates_and_zones() {
    check("TO_DATE", args!["2024-2-3"], "2024-02-03");
    check("TO_DATE", args!["2024-02-30"], "NULL");
    check("TO_DATE", args!["30/02/2024", "dd/MM/yyyy"], "2024-03-01");
    check("TO_DATE", args!["bad", "dd/MM/yyyy"], "NULL");
    check(
        "CONVERT_TZ",
        args!["2024-03-31 02:30:00", "Europe/Berlin", "UTC"],
        "2024-03-31 01:30:00",
    );
    check(
        "CONVERT_TZ",
        args!["2024-01-01 00:00:00", "PST", "Asia/Kolkata"],
        "2024-01-01 13:30:00",
    );
    check(
        "DATE_FORMAT",
        args!["2024-02-03 04:05:06", "E a h"],
        "Sat AM 4",
    );
    check("DATE_FORMAT", args!["2024-02-03", "yyyy"], "NULL");
}
