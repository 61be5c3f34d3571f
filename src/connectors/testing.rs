//! What the unit tests of connectors and formats share.

use std::time::Duration;

use indexmap::IndexMap;

use super::{SourcePoll, TableDescription, TableSource};
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::types::{Column, DataType, RowField, Schema, TypeKind};

/// A table of `columns` (`a INT, b STRING`; types as [`data_type`] reads them) with `options`.
pub(crate) fn table(columns: &str, options: &[(&str, &str)]) -> TableDescription {
    TableDescription {
        path: "default_catalog.default_database.t".into(),
        physical: schema(columns),
        metadata: Vec::new(),
        virtual_metadata: Vec::new(),
        primary_key: Vec::new(),
        partitioned_by: Vec::new(),
        options: options
            .iter()
            .map(|(k, v)| ((*k).to_string(), (*v).to_string()))
            .collect::<IndexMap<_, _>>(),
        time_zone: chrono_tz::UTC,
    }
}

/// A batch of `changelog` lines.
pub(crate) fn batch(columns: &str, data: &str) -> ChangeBatch {
    use super::Connector as _;
    let console = std::sync::Arc::new(super::console::CapturedConsole::default());
    let connector = super::changelog::ChangelogConnector::new(console);
    let t = table(columns, &[("data", data)]);
    let readers = connector.source(&t).and_then(|s| {
        let all: Vec<usize> = (0..t.physical.len()).collect();
        s.readers(&all)
    });
    let mut reader = readers.and_then(|r| r.create(0, 1, &[])).expect("readers");
    match reader.poll(usize::MAX) {
        Ok(SourcePoll::Batch(batch)) => batch,
        other => panic!("{other:?}"),
    }
}

/// The rows of a batch as they print.
pub(crate) fn lines(batch: &ChangeBatch, schema: &Schema) -> Vec<String> {
    let printer = crate::types::text::RowPrinter::new(schema);
    (0..batch.len())
        .map(|i| {
            let mut line = String::new();
            printer.write(batch, i, &mut line);
            line
        })
        .collect()
}

/// All rows that a source gives at parallelism 1, as they print.
pub(crate) fn drain(source: &dyn TableSource, table: &TableDescription) -> Result<Vec<String>> {
    let mut schema = table.physical.clone();
    schema
        .columns
        .extend(table.metadata.iter().map(|(_, c)| c.clone()));
    let all: Vec<usize> = (0..schema.len()).collect();
    let mut reader = source.readers(&all)?.create(0, 1, &[])?;
    let mut rows = Vec::new();
    for _ in 0..10_000 {
        match reader.poll(1000)? {
            SourcePoll::Batch(batch) => {
                assert_eq!(batch.schema(), schema.to_arrow());
                rows.extend(lines(&batch, &schema));
            }
            SourcePoll::End => return Ok(rows),
            // what comes over a network takes its time
            SourcePoll::Pending(after) => {
                let most = Duration::from_millis(10);
                std::thread::sleep(after.clamp(Duration::from_millis(1), most));
            }
            _ => {}
        }
    }
    panic!("the source does not end: {} rows", rows.len());
}

/// Columns of a schema in short form.
pub(crate) fn schema(columns: &str) -> Schema {
    Schema::new(
        split(columns)
            .iter()
            .map(|column| {
                let (name, t) = column.split_once(' ').expect("name TYPE");
                Column::new(name, data_type(t))
            })
            .collect(),
    )
}

/// Cuts at commas outside of brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|p| !p.is_empty());
    parts
}

/// A type from its printed form.
pub(crate) fn data_type(text: &str) -> DataType {
    let inner = |open: char| {
        let from = text.find(open).expect("brackets") + 1;
        &text[from..text.len() - 1]
    };
    let number = |i: usize| split(inner('('))[i].parse::<u32>().expect("number");
    let small = |i: usize| u8::try_from(number(i)).expect("small number");
    let boxed = |i: usize| Box::new(data_type(split(inner('<'))[i]));
    let end = text.find(['<', '(']).unwrap_or(text.len());
    let kind = match &text[..end] {
        "BOOLEAN" => TypeKind::Boolean,
        "TINYINT" => TypeKind::TinyInt,
        "SMALLINT" => TypeKind::SmallInt,
        "INT" => TypeKind::Int,
        "BIGINT" => TypeKind::BigInt,
        "FLOAT" => TypeKind::Float,
        "DOUBLE" => TypeKind::Double,
        "STRING" => TypeKind::STRING,
        "BYTES" => TypeKind::BYTES,
        "CHAR" => TypeKind::Char(number(0)),
        "VARCHAR" => TypeKind::VarChar(number(0)),
        "BINARY" => TypeKind::Binary(number(0)),
        "DATE" => TypeKind::Date,
        "DECIMAL" => TypeKind::Decimal(small(0), small(1)),
        "TIME" => TypeKind::Time(small(0)),
        "TIMESTAMP" => TypeKind::Timestamp(small(0)),
        "TIMESTAMP_LTZ" => TypeKind::TimestampLtz(small(0)),
        "ARRAY" => TypeKind::Array(boxed(0)),
        "MULTISET" => TypeKind::Multiset(boxed(0)),
        "MAP" => TypeKind::Map(boxed(0), boxed(1)),
        "ROW" => TypeKind::Row(
            split(inner('<'))
                .iter()
                .map(|f| {
                    let (name, t) = f.split_once(' ').expect("name TYPE");
                    RowField {
                        name: name.into(),
                        data_type: data_type(t),
                    }
                })
                .collect(),
        ),
        other => panic!("unknown type {other}"),
    };
    kind.nullable()
}
