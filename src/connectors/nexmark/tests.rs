//! The events against those of the Java twin, and readers that share them.

use std::sync::Arc;

use super::*;
use crate::changelog::ChangeBatch;
use crate::connectors::pushdown::{FieldPath, PushedScan, ValueFilter};
use crate::connectors::testing::{lines, table};
use crate::connectors::{SourcePoll, SourceReader, SourceReaderFactory, SplitPosition};
use crate::runtime::clock::ManualClock;
use crate::types::Schema;
use datafusion::common::ScalarValue;

const COLUMNS: &str = "event_type INT, \
    person ROW<id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, dateTime TIMESTAMP(3), extra STRING>, \
    auction ROW<id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING>, \
    bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP(3), extra STRING>";

/// One hash for every hundred events of the Java twin: `benches/flink/reference.sh` makes it.
const REFERENCE: &str = include_str!("reference.txt");

fn source(options: &[(&str, &str)]) -> Result<(Arc<dyn TableSource>, Schema)> {
    source_with_clock(options, Arc::new(ManualClock::default()))
}

fn source_with_clock(
    options: &[(&str, &str)],
    clock: Arc<dyn Clock>,
) -> Result<(Arc<dyn TableSource>, Schema)> {
    let t = table(COLUMNS, options);
    let source = NexmarkConnector::new(clock).source(&t)?;
    Ok((source, t.physical))
}

fn rest(reader: &mut dyn SourceReader, max: usize) -> Vec<ChangeBatch> {
    let mut batches = Vec::new();
    loop {
        match reader.poll(max).unwrap() {
            SourcePoll::Batch(batch) => batches.push(batch),
            SourcePoll::End => return batches,
            other => panic!("{other:?}"),
        }
    }
}

fn printed(batches: &[ChangeBatch], schema: &Schema) -> Vec<String> {
    batches.iter().flat_map(|b| lines(b, schema)).collect()
}

fn all(readers: &dyn SourceReaderFactory, schema: &Schema) -> Vec<String> {
    let mut reader = readers.create(0, 1, &[]).unwrap();
    printed(&rest(&mut *reader, 1000), schema)
}

fn fnv(text: &str) -> u64 {
    let step = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn the_first_ten_thousand_events_are_those_of_the_java_twin() {
    let (source, schema) = source(&[("events.num", "10000")]).unwrap();
    let readers = source.readers(&[0, 1, 2, 3]).unwrap();
    let events = all(&*readers, &schema);
    assert_eq!(events.len(), 10_000);
    let hashes: Vec<u64> = REFERENCE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| u64::from_str_radix(line, 16).unwrap())
        .collect();
    assert_eq!(hashes.len(), 100);
    for (i, (hundred, expected)) in events.chunks(100).zip(hashes).enumerate() {
        // as the twin prints a row
        let text: Vec<String> = hundred
            .iter()
            .map(|line| {
                line.replace("+I[", "+I(")
                    .replace(", ", ",")
                    .replace(']', ")")
            })
            .collect();
        let text = text.join("\n").replace("+I(", "(");
        assert_eq!(fnv(&text), expected, "events from {}: {text}", i * 100);
    }
}

#[test]
fn fields_are_read_alone() {
    let (source, _) = source(&[("events.num", "200")]).unwrap();
    let types = crate::connectors::testing::schema("extra STRING, price BIGINT");
    let scan = PushedScan {
        schema: types.to_arrow(),
        fields: vec![FieldPath::column(2).field(9), FieldPath::column(3).field(2)],
        filter: None,
    };
    let readers = source.pushdown().unwrap().readers(&scan).unwrap();
    let fields = all(&*readers, &types);
    let whole = all(
        &*source.readers(&[2, 3]).unwrap(),
        &crate::connectors::testing::schema(COLUMNS).project(&[2, 3]),
    );
    for (n, (fields, whole)) in fields.iter().zip(&whole).enumerate() {
        let values = fields.trim_start_matches("+I[").trim_end_matches(']');
        let (extra, price) = values.split_once(", ").unwrap();
        match n % 50 {
            0 => assert_eq!(values, "null, null"),
            1..=3 => {
                assert_eq!(price, "null");
                assert!(whole.contains(&format!(", {extra}]")), "{whole}");
            }
            _ => {
                assert_eq!(extra, "null");
                assert!(whole.contains(&format!(", {price}, ")), "{whole}");
            }
        }
    }
}

fn filtered(interval_ms: Option<i64>, types: &[i32], rate: &str) -> Vec<String> {
    let (source, schema) = source(&[("events.num", "1000"), ("next-event.rate", rate)]).unwrap();
    let schema = schema.project(&[0]);
    let scan = PushedScan {
        schema: schema.to_arrow(),
        fields: vec![FieldPath::column(0)],
        filter: Some(ValueFilter {
            column: 0,
            values: types.iter().map(|t| ScalarValue::Int32(Some(*t))).collect(),
            watermark_interval_ms: interval_ms,
        }),
    };
    let pushdown = source.pushdown().unwrap();
    assert!(pushdown.filters_on(0) && !pushdown.filters_on(1));
    all(&*pushdown.readers(&scan).unwrap(), &schema)
}

#[test]
fn rows_that_nobody_asks_for_are_left_out_unless_they_raise_the_watermark() {
    let bids = filtered(None, &[2], "100000");
    assert_eq!(bids.len(), 920);
    assert!(bids.iter().all(|row| row == "+I[2]"), "{bids:?}");
    // 100 events a millisecond: every second person is the first of one
    let bids = filtered(Some(0), &[2], "100000");
    assert_eq!(bids.len(), 930);
    assert_eq!(bids[0], "+I[0]");
    let bids = filtered(Some(3), &[2], "100000");
    assert_eq!(bids.len(), 923);
    // an event a second: all raise it
    assert_eq!(filtered(Some(200), &[2], "1").len(), 1000);
    assert_eq!(filtered(None, &[0, 1], "100000").len(), 80);
    assert_eq!(filtered(None, &[7], "100000").len(), 0);
}

#[test]
fn readers_share_the_events_and_go_on_at_another_parallelism() {
    let (source, schema) = source(&[("events.num", "5000")]).unwrap();
    let readers = source.readers(&[0, 1, 2, 3]).unwrap();
    let mut expected = all(&*readers, &schema);
    let mut seen = Vec::new();
    let mut positions: Vec<SplitPosition> = Vec::new();
    for subtask in 0..3 {
        let mut reader = readers.create(subtask, 3, &[]).unwrap();
        for _ in 0..=subtask {
            let SourcePoll::Batch(batch) = reader.poll(100).unwrap() else {
                panic!("no batch");
            };
            seen.extend(lines(&batch, &schema));
        }
        positions.extend(reader.positions());
    }
    for subtask in 0..2 {
        let mut reader = readers.create(subtask, 2, &positions).unwrap();
        seen.extend(printed(&rest(&mut *reader, 777), &schema));
    }
    expected.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen.len(), 5000);
    assert!(seen == expected, "other events at another parallelism");
}

#[test]
fn a_throttled_source_keeps_to_its_rate() {
    let clock = Arc::new(ManualClock::new(5000));
    let options = [("throttle", "true"), ("next-event.rate", "1000")];
    let (source, _) = source_with_clock(&options, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    assert!(!source.is_bounded());
    let readers = source.readers(&[0]).unwrap();
    let mut reader = readers.create(0, 1, &[]).unwrap();
    let mut count = || match reader.poll(1000).unwrap() {
        SourcePoll::Batch(batch) => batch.len(),
        SourcePoll::Pending(_) => 0,
        other => panic!("{other:?}"),
    };
    assert_eq!((count(), count()), (1, 0));
    clock.set(5010);
    assert_eq!((count(), count()), (10, 0));
}

#[test]
fn what_the_connector_does_not_have_is_refused() {
    let refused = |columns: &str, options: &[(&str, &str)]| {
        let connector = NexmarkConnector::new(Arc::new(ManualClock::default()));
        let error = connector.source(&table(columns, options)).unwrap_err();
        error.message().to_string()
    };
    assert!(refused("a INT", &[]).contains("no column 'a'"));
    assert!(refused("bid ROW<x INT>", &[]).contains("no field 'x' in 'bid'"));
    let typed = refused("bid ROW<price INT>", &[]);
    assert!(
        typed.contains("'bid.price' as BIGINT, not as INT"),
        "{typed}"
    );
    assert!(refused("event_type STRING", &[]).contains("as INT, not as STRING"));
    assert!(refused("event_type INT", &[("next-event.rate", "0")]).contains("above zero"));
    assert!(refused("event_type INT", &[("events.num", "-1")]).contains("a number of events"));
    let t = table("event_type INT", &[]);
    let connector = NexmarkConnector::new(Arc::new(ManualClock::default()));
    assert!(connector.sink(&t).is_err());
}
