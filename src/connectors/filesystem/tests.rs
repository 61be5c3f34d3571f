use std::fs;
use std::path::Path;

use super::*;
use crate::connectors::testing::{batch, drain, lines, table};
use crate::connectors::{SinkWriter, SinkWriterFactory, SourcePoll, SourceReader, SplitPosition};
use crate::runtime::clock::ManualClock;
use crate::types::{Column, TypeKind};

fn connector() -> (FilesystemConnector, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(0));
    (
        FilesystemConnector::new(Arc::clone(&clock) as Arc<dyn Clock>),
        clock,
    )
}

fn files_of(folder: &Path) -> Vec<String> {
    fn add(folder: &Path, prefix: &str, names: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                add(&entry.path(), &format!("{name}/"), names);
            } else {
                names.push(name);
            }
        }
    }
    let mut names = Vec::new();
    add(folder, "", &mut names);
    names.sort();
    names
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn described(folder: &Path, columns: &str, options: &[(&str, &str)]) -> TableDescription {
    let path = format!("file://{}", folder.display());
    let mut all = vec![("path", path.as_str())];
    all.extend(options);
    let mut t = table(columns, &all);
    t.options.entry("format".into()).or_insert("json".into());
    t
}

#[test]
fn partitions_metadata_and_hidden_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(
        root,
        "dt=2024-01-02/hr=3/f.json",
        "{\"a\": 3, \"dt\": \"body\"}\n",
    );
    write(root, "dt=2024-01-02/hr=3/_skip.json", "{\"a\": 101}\n");
    write(root, "dt=2024-01-02/hr=3/.hidden.json", "{\"a\": 100}\n");
    write(root, "dt=__DEFAULT_PARTITION__/hr=3/f.json", "{\"a\": 4}\n");
    write(root, "dt=a%2Fb/hr=10/f.json", "{\"a\": 2, \"hr\": 99}\n");
    let mut t = described(root, "a INT, dt STRING, hr INT", &[]);
    t.partitioned_by = vec![1, 2];
    let size = Column::new("sz", TypeKind::Int.nullable());
    t.metadata = vec![
        ("file.size".into(), size),
        (
            "file.name".into(),
            Column::new("nm", TypeKind::STRING.nullable()),
        ),
    ];
    let source = connector().0.source(&t).unwrap();
    let mut rows = drain(source.as_ref(), &t).unwrap();
    rows.sort();
    assert_eq!(
        rows,
        [
            "+I[2, a/b, 10, 19, f.json]",
            "+I[3, 2024-01-02, 3, 23, f.json]",
            "+I[4, null, 3, 9, f.json]"
        ]
    );
    t.metadata = vec![(
        "no.such.key".into(),
        Column::new("x", TypeKind::STRING.nullable()),
    )];
    let error = connector().0.source(&t).unwrap_err();
    assert!(
        error.message().ends_with("file.modification-time"),
        "{error}"
    );
}

#[test]
fn options_are_checked() {
    let source = |options: &[(&str, &str)]| connector().0.source(&table("a INT", options));
    assert!(
        source(&[("path", "/x")])
            .unwrap_err()
            .message()
            .ends_with("format")
    );
    assert!(
        source(&[("format", "json")])
            .unwrap_err()
            .message()
            .ends_with("path")
    );
    let both = [("path", "/x"), ("format", "no-such-format")];
    assert!(
        source(&both)
            .unwrap_err()
            .message()
            .contains("no-such-format")
    );
    for wrong in [
        ("json.nope", "1"),
        ("csv.field-delimiter", ";"),
        ("nope", "1"),
    ] {
        let error = source(&[("path", "/x"), ("format", "json"), wrong]).unwrap_err();
        assert!(error.message().contains(wrong.0), "{error}");
    }
    assert!(source(&[("path", "s3://x"), ("format", "json")]).is_err());
    let table = table(
        "a INT",
        &[
            ("path", "/x"),
            ("format", "json"),
            ("sink.rolling-policy.file-size", "abc"),
        ],
    );
    assert!(connector().0.sink(&table).is_err());
}

#[test]
fn a_missing_file_is_an_error() {
    let t = described(Path::new("/no/such/file.json"), "a INT", &[]);
    let source = connector().0.source(&t).unwrap();
    let error = drain(source.as_ref(), &t).unwrap_err();
    assert!(
        error
            .message()
            .contains("/no/such/file.json does not exist"),
        "{error}"
    );
}

#[test]
fn an_error_names_file_and_record_and_comes_after_the_rows_before_it() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "x.json", "{\"a\": 1}\n{\"a\": \"no\"}\n");
    let t = described(folder.path(), "a INT", &[]);
    let source = connector().0.source(&t).unwrap();
    let mut reader = source.readers(&[0]).unwrap().create(0, 1, &[]).unwrap();
    assert!(matches!(reader.poll(10), Ok(SourcePoll::Batch(b)) if b.len() == 1));
    let error = reader.poll(10).unwrap_err().to_string();
    assert!(error.contains("record 2 (byte 9) of file"), "{error}");
}

/// Reads to the end or, with `stop_after` polls, to there.
fn read(
    reader: &mut dyn SourceReader,
    t: &TableDescription,
    max_rows: usize,
    stop_after: usize,
) -> Vec<String> {
    let mut rows = Vec::new();
    for _ in 0..stop_after {
        match reader.poll(max_rows).unwrap() {
            SourcePoll::Batch(b) => {
                assert!(b.len() <= max_rows);
                rows.extend(lines(&b, &t.physical));
            }
            _ => break,
        }
    }
    rows
}

#[test]
fn readers_resume_exactly_at_any_place_and_parallelism() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "a.json",
        "[{\"a\":1},{\"a\":2},{\"a\":3},{\"a\":4},{\"a\":5}]\n{\"a\":6}\n",
    );
    write(folder.path(), "b.json", "{\"a\":7}\r\n\n{\"a\":8}");
    write(folder.path(), "sub/c.json", "{\"a\":9}\n");
    let t = described(folder.path(), "a INT", &[]);
    let source = connector().0.source(&t).unwrap();
    let readers = source.readers(&[0]).unwrap();
    let want: Vec<String> = (1..10).map(|i| format!("+I[{i}]")).collect();
    for max_rows in 1..4 {
        for polls in 0..10 {
            for (before, after) in [(1, 1), (2, 3), (3, 1)] {
                let mut rows = Vec::new();
                let mut positions: Vec<SplitPosition> = Vec::new();
                for subtask in 0..before {
                    let mut reader = readers.create(subtask, before, &[]).unwrap();
                    rows.extend(read(reader.as_mut(), &t, max_rows, polls));
                    positions.extend(reader.positions());
                }
                for subtask in 0..after {
                    let mut reader = readers.create(subtask, after, &positions).unwrap();
                    rows.extend(read(reader.as_mut(), &t, max_rows, 100));
                }
                rows.sort();
                assert_eq!(
                    rows, want,
                    "{max_rows} rows, {polls} polls, {before} -> {after}"
                );
            }
        }
    }
}

#[test]
fn compressed_files_are_read_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let text = "1\n2\n3\n";
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, text.as_bytes()).unwrap();
    fs::write(folder.path().join("x.csv.gz"), gz.finish().unwrap()).unwrap();
    fs::write(
        folder.path().join("y.csv.zst"),
        zstd::encode_all(text.as_bytes(), 1).unwrap(),
    )
    .unwrap();
    let t = described(folder.path(), "a INT", &[("format", "csv")]);
    let source = connector().0.source(&t).unwrap();
    let readers = source.readers(&[0]).unwrap();
    let mut reader = readers.create(0, 1, &[]).unwrap();
    assert_eq!(read(reader.as_mut(), &t, 2, 1), ["+I[1]", "+I[2]"]);
    let mut again = readers.create(0, 1, &reader.positions()).unwrap();
    assert_eq!(
        read(again.as_mut(), &t, 9, 9),
        ["+I[3]", "+I[1]", "+I[2]", "+I[3]"]
    );
}

#[test]
fn a_monitored_folder_gives_new_files() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.json", "{\"a\":1}\n");
    let t = described(
        folder.path(),
        "a INT",
        &[("source.monitor-interval", "5 s")],
    );
    let (connector, clock) = connector();
    let source = connector.source(&t).unwrap();
    assert!(!source.is_bounded());
    let readers = source.readers(&[0]).unwrap();
    let mut both: Vec<_> = (0..2).map(|i| readers.create(i, 2, &[]).unwrap()).collect();
    let mut seen = Vec::new();
    for round in 0..2 {
        for reader in &mut both {
            seen.extend(read(reader.as_mut(), &t, 9, 9));
            assert!(matches!(reader.poll(9), Ok(SourcePoll::Pending(d)) if d.as_secs() == 5));
        }
        assert_eq!(seen.len(), round + 1, "{seen:?}");
        write(folder.path(), "b.json", "{\"a\":2}\n");
        clock.set(5000);
    }
    let positions: Vec<_> = both.iter().flat_map(|r| r.positions()).collect();
    let mut one = readers.create(0, 1, &positions).unwrap();
    assert!(read(one.as_mut(), &t, 9, 9).is_empty());
}

fn commit(factory: &dyn SinkWriterFactory, writer: &mut dyn SinkWriter, epoch: u64) {
    for committable in writer.pre_commit(epoch).unwrap() {
        factory.commit(&committable).unwrap();
        factory.commit(&committable).unwrap();
    }
}

#[test]
fn parts_become_visible_with_the_commit() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("out");
    let mut t = described(
        &root,
        "a INT, dt DATE, s STRING",
        &[("sink.partition-commit.policy.kind", "success-file")],
    );
    t.partitioned_by = vec![1, 2];
    let sink = connector().0.sink(&t).unwrap();
    let factory = sink.writers().unwrap();
    let mut writer = factory.create(0, 1).unwrap();
    writer
        .write(&batch(
            "a INT, dt DATE, s STRING",
            "+I|1|2024-01-01|x\n+I|2|\\N|\n+I|3|2024-01-01|x",
        ))
        .unwrap();
    writer.end().unwrap();
    assert!(files_of(&root).iter().all(|f| f.ends_with(".inprogress")));
    commit(factory.as_ref(), writer.as_mut(), 1);
    let files = files_of(&root);
    assert_eq!(files.len(), 4, "{files:?}");
    assert!(
        files[0].starts_with("dt=2024-01-01/s=x/_SUCCESS"),
        "{files:?}"
    );
    assert!(files[1].starts_with("dt=2024-01-01/s=x/part-"), "{files:?}");
    assert!(
        files[2].starts_with("dt=__DEFAULT_PARTITION__/s=__DEFAULT_PARTITION__/"),
        "{files:?}"
    );
    assert_eq!(
        fs::read_to_string(root.join(&files[1])).unwrap(),
        "{\"a\":1}\n{\"a\":3}\n"
    );
    let source = connector().0.source(&t).unwrap();
    let mut rows = drain(source.as_ref(), &t).unwrap();
    rows.sort();
    assert_eq!(
        rows,
        [
            "+I[1, 2024-01-01, x]",
            "+I[2, null, null]",
            "+I[3, 2024-01-01, x]"
        ]
    );
}

#[test]
fn parts_roll_by_size_age_and_idleness() {
    let visible_after = |option: (&str, &str), seconds: &[i64]| -> Vec<usize> {
        let folder = tempfile::tempdir().unwrap();
        let t = described(folder.path(), "a INT", &[option]);
        let (connector, clock) = connector();
        let factory = connector.sink(&t).unwrap().writers().unwrap();
        let mut writer = factory.create(0, 1).unwrap();
        writer.write(&batch("a INT", "+I|1\n+I|2\n+I|3")).unwrap();
        let mut visible = Vec::new();
        for (epoch, second) in (1..).zip(seconds) {
            clock.set(second * 1000);
            if *second % 2 == 0 {
                writer.write(&batch("a INT", "+I|4")).unwrap();
            }
            commit(factory.as_ref(), writer.as_mut(), epoch);
            let files = files_of(folder.path());
            visible.push(files.iter().filter(|f| f.starts_with("part-")).count());
        }
        visible
    };
    // Rows are 8 bytes.
    let size = ("sink.rolling-policy.file-size", "16b");
    assert_eq!(visible_after(size, &[1, 2]), [1, 2]);
    let age = ("sink.rolling-policy.rollover-interval", "10 s");
    assert_eq!(
        visible_after(age, &[2, 6, 9, 10, 12, 19, 22]),
        [0, 0, 0, 1, 1, 1, 2]
    );
    let idle = ("sink.rolling-policy.inactivity-interval", "4 s");
    assert_eq!(visible_after(idle, &[2, 5, 6, 8, 13]), [0, 0, 0, 0, 1]);
}

#[test]
fn a_restored_writer_keeps_what_the_checkpoint_knows_and_removes_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let t = described(folder.path(), "a INT", &[]);
    let content = || -> Vec<String> {
        let mut rows: Vec<String> = files_of(folder.path())
            .iter()
            .flat_map(|f| {
                let text = fs::read_to_string(folder.path().join(f)).unwrap();
                text.lines().map(str::to_string).collect::<Vec<_>>()
            })
            .collect();
        rows.sort();
        rows
    };
    let dead = connector().0.sink(&t).unwrap().writers().unwrap();
    let mut writer = dead.create(0, 1).unwrap();
    writer.write(&batch("a INT", "+I|1")).unwrap();
    writer.flush().unwrap();
    assert!(writer.pre_commit(1).unwrap().is_empty(), "the part goes on");
    let state = writer.snapshot().unwrap();
    // After the checkpoint: more rows in the part, and a part that was begun and closed.
    writer.write(&batch("a INT", "+I|2")).unwrap();
    writer.end().unwrap();
    writer.write(&batch("a INT", "+I|3")).unwrap();
    writer.end().unwrap();
    drop(writer);

    // Another process goes on.
    let factory = connector().0.sink(&t).unwrap().writers().unwrap();
    factory.abort_leftovers(1).unwrap();
    let mut writer = factory.create(0, 1).unwrap();
    writer.restore(&[state]).unwrap();
    assert_eq!(content(), ["{\"a\":1}"]);
    writer.write(&batch("a INT", "+I|4")).unwrap();
    writer.end().unwrap();
    commit(factory.as_ref(), writer.as_mut(), 2);
    assert_eq!(content(), ["{\"a\":1}", "{\"a\":4}"]);
    assert!(
        files_of(folder.path())
            .iter()
            .all(|f| f.starts_with("part-"))
    );

    // The same process starts again before the first checkpoint: all of its own is removed.
    let mut writer = factory.create(0, 1).unwrap();
    writer.write(&batch("a INT", "+I|5")).unwrap();
    writer.flush().unwrap();
    factory.abort_leftovers(0).unwrap();
    assert_eq!(content(), ["{\"a\":1}", "{\"a\":4}"]);
}

#[test]
fn what_a_process_left_that_died_before_its_first_checkpoint_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let t = described(folder.path(), "a INT", &[]);
    let dies = |name: &str| {
        let factory = connector().0.sink(&t).unwrap().writers().unwrap();
        factory.identify(name);
        let mut writer = factory.create(0, 1).unwrap();
        writer.write(&batch("a INT", "+I|1")).unwrap();
        writer.flush().unwrap();
    };
    dies("our");
    dies("another");
    fs::write(folder.path().join(".part-our-notes"), "x").unwrap();
    let hidden = || {
        let mut files = files_of(folder.path());
        files.retain(|f| f.starts_with(".part-"));
        files
    };
    assert_eq!(hidden().len(), 3);
    let factory = connector().0.sink(&t).unwrap().writers().unwrap();
    factory.identify("our");
    factory.abort_leftovers(0).unwrap();
    let left = hidden();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].starts_with(".part-another-"), "{left:?}");
    assert_eq!(left[1], ".part-our-notes");
}

#[test]
fn changelog_formats_take_updates_and_read_them_back() {
    let folder = tempfile::tempdir().unwrap();
    let t = described(folder.path(), "a INT", &[("format", "debezium-json")]);
    let sink = connector().0.sink(&t).unwrap();
    let all = crate::changelog::ChangelogMode::RETRACT;
    assert_eq!(sink.changelog_mode(all), all);
    let factory = sink.writers().unwrap();
    let mut writer = factory.create(0, 1).unwrap();
    writer.write(&batch("a INT", "+I|1\n-U|1\n+U|2")).unwrap();
    writer.end().unwrap();
    commit(factory.as_ref(), writer.as_mut(), 1);
    let source = connector().0.source(&t).unwrap();
    assert_eq!(source.changelog_mode(), all);
    assert_eq!(
        drain(source.as_ref(), &t).unwrap(),
        ["+I[1]", "-D[1]", "+I[2]"]
    );
}

#[test]
fn a_file_that_grows_gives_whole_lines_only() {
    let folder = tempfile::tempdir().unwrap();
    let t = described(
        folder.path(),
        "a INT",
        &[("source.monitor-interval", "1 s"), ("format", "csv")],
    );
    let (connector, clock) = connector();
    let readers = connector.source(&t).unwrap().readers(&[0]).unwrap();
    let mut reader = readers.create(0, 1, &[]).unwrap();
    let mut now = 0;
    let mut look = |reader: &mut dyn SourceReader| {
        now += 1000;
        clock.set(now);
        read(reader, &t, 9, 9)
    };
    let append = |text: &str| {
        let path = folder.path().join("a.csv");
        let mut options = fs::OpenOptions::new();
        let mut file = options.append(true).create(true).open(path).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    };
    append("1\n2");
    assert_eq!(look(reader.as_mut()), ["+I[1]"]);
    append("3\n4");
    assert_eq!(look(reader.as_mut()), ["+I[23]"]);
    // Another process goes on there.
    let mut reader = readers.create(0, 1, &reader.positions()).unwrap();
    append("5");
    assert!(look(reader.as_mut()).is_empty());
    // It has not changed since: its last line is whole.
    assert_eq!(look(reader.as_mut()), ["+I[45]"]);
    append("\n6\n");
    assert_eq!(look(reader.as_mut()), ["+I[6]"]);
    write(folder.path(), "a.csv", "7\n");
    assert_eq!(look(reader.as_mut()), ["+I[7]"]);
}

#[test]
fn parts_of_a_partition_are_closed_and_marked_when_time_has_passed_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut t = described(
        root,
        "a INT, dt STRING, hr STRING",
        &[
            ("sink.partition-commit.trigger", "partition-time"),
            ("sink.partition-commit.delay", "1 h"),
            ("sink.partition-commit.policy.kind", "success-file"),
            (
                "partition.time-extractor.timestamp-pattern",
                "$dt $hr:00:00",
            ),
        ],
    );
    t.partitioned_by = vec![1, 2];
    let rows = |text: &str| batch("a INT, dt STRING, hr STRING", text);
    let hour = 3_600_000;
    let start = || {
        let factory = connector().0.sink(&t).unwrap().writers().unwrap();
        let writers: Vec<_> = (0..2).map(|i| factory.create(i, 2).unwrap()).collect();
        (factory, writers)
    };
    let markers = || -> Vec<String> {
        let files = files_of(root).into_iter();
        files.filter(|f| f.ends_with("_SUCCESS")).collect()
    };
    let (factory, mut writers) = start();
    let mut states = Vec::new();
    for (i, writer) in writers.iter_mut().enumerate() {
        writer
            .write(&rows("+I|1|1970-01-02|00\n+I|2|1970-01-02|05"))
            .unwrap();
        // The first watermark has passed the first partition, the second has not.
        let watermark = if i == 0 { 25 * hour + 1 } else { 25 * hour };
        writer.watermark(watermark).unwrap();
        commit(factory.as_ref(), writer.as_mut(), 1);
        states.push(writer.snapshot().unwrap());
    }
    assert!(
        files_of(root).iter().all(|f| f.contains("/.part-")),
        "nothing is due"
    );

    // The process dies; another goes on.
    drop(writers);
    let (factory, mut writers) = start();
    factory.abort_leftovers(1).unwrap();
    for (writer, state) in writers.iter_mut().zip(states) {
        writer.restore(&[state]).unwrap();
    }
    for epoch in 2..4 {
        for writer in &mut writers {
            writer.watermark(25 * hour + 2).unwrap();
            commit(factory.as_ref(), writer.as_mut(), epoch);
        }
        // The first does not know of the second's watermark until the next checkpoint.
        let expected = usize::from(epoch == 3);
        assert_eq!(markers().len(), expected);
    }
    assert_eq!(markers(), ["dt=1970-01-02/hr=00/_SUCCESS"]);
    for (epoch, writer) in (4..).zip(&mut writers) {
        writer.end().unwrap();
        commit(factory.as_ref(), writer.as_mut(), epoch);
    }
    assert_eq!(markers().len(), 2, "the end completes all");
    assert!(!files_of(root).iter().any(|f| f.contains("/.part-")));
}

#[test]
fn small_parts_become_one_file_and_a_crash_in_between_does_no_harm() {
    for format in ["csv", "parquet"] {
        let folder = tempfile::tempdir().unwrap();
        let options = [
            ("format", format),
            ("auto-compaction", "true"),
            ("compaction.file-size", "1 mb"),
            ("sink.rolling-policy.file-size", "1b"),
        ];
        let t = described(folder.path(), "a INT", &options);
        let factory = connector().0.sink(&t).unwrap().writers().unwrap();
        let mut writer = factory.create(0, 1).unwrap();
        for row in ["+I|1", "+I|2", "+I|3"] {
            writer.write(&batch("a INT", row)).unwrap();
        }
        let prepared = writer.pre_commit(1).unwrap();
        let prepared: Vec<&[u8]> = prepared.iter().map(Vec::as_slice).collect();
        assert_eq!(prepared.len(), 3);
        let parts = files_of(folder.path());
        factory.commit_all(&prepared).unwrap();
        let files = files_of(folder.path());
        assert_eq!(files.len(), 1, "{files:?}");
        assert!(files[0].starts_with("compacted-part-"), "{files:?}");
        // A crash has left one of the parts; the commit is done again.
        write(folder.path(), &parts[2], "left over");
        factory.commit_all(&prepared).unwrap();
        assert_eq!(files_of(folder.path()), files);
        let source = connector().0.source(&t).unwrap();
        let rows = drain(source.as_ref(), &t).unwrap();
        assert_eq!(rows, ["+I[1]", "+I[2]", "+I[3]"]);
        // Neither the parts nor the whole: the outcome is not known.
        fs::remove_file(folder.path().join(&files[0])).unwrap();
        assert!(factory.commit_all(&prepared).is_err());
    }
}

#[test]
fn at_least_once_shows_parts_before_their_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let guarantee = ("sink.delivery-guarantee", "at-least-once");
    let t = described(
        folder.path(),
        "a INT",
        &[
            guarantee,
            ("sink.rolling-policy.rollover-interval", "1 s"),
            ("sink.rolling-policy.check-interval", "1 s"),
        ],
    );
    let (connector, clock) = connector();
    let factory = connector.sink(&t).unwrap().writers().unwrap();
    let mut writer = factory.create(0, 1).unwrap();
    writer.write(&batch("a INT", "+I|1")).unwrap();
    writer.flush().unwrap();
    assert!(files_of(folder.path())[0].starts_with(".part-"));
    clock.set(1000);
    writer.flush().unwrap();
    assert!(files_of(folder.path())[0].starts_with("part-"));
    let t = described(
        folder.path(),
        "a INT",
        &[guarantee, ("auto-compaction", "true")],
    );
    assert!(connector.sink(&t).is_err());
    let weaker = ("sink.delivery-guarantee", "at-most-once");
    let error = connector.sink(&described(folder.path(), "a INT", &[weaker]));
    let error = error.unwrap_err();
    assert!(
        error.hint_text().unwrap().contains("AT_MOST_ONCE"),
        "{error}"
    );
}

#[test]
fn parquet_rolls_at_every_checkpoint_and_resumes_at_any_row() {
    let folder = tempfile::tempdir().unwrap();
    let columns = "a INT, p STRING, b STRING";
    let mut t = described(folder.path(), columns, &[("format", "parquet")]);
    t.partitioned_by = vec![1];
    let factory = connector().0.sink(&t).unwrap().writers().unwrap();
    let mut writer = factory.create(0, 1).unwrap();
    for epoch in 1..3 {
        writer
            .write(&batch(columns, "+I|1|x|u\n+I|2|y|v\n+I|3|x|\\N"))
            .unwrap();
        commit(factory.as_ref(), writer.as_mut(), epoch);
    }
    let files = files_of(folder.path());
    assert_eq!(
        files.iter().filter(|f| f.starts_with("p=x/part-")).count(),
        2,
        "{files:?}"
    );
    let source = connector().0.source(&t).unwrap();
    let readers = source.readers(&[2, 1, 0]).unwrap();
    let shown =
        crate::types::Schema::new([2, 1, 0].map(|i| t.physical.columns[i].clone()).to_vec());
    let wanted = [
        "+I[null, x, 3]",
        "+I[null, x, 3]",
        "+I[u, x, 1]",
        "+I[u, x, 1]",
        "+I[v, y, 2]",
        "+I[v, y, 2]",
    ];
    for polls in 0..7 {
        let mut rows = Vec::new();
        let mut first = readers.create(0, 1, &[]).unwrap();
        for _ in 0..polls {
            if let SourcePoll::Batch(b) = first.poll(1).unwrap() {
                rows.extend(lines(&b, &shown));
            }
        }
        let mut second = readers.create(0, 1, &first.positions()).unwrap();
        while let SourcePoll::Batch(b) = second.poll(5).unwrap() {
            rows.extend(lines(&b, &shown));
        }
        rows.sort();
        assert_eq!(rows, wanted, "{polls} polls");
    }
}

#[test]
fn row_groups_of_one_parquet_file_are_shared_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let options = [("format", "parquet"), ("parquet.block.size", "1b")];
    let t = described(folder.path(), "a INT", &options);
    let factory = connector().0.sink(&t).unwrap().writers().unwrap();
    let mut writer = factory.create(0, 1).unwrap();
    for rows in ["+I|1\n+I|2\n+I|3", "+I|4", "+I|5\n+I|6"] {
        writer.write(&batch("a INT", rows)).unwrap();
    }
    writer.end().unwrap();
    commit(factory.as_ref(), writer.as_mut(), 1);
    assert_eq!(files_of(folder.path()).len(), 1);
    let readers = connector().0.source(&t).unwrap().readers(&[0]).unwrap();
    for polls in 0..4 {
        let mut rows = Vec::new();
        let mut positions: Vec<SplitPosition> = Vec::new();
        let mut busy = 0;
        for subtask in 0..2 {
            let mut reader = readers.create(subtask, 2, &[]).unwrap();
            let before = rows.len();
            rows.extend(read(reader.as_mut(), &t, 2, polls));
            busy += usize::from(rows.len() > before);
            positions.extend(reader.positions());
        }
        assert_eq!(busy, if polls == 0 { 0 } else { 2 });
        assert_eq!(positions.len(), 3);
        let mut reader = readers.create(0, 1, &positions).unwrap();
        rows.extend(read(reader.as_mut(), &t, 9, 99));
        rows.sort();
        let wanted: Vec<String> = (1..7).map(|i| format!("+I[{i}]")).collect();
        assert_eq!(rows, wanted, "{polls} polls");
    }
}

#[test]
fn a_pattern_picks_files_by_their_whole_path() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.json", "{\"a\":1}\n");
    write(folder.path(), "a.json.bak", "{\"a\":2}\n");
    write(folder.path(), "sub/_b.json", "{\"a\":3}\n");
    let rows = |pattern: &str| {
        let t = described(
            folder.path(),
            "a INT",
            &[("source.path.regex-pattern", pattern)],
        );
        connector().0.source(&t).and_then(|s| drain(s.as_ref(), &t))
    };
    assert_eq!(rows(".*[.]json").unwrap(), ["+I[1]", "+I[3]"]);
    assert_eq!(rows("a[.]json").unwrap(), [""; 0]);
    assert!(
        rows("(")
            .unwrap_err()
            .to_string()
            .contains("regular expression")
    );
}
