use proptest::prelude::*;

use super::*;
use crate::connectors::testing::{batch, lines, schema, table};
use crate::formats::{DecodedColumns, FormatOptions};

fn decoder(columns: &str, options: &[(&str, &str)]) -> Box<dyn Decoder> {
    let t = table(columns, options);
    let options = FormatOptions::new(&t, "json.");
    let format = JsonFormat.decoding(&options).unwrap();
    format.decoder(&DecodedColumns::all(&t.physical)).unwrap()
}

fn decode(columns: &str, options: &[(&str, &str)], records: &str) -> Result<Vec<String>> {
    let mut decoder = decoder(columns, options);
    for record in records.lines() {
        decoder.decode(record.as_bytes())?;
    }
    let batch = decoder.finish()?;
    assert_eq!(batch.schema(), schema(columns).to_arrow());
    Ok(lines(&batch, &schema(columns)))
}

const LAX: [(&str, &str); 1] = [("json.ignore-parse-errors", "true")];

#[test]
fn broken_records_vanish_and_broken_fields_become_null() {
    let records = r#"{"id": 1, "v": "one"}
{"id": "two", "v": "bad number"}
not json at all
{"id": 3, "v":

{"id": 4, "v": {"deep": [1, 2]}} trailing
[{"id": 5, "v": "in array"}, {"id": 6}]
{"id": 7.9, "v": 8}
{"id": 99999999999, "v": "too big"}
{"id": {"a": 1}, "v": "wrong shape"}
{"id": 8, "v": "last"}"#;
    assert_eq!(
        decode("id INT, v STRING", &LAX, records).unwrap(),
        [
            "+I[1, one]",
            "+I[null, bad number]",
            "+I[4, {\"deep\":[1,2]}]",
            "+I[5, in array]",
            "+I[6, null]",
            "+I[7, 8]",
            "+I[null, too big]",
            "+I[null, wrong shape]",
            "+I[8, last]"
        ]
    );
    let mut lax = decoder("id INT, v STRING", &LAX);
    lax.decode(b"{").unwrap();
    assert_eq!((lax.rows(), lax.skipped()), (0, 1));
}

#[test]
fn a_strict_reader_names_field_and_value() {
    let error = decode("a ROW<b INT>", &[], r#"{"a": {"b": "x"}}"#).unwrap_err();
    assert!(
        error.message().ends_with("field: a.b. \"x\" is no INT"),
        "{error}"
    );
    let missing = [("json.fail-on-missing-field", "true")];
    assert!(decode("a INT, b INT", &missing, r#"{"a": 1}"#).is_err());
    assert!(decode("a INT", &[], "   ").is_err());
}

#[test]
fn scalars_are_coerced() {
    let columns = "i INT, b BOOLEAN, s STRING, d DECIMAL(4, 2), x DOUBLE, y BYTES";
    let records = r#"{"i": "42", "b": "true", "s": 17, "d": "1.50", "x": 1, "y": "aGk="}
{"i": 7.0, "b": 1, "s": {"a": [1, "q"], "b": 1e3}, "d": 123456, "x": 1e3, "y": ""}
{"i": " 5 ", "b": "TRUE", "s": null, "d": 2.345, "x": "NaN", "y": "/w=="}"#;
    assert_eq!(
        decode(columns, &[], records).unwrap(),
        [
            "+I[42, true, 17, 1.50, 1.0, [104, 105]]",
            "+I[7, false, {\"a\":[1,\"q\"],\"b\":1000.0}, null, 1000.0, []]",
            "+I[5, true, null, 2.35, NaN, [-1]]"
        ]
    );
}

#[test]
fn nested_values_and_missing_fields() {
    let columns =
        "id INT, pos ROW<lat DOUBLE, name STRING>, tags ARRAY<STRING>, m MAP<STRING, INT>";
    let records = r#"{"id": 1, "pos": {"lat": 1.5, "name": "n1"}, "tags": ["a", null, ""], "m": {"k": 1, "j": null}}
{"id": 2}
{"id": null, "pos": null, "tags": null, "m": null}
{"tags": [], "m": {}, "pos": {}, "id": 3}
{"ID": 9, "pos": {"NAME": "case"}, "tags": ["x"], "m": {"a": 1, "b": 2, "a": 3}}"#;
    assert_eq!(
        decode(columns, &[], records).unwrap(),
        [
            "+I[1, +I[1.5, n1], [a, null, ], {j=null, k=1}]",
            "+I[2, null, null, null]",
            "+I[null, null, null, null]",
            "+I[3, +I[null, null], [], {}]",
            "+I[null, +I[null, null], [x], {a=3, b=2}]"
        ]
    );
}

#[test]
fn timestamps_in_both_standards() {
    let columns = "ts TIMESTAMP(3), lz TIMESTAMP_LTZ(3), d DATE, t TIME(0)";
    let sql = r#"{"ts": "2024-03-10 02:30:00.1239", "lz": "2024-03-10 02:30:00Z", "d": "1969-12-31", "t": "23:59:59"}"#;
    let want = ["+I[2024-03-10T02:30:00.123, 2024-03-10T02:30:00Z, 1969-12-31, 23:59:59]"];
    assert_eq!(decode(columns, &[], sql).unwrap(), want);
    let iso = sql.replace("-10 02", "-10T02");
    assert!(decode(columns, &[], &iso).is_err());
    let option = [("json.timestamp-format.standard", "ISO-8601")];
    assert_eq!(decode(columns, &option, &iso).unwrap(), want);
}

#[test]
fn control_characters_and_lone_surrogates_are_taken() {
    let records = "{\"s\": \"a\tb\\ud800c\"}";
    assert_eq!(decode("s STRING", &[], records).unwrap(), ["+I[a\tb?c]"]);
}

fn encode(columns: &str, options: &[(&str, &str)], data: &str) -> Result<String> {
    let t = table(columns, options);
    let format = JsonFormat.encoding(&FormatOptions::new(&t, "json."))?;
    let mut records = Records::default();
    format
        .encoder(&t.physical)?
        .encode(&batch(columns, data), &mut records)?;
    assert_eq!(records.len(), data.lines().count());
    let all: Vec<_> = (0..records.len())
        .map(|i| String::from_utf8_lossy(records.get(i).unwrap()).into_owned())
        .collect();
    Ok(all.join("\n"))
}

#[test]
fn rows_are_written_as_jackson_does() {
    let columns = "a BOOLEAN, b DECIMAL(6, 2), c DOUBLE, d STRING, e DATE, f TIME(3), g TIMESTAMP(6), h TIMESTAMP_LTZ(3)";
    let data = "+I|true|100|1e10|q\"\\\u{1}é|2024-01-31|10:00:00.5|2024-01-01T00:00:00.120|2024-01-01T00:00\n\
                +I|\\N|1.50|NaN||\\N|10:00|\\N|\\N";
    assert_eq!(
        encode(columns, &[], data).unwrap(),
        "{\"a\":true,\"b\":1E+2,\"c\":1.0E10,\"d\":\"q\\\"\\\\\\u0001é\",\"e\":\"2024-01-31\",\"f\":\"10:00:00.5\",\"g\":\"2024-01-01 00:00:00.12\",\"h\":\"2024-01-01 00:00:00Z\"}\n\
         {\"a\":null,\"b\":1.5,\"c\":\"NaN\",\"d\":\"\",\"e\":null,\"f\":\"10:00:00\",\"g\":null,\"h\":null}"
    );
    let options = [
        ("json.encode.decimal-as-plain-number", "true"),
        ("json.encode.ignore-null-fields", "true"),
        ("json.timestamp-format.standard", "ISO-8601"),
    ];
    assert_eq!(
        encode(
            "b DECIMAL(6, 2), s STRING, t TIMESTAMP(3)",
            &options,
            "+I|100|\\N|2024-01-01T00:00"
        )
        .unwrap(),
        "{\"b\":100.00,\"t\":\"2024-01-01T00:00:00\"}"
    );
}

#[test]
fn wrong_options_are_refused() {
    let t = table("a INT", &[("json.timestamp-format.standard", "RFC")]);
    let error = JsonFormat
        .decoding(&FormatOptions::new(&t, "json."))
        .err()
        .unwrap();
    assert!(error.message().contains("[SQL, ISO-8601]"), "{error}");
    let t = table("a MAP<INT, INT>", &[]);
    let format = JsonFormat
        .decoding(&FormatOptions::new(&t, "json."))
        .unwrap();
    assert!(format.decoder(&DecodedColumns::all(&t.physical)).is_err());
}

proptest! {
    #[test]
    fn bytes_never_panic_and_leave_no_half_rows(
        records in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8),
        texts in proptest::collection::vec("\\{\"(a|b|m)\": ?[\\[{]?(\"x\"|1|null|1e9|\"\\\\ud8)[,}\\]\"]{0,4}", 0..8),
    ) {
        let columns = "a INT, b ARRAY<ROW<x STRING>>, m MAP<STRING, DECIMAL(5, 2)>";
        let mut decoder = decoder(columns, &LAX);
        let all = records.iter().map(Vec::as_slice).chain(texts.iter().map(String::as_bytes));
        for record in all {
            decoder.decode(record).unwrap();
        }
        let rows = decoder.rows();
        prop_assert_eq!(decoder.finish().unwrap().len(), rows);
    }
}

/// Records that are read the fast way and, behind a name with an escape, the thorough way.
#[test]
fn what_is_passed_makes_no_difference() {
    let values = [
        "1",
        "-1.5e3",
        "true",
        "null",
        r#""a\"}]b\\""#,
        r#"{"x":[1,{"y":"]}"}],"z":{}}"#,
        "[ ]",
        "{ }",
    ];
    for first in values {
        for second in values {
            let fields = [
                format!(r#""p":{first}"#),
                r#""a" : 7"#.to_string(),
                format!(r#""q" :{second} "#),
                r#""b":"x""#.to_string(),
                format!(r#""r":{first}"#),
            ];
            for order in [[0, 1, 2, 3, 4], [3, 2, 1, 0, 4], [0, 2, 4, 3, 1]] {
                let fields = order.map(|i| fields[i].clone()).join(",");
                let fast = format!("{{{fields}}}");
                let slow = format!(r#"{{"\u0078":0,{fields}}}"#);
                let read = |record: &str| decode("a INT, b STRING, c INT", &[], record).unwrap();
                assert_eq!(read(&fast), ["+I[7, x, null]"], "{fast}");
                assert_eq!(read(&slow), read(&fast));
                let two = decode("a INT, b STRING", &[], &fast).unwrap();
                assert_eq!(two, ["+I[7, x]"], "{fast}");
            }
        }
    }
    for broken in [
        r#"{"p":1 2,"a":7}"#,
        r#"{"p":1"a":7}"#,
        r#"{"p":{"a":7}"#,
        r#"{"a":7"#,
        r#"{"a":7,"b":"x","p":"#,
        r#"{p:1,"a":7}"#,
        r#"{"a":7,}"#,
    ] {
        assert!(
            decode("a INT, b STRING, c INT", &[], broken).is_err(),
            "{broken}"
        );
    }
}

#[test]
fn a_repeated_field_counts_as_often_as_it_stands_there() {
    for record in [
        r#"{"a":1,"a":2,"b":"x"}"#,
        r#"{"\u0078":0,"a":1,"a":2,"b":"x"}"#,
    ] {
        let rows = decode("a INT, b STRING", &[], record).unwrap();
        assert_eq!(rows, ["+I[2, null]"]);
        let rows = decode(
            "a INT, r ROW<a INT, b STRING>",
            &[],
            &format!(r#"{{"r":{record}}}"#),
        );
        assert_eq!(rows.unwrap(), ["+I[null, +I[2, null]]"]);
    }
}

/// A name with an escape, which is not read the fast way, stands before what is then read alike.
#[test]
fn usual_values_are_those_of_the_parser() {
    let values = [
        "0",
        "-0",
        "7",
        "-12",
        "007",
        "-",
        "2147483648",
        "999999999999999999",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "1.5",
        "1e2",
        "1x",
        "null",
        "nul",
        "true",
        r#""""#,
        r#""a""#,
        r#""é€😀""#,
        r#""a\nb""#,
        "\"a\tb\"",
        r#""12""#,
        r#""2024-02-29 01:02:03.456""#,
        r#""2024-02-30 01:02:03""#,
        r#""open"#,
        "{}",
        r#"{"x":1}"#,
        r#"{"y":"b","x":1,"z":[2]}"#,
        r#"{"x":"c","y":3}"#,
        r#"{"x":{"y":4}}"#,
        r#"{"x":1,"x":2,"y":"a"}"#,
        r#"{"x":1,"y":"a""#,
        "[1]",
    ];
    let types = [
        "INT",
        "BIGINT",
        "STRING",
        "TIMESTAMP(3)",
        "ROW<x INT, y STRING>",
        "ROW<x ROW<y INT>>",
        "ROW<`q\"s` INT>",
    ];
    for lenient in [&[][..], &LAX] {
        for column in types {
            for value in values {
                let read = |record: String| {
                    let columns = format!("a {column}, b INT, c INT");
                    decode(&columns, lenient, &record).ok()
                };
                let fast = read(format!(r#"{{"a":{value},"b":1}}"#));
                let slow = read(format!(r#"{{"\u0078":0,"a":{value},"b":1}}"#));
                assert_eq!(fast, slow, "{column} {value}");
            }
        }
    }
}
