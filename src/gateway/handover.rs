//! The positions of our checkpoint as options of Flink's Kafka tables, so that a cluster goes on where a
//! process has stopped. State is not handed over: what has to be built anew is said in plain words.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::current::Current;
use super::edited::Edited;
use crate::checkpoint::FileStore;
use crate::connectors::SplitPosition;
use crate::error::{Error, Result};
use crate::sql::ast::{CreateTable, SqlOption};
use crate::sql::outline::{Outline, OutlineKind};
use crate::sql::{FlinkParser, Statement};

/// The options that say where a Kafka table begins.
const STARTUP: [&str; 3] = [
    "scan.startup.mode",
    "scan.startup.specific-offsets",
    "scan.startup.timestamp-millis",
];

/// Offsets by topic and partition.
type Offsets = BTreeMap<String, BTreeMap<i32, i64>>;

/// What a checkpoint holds, as far as a cluster can use it.
#[derive(Debug, Default)]
pub struct Handover {
    /// Positions of each table that was read.
    tables: BTreeMap<String, Vec<SplitPosition>>,
    /// The tables whose positions were handed over, or that need none.
    done: Vec<String>,
    /// Operators with state: the noun, and its whole name.
    states: Vec<(String, String)>,
    /// The checkpoints that were read.
    checkpoints: Vec<String>,
    current: Current,
}

impl Handover {
    /// Reads the newest checkpoint of the job in `directory`, or of all jobs in folders of it.
    ///
    /// # Errors
    /// When there is none, a job still runs, or a sink's rows of the checkpoint are not visible yet.
    pub fn read(directory: &Path) -> Result<Self> {
        let mut handover = Self::default();
        for job in FileStore::directories(directory)? {
            let shown = job.display();
            if let Some(holder) = FileStore::holder(&job)? {
                return Err(Error::checkpoint(format!(
                    "the job with its checkpoints in '{shown}' is still run by {holder}"
                ))
                .hint(format!("stop it first: ebbflow stop {shown}")));
            }
            let Some(newest) = FileStore::list(&job)?.into_iter().next() else {
                continue;
            };
            if let Some(damage) = &newest.damage {
                return Err(Error::checkpoint(format!(
                    "checkpoint {} in '{shown}' cannot be read: {damage}",
                    newest.epoch
                )));
            }
            if !newest.committed {
                return Err(Error::checkpoint(format!(
                    "what the sinks had prepared with checkpoint {} in '{shown}' is not known to be \
                     visible",
                    newest.epoch
                ))
                .hint("run the script once more with ebbflow run and stop it: that makes it visible"));
            }
            handover
                .checkpoints
                .push(format!("checkpoint {} of {shown}", newest.epoch));
            for vertex in newest.vertices {
                handover.see(&vertex.uid, vertex.bytes, vertex.positions);
            }
        }
        if handover.checkpoints.is_empty() {
            return Err(Error::checkpoint(format!(
                "'{}' holds no checkpoint",
                directory.display()
            )));
        }
        Ok(handover)
    }

    fn see(&mut self, uid: &str, bytes: u64, positions: Vec<SplitPosition>) {
        for name in uid.lines() {
            let Some((_, operator)) = name.split_once('/') else {
                continue;
            };
            let end = operator.find(|c: char| !c.is_ascii_alphanumeric());
            let noun = &operator[..end.unwrap_or(operator.len())];
            if noun == "TableSourceScan" {
                let table = operator.split_once('[').map(|(_, rest)| rest);
                if let Some((table, _)) = table.and_then(|rest| rest.split_once(']')) {
                    let all = self.tables.entry(table.to_string()).or_default();
                    all.extend(positions.iter().cloned());
                }
            } else if bytes > 0 && !matches!(noun, "WatermarkAssigner" | "Sink" | "Values") {
                self.states.push((noun.to_string(), operator.to_string()));
            }
        }
    }

    /// The next statement of the script: a Kafka table that was read gets its offsets.
    ///
    /// # Errors
    /// When Flink cannot begin at the offsets of a table.
    pub fn next(&mut self, text: &str) -> Result<Edited> {
        let outline = Outline::of(text);
        self.current.follow(&outline);
        let path = self.current.path_of(&outline);
        let unchanged = Edited::of(text);
        if outline.kind != OutlineKind::Create {
            return Ok(unchanged);
        }
        let Some(positions) = self.tables.get(&path) else {
            return Ok(unchanged);
        };
        // what our grammar does not know we have not run
        let Ok(Statement::CreateTable(create)) = FlinkParser::parse_statement(text) else {
            return Ok(unchanged);
        };
        match connector(&create) {
            Some("kafka") => {
                let offsets = offsets(positions)?;
                let text = startup(&path, &offsets)?;
                let edited = edit(unchanged, &create.options, &text);
                self.done.push(path);
                Ok(edited)
            }
            // it is read from the beginning: that is how it gets its keys
            Some("upsert-kafka") => {
                self.done.push(path);
                Ok(unchanged)
            }
            _ => Ok(unchanged),
        }
    }

    /// What a person has to know, when the whole script was seen.
    ///
    /// # Errors
    /// When positions cannot be read.
    pub fn report(&self) -> Result<String> {
        let mut text = format!("positions come from {}\n", self.checkpoints.join(", "));
        for (table, positions) in &self.tables {
            let Ok(offsets) = offsets(positions) else {
                let _ = writeln!(
                    text,
                    "  {table}: it is no Kafka table and is read from its beginning: rows that were \
                     read before come again"
                );
                continue;
            };
            for (topic, partitions) in &offsets {
                let places: Vec<String> = partitions
                    .iter()
                    .map(|(partition, offset)| format!("{partition}:{offset}"))
                    .collect();
                let _ = writeln!(text, "  {table}: topic {topic} from {}", places.join(", "));
            }
            if !self.done.contains(table) {
                let hint = startup(table, &offsets).unwrap_or_default();
                let _ = writeln!(
                    text,
                    "    the script does not create it: give its query the hint /*+ OPTIONS({hint}) */"
                );
            }
        }
        if !self.states.is_empty() {
            text.push_str("state is not handed over; on the cluster it is built anew:\n");
            let mut told: Vec<&str> = Vec::new();
            for (noun, operator) in &self.states {
                let _ = write!(text, "  {operator}");
                let meaning = meaning(noun);
                // once for each kind
                if !told.contains(&meaning) {
                    told.push(meaning);
                    let _ = write!(text, ": {meaning}");
                }
                text.push('\n');
            }
            text.push_str(
                "where that matters, deploy without --from-checkpoint: a source that is read from its \
                 beginning builds it all\n",
            );
        }
        Ok(text)
    }
}

/// What it means for results that an operator begins without its state.
fn meaning(noun: &str) -> &'static str {
    match noun {
        "GroupAggregate" | "OverAggregate" => {
            "sums, counts and the like begin with the rows that come from now on"
        }
        "WindowAggregate"
        | "GroupWindowAggregate"
        | "WindowRank"
        | "WindowDeduplicate"
        | "WindowJoin"
        | "WindowTableFunction" => "windows that are open now lack what was read before",
        "Join" | "IntervalJoin" | "TemporalJoin" | "LookupJoin" => {
            "rows that come find no match among those that were read before"
        }
        "Deduplicate" => "a key that was seen before passes for a new one",
        "Rank" | "SortLimit" | "Limit" | "TemporalSort" => {
            "the first rows are chosen among those that come from now on"
        }
        "ChangelogNormalize" | "SinkUpsertMaterializer" => {
            "the rows of each key are unknown until they come again"
        }
        "Match" => "patterns that had begun are not finished",
        _ => "it begins empty",
    }
}

fn connector(create: &CreateTable) -> Option<&str> {
    let option = create.options.iter().find(|o| o.key == "connector")?;
    Some(option.value.as_str())
}

#[cfg(feature = "kafka")]
fn offsets(positions: &[SplitPosition]) -> Result<Offsets> {
    crate::connectors::kafka::next_offsets(positions)
}

#[cfg(not(feature = "kafka"))]
fn offsets(_: &[SplitPosition]) -> Result<Offsets> {
    Err(Error::checkpoint(
        "this program was built without Kafka: it reads no offsets",
    ))
}

/// The options with which Flink begins at these offsets.
fn startup(table: &str, offsets: &Offsets) -> Result<String> {
    let mut topics = offsets.values();
    let partitions = match (topics.next(), topics.next()) {
        (Some(partitions), None) => partitions,
        (None, _) => return Ok("'scan.startup.mode' = 'group-offsets'".into()),
        _ => {
            return Err(Error::checkpoint(format!(
                "table '{table}' reads {} topics, and Flink begins at given offsets of one topic only",
                offsets.len()
            ))
            .hint(
                "declare a table for each topic, or let it begin at the offsets of the group: \
                 'scan.startup.mode' = 'group-offsets', and deploy without --from-checkpoint",
            ));
        }
    };
    let places: Vec<String> = partitions
        .iter()
        .map(|(partition, offset)| format!("partition:{partition},offset:{offset}"))
        .collect();
    Ok(format!(
        "'scan.startup.mode' = 'specific-offsets', 'scan.startup.specific-offsets' = '{}'",
        places.join(";")
    ))
}

/// Takes the options of the start out of a list and puts others in.
fn edit(mut edited: Edited, options: &[SqlOption], startup: &str) -> Edited {
    let stays = |o: &&SqlOption| !STARTUP.contains(&o.key.as_str());
    let (Some(first), Some(last)) = (options.iter().find(stays), options.iter().rev().find(stays))
    else {
        return edited;
    };
    if let Some(begin) = options.first().filter(|o| o.span.start < first.span.start) {
        edited = edited.replace(begin.span.start..first.span.start, "");
    }
    let mut before = first.span.end;
    for option in options
        .iter()
        .skip_while(|o| o.span.start <= first.span.start)
    {
        if before == last.span.end {
            edited = edited.replace(before..before, &format!(", {startup}"));
        }
        if !stays(&option) {
            edited = edited.replace(before..option.span.end, "");
        }
        before = option.span.end;
    }
    if before == last.span.end {
        edited = edited.replace(before..before, &format!(", {startup}"));
    }
    edited
}

#[cfg(all(test, feature = "kafka"))]
mod tests {
    use super::*;

    fn handover() -> Handover {
        let position = |split: &str, next: i64| SplitPosition {
            split: split.into(),
            position: format!("{{\"next\":{next}}}"),
        };
        let mut handover = Handover::default();
        let table = "default_catalog.default_database.orders";
        handover.see(
            &format!("s/TableSourceScan[{table}]"),
            0,
            vec![position("my-orders-0", 42), position("my-orders-1", 7)],
        );
        handover.see(&format!("s/GroupAggregate(k)[{table}]"), 100, Vec::new());
        handover
    }

    const OFFSETS: &str = "'scan.startup.mode' = 'specific-offsets', \
        'scan.startup.specific-offsets' = 'partition:0,offset:42;partition:1,offset:7'";

    #[test]
    fn a_kafka_table_begins_at_its_offsets() {
        for (before, after) in [
            (
                "'connector' = 'kafka', 'topic' = 'my-orders'",
                format!("'connector' = 'kafka', 'topic' = 'my-orders', {OFFSETS}"),
            ),
            (
                "'scan.startup.mode' = 'timestamp', 'scan.startup.timestamp-millis' = '1',\n 'connector' = 'kafka'",
                format!("'connector' = 'kafka', {OFFSETS}"),
            ),
            (
                "'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json',\n 'scan.startup.timestamp-millis' = '1'",
                format!("'connector' = 'kafka', 'format' = 'json', {OFFSETS}"),
            ),
        ] {
            let create = |options: &str| format!("CREATE TABLE orders (k INT) WITH ({options})");
            let edited = handover().next(&create(before)).expect("one topic");
            assert_eq!(edited.text(), create(&after));
        }
    }

    #[test]
    fn other_tables_stay_as_they_are() {
        for text in [
            "CREATE TABLE other (k INT) WITH ('connector' = 'kafka')",
            "CREATE TABLE orders (k INT) WITH ('connector' = 'upsert-kafka')",
            "CREATE TABLE x.orders (k INT) WITH ('connector' = 'kafka')",
            "INSERT INTO t SELECT k FROM orders",
        ] {
            assert_eq!(handover().next(text).expect("nothing to do").text(), text);
        }
    }

    #[test]
    fn a_table_of_several_topics_is_refused() {
        let mut handover = handover();
        handover.see(
            "s/TableSourceScan[default_catalog.default_database.orders]",
            0,
            vec![SplitPosition {
                split: "other-0".into(),
                position: "{\"next\":1}".into(),
            }],
        );
        let text = "CREATE TABLE orders (k INT) WITH ('connector' = 'kafka')";
        let error = handover.next(text).expect_err("two topics");
        assert!(error.message().contains("reads 2 topics"), "{error}");
    }

    #[test]
    fn what_is_not_handed_over_is_said() {
        let mut handover = handover();
        let unseen = handover.report().expect("offsets");
        assert!(
            unseen.contains(&format!("/*+ OPTIONS({OFFSETS}) */")),
            "{unseen}"
        );
        handover
            .next("CREATE TABLE orders (k INT) WITH ('connector' = 'kafka')")
            .expect("one topic");
        let report = handover.report().expect("offsets");
        assert!(
            report.contains("topic my-orders from 0:42, 1:7"),
            "{report}"
        );
        assert!(!report.contains("OPTIONS"), "{report}");
        assert!(
            report.contains(
                "GroupAggregate(k)[default_catalog.default_database.orders]: sums, counts"
            ),
            "{report}"
        );
    }
}
