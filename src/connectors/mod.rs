//! Sources and sinks: the seam between the engine and the outside.
//!
//! A connector is a [`Connector`]: it checks a table's options and makes a [`TableSource`] or a
//! [`TableSink`] for one use of the table. The planner asks these for their changelog mode; the
//! runtime then makes one [`SourceReader`] or [`SinkWriter`] a subtask.

pub mod blackhole;
pub mod changelog;
pub mod console;
pub mod datagen;
pub mod filesystem;
pub mod fold;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod lookup;
pub mod memory;
pub mod nexmark;
pub mod options;
pub mod print;
pub mod pushdown;
pub mod registry;
#[cfg(test)]
pub(crate) mod testing;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::error::Result;
use crate::types::{DataType, Schema};

/// A table as its connector sees it.
#[derive(Debug, Clone)]
pub struct TableDescription {
    /// `catalog.database.table`, for messages.
    pub path: String,
    /// The physical columns in the order of the declaration, without computed and metadata columns.
    pub physical: Schema,
    /// The declared metadata columns: key at the connector, and the column.
    pub metadata: Vec<(String, crate::types::Column)>,
    /// Which of them are declared `VIRTUAL`, by name: these are not written.
    pub virtual_metadata: Vec<String>,
    /// Primary key, as indices into `physical`; empty without one.
    pub primary_key: Vec<usize>,
    /// `PARTITIONED BY` columns, as indices into `physical`.
    pub partitioned_by: Vec<usize>,
    /// All options of `WITH`, hints merged in, `connector` included.
    pub options: IndexMap<String, String>,
    /// `table.local-time-zone`.
    pub time_zone: chrono_tz::Tz,
}

impl TableDescription {
    /// The metadata columns that a sink gets behind the physical ones.
    pub fn writable_metadata(&self) -> impl Iterator<Item = &(String, crate::types::Column)> {
        let is_read_only = |name: &String| self.virtual_metadata.contains(name);
        self.metadata
            .iter()
            .filter(move |(_, column)| !is_read_only(&column.name))
    }
}

/// Where a connector or a format comes from, seen from Flink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is in Flink as it is downloaded.
    Flink,
    /// It is Flink's, in an artifact that a cluster has to be given.
    Jar(&'static str),
    /// Flink has no such thing.
    Ebbflow,
}

/// One option of a connector or format.
#[derive(Debug, Clone)]
pub struct OptionSpec {
    /// Key, or a prefix that ends in `.*` or holds `#` for a column name.
    pub key: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// What it means and its default, one line.
    pub help: &'static str,
    /// Whether Flink has it too: `ebbflow check` names those that it has not.
    pub flink: bool,
    /// Whether its value must never be printed.
    pub secret: bool,
}

/// A kind of table, found by the option `connector`.
pub trait Connector: Send + Sync {
    /// The value of `connector` that names it.
    fn identifier(&self) -> &'static str;

    /// All options it knows, those of its formats excluded.
    fn options(&self) -> Vec<OptionSpec>;

    /// Whether Flink has it: `ebbflow check` names those that it has not.
    fn origin(&self) -> Origin {
        Origin::Ebbflow
    }

    /// The table as a source.
    ///
    /// # Errors
    /// When options are unknown, missing or malformed, or the connector only writes.
    fn source(&self, table: &TableDescription) -> Result<Arc<dyn TableSource>>;

    /// The table as a sink.
    ///
    /// # Errors
    /// When options are unknown, missing or malformed, or the connector only reads.
    fn sink(&self, table: &TableDescription) -> Result<Arc<dyn TableSink>>;
}

/// One use of a table as a source.
pub trait TableSource: Send + Sync {
    /// The kinds that its rows have.
    fn changelog_mode(&self) -> ChangelogMode;

    /// Whether it ends by itself.
    fn is_bounded(&self) -> bool;

    /// The metadata that can be read: key and type.
    fn metadata(&self) -> Vec<(String, DataType)> {
        Vec::new()
    }

    /// Most subtasks that can share the reading; 1 for a source with one split.
    fn max_parallelism(&self) -> usize {
        1
    }

    /// Whether it brings watermarks of its own, for tables with `SOURCE_WATERMARK()`.
    fn supports_source_watermark(&self) -> bool {
        false
    }

    /// How a processing-time temporal join looks its rows up, if it can.
    fn lookup(self: Arc<Self>) -> Option<lookup::TableLookup> {
        None
    }

    /// What the source can do beside leaving out columns.
    fn pushdown(&self) -> Option<&dyn pushdown::Pushdown> {
        None
    }

    /// A factory of readers that give exactly the columns of `projection`: indices into the physical
    /// columns followed by the declared metadata columns.
    ///
    /// # Errors
    /// When the source cannot be opened.
    fn readers(&self, projection: &[usize]) -> Result<Arc<dyn SourceReaderFactory>>;

    /// The same, for watermarks that are made split by split: all rows of a poll come from one split,
    /// which [`SourceReader::split`] names. `None` for a source whose rows have one order.
    ///
    /// # Errors
    /// When the source cannot be opened.
    fn split_readers(&self, projection: &[usize]) -> Result<Option<Arc<dyn SourceReaderFactory>>> {
        let _ = projection;
        Ok(None)
    }
}

/// Makes the reader of one subtask. Called when a job starts, and again when it restarts.
pub trait SourceReaderFactory: Send + Sync {
    /// The reader of subtask `subtask` of `parallelism`, at the positions of `restored` (all
    /// positions that the snapshot holds; the reader takes up those of its own splits), or at the
    /// start.
    ///
    /// # Errors
    /// When the source cannot be opened or a position is not valid any more.
    fn create(
        &self,
        subtask: usize,
        parallelism: usize,
        restored: &[SplitPosition],
    ) -> Result<Box<dyn SourceReader>>;
}

/// Where the reading of one split stands: what comes next, in the connector's own words.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SplitPosition {
    /// Identity of the split: a file, a partition.
    pub split: String,
    /// Position in it, as JSON text: an offset, a row number.
    pub position: String,
}

/// What a poll of a reader gives.
#[derive(Debug)]
pub enum SourcePoll {
    /// Rows.
    Batch(ChangeBatch),
    /// A watermark of the source's own (push-in sources), ms.
    Watermark(i64),
    /// The source is idle, and does not hold up watermarks behind it; or it is not any more.
    Idle(bool),
    /// All of these, in this order; positions are those behind the last.
    Several(Vec<SourcePoll>),
    /// Nothing now; ask again after this long, or when woken.
    Pending(Duration),
    /// No rows will come any more.
    End,
}

/// Reads one subtask's share of a source. Runs on the task's thread: a poll MUST return soon.
pub trait SourceReader: Send {
    /// The next rows, at most `max_rows`.
    ///
    /// # Errors
    /// When reading or decoding fails.
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll>;

    /// The step at which the next row may be read (`@step` of the `changelog` connector): the
    /// runtime reads rows of a higher step only after all readers have passed the lower ones and
    /// nothing is in flight. `None`: no order is asked for.
    fn step(&self) -> Option<u64> {
        None
    }

    /// The split that the rows of the last poll came from, in [`TableSource::split_readers`].
    fn split(&self) -> Option<&str> {
        None
    }

    /// The splits that rows may still come from, in [`TableSource::split_readers`].
    fn splits(&self) -> Option<Vec<String>> {
        None
    }

    /// Positions of all splits, after the rows of the last poll.
    fn positions(&self) -> Vec<SplitPosition>;

    /// The checkpoint that held these positions is complete (offsets may be committed).
    fn checkpoint_complete(&mut self, positions: &[SplitPosition]) {
        let _ = positions;
    }

    /// Rows that were skipped because they could not be decoded.
    fn skipped(&self) -> u64 {
        0
    }
}

/// One use of a table as a sink.
pub trait TableSink: Send + Sync {
    /// The kinds that it takes when the query makes `requested`.
    fn changelog_mode(&self, requested: ChangelogMode) -> ChangelogMode;

    /// The metadata that can be written: key and type.
    fn metadata(&self) -> Vec<(String, DataType)> {
        Vec::new()
    }

    /// A factory of writers; rows have the physical columns, then the writable metadata columns.
    ///
    /// # Errors
    /// When the sink cannot be opened.
    fn writers(&self) -> Result<Arc<dyn SinkWriterFactory>>;
}

/// Makes the writer of one subtask.
pub trait SinkWriterFactory: Send + Sync {
    /// The writer of subtask `subtask` of `parallelism`.
    ///
    /// # Errors
    /// When the sink cannot be opened.
    fn create(&self, subtask: usize, parallelism: usize) -> Result<Box<dyn SinkWriter>>;

    /// Makes visible what `committable` stands for, wherever it was pre-committed. Idempotent.
    ///
    /// # Errors
    /// When the outcome cannot be proven.
    fn commit(&self, committable: &[u8]) -> Result<()> {
        let _ = committable;
        Ok(())
    }

    /// Makes visible all that one checkpoint holds for the sink. Idempotent.
    ///
    /// # Errors
    /// When the outcome cannot be proven.
    fn commit_all(&self, committables: &[&[u8]]) -> Result<()> {
        committables.iter().try_for_each(|c| self.commit(c))
    }

    /// Tells the name of the job and of this sink in it: the same in every process that works on the
    /// job's checkpoints, one after another, and never that of another job. Called before
    /// [`abort_leftovers`](Self::abort_leftovers), unless checkpoints end with the process.
    fn identify(&self, name: &str) {
        let _ = name;
    }

    /// Removes what was written after the restored checkpoint by an attempt that is dead.
    ///
    /// # Errors
    /// When leftovers cannot be removed.
    fn abort_leftovers(&self, restored_epoch: u64) -> Result<()> {
        let _ = restored_epoch;
        Ok(())
    }
}

/// Writes one subtask's share of a sink, in transactions from barrier to barrier.
///
/// `pre_commit(epoch)` ends the current transaction: what was written since the last one is durable
/// but not visible, and the answer, stored in the checkpoint, is all that
/// [`SinkWriterFactory::commit`] needs. At a barrier the runtime calls `flush`, `pre_commit` and
/// `snapshot`, in this order. Without checkpoints the runtime calls `flush` and, at the
/// end, `pre_commit` and `commit` once.
pub trait SinkWriter: Send {
    /// The job takes checkpoints, and rows are to be shown when one is complete: called before
    /// everything else. For sinks that show rows at once otherwise, and have them at hand until then.
    fn begin_transactions(&mut self) {}

    /// Takes rows. A sink that asked for no `-U` gets them all the same where an operator on the way
    /// needs them (a filter on other columns than the key): a `-U` MUST then be taken for a deletion,
    /// because the `+U` of its key may not follow.
    ///
    /// # Errors
    /// When encoding or writing fails.
    fn write(&mut self, batch: &ChangeBatch) -> Result<()>;

    /// The combined watermark has risen (partition commit, `ON CONFLICT`).
    ///
    /// # Errors
    /// When writing fails.
    fn watermark(&mut self, watermark: i64) -> Result<()> {
        let _ = watermark;
        Ok(())
    }

    /// Hands on what is buffered: to the consumer, the console, the operating system.
    ///
    /// # Errors
    /// When writing fails.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// State that goes on after the barrier (a part in progress and its length).
    ///
    /// # Errors
    /// When it cannot be made durable.
    fn snapshot(&mut self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// Takes up the states that [`snapshot`](Self::snapshot) gave, of one or more former writers.
    ///
    /// # Errors
    /// When the state is not valid any more.
    fn restore(&mut self, states: &[Vec<u8>]) -> Result<()> {
        let _ = states;
        Ok(())
    }

    /// Ends the transaction of `epoch`; the answers are what to commit.
    ///
    /// # Errors
    /// When the rows cannot be made durable.
    fn pre_commit(&mut self, epoch: u64) -> Result<Vec<Vec<u8>>> {
        let _ = epoch;
        Ok(Vec::new())
    }

    /// No more rows.
    ///
    /// # Errors
    /// When the last rows cannot be written.
    fn end(&mut self) -> Result<()> {
        self.flush()
    }
}

impl fmt::Debug for dyn TableSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TableSource")
    }
}

impl fmt::Debug for dyn TableSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TableSink")
    }
}
