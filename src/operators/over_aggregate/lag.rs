//! `LAG`: the values of the last rows of each partition.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::interleave;
use datafusion::common::ScalarValue;

use super::{OverAggregateSpec, OverCall};
use crate::error::{Error, Result};
use crate::state::rows::{EncodedRows, RowCodec, RowId, RowStore, check_columns};
use crate::types::DataType;

/// The `LAG` calls of an operator, with the last rows of each partition.
#[derive(Debug)]
pub(super) struct Lags {
    calls: Vec<LagCall>,
    /// The columns that the calls read.
    columns: Vec<usize>,
    types: Vec<DataType>,
    codec: RowCodec,
    store: RowStore,
    /// How many rows of a partition are kept.
    depth: usize,
    /// By partition, oldest first.
    history: Vec<VecDeque<RowId>>,
    encoded: EncodedRows,
}

#[derive(Debug)]
struct LagCall {
    /// Position in `Lags::columns`.
    place: usize,
    offset: usize,
    default: ScalarValue,
}

/// A row of a partition.
#[derive(Debug, Clone, Copy)]
enum Recent {
    Stored(RowId),
    Row(usize),
}

impl Lags {
    pub(super) fn new(spec: &OverAggregateSpec) -> Result<Self> {
        let mut columns = Vec::new();
        let mut calls = Vec::new();
        for call in &spec.calls {
            let OverCall::Lag {
                column,
                offset,
                default,
            } = call
            else {
                continue;
            };
            let place = columns.iter().position(|c| c == column);
            let place = place.unwrap_or_else(|| {
                columns.push(*column);
                columns.len() - 1
            });
            calls.push(LagCall {
                place,
                offset: *offset,
                default: default.clone(),
            });
        }
        let types = spec.input.project(&columns).types();
        Ok(Self {
            depth: calls.iter().map(|c| c.offset).max().unwrap_or(0),
            calls,
            columns,
            codec: RowCodec::new(&types)?,
            types,
            store: RowStore::default(),
            history: Vec::new(),
            encoded: EncodedRows::default(),
        })
    }

    /// A column for each call. Row `i` belongs to partition `keys[i]`, and its results are those
    /// after row `until[i]`, which is it or a later one of the partition.
    pub(super) fn evaluate(
        &mut self,
        rows: &RecordBatch,
        keys: &[u32],
        until: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        if self.calls.is_empty() {
            return Ok(Vec::new());
        }
        let columns: Vec<_> = self
            .columns
            .iter()
            .map(|c| rows.column(*c))
            .cloned()
            .collect();
        let len = rows.num_rows();
        self.codec.encode(&columns, len, &mut self.encoded)?;
        // What each call sees after each row.
        let mut seen: Vec<Vec<Option<Recent>>> = vec![Vec::with_capacity(len); self.calls.len()];
        let mut recent: std::collections::HashMap<
            u32,
            VecDeque<Recent>,
            foldhash::fast::FixedState,
        > = std::collections::HashMap::default();
        for (row, key) in keys.iter().enumerate() {
            let recent = recent.entry(*key).or_insert_with(|| {
                let stored = self.history.get(*key as usize).into_iter().flatten();
                stored.map(|id| Recent::Stored(*id)).collect()
            });
            recent.push_back(Recent::Row(row));
            for (call, seen) in self.calls.iter().zip(&mut seen) {
                let at = recent.len().checked_sub(call.offset + 1);
                seen.push(at.and_then(|at| recent.get(at).copied()));
            }
            while recent.len() > self.depth + 1 {
                recent.pop_front();
            }
        }
        let stored: Vec<RowId> = seen
            .iter()
            .flatten()
            .filter_map(|r| match r {
                Some(Recent::Stored(id)) => Some(*id),
                _ => None,
            })
            .collect();
        let old = self.store.decode(&self.codec, stored)?;
        let mut results = Vec::with_capacity(self.calls.len());
        let mut next_old = 0;
        for (call, seen) in self.calls.iter().zip(&seen) {
            let places: Vec<(usize, usize)> = seen
                .iter()
                .map(|recent| match recent {
                    Some(Recent::Row(row)) => (0, *row),
                    Some(Recent::Stored(_)) => {
                        next_old += 1;
                        (1, next_old - 1)
                    }
                    None => (2, 0),
                })
                .collect();
            let places: Vec<_> = until.iter().map(|row| places[*row]).collect();
            let default = call.default.to_array()?;
            let sources = [&columns[call.place], &old[call.place], &default];
            let sources: Vec<_> = sources.iter().map(|a| a.as_ref()).collect();
            results.push(interleave(&sources, &places)?);
        }
        for key in keys {
            if let Some(recent) = recent.remove(key) {
                self.remember(*key, recent);
            }
        }
        Ok(results)
    }

    /// Makes the last of `recent` the history of a partition.
    fn remember(&mut self, key: u32, mut recent: VecDeque<Recent>) {
        while recent.len() > self.depth {
            recent.pop_front();
        }
        self.resize(key as usize + 1);
        let old = std::mem::take(&mut self.history[key as usize]);
        let mut kept: VecDeque<RowId> = VecDeque::with_capacity(recent.len());
        for row in recent {
            kept.push_back(match row {
                Recent::Stored(id) => id,
                Recent::Row(row) => self.store.insert(self.encoded.bytes(row)),
            });
        }
        for id in old {
            if !kept.contains(&id) {
                self.store.remove(id);
            }
        }
        self.history[key as usize] = kept;
    }

    fn resize(&mut self, keys: usize) {
        if self.history.len() < keys {
            self.history.resize(keys, VecDeque::new());
        }
    }

    /// Forgets a partition.
    pub(super) fn clear(&mut self, key: u32) {
        if let Some(history) = self.history.get_mut(key as usize) {
            for id in history.drain(..) {
                self.store.remove(id);
            }
        }
    }

    /// The kept rows of partitions: the partition of each, and the columns.
    pub(super) fn save(&self, keys: &[u32]) -> Result<(Vec<u32>, Vec<ArrayRef>)> {
        let (mut owners, mut ids) = (Vec::new(), Vec::new());
        for key in keys {
            for id in self.history.get(*key as usize).into_iter().flatten() {
                owners.push(*key);
                ids.push(*id);
            }
        }
        Ok((owners, self.store.decode(&self.codec, ids)?))
    }

    /// Whether rows of a partition are kept.
    pub(super) fn has_rows(&self, key: u32) -> bool {
        let history = self.history.get(key as usize);
        history.is_some_and(|history| !history.is_empty())
    }

    /// Takes kept rows up again.
    pub(super) fn load(&mut self, keys: &[u32], columns: &[ArrayRef]) -> Result<()> {
        check_columns(columns, &self.types)?;
        let columns: Vec<_> = columns.iter().map(Arc::clone).collect();
        self.codec.encode(&columns, keys.len(), &mut self.encoded)?;
        for (row, key) in keys.iter().enumerate() {
            self.resize(*key as usize + 1);
            let id = self.store.insert(self.encoded.bytes(row));
            self.history[*key as usize].push_back(id);
        }
        Ok(())
    }

    /// Whether there is a call.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Bytes of memory held.
    pub(super) fn memory_size(&self) -> usize {
        self.store.memory_size() + self.history.capacity() * size_of::<VecDeque<RowId>>()
    }
}

/// Puts the results of aggregates and of `LAG` in the order of the calls.
pub(super) fn in_order(
    calls: &[OverCall],
    aggregates: Vec<ArrayRef>,
    lags: Vec<ArrayRef>,
) -> Result<Vec<ArrayRef>> {
    let (mut aggregates, mut lags) = (aggregates.into_iter(), lags.into_iter());
    let next = |call: &OverCall| match call {
        OverCall::Lag { .. } => lags.next(),
        _ => aggregates.next(),
    };
    let columns: Option<Vec<_>> = calls.iter().map(next).collect();
    columns.ok_or_else(|| Error::internal("fewer results than calls"))
}
