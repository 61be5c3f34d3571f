//! Sources, operators and sinks of the runtime's tests: columns of i64, rows that are easy to write.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;

use super::control::lock;
use super::output::Output;
use crate::changelog::{ChangeBatch, RowKind};
use crate::connectors::{
    SinkWriter, SinkWriterFactory, SourcePoll, SourceReader, SourceReaderFactory, SplitPosition,
};
use crate::error::{Error, Result};
use crate::graph::{Distribution, Graph, Input, OperatorFactory, Vertex, VertexId, VertexKind};
use crate::operators::Operator;
use crate::types::{Column, Schema, TypeKind};

pub(super) type Row = (RowKind, Vec<i64>);

pub(super) fn insert(values: &[i64]) -> Row {
    (RowKind::Insert, values.to_vec())
}

pub(super) fn schema(columns: usize) -> Schema {
    let column = |i| Column::new(format!("c{i}"), TypeKind::BigInt.nullable());
    Schema::new((0..columns).map(column).collect())
}

pub(super) fn batch(rows: &[Row]) -> ChangeBatch {
    let columns = rows.first().map_or(1, |(_, v)| v.len());
    let arrays = (0..columns).map(|c| {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|(_, v)| v[c]))) as ArrayRef
    });
    let rows_ = RecordBatch::try_new(schema(columns).to_arrow(), arrays.collect()).unwrap();
    ChangeBatch::try_new(rows_, rows.iter().map(|(k, _)| *k).collect()).unwrap()
}

pub(super) fn rows(batch: &ChangeBatch) -> Vec<Row> {
    let columns: Vec<_> = batch
        .rows()
        .columns()
        .iter()
        .map(|c| c.as_primitive::<Int64Type>())
        .collect();
    (0..batch.len())
        .map(|i| (batch.kind(i), columns.iter().map(|c| c.value(i)).collect()))
        .collect()
}

/// What a [`ScriptReader`] does next.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Row(Row),
    Step(u64, Row),
    Watermark(i64),
    Pending,
    Fail,
    Forever,
}

/// A source of one split that plays a script.
pub(super) struct Script(pub(super) Vec<Act>);

impl SourceReaderFactory for Script {
    fn create(
        &self,
        subtask: usize,
        _: usize,
        restored: &[SplitPosition],
    ) -> Result<Box<dyn SourceReader>> {
        let start = restored.first().map_or(0, |p| p.position.parse().unwrap());
        let acts = if subtask == 0 {
            self.0[start..].iter().cloned().collect()
        } else {
            VecDeque::new()
        };
        Ok(Box::new(ScriptReader {
            acts,
            position: start,
            first: subtask == 0,
        }))
    }
}

struct ScriptReader {
    acts: VecDeque<Act>,
    position: usize,
    first: bool,
}

impl SourceReader for ScriptReader {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        let mut rows = Vec::new();
        let step = self.step();
        while rows.len() < max_rows {
            match self.acts.front() {
                Some(Act::Row(row)) => rows.push(row.clone()),
                Some(Act::Step(s, row)) if step == Some(*s) => rows.push(row.clone()),
                _ => break,
            }
            self.acts.pop_front();
            self.position += 1;
        }
        if !rows.is_empty() {
            return Ok(SourcePoll::Batch(batch(&rows)));
        }
        match self.acts.front().cloned() {
            None => Ok(SourcePoll::End),
            Some(Act::Forever) => Ok(SourcePoll::Pending(Duration::from_millis(1))),
            Some(act) => {
                self.acts.pop_front();
                self.position += 1;
                Ok(match act {
                    Act::Watermark(w) => SourcePoll::Watermark(w),
                    Act::Fail => return Err(Error::connector("broken pipe")),
                    _ => SourcePoll::Pending(Duration::from_millis(1)),
                })
            }
        }
    }

    fn step(&self) -> Option<u64> {
        match self.acts.front() {
            Some(Act::Step(s, _)) => Some(*s),
            _ => None,
        }
    }

    fn positions(&self) -> Vec<SplitPosition> {
        let position = SplitPosition {
            split: "script".into(),
            position: self.position.to_string(),
        };
        if self.first {
            vec![position]
        } else {
            Vec::new()
        }
    }
}

/// What reached a [`Record`] sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Row(Row),
    Watermark(i64),
    End,
    PreCommit(u64),
    Commit(Vec<u8>),
}

/// A sink that remembers everything.
#[derive(Default)]
pub(super) struct Record(pub(super) Arc<Mutex<Vec<Seen>>>);

impl Record {
    pub(super) fn sink() -> (Arc<dyn SinkWriterFactory>, Arc<Mutex<Vec<Seen>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        (Arc::new(Self(Arc::clone(&seen))), seen)
    }
}

impl SinkWriterFactory for Record {
    fn create(&self, _: usize, _: usize) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(Self(Arc::clone(&self.0))))
    }

    fn commit(&self, committable: &[u8]) -> Result<()> {
        lock(&self.0).push(Seen::Commit(committable.to_vec()));
        Ok(())
    }
}

impl SinkWriter for Record {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        lock(&self.0).extend(rows(batch).into_iter().map(Seen::Row));
        Ok(())
    }

    fn watermark(&mut self, watermark: i64) -> Result<()> {
        lock(&self.0).push(Seen::Watermark(watermark));
        Ok(())
    }

    fn pre_commit(&mut self, epoch: u64) -> Result<Vec<Vec<u8>>> {
        lock(&self.0).push(Seen::PreCommit(epoch));
        Ok(vec![b"tx".to_vec()])
    }

    fn end(&mut self) -> Result<()> {
        lock(&self.0).push(Seen::End);
        Ok(())
    }
}

pub(super) fn seen_rows(seen: &Mutex<Vec<Seen>>) -> Vec<Row> {
    let seen = lock(seen);
    seen.iter()
        .filter_map(|s| {
            if let Seen::Row(row) = s {
                Some(row.clone())
            } else {
                None
            }
        })
        .collect()
}

/// An operator made of a function on batches; appends the port to every row if `tag` is set.
pub(super) struct Pass {
    pub(super) tag: bool,
}

impl Operator for Pass {
    fn process(&mut self, port: usize, input: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        if !self.tag {
            return out.emit(input);
        }
        let tagged: Vec<Row> = rows(&input)
            .into_iter()
            .map(|(kind, mut values)| {
                values.push(i64::try_from(port).unwrap());
                (kind, values)
            })
            .collect();
        out.emit(batch(&tagged))
    }

    fn end_input(&mut self, port: usize, out: &mut Output<'_>) -> Result<()> {
        if self.tag {
            out.emit(batch(&[insert(&[-1, i64::try_from(port).unwrap()])]))?;
        }
        Ok(())
    }
}

pub(super) fn operator<O: Operator + 'static>(make: fn() -> O) -> VertexKind {
    let factory: OperatorFactory = Arc::new(move |_| Ok(Box::new(make())));
    VertexKind::Operator(factory)
}

pub(super) fn source(acts: Vec<Act>) -> VertexKind {
    VertexKind::Source(Arc::new(Script(acts)))
}

/// A vertex in the making, of one column and parallelism 1.
pub(super) struct Builder(pub(super) Vertex);

impl Builder {
    pub(super) fn new(name: &str, kind: VertexKind) -> Self {
        Self(Vertex {
            name: name.to_string(),
            description: format!("{name}(test)"),
            uid: name.to_string(),
            signature: String::new(),
            kind,
            schema: schema(1),
            mode: None,
            parallelism: 1,
            inputs: Vec::new(),
        })
    }

    pub(super) fn columns(mut self, columns: usize) -> Self {
        self.0.schema = schema(columns);
        self
    }

    pub(super) fn parallelism(mut self, parallelism: usize) -> Self {
        self.0.parallelism = parallelism;
        self
    }

    /// Adds an input at port 0.
    pub(super) fn from(mut self, from: VertexId, distribution: Distribution) -> Self {
        let port = 0;
        self.0.inputs.push(Input {
            from,
            port,
            distribution,
        });
        self
    }

    pub(super) fn add(self, graph: &mut Graph) -> VertexId {
        graph.add(self.0)
    }
}

/// Adds a vertex whose inputs are (vertex, port).
pub(super) fn add(
    graph: &mut Graph,
    name: &str,
    kind: VertexKind,
    inputs: &[(VertexId, usize)],
) -> VertexId {
    let mut builder = Builder::new(name, kind);
    for (from, port) in inputs {
        builder = builder.from(*from, Distribution::Forward);
        builder.0.inputs.last_mut().unwrap().port = *port;
    }
    builder.add(graph)
}
