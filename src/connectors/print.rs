//! The `print` connector: rows on standard output or standard error, as Flink prints them.

use std::sync::Arc;

use super::console::{Console, Stream};
use super::options::{Options, optional, sink_parallelism, validate};
use super::{
    Connector, OptionSpec, Origin, SinkWriter, SinkWriterFactory, TableDescription, TableSink,
    TableSource,
};
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::error::{Error, Result};
use crate::types::Schema;
use crate::types::text::RowPrinter;

/// The connector.
#[derive(Debug)]
pub struct PrintConnector {
    console: Arc<dyn Console>,
}

impl PrintConnector {
    /// The connector that prints to `console`.
    #[must_use]
    pub fn new(console: Arc<dyn Console>) -> Self {
        Self { console }
    }
}

impl Connector for PrintConnector {
    fn identifier(&self) -> &'static str {
        "print"
    }

    fn origin(&self) -> Origin {
        Origin::Flink
    }

    fn options(&self) -> Vec<OptionSpec> {
        vec![
            sink_parallelism(),
            optional("print-identifier", "text before every row"),
            optional("standard-error", "print to standard error (false)"),
        ]
    }

    fn source(&self, _table: &TableDescription) -> Result<Arc<dyn TableSource>> {
        Err(sink_only(self.identifier()))
    }

    fn sink(&self, table: &TableDescription) -> Result<Arc<dyn TableSink>> {
        validate(self.identifier(), table, &self.options())?;
        let options = Options::of(table);
        let stream = if options.boolean("standard-error", false)? {
            Stream::Err
        } else {
            Stream::Out
        };
        Ok(Arc::new(PrintSink {
            factory: Arc::new(Writers {
                console: Arc::clone(&self.console),
                rows: RowPrinter::new(&table.physical),
                prefix: Prefix::Identifier(
                    options.get("print-identifier").unwrap_or("").to_string(),
                ),
                stream,
            }),
            mode: None,
        }))
    }
}

/// The error for a connector that only writes.
pub(super) fn sink_only(identifier: &str) -> Error {
    Error::options(format!(
        "Connector '{identifier}' can only be used as a sink. It cannot be used as a source."
    ))
}

/// The error for a connector that only reads.
pub(super) fn source_only(identifier: &str) -> Error {
    Error::options(format!(
        "Connector '{identifier}' can only be used as a source. It cannot be used as a sink."
    ))
}

/// A sink that prints rows to a console.
pub(super) struct PrintSink {
    factory: Arc<Writers>,
    mode: Option<ChangelogMode>,
}

impl PrintSink {
    /// A sink that prints rows without any prefix and takes the kinds of `mode`, or all that come.
    pub(super) fn plain(
        console: Arc<dyn Console>,
        schema: &Schema,
        mode: Option<ChangelogMode>,
    ) -> Self {
        Self {
            factory: Arc::new(Writers {
                console,
                rows: RowPrinter::new(schema),
                prefix: Prefix::None,
                stream: Stream::Out,
            }),
            mode,
        }
    }
}

impl TableSink for PrintSink {
    fn changelog_mode(&self, requested: ChangelogMode) -> ChangelogMode {
        self.mode.unwrap_or(requested)
    }

    fn writers(&self) -> Result<Arc<dyn SinkWriterFactory>> {
        Ok(Arc::clone(&self.factory) as Arc<dyn SinkWriterFactory>)
    }
}

/// What stands before a row.
enum Prefix {
    /// Nothing, at any parallelism.
    None,
    /// The identifier and, with several subtasks, the subtask's number.
    Identifier(String),
}

struct Writers {
    console: Arc<dyn Console>,
    rows: RowPrinter,
    prefix: Prefix,
    stream: Stream,
}

impl SinkWriterFactory for Writers {
    fn create(&self, subtask: usize, parallelism: usize) -> Result<Box<dyn SinkWriter>> {
        let number = subtask + 1;
        let prefix = match &self.prefix {
            Prefix::None => String::new(),
            Prefix::Identifier(id) => match (id.is_empty(), parallelism > 1) {
                (true, false) => String::new(),
                (true, true) => format!("{number}> "),
                (false, false) => format!("{id}> "),
                (false, true) => format!("{id}:{number}> "),
            },
        };
        Ok(Box::new(Writer {
            console: Arc::clone(&self.console),
            rows: self.rows.clone(),
            prefix,
            stream: self.stream,
            text: String::new(),
        }))
    }
}

struct Writer {
    console: Arc<dyn Console>,
    rows: RowPrinter,
    prefix: String,
    stream: Stream,
    text: String,
}

impl SinkWriter for Writer {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        self.text.clear();
        for i in 0..batch.len() {
            self.text.push_str(&self.prefix);
            self.rows.write(batch, i, &mut self.text);
            self.text.push('\n');
        }
        self.console.write(self.stream, &self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::console::CapturedConsole;
    use crate::connectors::testing::{batch, table};

    fn printed(options: &[(&str, &str)], subtask: usize, parallelism: usize) -> String {
        let console = Arc::new(CapturedConsole::default());
        let connector = PrintConnector::new(Arc::clone(&console) as Arc<dyn Console>);
        let t = table("a INT", options);
        let sink = connector.sink(&t).unwrap();
        let mut writer = sink
            .writers()
            .unwrap()
            .create(subtask, parallelism)
            .unwrap();
        writer.write(&batch("a INT", "+I|1\n-D|\\N")).unwrap();
        writer.end().unwrap();
        console.take()
    }

    #[test]
    fn rows_carry_identifier_and_subtask() {
        assert_eq!(printed(&[], 0, 1), "+I[1]\n-D[null]\n");
        assert_eq!(printed(&[], 1, 2), "2> +I[1]\n2> -D[null]\n");
        let id = [("print-identifier", "x")];
        assert_eq!(printed(&id, 0, 1), "x> +I[1]\nx> -D[null]\n");
        assert_eq!(printed(&id, 0, 2), "x:1> +I[1]\nx:1> -D[null]\n");
    }
}
