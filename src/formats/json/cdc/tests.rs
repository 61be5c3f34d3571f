use proptest::prelude::*;

use super::*;
use crate::connectors::testing::{batch, lines, table};
use crate::formats::Records;

fn decoder(
    format: CdcFormat,
    columns: &str,
    options: &[(&str, &str)],
    metadata: &[&str],
) -> (Box<dyn Decoder>, Schema) {
    let t = table(columns, options);
    let options = FormatOptions::new(&t, format!("{}.", format.identifier()));
    let decoding = format.decoding(&options).unwrap();
    let known = decoding.metadata();
    let mut wanted = DecodedColumns::all(&t.physical);
    for key in metadata {
        wanted
            .metadata
            .push(known.iter().find(|(k, _)| k == key).unwrap().clone());
    }
    (decoding.decoder(&wanted).unwrap(), wanted.produced())
}

fn decode(
    format: CdcFormat,
    columns: &str,
    options: &[(&str, &str)],
    metadata: &[&str],
    records: &str,
) -> Result<Vec<String>> {
    let (mut decoder, schema) = decoder(format, columns, options, metadata);
    for record in records.lines() {
        decoder.decode(record.as_bytes())?;
    }
    let batch = decoder.finish()?;
    assert_eq!(batch.schema(), schema.to_arrow());
    Ok(lines(&batch, &schema))
}

#[test]
fn debezium_changes_become_rows() {
    let records = r#"{"before": null, "after": {"id": 1, "v": "a"}, "op": "r", "ts_ms": 1}
{"op": "u", "before": {"id": 1, "v": "a"}, "after": {"id": 5}}

{"before": {"id": 5, "v": "b"}, "after": null, "op": "d", "ts_ms": 4}"#;
    assert_eq!(
        decode(CdcFormat::Debezium, "id INT, v STRING", &[], &[], records).unwrap(),
        ["+I[1, a]", "-U[1, a]", "+U[5, null]", "-D[5, b]"]
    );
}

#[test]
fn debezium_errors_stop_or_vanish() {
    let records = r#"{"before": null, "after": {"id": 1}, "op": "c"}
{"before": null, "after": {"id": 2}, "op": "u"}
{"after": {"id": 3}, "op": "zzz"}
rubbish
{"before": null, "after": null, "op": "d"}
{"before": null, "after": {"id": "x"}, "op": "c"}"#;
    let lax = [("debezium-json.ignore-parse-errors", "true")];
    assert_eq!(
        decode(CdcFormat::Debezium, "id INT", &lax, &[], records).unwrap(),
        ["+I[1]", "+I[null]"]
    );
    for record in records.lines().skip(1) {
        assert!(decode(CdcFormat::Debezium, "id INT", &[], &[], record).is_err());
    }
    let error = decode(CdcFormat::Debezium, "id INT", &[], &[], records).unwrap_err();
    assert!(error.message().contains("REPLICA IDENTITY"), "{error}");
}

#[test]
fn debezium_payload_and_metadata() {
    let record = r#"{"schema": {"type": "struct"}, "payload": {"before": null, "after": {"id": 1}, "op": "c", "ts_ms": 1500, "source": {"db": "shop", "ts_ms": "7", "x": null}}}"#;
    let options = [("debezium-json.schema-include", "true")];
    let keys = [
        "schema",
        "ingestion-timestamp",
        "source.timestamp",
        "source.database",
        "source.table",
        "source.properties",
    ];
    assert_eq!(
        decode(CdcFormat::Debezium, "id INT", &options, &keys, record).unwrap(),
        [
            "+I[1, {\"type\":\"struct\"}, 1970-01-01T00:00:01.500Z, 1970-01-01T00:00:00.007Z, shop, null, {x=null, db=shop, ts_ms=7}]"
        ]
    );
}

#[test]
fn canal_lists_take_unchanged_columns_from_the_new_row() {
    let records = r#"{"data": [{"id": "1", "v": "a", "w": "1.5"}, {"id": "2", "v": "b", "w": null}], "database": "shop", "table": "p", "type": "INSERT", "old": null, "ts": 1}
{"data": [{"id": "2", "v": "b", "w": "9"}, {"id": "1", "v": "aa", "w": null}], "database": "shop", "table": "p", "type": "UPDATE", "old": [{"w": null}, {"v": "a"}], "ts": 3}
{"data": [{"id": "7"}], "database": "shop", "table": "q", "type": "INSERT", "old": null, "ts": 4}
{"data": null, "database": "shop", "table": "p", "type": "CREATE", "old": null}
{"data": [{"id": "2", "v": "b", "w": "9"}], "database": "shop", "table": "p", "type": "DELETE", "old": null}"#;
    let options = [
        ("canal-json.table.include", "p"),
        ("canal-json.database.include", "sh.*"),
    ];
    assert_eq!(
        decode(
            CdcFormat::Canal,
            "id INT, v STRING, w DOUBLE",
            &options,
            &["table"],
            records
        )
        .unwrap(),
        [
            "+I[1, a, 1.5, p]",
            "+I[2, b, null, p]",
            "-U[2, b, null, p]",
            "+U[2, b, 9.0, p]",
            "-U[1, a, null, p]",
            "+U[1, aa, null, p]",
            "-D[2, b, 9.0, p]"
        ]
    );
}

#[test]
fn maxwell_and_ogg() {
    let records = r#"{"type": "insert", "ts": 1, "data": {"id": 1, "v": "a"}}
{"type": "update", "ts": 2, "data": {"id": 1, "v": null}, "old": {"v": "a"}}
{"type": "delete", "ts": 4, "data": {"id": 1, "v": null}}"#;
    assert_eq!(
        decode(
            CdcFormat::Maxwell,
            "id INT, v STRING",
            &[],
            &["ingestion-timestamp"],
            records
        )
        .unwrap(),
        [
            "+I[1, a, 1970-01-01T00:00:01Z]",
            "-U[1, a, 1970-01-01T00:00:02Z]",
            "+U[1, null, 1970-01-01T00:00:02Z]",
            "-D[1, null, 1970-01-01T00:00:04Z]"
        ]
    );
    assert!(
        decode(
            CdcFormat::Maxwell,
            "id INT",
            &[],
            &[],
            r#"{"type": "bootstrap-start", "data": {}}"#
        )
        .is_err()
    );
    let records = r#"{"op_type": "I", "op_ts": "2024-01-01 00:00:00.5", "after": {"id": 1}}
{"op_type": "U", "before": {"id": 1}, "after": {"id": 2}}
{"op_type": "D", "before": {"id": 2}}"#;
    assert_eq!(
        decode(CdcFormat::Ogg, "id INT", &[], &["event-timestamp"], records).unwrap(),
        [
            "+I[1, 2024-01-01T00:00:00.500Z]",
            "-U[1, null]",
            "+U[2, null]",
            "-D[2, null]"
        ]
    );
}

#[test]
fn rows_are_written_as_additions_and_removals() {
    let write = |format: CdcFormat| {
        let t = table("id INT, n INT", &[]);
        let options = FormatOptions::new(&t, format!("{}.", format.identifier()));
        let encoding = format.encoding(&options).unwrap();
        let mut records = Records::default();
        let rows = batch("id INT, n INT", "+I|1|1\n-U|1|1");
        let mut encoder = encoding.encoder(&t.physical).unwrap();
        encoder.encode(&rows, &mut records).unwrap();
        let text = |i| String::from_utf8_lossy(records.get(i).unwrap()).into_owned();
        [text(0), text(1)]
    };
    assert_eq!(
        write(CdcFormat::Debezium),
        [
            r#"{"before":null,"after":{"id":1,"n":1},"op":"c"}"#,
            r#"{"before":{"id":1,"n":1},"after":null,"op":"d"}"#
        ]
    );
    assert_eq!(
        write(CdcFormat::Canal)[1],
        r#"{"data":[{"id":1,"n":1}],"type":"DELETE"}"#
    );
    assert_eq!(
        write(CdcFormat::Maxwell)[0],
        r#"{"data":{"id":1,"n":1},"type":"insert"}"#
    );
    assert_eq!(
        write(CdcFormat::Ogg)[1],
        r#"{"before":{"id":1,"n":1},"after":null,"op_type":"D"}"#
    );
    let t = table("id INT", &[("debezium-json.schema-include", "true")]);
    let options = FormatOptions::new(&t, "debezium-json.");
    assert!(CdcFormat::Debezium.encoding(&options).is_err());
}

proptest! {
    #[test]
    fn envelopes_never_panic(
        texts in proptest::collection::vec(
            "\\{(\"(op|type|op_type|before|after|old|data|source)\": ?(\"[a-zA-Z]\"|null|1|\\{\"id\": ?(1|\"x\"|\\{)\\}?|\\[\\{\\}, ?null\\]),?){0,4}\\}?", 0..6),
        format in proptest::sample::select(vec![CdcFormat::Debezium, CdcFormat::Canal, CdcFormat::Maxwell, CdcFormat::Ogg]),
    ) {
        let option = format!("{}.ignore-parse-errors", format.identifier());
        let (mut decoder, _) = decoder(format, "id INT", &[(option.as_str(), "true")], &[]);
        for text in texts {
            decoder.decode(text.as_bytes()).unwrap();
        }
        let rows = decoder.rows();
        prop_assert_eq!(decoder.finish().unwrap().len(), rows);
    }
}
