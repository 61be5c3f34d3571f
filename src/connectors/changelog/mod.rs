//! The `changelog` connector: test data inside the DDL, and a sink that prints what it receives.
//!
//! A line of `data` (or of the file `path`) is `[@step ]KIND|value|value`; `\N` is NULL; blank lines
//! and lines that begin with `#` are skipped; `@step end` holds the end of the input until that step.
//! Arrays, maps and rows are JSON: `[1, null]`, `{"k": 1}`.

mod source;
mod values;

use std::sync::Arc;

use super::console::Console;
use super::options::{Options, optional, validate};
use super::print::PrintSink;
use super::{Connector, OptionSpec, TableDescription, TableSink, TableSource};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};

/// The connector.
#[derive(Debug)]
pub struct ChangelogConnector {
    console: Arc<dyn Console>,
}

impl ChangelogConnector {
    /// The connector whose sinks print to `console`.
    #[must_use]
    pub fn new(console: Arc<dyn Console>) -> Self {
        Self { console }
    }
}

/// Reads a list of `I`, `UB`, `UA`, `D`.
fn parse_mode(text: &str) -> Result<ChangelogMode> {
    let mut mode = ChangelogMode {
        insert: false,
        update_before: false,
        update_after: false,
        delete: false,
    };
    for kind in text.split(',') {
        match kind.trim() {
            "I" => mode.insert = true,
            "UB" => mode.update_before = true,
            "UA" => mode.update_after = true,
            "D" => mode.delete = true,
            other => {
                return Err(Error::options(format!(
                    "Unsupported kind '{other}' in option 'changelog-mode'. Supported kinds are I, UB, UA and D."
                )));
            }
        }
    }
    Ok(mode)
}

impl Connector for ChangelogConnector {
    fn identifier(&self) -> &'static str {
        "changelog"
    }

    fn options(&self) -> Vec<OptionSpec> {
        [
            optional("data", "rows, one a line: [@step ]KIND|value|value"),
            optional("path", "a file with such lines"),
            optional(
                "changelog-mode",
                "kinds that a source has or a sink takes (I,UB,UA,D)",
            ),
            optional("step-ms", "without meaning, taken for compatibility"),
        ]
        .map(|spec| OptionSpec {
            flink: false,
            ..spec
        })
        .into()
    }

    fn source(&self, table: &TableDescription) -> Result<Arc<dyn TableSource>> {
        validate(self.identifier(), table, &self.options())?;
        let options = Options::of(table);
        let data = match (options.get("data"), options.get("path")) {
            (Some(data), _) => data.to_string(),
            (None, Some(path)) => read(path)?,
            (None, None) => {
                return Err(Error::options(
                    "A source of the 'changelog' connector needs the option 'data' or 'path'.",
                ));
            }
        };
        let mode = options
            .get("changelog-mode")
            .map_or(Ok(ChangelogMode::RETRACT), parse_mode)?;
        Ok(Arc::new(source::ChangelogSource::new(
            data,
            mode,
            table.physical.clone(),
        )))
    }

    fn sink(&self, table: &TableDescription) -> Result<Arc<dyn TableSink>> {
        validate(self.identifier(), table, &self.options())?;
        let mode = Options::of(table)
            .get("changelog-mode")
            .map(parse_mode)
            .transpose()?;
        Ok(Arc::new(PrintSink::plain(
            Arc::clone(&self.console),
            &table.physical,
            mode,
        )))
    }
}

fn read(path: &str) -> Result<String> {
    let path = path.strip_prefix("file://").unwrap_or(path);
    std::fs::read_to_string(path)
        .map_err(|e| Error::connector(format!("cannot read the file '{path}': {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::console::CapturedConsole;
    use crate::connectors::testing::{drain, table};

    fn connector() -> (ChangelogConnector, Arc<CapturedConsole>) {
        let console = Arc::new(CapturedConsole::default());
        (
            ChangelogConnector::new(Arc::clone(&console) as Arc<dyn Console>),
            console,
        )
    }

    fn rows(columns: &str, data: &str) -> Result<Vec<String>> {
        let t = table(columns, &[("connector", "changelog"), ("data", data)]);
        drain(connector().0.source(&t)?.as_ref(), &t)
    }

    #[test]
    fn lines_become_rows_with_kinds() {
        let data = "\n+I|a|1\n# comment\n-U|a|1\r\n  +U|a| 2 \n\n-D|\\N|\\N\n";
        assert_eq!(
            rows("k STRING, v INT", data).unwrap(),
            ["+I[a, 1]", "-U[a, 1]", "+U[a, 2]", "-D[null, null]"]
        );
    }

    #[test]
    fn bad_lines_are_named_by_number() {
        let error = rows("v INT", "+I|1\n+I|x").unwrap_err();
        assert!(error.message().contains("line 2"), "{error}");
        let error = rows("v INT", "\n+I|1|2").unwrap_err();
        assert!(error.message().contains("line 2"), "{error}");
        let error = rows("v INT", "*I|1").unwrap_err();
        assert!(error.message().contains("row kind"), "{error}");
    }

    #[test]
    fn every_scalar_type_is_read() {
        let data = "+I|true|-128|1.5|2.5|12.345|2024-01-31|10:11:12.5|2024-01-01T00:00:01.5|2024-01-01T00:00";
        assert_eq!(
            rows(
                "a BOOLEAN, b TINYINT, c FLOAT, d DOUBLE, e DECIMAL(4, 2), f DATE, g TIME(3), h TIMESTAMP(3), i TIMESTAMP_LTZ(3)",
                data
            )
            .unwrap(),
            [
                "+I[true, -128, 1.5, 2.5, 12.35, 2024-01-31, 10:11:12.500, 2024-01-01T00:00:01.500, 2024-01-01T00:00:00Z]"
            ]
        );
    }

    #[test]
    fn nested_values_are_json() {
        let columns = "a ARRAY<INT>, m MAP<STRING, INT>, r ROW<x INT, t TIMESTAMP(3)>";
        let data = "+I|[1, null]|{\"k\": 1}|{\"x\": 2, \"t\": \"2024-01-01T00:00:00\"}";
        assert_eq!(
            rows(columns, data).unwrap(),
            ["+I[[1, null], {k=1}, +I[2, 2024-01-01T00:00]]"]
        );
        assert!(rows(columns, "+I|[1|{}|{}").is_err());
    }

    #[test]
    fn readers_stop_at_each_step() {
        let t = table(
            "v INT",
            &[
                ("connector", "changelog"),
                (
                    "data",
                    "+I|0\n@1 +I|1\n+I|2\n@3 +I|3\n@2 +I|4\n@9 end\n+I|5",
                ),
            ],
        );
        let source = connector().0.source(&t).unwrap();
        let readers = source.readers(&[0]).unwrap();
        let mut reader = readers.create(0, 1, &[]).unwrap();
        let mut seen = Vec::new();
        loop {
            let step = reader.step().unwrap();
            match reader.poll(100).unwrap() {
                crate::connectors::SourcePoll::Batch(b) => seen.push((step, b.len())),
                crate::connectors::SourcePoll::End => {
                    seen.push((step, 0));
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        let sizes: Vec<_> = seen.iter().map(|(_, n)| *n).collect();
        assert_eq!(sizes, [1, 2, 2, 0]);
        assert!(seen.windows(2).all(|w| w[0].0 < w[1].0), "{seen:?}");
    }

    #[test]
    fn a_restored_reader_goes_on_behind_the_last_row() {
        let t = table(
            "v INT",
            &[("connector", "changelog"), ("data", "+I|0\n+I|1\n@2 +I|2")],
        );
        let source = connector().0.source(&t).unwrap();
        let readers = source.readers(&[0]).unwrap();
        let mut reader = readers.create(0, 1, &[]).unwrap();
        reader.poll(1).unwrap();
        let positions = reader.positions();
        let mut again = readers.create(0, 1, &positions).unwrap();
        let crate::connectors::SourcePoll::Batch(rest) = again.poll(100).unwrap() else {
            panic!()
        };
        assert_eq!(rest.len(), 1);
    }

    #[test]
    fn the_sink_prints_what_it_receives() {
        let (connector, console) = connector();
        let t = table(
            "v INT",
            &[("connector", "changelog"), ("data", "+I|7\n-D|7")],
        );
        let source = connector.source(&t).unwrap();
        let reader = source.readers(&[0]).unwrap();
        let crate::connectors::SourcePoll::Batch(batch) =
            reader.create(0, 1, &[]).unwrap().poll(9).unwrap()
        else {
            panic!()
        };
        let sink = connector.sink(&t).unwrap();
        let mut writer = sink.writers().unwrap().create(0, 1).unwrap();
        writer.write(&batch).unwrap();
        writer.end().unwrap();
        assert_eq!(console.take(), "+I[7]\n-D[7]\n");
    }

    #[test]
    fn modes_are_checked() {
        let t = table("v INT", &[("changelog-mode", "I,X"), ("data", "")]);
        assert!(connector().0.source(&t).is_err());
        let t = table("v INT", &[("changelog-mode", "I,UA,D"), ("data", "")]);
        let mode = connector().0.source(&t).unwrap().changelog_mode();
        assert_eq!(mode, ChangelogMode::UPSERT);
    }
}
