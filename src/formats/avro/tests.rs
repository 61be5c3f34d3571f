use std::sync::{Arc, Mutex};

use apache_avro::Schema as AvroSchema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;

use super::AvroFormat;
use super::schema::Node;
use crate::connectors::testing::{batch, lines, schema, table};
use crate::error::Result;
use crate::formats::{DecodedColumns, Format, FormatOptions, Records};

/// A registry that speaks the API: knows what it was told.
struct Stub {
    url: String,
    schemas: Arc<Mutex<Vec<String>>>,
}

impl Stub {
    fn start(schemas: &[&str]) -> Self {
        let server = tiny_http::Server::http("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", server.server_addr());
        let schemas = schemas.iter().map(|s| (*s).to_string()).collect();
        let schemas: Arc<Mutex<Vec<String>>> = Arc::new(Mutex::new(schemas));
        let known = Arc::clone(&schemas);
        std::thread::spawn(move || {
            for mut request in server.incoming_requests() {
                let mut body = String::new();
                request
                    .as_reader()
                    .read_to_string(&mut body)
                    .expect("a body");
                let mut known = known.lock().expect("a lock");
                let answer = match request.url().strip_prefix("/schemas/ids/") {
                    Some(id) => {
                        let id: usize = id.parse().expect("a number");
                        known.get(id).map(|s| serde_json::json!({ "schema": s }))
                    }
                    None => {
                        let body: serde_json::Value = serde_json::from_str(&body).expect("JSON");
                        known.push(body["schema"].as_str().expect("a schema").to_string());
                        Some(serde_json::json!({ "id": known.len() - 1 }))
                    }
                };
                let (status, answer) = match answer {
                    Some(answer) => (200, answer),
                    None => (404, serde_json::json!({"message": "Schema not found"})),
                };
                let response = tiny_http::Response::from_string(answer.to_string());
                request
                    .respond(response.with_status_code(status))
                    .expect("an answer");
            }
        });
        Self { url, schemas }
    }
}

fn decode(
    format: AvroFormat,
    columns: &str,
    options: &[(&str, &str)],
    records: &[&[u8]],
) -> Result<Vec<String>> {
    let t = table(columns, options);
    let prefix = format!("{}.", format.identifier());
    let decoding = format.decoding(&FormatOptions::new(&t, prefix))?;
    let mut decoder = decoding.decoder(&DecodedColumns::all(&t.physical))?;
    for record in records {
        decoder.decode(record)?;
    }
    Ok(lines(&decoder.finish()?, &schema(columns)))
}

fn encode(
    format: AvroFormat,
    columns: &str,
    options: &[(&str, &str)],
    data: &str,
) -> Result<Vec<Vec<u8>>> {
    let t = table(columns, options);
    let prefix = format!("{}.", format.identifier());
    let encoding = format.encoding(&FormatOptions::new(&t, prefix))?;
    let mut records = Records::default();
    encoding
        .encoder(&t.physical)?
        .encode(&batch(columns, data), &mut records)?;
    let records = (0..records.len()).filter_map(|i| records.get(i).map(<[u8]>::to_vec));
    Ok(records.collect())
}

const ALL: &str = "b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, s STRING, y BYTES, dt DATE, \
                   t TIME(3), ts TIMESTAMP(3), n DECIMAL(10, 2), a ARRAY<INT>, m MAP<STRING, BIGINT>, \
                   r ROW<x INT, z STRING>";
const ROWS: &str = "+I|true|-7|9999999999|1.5|-2.25|äß|\\N|2024-01-31|10:11:12.5|2024-01-01T00:00:01.5|-12.34|[1, null, -3]|{\"k\": 5}|{\"x\": 1, \"z\": null}\n\
                    +I|\\N|\\N|\\N|\\N|\\N|\\N|\\N|\\N|\\N|\\N|\\N|\\N|\\N|\\N";

#[test]
fn every_type_comes_back() {
    let records = encode(AvroFormat::Plain, ALL, &[], ROWS).unwrap();
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    let rows = decode(AvroFormat::Plain, ALL, &[], &records).unwrap();
    let expected = lines(&batch(ALL, ROWS), &schema(ALL));
    assert_eq!(rows, expected);
}

#[test]
fn the_library_reads_what_we_write() {
    let columns = "i INT, s STRING, n DECIMAL(6, 2)";
    let t = table(columns, &[]);
    let text = super::schema::derive(&t.physical, true).unwrap();
    let avro = AvroSchema::parse_str(&text).unwrap();
    let records = encode(AvroFormat::Plain, columns, &[], "+I|300|x|-1.28").unwrap();
    let reader = GenericDatumReader::builder(&avro).build().unwrap();
    let value = reader.read_value(&mut records[0].as_slice()).unwrap();
    let Value::Record(fields) = value else {
        panic!("{value:?}")
    };
    let some = |v: Value| Value::Union(1, Box::new(v));
    assert_eq!(fields[0].1, some(Value::Int(300)));
    assert_eq!(fields[1].1, some(Value::String("x".into())));
    let number = Value::Decimal(apache_avro::Decimal::from([0x80_u8]));
    assert_eq!(fields[2].1, some(number));
}

#[test]
fn columns_are_found_by_name_and_widened() {
    let written = r#"{"type": "record", "name": "r", "fields": [
        {"name": "gone", "type": {"type": "array", "items": "string"}},
        {"name": "id", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["A", "B"]}}]}"#;
    let avro = AvroSchema::parse_str(written).unwrap();
    let value = Value::Record(vec![
        ("gone".into(), Value::Array(vec![Value::String("x".into())])),
        ("id".into(), Value::Int(5)),
        ("at".into(), Value::TimestampMicros(1_500_000)),
        ("kind".into(), Value::Enum(1, "B".into())),
    ]);
    let mut record = vec![0, 0, 0, 0, 0];
    let writer = GenericDatumWriter::builder(&avro).build().unwrap();
    record.extend(writer.write_value_to_vec(value).unwrap());
    let stub = Stub::start(&[written]);
    let options = [("avro-confluent.url", stub.url.as_str())];
    let columns = "kind STRING, id BIGINT, new STRING, at TIMESTAMP(3)";
    let rows = decode(AvroFormat::Confluent, columns, &options, &[&record]).unwrap();
    assert_eq!(rows, ["+I[B, 5, null, 1970-01-01T00:00:01.500]"]);
    let error = decode(AvroFormat::Confluent, "id BOOLEAN", &options, &[&record]).unwrap_err();
    assert!(error.to_string().contains("'id'"), "{error}");
    let unknown = [0, 0, 0, 0, 9, 1];
    let error = decode(AvroFormat::Confluent, columns, &options, &[&unknown]).unwrap_err();
    assert!(error.to_string().contains("Schema not found"), "{error}");
    assert!(decode(AvroFormat::Confluent, columns, &options, &[b"{}"]).is_err());
}

#[test]
fn changes_go_through_a_registry() {
    let stub = Stub::start(&["\"string\""]);
    let options = [
        ("debezium-avro-confluent.url", stub.url.as_str()),
        ("debezium-avro-confluent.subject", "t-value"),
    ];
    let columns = "id INT, s STRING";
    let data = "+I|1|a\n-U|1|a\n+U|1|b\n-D|1|b";
    let records = encode(AvroFormat::Debezium, columns, &options, data).unwrap();
    assert_eq!(stub.schemas.lock().unwrap().len(), 2, "registered once");
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    let rows = decode(AvroFormat::Debezium, columns, &options, &records).unwrap();
    assert_eq!(rows, ["+I[1, a]", "-D[1, a]", "+I[1, b]", "-D[1, b]"]);
}

#[test]
fn broken_bytes_are_errors() {
    let records = encode(AvroFormat::Plain, ALL, &[], ROWS).unwrap();
    for end in 0..records[0].len() {
        assert!(decode(AvroFormat::Plain, ALL, &[], &[&records[0][..end]]).is_err());
    }
    let mut seed = 7_u64;
    for _ in 0..500 {
        let mut bytes = records[0].clone();
        for _ in 0..4 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = usize::try_from(seed >> 33).unwrap() % bytes.len();
            bytes[at] = seed.to_le_bytes()[1];
        }
        // Whatever it is, it is no panic.
        let _ = decode(AvroFormat::Plain, ALL, &[], &[&bytes]);
    }
}

#[test]
fn types_that_avro_has_not_are_refused() {
    assert!(decode(AvroFormat::Plain, "t TIMESTAMP(6)", &[], &[]).is_err());
    let new = [("avro.timestamp_mapping.legacy", "false")];
    decode(AvroFormat::Plain, "t TIMESTAMP_LTZ(6)", &new, &[]).unwrap();
    assert!(decode(AvroFormat::Plain, "m MAP<INT, INT>", &[], &[]).is_err());
    let recursive = r#"{"type": "record", "name": "r", "fields": [
        {"name": "next", "type": ["null", "r"]}]}"#;
    assert!(Node::parse(recursive).is_err());
    let missing = decode(AvroFormat::Confluent, "a INT", &[], &[]).unwrap_err();
    assert!(
        missing.message().contains("avro-confluent.url"),
        "{missing}"
    );
}
