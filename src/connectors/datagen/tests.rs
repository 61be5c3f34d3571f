use super::*;
use crate::connectors::testing::{drain, lines, schema, table};
use crate::connectors::{SourcePoll, SourceReader};
use crate::runtime::clock::ManualClock;

fn source(columns: &str, options: &[(&str, &str)]) -> Result<Arc<dyn TableSource>> {
    DatagenConnector::new(Arc::new(ManualClock::new(86_400_000))).source(&table(columns, options))
}

fn rows(columns: &str, options: &[(&str, &str)]) -> Vec<String> {
    let t = table(columns, options);
    drain(source(columns, options).unwrap().as_ref(), &t).unwrap()
}

#[test]
fn sequences_end_at_the_first_that_ends() {
    let options = [
        ("fields.id.kind", "sequence"),
        ("fields.id.start", "3"),
        ("fields.id.end", "5"),
        ("fields.s.kind", "sequence"),
        ("fields.s.start", "1"),
        ("fields.s.end", "100"),
    ];
    let got = rows("id BIGINT, s STRING", &options);
    assert_eq!(got, ["+I[3, 1]", "+I[4, 2]", "+I[5, 3]"]);
    assert!(
        source("id BIGINT, s STRING", &options)
            .unwrap()
            .is_bounded()
    );
}

#[test]
fn every_type_can_be_random() {
    let columns = "a BOOLEAN, b TINYINT, c BIGINT, d FLOAT, e DECIMAL(4, 2), f CHAR(3), g VARCHAR(5), \
                   h BYTES, i DATE, j TIME(0), k TIMESTAMP(6), l TIMESTAMP_LTZ(3), m ARRAY<INT>, \
                   n MAP<STRING, DOUBLE>, o MULTISET<INT>, p ROW<x INT, y STRING>";
    let options = [
        ("number-of-rows", "20"),
        ("fields.p.y.length", "2"),
        ("fields.m.element.max", "0"),
        ("fields.m.length", "1"),
        ("fields.c.null-rate", "1.0"),
    ];
    let got = rows(columns, &options);
    assert_eq!(got.len(), 20);
    assert!(
        got.iter()
            .all(|r| r.contains("1970-01-02T00:00, 1970-01-02T00:00:00Z")),
        "{got:?}"
    );
    assert!(got.iter().any(|r| r.contains("true, ")) && got.iter().any(|r| r.contains("false, ")));
}

#[test]
fn bounds_are_kept() {
    let got = rows(
        "x INT, y STRING",
        &[
            ("number-of-rows", "200"),
            ("fields.x.min", "2"),
            ("fields.x.max", "3"),
            ("fields.y.length", "4"),
            ("fields.y.var-len", "true"),
        ],
    );
    let mut numbers: Vec<_> = got.iter().map(|r| &r[..4]).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, ["+I[2", "+I[3"]);
    assert!(got.iter().all(|r| (8..=10).contains(&r.len())), "{got:?}");
}

#[test]
fn options_of_another_type_are_refused() {
    let error = source("a INT", &[("fields.a.length", "2")]).unwrap_err();
    assert!(
        error.message().contains("fields.a.length\n\nSupported"),
        "{error}"
    );
    let error = source("x INT", &[("fields.x.kind", "sequence")]).unwrap_err();
    assert!(error.message().contains("'fields.x.start'"), "{error}");
    assert!(source("x INT", &[("number-of-rows", "many")]).is_err());
    assert!(source("x INT", &[("fields.x.min", "3"), ("fields.x.max", "2")]).is_err());
    assert!(source("x TINYINT", &[("fields.x.max", "300")]).is_err());
}

fn read(reader: &mut dyn SourceReader, max: usize) -> Vec<String> {
    match reader.poll(max).unwrap() {
        SourcePoll::Batch(batch) => lines(&batch, &schema("x INT")),
        _ => Vec::new(),
    }
}

#[test]
fn a_restored_reader_makes_the_same_rows_at_another_parallelism() {
    let options = [("number-of-rows", "10"), ("seed", "7")];
    let all = rows("x INT", &options);
    let readers = source("x INT", &options).unwrap().readers(&[0]).unwrap();
    let mut seen = Vec::new();
    let mut positions = Vec::new();
    for subtask in 0..2 {
        let mut reader = readers.create(subtask, 2, &[]).unwrap();
        seen.extend(read(reader.as_mut(), 2));
        positions.extend(reader.positions());
    }
    // Another process has another seed; the positions carry the old one.
    let again = source("x INT", &[("number-of-rows", "10")]).unwrap();
    let again = again.readers(&[0]).unwrap();
    for subtask in 0..3 {
        let mut reader = again.create(subtask, 3, &positions).unwrap();
        loop {
            let more = read(reader.as_mut(), 4);
            if more.is_empty() {
                break;
            }
            seen.extend(more);
        }
    }
    let mut want = all;
    want.sort();
    seen.sort();
    assert_eq!(seen, want);
}

#[test]
fn the_rate_is_kept() {
    let clock = Arc::new(ManualClock::new(0));
    let t = table("x INT", &[("rows-per-second", "5")]);
    let source = DatagenConnector::new(Arc::clone(&clock) as Arc<dyn Clock>)
        .source(&t)
        .unwrap();
    let mut reader = source.readers(&[0]).unwrap().create(0, 1, &[]).unwrap();
    assert_eq!(read(reader.as_mut(), 3).len(), 3);
    assert_eq!(read(reader.as_mut(), 3).len(), 2);
    assert!(matches!(reader.poll(3), Ok(SourcePoll::Pending(wait)) if wait.as_millis() == 1000));
    clock.set(1000);
    assert_eq!(read(reader.as_mut(), 100).len(), 5);
}
