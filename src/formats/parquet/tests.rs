use std::fs::File;

use super::*;
use crate::changelog::ChangeBatch;
use crate::connectors::testing::{lines, schema, table};
use crate::formats::json::JsonFormat;

fn coding(options: &[(&str, &str)]) -> Coding {
    let t = table("a INT", options);
    Coding(Settings::read(&FormatOptions::new(&t, "parquet.")).unwrap())
}

fn read(file: &File, columns: &DecodedColumns, skip: u64) -> Result<Vec<String>> {
    let file = file.try_clone().unwrap();
    let mut reader = coding(&[]).reader(file, columns, None, skip)?;
    let mut rows = Vec::new();
    while let Some(batch) = reader.next(2)? {
        assert!(batch.num_rows() <= 2 && batch.num_rows() > 0);
        let batch = ChangeBatch::inserts(batch);
        rows.extend(lines(&batch, &columns.produced()));
    }
    Ok(rows)
}

/// Rows out of JSON lines.
fn batch(columns: &str, rows: &str) -> ChangeBatch {
    let json = table(columns, &[]);
    let decoding = JsonFormat.decoding(&FormatOptions::new(&json, "json."));
    let all = DecodedColumns::all(&json.physical);
    let mut decoder = decoding.unwrap().decoder(&all).unwrap();
    for line in rows.lines() {
        decoder.decode(line.as_bytes()).unwrap();
    }
    decoder.finish().unwrap()
}

fn write(columns: &str, rows: &str, options: &[(&str, &str)]) -> File {
    let file = tempfile::tempfile().unwrap();
    let copy = file.try_clone().unwrap();
    let mut writer = coding(options).writer(copy, &schema(columns)).unwrap();
    writer.write(batch(columns, rows).rows()).unwrap();
    assert!(writer.size() > 0);
    writer.finish().unwrap();
    file
}

const ALL_TYPES: &str = "b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, \
    e DECIMAL(10,2), g DECIMAL(38,9), c CHAR(3), v STRING, y BYTES, da DATE, ti TIME(3), \
    t3 TIMESTAMP(3), t6 TIMESTAMP(6), t9 TIMESTAMP(9), z TIMESTAMP_LTZ(3)";
const ROWS: &str = r#"{"b":true,"t":-1,"s":2,"i":3,"l":4,"f":1.5,"d":2.5,"e":12.34,"g":1.000000001,"c":"abc","v":"ü","y":"YWJj","da":"2024-02-29","ti":"10:11:12.123","t3":"1969-12-31 23:59:59.999","t6":"2024-01-01 00:00:00.123456","t9":"2024-01-01 00:00:00.123456789","z":"2024-01-01 00:00:00.5Z"}
{}
{"b":false,"t":1,"s":1,"i":1,"l":1,"f":0.0,"d":-0.0,"e":-99999999.99,"g":0,"c":"xyz","v":"","y":"","da":"1970-01-01","ti":"00:00:00","t3":"1970-01-01 00:00:00","t6":"1969-01-01 00:00:00.000001","t9":"1970-01-01 00:00:00","z":"1970-01-01 00:00:00Z"}"#;

#[test]
fn every_type_comes_back_as_it_was() {
    for compression in ["SNAPPY", "ZSTD", "GZIP", "UNCOMPRESSED"] {
        let file = write(ALL_TYPES, ROWS, &[("parquet.compression", compression)]);
        let columns = DecodedColumns::all(&schema(ALL_TYPES));
        let wanted = lines(&batch(ALL_TYPES, ROWS), &columns.schema);
        assert_eq!(read(&file, &columns, 0).unwrap(), wanted);
        assert_eq!(read(&file, &columns, 1).unwrap(), wanted[1..]);
        assert_eq!(read(&file, &columns, 9).unwrap(), [""; 0]);
    }
}

#[test]
fn nested_values_come_back() {
    let columns =
        "a ARRAY<INT>, m MAP<STRING,BIGINT>, r ROW<x INT, y ARRAY<STRING>>, n MULTISET<STRING>";
    let declared = schema(columns);
    let all = DecodedColumns::all(&declared);
    let rows = [
        r#"{"a":[1,null],"m":{"k":1,"l":null},"r":{"x":1,"y":["u",null]},"n":{"z":2}}"#,
        r#"{"a":[],"m":{},"r":{"x":null,"y":null},"n":null}"#,
        "{}",
    ];
    let rows = batch(columns, &rows.join("\n"));
    let file = tempfile::tempfile().unwrap();
    let coding = coding(&[]);
    let mut writer = coding.writer(file.try_clone().unwrap(), &declared).unwrap();
    writer.write(rows.rows()).unwrap();
    writer.finish().unwrap();
    assert_eq!(read(&file, &all, 0).unwrap(), lines(&rows, &declared));
    // A field that the file does not have is NULL, one that nobody asks for is not read.
    let other = schema("r ROW<y ARRAY<STRING>, w DOUBLE>, q INT");
    let rows = read(&file, &DecodedColumns::all(&other), 2).unwrap();
    assert_eq!(rows, ["+I[null, null]"]);
    let rows = read(&file, &DecodedColumns::all(&other), 0).unwrap();
    assert_eq!(rows[0], "+I[+I[[u, null], null], null]");
}

#[test]
fn columns_are_found_by_name_and_widened() {
    let file = write(
        "a INT, b DECIMAL(5,2), c FLOAT, d TIMESTAMP(6)",
        r#"{"a":1,"b":1.25,"c":1.5,"d":"2024-01-01 00:00:00.123456"}"#,
        &[],
    );
    let wide = schema("d TIMESTAMP_LTZ(3), x STRING, a BIGINT, b DECIMAL(10,3), c DOUBLE");
    let mut columns = DecodedColumns::all(&wide);
    assert_eq!(
        read(&file, &columns, 0).unwrap(),
        ["+I[2024-01-01T00:00:00.123Z, null, 1, 1.250, 1.5]"]
    );
    columns.projection = vec![2];
    assert_eq!(read(&file, &columns, 0).unwrap(), ["+I[1]"]);
    columns.projection = vec![];
    assert_eq!(read(&file, &columns, 0).unwrap(), ["+I[]"]);
    for (narrow, cause) in [
        ("a STRING", "Int32"),
        ("b DECIMAL(4,2)", "Decimal128(5, 2)"),
        ("c INT", "Float32"),
    ] {
        let error = read(&file, &DecodedColumns::all(&schema(narrow)), 0).unwrap_err();
        assert!(error.message().contains(cause), "{error}");
    }
}

#[test]
fn what_is_no_parquet_is_refused() {
    let text = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(text.path(), "{\"a\": 1}\n".repeat(20)).unwrap();
    let columns = DecodedColumns::all(&schema("a INT"));
    let error = read(&text.reopen().unwrap(), &columns, 0).unwrap_err();
    assert!(error.message().starts_with("parquet: "), "{error}");
    // Cut off or damaged anywhere: an error or other rows, never a panic.
    let mut file = write(
        "a INT, b STRING",
        "{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":\"y\"}",
        &[],
    );
    let mut bytes = Vec::new();
    std::io::Seek::rewind(&mut file).unwrap();
    std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
    let columns = DecodedColumns::all(&schema("a INT, b STRING"));
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        for content in [&bytes[..at], &damaged] {
            std::fs::write(text.path(), content).unwrap();
            let _any = read(&text.reopen().unwrap(), &columns, 0);
        }
    }
    let wrong = coding(&[]);
    assert!(DecodingFormat::decoder(&wrong, &columns).is_err());
    assert!(BulkDecoding::check(&wrong, &columns).is_ok());
}
