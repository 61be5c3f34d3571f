//! The `fold` connector: a sink that keeps of a table only how many rows it has and a hash of them.
//!
//! Two tables with the same rows, in whatever order their changes came, have the same figures: the
//! hash is the wrapping sum, over the live rows, of the FNV-1a-64 of a row's text (UTF-8, as `print`
//! shows it, without the kind). Writers print them at the end: `path: rows=5 hash=0123456789abcdef`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::console::{Console, Stream};
use super::options::validate;
use super::print::sink_only;
use super::{
    Connector, OptionSpec, SinkWriter, SinkWriterFactory, TableDescription, TableSink, TableSource,
};
use crate::changelog::{ChangeBatch, ChangelogMode, RowKind};
use crate::error::{Error, Result};
use crate::types::text::RowPrinter;

/// A folded table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Folded {
    /// Rows added less rows withdrawn.
    pub rows: i64,
    /// Sum of the hashes of the live rows.
    pub hash: u64,
    /// Changes by kind: `+I`, `-U`, `+U`, `-D`.
    pub changes: [u64; 4],
}

impl Folded {
    fn row(&mut self, kind: RowKind, text: &str) {
        let hash = fnv(text.as_bytes());
        self.changes[kind as usize] += 1;
        self.rows += kind.sign();
        self.hash = if kind.is_add() {
            self.hash.wrapping_add(hash)
        } else {
            self.hash.wrapping_sub(hash)
        };
    }

    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.hash = self.hash.wrapping_add(other.hash);
        for (sum, more) in self.changes.iter_mut().zip(other.changes) {
            *sum += more;
        }
    }
}

impl fmt::Display for Folded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows={} hash={:016x}", self.rows, self.hash)
    }
}

/// FNV-1a with 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The folded tables of a session, by path, of the writers that have ended.
#[derive(Debug, Default)]
pub struct FoldStore {
    tables: Mutex<BTreeMap<String, Folded>>,
}

impl FoldStore {
    /// What was written to the table at `path`.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Folded> {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.get(path).copied()
    }

    fn add(&self, path: &str, part: &Folded) {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.entry(path.to_string()).or_default().add(part);
    }
}

/// The connector.
#[derive(Debug)]
pub struct FoldConnector {
    console: Arc<dyn Console>,
    store: Arc<FoldStore>,
}

impl FoldConnector {
    /// The connector that prints to `console` and keeps its figures in `store`.
    #[must_use]
    pub fn new(console: Arc<dyn Console>, store: Arc<FoldStore>) -> Self {
        Self { console, store }
    }
}

impl Connector for FoldConnector {
    fn identifier(&self) -> &'static str {
        "fold"
    }

    fn options(&self) -> Vec<OptionSpec> {
        Vec::new()
    }

    fn source(&self, _table: &TableDescription) -> Result<Arc<dyn TableSource>> {
        Err(sink_only(self.identifier()))
    }

    fn sink(&self, table: &TableDescription) -> Result<Arc<dyn TableSink>> {
        validate(self.identifier(), table, &self.options())?;
        Ok(Arc::new(FoldSink {
            factory: Arc::new(Writers {
                path: table.path.clone(),
                rows: RowPrinter::new(&table.physical),
                console: Arc::clone(&self.console),
                store: Arc::clone(&self.store),
            }),
        }))
    }
}

struct FoldSink {
    factory: Arc<Writers>,
}

impl TableSink for FoldSink {
    fn changelog_mode(&self, requested: ChangelogMode) -> ChangelogMode {
        requested
    }

    fn writers(&self) -> Result<Arc<dyn SinkWriterFactory>> {
        Ok(Arc::clone(&self.factory) as Arc<dyn SinkWriterFactory>)
    }
}

struct Writers {
    path: String,
    rows: RowPrinter,
    console: Arc<dyn Console>,
    store: Arc<FoldStore>,
}

impl SinkWriterFactory for Writers {
    fn create(&self, subtask: usize, parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        let name = match parallelism {
            1 => self.path.clone(),
            _ => format!("{}> {}", subtask + 1, self.path),
        };
        Ok(Box::new(Writer {
            name,
            path: self.path.clone(),
            rows: self.rows.clone(),
            console: Arc::clone(&self.console),
            store: Arc::clone(&self.store),
            folded: Folded::default(),
            text: String::new(),
        }))
    }
}

struct Writer {
    name: String,
    path: String,
    rows: RowPrinter,
    console: Arc<dyn Console>,
    store: Arc<FoldStore>,
    folded: Folded,
    text: String,
}

impl SinkWriter for Writer {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        for i in 0..batch.len() {
            self.text.clear();
            self.rows.write(batch, i, &mut self.text);
            let kind = batch.kind(i);
            let row = self.text.strip_prefix(kind.symbol()).unwrap_or(&self.text);
            self.folded.row(kind, row);
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Vec<u8>> {
        serde_json::to_vec(&self.folded)
            .map_err(|e| Error::internal(format!("a folded table as JSON: {e}")))
    }

    fn restore(&mut self, states: &[Vec<u8>]) -> Result<()> {
        for state in states {
            let part: Folded = serde_json::from_slice(state)
                .map_err(|e| Error::checkpoint(format!("no state of the fold sink: {e}")))?;
            self.folded.add(&part);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.store.add(&self.path, &self.folded);
        let line = format!("{}: {}\n", self.name, self.folded);
        self.console.write(Stream::Out, &line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::console::CapturedConsole;
    use crate::connectors::testing::{batch, table};

    fn folded(lines: &[&str]) -> (Folded, String) {
        let console = Arc::new(CapturedConsole::default());
        let store = Arc::new(FoldStore::default());
        let connector =
            FoldConnector::new(Arc::clone(&console) as Arc<dyn Console>, Arc::clone(&store));
        let t = table("a INT, b STRING", &[]);
        let writers = connector.sink(&t).unwrap().writers().unwrap();
        let (first, second) = lines.split_at(lines.len() / 2);
        let mut writer = writers.create(0, 1).unwrap();
        writer
            .write(&batch("a INT, b STRING", &first.join("\n")))
            .unwrap();
        // goes on in another writer
        let state = writer.snapshot().unwrap();
        let mut writer = writers.create(0, 1).unwrap();
        writer.restore(&[state]).unwrap();
        writer
            .write(&batch("a INT, b STRING", &second.join("\n")))
            .unwrap();
        writer.end().unwrap();
        (store.get(&t.path).unwrap(), console.take())
    }

    #[test]
    fn the_order_of_changes_does_not_matter() {
        let (one, text) = folded(&["+I|1|x", "+I|2|y", "-U|1|x", "+U|1|z"]);
        let (other, _) = folded(&["+I|1|z", "+I|2|y"]);
        assert_eq!((one.rows, one.hash), (other.rows, other.hash));
        assert_eq!(one.changes, [2, 1, 1, 0]);
        // FNV-1a-64 of "[1, z]" and of "[2, y]", added
        let sum = fnv(b"[1, z]").wrapping_add(fnv(b"[2, y]"));
        assert_eq!(one.hash, sum);
        let expected = format!("default_catalog.default_database.t: rows=2 hash={sum:016x}\n");
        assert_eq!(text, expected);
    }

    #[test]
    fn the_hash_is_fnv() {
        assert_eq!(fnv(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
