use super::*;
use crate::changelog::ChangeBatch;
use crate::connectors::testing::{batch, lines, schema, table};
use crate::connectors::{SourcePoll, SourceReader, SourceReaderFactory};

const COLUMNS: &str = "k STRING, v INT";

fn description(key: &[usize], options: &[(&str, &str)]) -> TableDescription {
    let mut t = table(COLUMNS, options);
    t.primary_key = key.to_vec();
    t
}

fn connector() -> (MemoryConnector, Arc<MemoryStore>) {
    let store = Arc::new(MemoryStore::default());
    (MemoryConnector::new(Arc::clone(&store)), store)
}

fn readers(connector: &MemoryConnector, t: &TableDescription) -> Arc<dyn SourceReaderFactory> {
    connector.source(t).unwrap().readers(&[0, 1]).unwrap()
}

/// All that is there to read.
fn read(reader: &mut dyn SourceReader, max_rows: usize) -> Vec<String> {
    let mut rows = Vec::new();
    while let SourcePoll::Batch(b) = reader.poll(max_rows).unwrap() {
        rows.extend(lines(&b, &schema(COLUMNS)));
    }
    rows
}

#[test]
fn readers_see_the_content_and_then_every_change() {
    let (connector, store) = connector();
    let t = description(&[0], &[]);
    let content = store.open(&t).unwrap();
    content
        .apply(&batch(COLUMNS, "+I|a|1\n+I|b|2\n+I|a|3"))
        .unwrap();
    let mut early = readers(&connector, &t).create(0, 1, &[]).unwrap();
    assert_eq!(read(early.as_mut(), 1), ["+I[a, 3]", "+I[b, 2]"]);
    let sink = connector.sink(&t).unwrap();
    let mut writer = sink.writers().unwrap().create(0, 1).unwrap();
    writer
        .write(&batch(COLUMNS, "+U|a|4\n+I|b|2\n-D|b|\\N\n-D|z|0"))
        .unwrap();
    let changes = ["-U[a, 3]", "+U[a, 4]", "-D[b, 2]"];
    assert_eq!(read(early.as_mut(), 2), changes);
    assert!(matches!(early.poll(1), Ok(SourcePoll::Pending(_))));
    let mut late = readers(&connector, &t).create(0, 1, &[]).unwrap();
    assert_eq!(read(late.as_mut(), 9), ["+I[a, 4]"]);
    store.finish_all();
    assert!(matches!(early.poll(1), Ok(SourcePoll::End)));
    assert!(matches!(late.poll(1), Ok(SourcePoll::End)));
}

#[test]
fn without_a_key_rows_are_counted() {
    let (connector, store) = connector();
    let t = description(&[], &[]);
    let content = store.open(&t).unwrap();
    let mut reader = readers(&connector, &t).create(0, 1, &[]).unwrap();
    content
        .apply(&batch(COLUMNS, "+I|a|1\n+I|a|1\n-U|a|1\n+U|a|2\n-D|x|9"))
        .unwrap();
    assert_eq!(content.content().unwrap().num_rows(), 2);
    assert_eq!(
        read(reader.as_mut(), 9),
        ["+I[a, 1]", "+I[a, 1]", "-U[a, 1]", "+U[a, 2]"]
    );
}

#[test]
fn an_update_sees_the_rows_of_its_moment() {
    let (_, store) = connector();
    let content = store.open(&description(&[0], &[])).unwrap();
    content.apply(&batch(COLUMNS, "+I|a|1\n+I|b|2")).unwrap();
    content
        .update(|rows| {
            assert_eq!(rows.num_rows(), 2);
            Ok(batch(COLUMNS, "-U|a|1\n+U|a|7"))
        })
        .unwrap();
    let now = ChangeBatch::inserts(content.content().unwrap());
    assert_eq!(lines(&now, &schema(COLUMNS)), ["+I[a, 7]", "+I[b, 2]"]);
}

#[test]
fn a_restored_reader_goes_on_where_the_checkpoint_was() {
    let (connector, store) = connector();
    let t = description(&[0], &[]);
    let content = store.open(&t).unwrap();
    content.apply(&batch(COLUMNS, "+I|a|1\n+I|b|2")).unwrap();
    let factory = readers(&connector, &t);
    let mut reader = factory.create(0, 1, &[]).unwrap();
    reader.poll(1).unwrap();
    let in_content = reader.positions();
    content.apply(&batch(COLUMNS, "+I|c|3")).unwrap();
    content.apply(&batch(COLUMNS, "+I|d|4\n+I|e|5")).unwrap();
    assert_eq!(read(reader.as_mut(), 9).len(), 4);
    drop(reader);
    let mut again = factory.create(0, 1, &in_content).unwrap();
    assert_eq!(
        read(again.as_mut(), 1),
        ["+I[b, 2]", "+I[c, 3]", "+I[d, 4]", "+I[e, 5]"]
    );
    let at_end = again.positions();
    again.checkpoint_complete(&at_end);
    content.apply(&batch(COLUMNS, "+I|f|6")).unwrap();
    let mut once_more = factory.create(0, 1, &at_end).unwrap();
    assert_eq!(read(once_more.as_mut(), 9), ["+I[f, 6]"]);
    let mut gone = factory.create(0, 1, &in_content).unwrap();
    assert!(matches!(gone.poll(9), Ok(SourcePoll::Batch(_))));
    assert!(gone.poll(1).is_err());
}

/// Another process: a store of its own, and nothing but the positions.
#[test]
fn a_reader_takes_table_and_log_into_another_process() {
    let t = description(&[0], &[]);
    let (before, store) = connector();
    let content = store.open(&t).unwrap();
    content.apply(&batch(COLUMNS, "+I|a|1\n+I|b|2")).unwrap();
    let mut reader = readers(&before, &t).create(0, 1, &[]).unwrap();
    reader.poll(1).unwrap();
    assert_eq!(content.apply(&batch(COLUMNS, "+U|a|3")).unwrap(), 2);
    let positions = reader.positions();
    // not in the checkpoint: to be pushed again
    content.apply(&batch(COLUMNS, "+I|c|4")).unwrap();

    let (after, store) = connector();
    let content = store.open(&t).unwrap();
    assert_eq!(content.restored(), 0);
    let mut reader = readers(&after, &t).create(0, 1, &positions).unwrap();
    assert_eq!(content.restored(), 2);
    assert_eq!(content.content().unwrap().num_rows(), 2);
    assert_eq!(content.apply(&batch(COLUMNS, "+I|c|4")).unwrap(), 3);
    content.apply(&batch(COLUMNS, "+U|a|5")).unwrap();
    assert_eq!(
        read(reader.as_mut(), 1),
        [
            "+I[b, 2]", "-U[a, 1]", "+U[a, 3]", "+I[c, 4]", "-U[a, 3]", "+U[a, 5]"
        ]
    );
    // a table that has rows already cannot become another one
    let (other, store) = connector();
    store
        .open(&t)
        .unwrap()
        .apply(&batch(COLUMNS, "+I|z|1"))
        .unwrap();
    assert!(readers(&other, &t).create(0, 1, &positions).is_err());
}

#[test]
fn watermarks_go_into_another_process_too() {
    let t = description(&[], &[]);
    let (before, store) = connector();
    let content = store.open(&t).unwrap();
    let reader = readers(&before, &t).create(0, 1, &[]).unwrap();
    content.apply(&batch(COLUMNS, "+I|a|1")).unwrap();
    content.watermark(10);
    content.apply(&batch(COLUMNS, "+I|b|2")).unwrap();
    let positions = reader.positions();
    let (after, store) = connector();
    let content = store.open(&t).unwrap();
    let mut reader = readers(&after, &t).create(0, 1, &positions).unwrap();
    // it has been said already
    content.watermark(10);
    content.watermark(11);
    let mut seen = Vec::new();
    loop {
        match reader.poll(9).unwrap() {
            SourcePoll::Batch(b) => seen.extend(lines(&b, &schema(COLUMNS))),
            SourcePoll::Watermark(w) => seen.push(format!("wm {w}")),
            _ => break,
        }
    }
    assert_eq!(seen, ["+I[a, 1]", "wm 10", "+I[b, 2]", "wm 11"]);
}

#[test]
fn of_two_copies_the_earlier_counts_and_the_later_reader_skips() {
    let t = description(&[], &[]);
    let (before, store) = connector();
    let content = store.open(&t).unwrap();
    let reader = || readers(&before, &t).create(0, 1, &[]).unwrap();
    let (mut first, mut second) = (reader(), reader());
    content.apply(&batch(COLUMNS, "+I|a|1")).unwrap();
    read(first.as_mut(), 9);
    let early = first.positions();
    content.apply(&batch(COLUMNS, "+I|b|2")).unwrap();
    read(second.as_mut(), 9);
    let late = second.positions();

    for late_first in [true, false] {
        let (after, store) = connector();
        let content = store.open(&t).unwrap();
        let reader = |at: &[_]| readers(&after, &t).create(0, 1, at).unwrap();
        let (mut first, mut second) = if late_first {
            let second = reader(&late);
            (reader(&early), second)
        } else {
            (reader(&early), reader(&late))
        };
        assert_eq!(content.restored(), 1);
        content.apply(&batch(COLUMNS, "+I|b|2")).unwrap();
        content.apply(&batch(COLUMNS, "+I|c|3")).unwrap();
        assert_eq!(read(first.as_mut(), 9), ["+I[b, 2]", "+I[c, 3]"]);
        assert_eq!(read(second.as_mut(), 9), ["+I[c, 3]"]);
    }
}

#[test]
fn writers_with_transactions_show_rows_when_they_are_committed() {
    let t = description(&[0], &[]);
    let (before, store) = connector();
    let content = store.open(&t).unwrap();
    let factory = before.sink(&t).unwrap().writers().unwrap();
    let mut writer = factory.create(0, 1).unwrap();
    writer.begin_transactions();
    writer.write(&batch(COLUMNS, "+I|a|1")).unwrap();
    let committables = writer.pre_commit(1).unwrap();
    let state = writer.snapshot().unwrap();
    assert_eq!(content.content().unwrap().num_rows(), 0);
    for _ in 0..2 {
        factory.commit(&committables[0]).unwrap();
        assert_eq!(content.content().unwrap().num_rows(), 1);
    }
    writer.write(&batch(COLUMNS, "+I|b|2")).unwrap();
    let lost = writer.pre_commit(2).unwrap();
    factory.abort_leftovers(1).unwrap();
    factory.commit(&lost[0]).unwrap();
    assert_eq!(content.content().unwrap().num_rows(), 1);
    // in the same process the state changes nothing, in another it is the table
    writer.restore(std::slice::from_ref(&state)).unwrap();
    assert_eq!(content.content().unwrap().num_rows(), 1);
    let (after, store) = connector();
    let content = store.open(&t).unwrap();
    let factory = after.sink(&t).unwrap().writers().unwrap();
    factory.commit(&committables[0]).unwrap();
    factory.create(0, 1).unwrap().restore(&[state]).unwrap();
    let now = ChangeBatch::inserts(content.content().unwrap());
    assert_eq!(lines(&now, &schema(COLUMNS)), ["+I[a, 1]"]);
}

#[test]
fn names_are_shared_and_shapes_are_checked() {
    let (connector, store) = connector();
    let t = description(&[0], &[("name", "x")]);
    let other = description(&[], &[("name", "x")]);
    connector.sink(&t).unwrap();
    assert!(connector.sink(&other).is_err());
    store.remove(&t);
    connector.sink(&other).unwrap();
    let append = description(&[], &[("changelog-mode", "I")]);
    let source = connector.source(&append).unwrap();
    assert!(source.changelog_mode().is_append());
    let sink = connector.sink(&append).unwrap();
    assert!(sink.changelog_mode(ChangelogMode::RETRACT).is_append());
    let keyed = description(&[0], &[("name", "y")]);
    let mode = connector
        .sink(&keyed)
        .unwrap()
        .changelog_mode(ChangelogMode::RETRACT);
    assert_eq!(mode, ChangelogMode::UPSERT);
}

#[test]
fn watermarks_of_writers_come_in_their_place() {
    let (connector, store) = connector();
    let t = description(&[0], &[]);
    let content = store.open(&t).unwrap();
    content.apply(&batch(COLUMNS, "+I|a|1\n+I|b|2")).unwrap();
    content.watermark(10);
    let mut reader = readers(&connector, &t).create(0, 1, &[]).unwrap();
    content.apply(&batch(COLUMNS, "+I|c|3")).unwrap();
    content.watermark(20);
    content.watermark(15);
    content.apply(&batch(COLUMNS, "+I|d|4")).unwrap();
    content.finish();
    let mut seen = Vec::new();
    let saved = loop {
        match reader.poll(1).unwrap() {
            SourcePoll::Batch(b) => seen.extend(lines(&b, &schema(COLUMNS))),
            SourcePoll::Watermark(w) => seen.push(format!("wm {w}")),
            SourcePoll::End => break reader.positions(),
            _ => panic!("the table is finished"),
        }
    };
    let expected = [
        "+I[a, 1]", "+I[b, 2]", "wm 10", "+I[c, 3]", "wm 20", "+I[d, 4]",
    ];
    assert_eq!(seen, expected);
    let mut again = readers(&connector, &t).create(0, 1, &saved).unwrap();
    assert!(matches!(again.poll(9), Ok(SourcePoll::End)));
}
