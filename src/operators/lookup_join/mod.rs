//! The lookup join: every row is joined with what a table holds for its key at that moment.
//!
//! Kinds pass through. There are three ways to run it:
//! - at once, on the task's thread: stateless,
//! - [`asynchronous`]: lookups run on threads of their own while later rows arrive; what is in
//!   flight is waited for before a barrier, so that there is no state either,
//! - [`materialized`]: it remembers what each row was joined with, so that its withdrawal finds the
//!   same rows when the table has changed meanwhile.

mod asynchronous;
mod cache;
mod matcher;
mod materialized;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use self::asynchronous::InFlight;
use self::cache::Cached;
use self::matcher::Matcher;
use self::materialized::Materialized;
use super::join::JoinType;
use super::{Operator, OperatorContext, StateSize};
use crate::changelog::ChangeBatch;
use crate::connectors::lookup::{Lookup, LookupSource, PartialCache, Retry, Retrying};
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::runtime::output::Output;
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::Schema;

/// How asynchronous lookups run: `table.exec.async-lookup.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncLookup {
    /// Whether rows come out in the order in which they came in.
    pub ordered: bool,
    /// Rows that are looked up at the same time, at most.
    pub capacity: usize,
    /// How long a lookup may take.
    pub timeout: Duration,
}

/// What a table gives for a key, and what the join makes of it.
#[derive(Debug, Clone)]
pub struct LookupTable {
    /// The table.
    pub source: Arc<dyn LookupSource>,
    /// For each column of the table that rows are found by: the value, over the input's columns, of
    /// the column's type.
    pub keys: Vec<(usize, Expr)>,
    /// The columns of the table that are read.
    pub projection: Vec<usize>,
    /// The types of these columns.
    pub columns: Schema,
    /// What must hold of a row of the table, over the columns read.
    pub filter: Option<Expr>,
    /// The columns that the table has for the join, over the columns read; `None` when they are the
    /// same.
    pub computed: Option<Vec<Expr>>,
    /// What is remembered of former lookups.
    pub cache: Option<PartialCache>,
    /// How often a missing key is asked for again.
    pub retry: Option<Retry>,
}

/// A lookup join.
#[derive(Debug, Clone)]
pub struct LookupJoinSpec {
    /// Inner or left.
    pub join_type: JoinType,
    /// Columns of the input.
    pub input: Schema,
    /// The right side.
    pub table: LookupTable,
    /// Columns of the right side.
    pub right: Schema,
    /// What else must hold of a pair, over the columns of the input, then those of the right side.
    pub condition: Option<Expr>,
    /// Whether lookups run beside the task.
    pub asynchronous: Option<AsyncLookup>,
    /// Columns that tell rows of the input apart, when it is remembered what each was joined with.
    pub materialize: Option<Vec<usize>>,
    /// `table.exec.state.ttl` of what is remembered, ms.
    pub ttl_ms: Option<i64>,
    /// Columns of the result: those of the input, then those of the right side.
    pub output: Schema,
}

impl LookupJoinSpec {
    /// The lookups of one thread.
    fn open(&self) -> Result<Box<dyn Lookup>> {
        let table = &self.table;
        let columns: Vec<usize> = table.keys.iter().map(|(column, _)| *column).collect();
        let mut lookup = table.source.open(&columns, &table.projection)?;
        if let Some(retry) = table.retry {
            lookup = Box::new(Retrying::new(lookup, retry));
        }
        if let Some(cache) = table.cache {
            let keys: Vec<_> = table
                .keys
                .iter()
                .map(|(_, e)| e.data_type.clone())
                .collect();
            lookup = Box::new(Cached::new(cache, &keys, &table.columns, lookup)?);
        }
        Ok(lookup)
    }
}

/// The operator.
pub struct LookupJoin {
    matcher: Matcher,
    mode: Mode,
}

enum Mode {
    AtOnce(Box<dyn Lookup>),
    Asynchronous(Box<InFlight>),
    Materialized(Box<dyn Lookup>, Box<Materialized>),
}

impl LookupJoin {
    /// An operator for `spec`.
    ///
    /// # Errors
    /// When an expression cannot be compiled or the table cannot be opened.
    pub fn new(spec: &LookupJoinSpec, context: &OperatorContext) -> Result<Self> {
        if !matches!(spec.join_type, JoinType::Inner | JoinType::Left) {
            return Err(Error::internal("a lookup join is inner or left"));
        }
        let mode = match (&spec.materialize, spec.asynchronous) {
            (Some(key), _) => {
                let state = Materialized::new(spec, key, context)?;
                Mode::Materialized(spec.open()?, Box::new(state))
            }
            (None, Some(options)) => {
                Mode::Asynchronous(Box::new(InFlight::new(spec, options, context)?))
            }
            (None, None) => Mode::AtOnce(spec.open()?),
        };
        Ok(Self {
            matcher: Matcher::new(spec, context)?,
            mode,
        })
    }
}

impl Operator for LookupJoin {
    fn process(&mut self, _: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        match &mut self.mode {
            Mode::AtOnce(lookup) => {
                let found = self.matcher.look_up(&batch, lookup.as_mut())?;
                self.matcher.emit(found, &batch, out)
            }
            Mode::Asynchronous(in_flight) => in_flight.process(batch, &self.matcher, out),
            Mode::Materialized(lookup, state) => {
                state.process(&batch, &self.matcher, lookup.as_mut(), out)
            }
        }
    }

    fn watermark(&mut self, watermark: i64, out: &mut Output<'_>) -> Result<()> {
        self.matcher.watermark = watermark;
        out.watermark(watermark)
    }

    fn flush(&mut self, out: &mut Output<'_>) -> Result<()> {
        match &mut self.mode {
            Mode::Asynchronous(in_flight) => in_flight.complete(&self.matcher, out),
            _ => Ok(()),
        }
    }

    fn next_timer(&self) -> Option<i64> {
        match &self.mode {
            Mode::AtOnce(_) => None,
            Mode::Asynchronous(in_flight) => in_flight.next_timer(),
            Mode::Materialized(_, state) => state.next_timer(),
        }
    }

    fn processing_time(&mut self, now_ms: i64, out: &mut Output<'_>) -> Result<()> {
        match &mut self.mode {
            Mode::AtOnce(_) => Ok(()),
            Mode::Asynchronous(in_flight) => {
                in_flight.seen_at(now_ms);
                in_flight.emit_ready(&self.matcher, out)
            }
            Mode::Materialized(_, state) => {
                state.sweep(now_ms);
                Ok(())
            }
        }
    }

    fn snapshot(&mut self) -> Result<OperatorSnapshot> {
        let mut snapshot = OperatorSnapshot::default();
        if let Mode::Materialized(_, state) = &self.mode {
            state.snapshot(&mut snapshot)?;
        }
        Ok(snapshot)
    }

    fn restore(&mut self, saved: RestoreState) -> Result<()> {
        match &mut self.mode {
            Mode::Materialized(_, state) => state.restore(&saved),
            _ => Ok(()),
        }
    }

    fn state_size(&self) -> StateSize {
        match &self.mode {
            Mode::Materialized(_, state) => state.state_size(),
            _ => StateSize::default(),
        }
    }
}
