//! Reads `changelog` lines, step by step.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::values;
use crate::changelog::{ChangeBatch, ChangelogMode, RowKind};
use crate::connectors::{
    SourcePoll, SourceReader, SourceReaderFactory, SplitPosition, TableSource,
};
use crate::error::{Error, Result};
use crate::formats::builder::ColumnBuilder;
use crate::formats::text::java_trim;
use crate::types::Schema;

/// The name of the only split.
const SPLIT: &str = "data";

/// The step of rows before the first `@step`.
const FIRST_STEP: u64 = 0;

/// One use of a table as a source.
pub(super) struct ChangelogSource {
    data: Arc<str>,
    mode: ChangelogMode,
    schema: Schema,
}

impl ChangelogSource {
    pub(super) fn new(data: String, mode: ChangelogMode, schema: Schema) -> Self {
        Self {
            data: data.into(),
            mode,
            schema,
        }
    }
}

impl TableSource for ChangelogSource {
    fn changelog_mode(&self) -> ChangelogMode {
        self.mode
    }

    fn is_bounded(&self) -> bool {
        true
    }

    fn readers(&self, projection: &[usize]) -> Result<Arc<dyn SourceReaderFactory>> {
        Ok(Arc::new(Readers {
            data: Arc::clone(&self.data),
            schema: self.schema.clone(),
            projection: projection.to_vec(),
        }))
    }
}

struct Readers {
    data: Arc<str>,
    schema: Schema,
    projection: Vec<usize>,
}

impl SourceReaderFactory for Readers {
    fn create(
        &self,
        subtask: usize,
        _parallelism: usize,
        restored: &[SplitPosition],
    ) -> Result<Box<dyn SourceReader>> {
        let mut reader = Reader {
            data: Arc::clone(&self.data),
            builders: self
                .schema
                .columns
                .iter()
                .map(|c| ColumnBuilder::new(&c.data_type))
                .collect(),
            names: self.schema.names(),
            arrow: self.schema.project(&self.projection).to_arrow(),
            projection: self.projection.clone(),
            offset: 0,
            line: 0,
            rows: 0,
            step: FIRST_STEP,
            ended: subtask > 0,
            owns_split: subtask == 0,
            failed: None,
        };
        if let Some(position) = restored.iter().find(|p| p.split == SPLIT)
            && reader.owns_split
        {
            reader.skip_to(&position.position)?;
        }
        reader.settle();
        Ok(Box::new(reader))
    }
}

/// What the next line that is not blank says.
enum Line {
    /// A row: where its text begins, and its end.
    Row(std::ops::Range<usize>),
    /// No row comes any more.
    End,
}

struct Reader {
    data: Arc<str>,
    /// One a physical column: all are parsed, so that a malformed value never passes.
    builders: Vec<ColumnBuilder>,
    names: Vec<String>,
    projection: Vec<usize>,
    arrow: SchemaRef,
    /// Byte offset of the next line.
    offset: usize,
    /// Number of the last line that was read, from 1.
    line: usize,
    /// Rows that were handed out.
    rows: u64,
    step: u64,
    ended: bool,
    owns_split: bool,
    /// An error that comes after the rows before it.
    failed: Option<Error>,
}

impl Reader {
    fn skip_to(&mut self, position: &str) -> Result<()> {
        let rows: u64 = position.parse().map_err(|_| {
            Error::checkpoint(format!("'{position}' is no position in changelog data"))
        })?;
        while self.rows < rows {
            let (step, line) = self.peek()?;
            self.step = step;
            match line {
                Line::Row(_) => self.rows += 1,
                Line::End => break,
            }
            self.advance();
        }
        Ok(())
    }

    /// Skips blank lines and comments; gives the step and content of the next line, without passing
    /// it.
    fn peek(&mut self) -> Result<(u64, Line)> {
        loop {
            let rest = &self.data[self.offset..];
            if rest.is_empty() {
                return Ok((self.step, Line::End));
            }
            let end = rest.find('\n').unwrap_or(rest.len());
            let text = java_trim(&rest[..end]);
            if text.is_empty() || text.starts_with('#') {
                self.advance();
                continue;
            }
            let at = |part: &str| {
                let start = part.as_ptr() as usize - self.data.as_ptr() as usize;
                start..start + part.len()
            };
            let Some(stepped) = text.strip_prefix('@') else {
                return Ok((self.step, Line::Row(at(text))));
            };
            let (number, content) = stepped
                .split_once(' ')
                .ok_or_else(|| self.error("'@step' needs a row or 'end' behind it"))?;
            let step = parse_step(number)
                .ok_or_else(|| self.error(&format!("'{number}' is no step number")))?
                .max(self.step);
            let content = java_trim(content);
            if content == "end" {
                return Ok((step, Line::End));
            }
            return Ok((step, Line::Row(at(content))));
        }
    }

    /// Passes the line at `offset`.
    fn advance(&mut self) {
        let rest = &self.data[self.offset..];
        self.offset += rest.find('\n').map_or(rest.len(), |i| i + 1);
        self.line += 1;
    }

    fn error(&self, reason: &str) -> Error {
        Error::format(format!("changelog data, line {}: {reason}", self.line + 1))
    }

    fn parse(&mut self, text: &str) -> Result<RowKind> {
        let fields = text.split('|').count() - 1;
        if fields != self.builders.len() {
            return Err(self.error(&format!(
                "{fields} values for {} columns: {text}",
                self.builders.len()
            )));
        }
        let mut parts = text.split('|');
        let kind = java_trim(parts.next().unwrap_or(""));
        let Some(row_kind) = RowKind::from_symbol(kind) else {
            return Err(self.error(&format!(
                "'{kind}' is no row kind; +I, -U, +U and -D are: {text}"
            )));
        };
        for (i, value) in parts.enumerate() {
            if let Err(e) = values::append(&mut self.builders[i], value) {
                return Err(self.error(&format!("column '{}': {}", self.names[i], e.message())));
            }
        }
        Ok(row_kind)
    }

    /// Rows of the current step, up to `max`.
    fn read(&mut self, max: usize) -> Result<Vec<RowKind>> {
        let data = Arc::clone(&self.data);
        let mut kinds = Vec::new();
        while kinds.len() < max {
            let (step, line) = self.peek()?;
            if step > self.step {
                break;
            }
            let Line::Row(range) = line else {
                self.ended = true;
                break;
            };
            match self.parse(&data[range]) {
                Ok(kind) => kinds.push(kind),
                Err(e) => {
                    for builder in &mut self.builders {
                        builder.truncate(kinds.len());
                    }
                    self.failed = Some(e);
                    break;
                }
            }
            self.advance();
        }
        Ok(kinds)
    }

    /// Goes to the step of the next line. A malformed line stays at the current one and fails when
    /// it is read.
    fn settle(&mut self) {
        if let Ok((step, _)) = self.peek() {
            self.step = step;
        }
    }
}

/// A step number (fractions are allowed) as a step of the runtime, after [`FIRST_STEP`].
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, which is what is wanted"
)]
fn parse_step(text: &str) -> Option<u64> {
    let step: f64 = text.parse().ok().filter(|s: &f64| s.is_finite())?;
    Some(FIRST_STEP + 1 + (step.max(0.0) * 1000.0).round() as u64)
}

impl SourceReader for Reader {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        if let Some(e) = self.failed.take() {
            self.ended = true;
            return Err(e);
        }
        if self.ended {
            return Ok(SourcePoll::End);
        }
        let kinds = self.read(max_rows.max(1))?;
        self.settle();
        if kinds.is_empty() {
            return match self.failed.take() {
                Some(e) => Err(e),
                None => Ok(SourcePoll::End),
            };
        }
        self.rows += kinds.len() as u64;
        let columns = self
            .builders
            .iter_mut()
            .map(ColumnBuilder::finish)
            .collect::<Result<Vec<_>>>()?;
        let projected = self
            .projection
            .iter()
            .map(|i| std::sync::Arc::clone(&columns[*i]))
            .collect();
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(kinds.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.arrow), projected, &options)?;
        Ok(SourcePoll::Batch(ChangeBatch::try_new(rows, kinds)?))
    }

    fn step(&self) -> Option<u64> {
        Some(self.step)
    }

    fn positions(&self) -> Vec<SplitPosition> {
        if !self.owns_split {
            return Vec::new();
        }
        vec![SplitPosition {
            split: SPLIT.into(),
            position: self.rows.to_string(),
        }]
    }
}
