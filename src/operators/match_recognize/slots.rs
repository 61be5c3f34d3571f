//! What definitions and measures read of the rows of matches, many matches at once.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;

use super::history::{Node, Row};
use crate::aggregates::{AggregateCall, AggregateSet, SetInput};
use crate::error::Result;
use crate::plan::match_recognize::{MatchSlot, MatchSpec, SlotFunction};
use crate::state::rows::RowCodec;

/// Computes slots.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<MatchSlot>,
    /// By slot.
    aggregates: Vec<Option<AggregateSet>>,
}

/// Rows to be read, each once if it is asked for several times in a row.
#[derive(Default)]
struct Wanted<'a> {
    rows: Vec<&'a Row>,
}

impl<'a> Wanted<'a> {
    fn place(&mut self, row: &'a Row) -> u32 {
        let known = self
            .rows
            .iter()
            .rev()
            .take(8)
            .position(|r| r.sequence == row.sequence);
        let place = match known {
            Some(back) => self.rows.len() - 1 - back,
            None => {
                self.rows.push(row);
                self.rows.len() - 1
            }
        };
        u32::try_from(place).expect("fewer than 2^32 rows")
    }
}

impl Slots {
    pub(super) fn new(spec: &MatchSpec) -> Result<Self> {
        let aggregates = spec
            .slots
            .iter()
            .map(|slot| match &slot.function {
                SlotFunction::Aggregate { function, args } => {
                    let call = AggregateCall {
                        function: function.clone(),
                        args: args.clone(),
                        filter: None,
                        distinct: false,
                    };
                    AggregateSet::new(&[call], false).map(Some)
                }
                _ => Ok(None),
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            slots: spec.slots.clone(),
            aggregates,
        })
    }

    /// The values of all slots, those not `needed` as NULLs, for each history.
    pub(super) fn columns(
        &mut self,
        needed: &[usize],
        histories: &[Arc<Node>],
        codec: &RowCodec,
    ) -> Result<Vec<ArrayRef>> {
        let mut wanted = Wanted::default();
        // by needed slot: the rows asked for, and for aggregates whose they are
        let mut places: Vec<Vec<Option<u32>>> = Vec::new();
        let mut owners: Vec<Vec<u32>> = Vec::new();
        for slot in needed {
            let slot = &self.slots[*slot];
            let mut rows_of = Vec::with_capacity(histories.len());
            let mut owned_by = Vec::new();
            for (n, history) in (0u32..).zip(histories) {
                let mut rows = history.rows_of(slot.variable);
                match slot.function {
                    SlotFunction::Last { offset, .. } => {
                        rows_of.push(rows.nth(offset).map(|row| wanted.place(row)));
                    }
                    SlotFunction::First { offset, .. } => {
                        let rows: Vec<_> = rows.collect();
                        let row = rows.len().checked_sub(offset + 1).map(|i| rows[i]);
                        rows_of.push(row.map(|row| wanted.place(row)));
                    }
                    SlotFunction::Aggregate { .. } => {
                        let start = rows_of.len();
                        rows_of.extend(rows.map(|row| Some(wanted.place(row))));
                        rows_of[start..].reverse();
                        owned_by.resize(rows_of.len(), n);
                    }
                }
            }
            places.push(rows_of);
            owners.push(owned_by);
        }
        let rows = codec.decode(wanted.rows.iter().map(|row| &*row.bytes))?;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.slots.len());
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(n) = needed.iter().position(|s| *s == index) else {
                columns.push(arrow::array::new_null_array(
                    &slot.data_type.to_arrow(),
                    histories.len(),
                ));
                continue;
            };
            let indices = UInt32Array::from(std::mem::take(&mut places[n]));
            columns.push(match &slot.function {
                SlotFunction::First { value, .. } | SlotFunction::Last { value, .. } => {
                    take(&rows[*value], &indices, None)?
                }
                SlotFunction::Aggregate { args, .. } => {
                    let mut inputs = rows.clone();
                    for (i, column) in inputs.iter_mut().enumerate() {
                        if args.contains(&i) {
                            *column = take(column, &indices, None)?;
                        }
                    }
                    let set = self.aggregates[index]
                        .as_mut()
                        .expect("an aggregate slot has its aggregate");
                    aggregate(set, &owners[n], &inputs, histories.len())?
                }
            });
        }
        Ok(columns)
    }
}

fn aggregate(
    set: &mut AggregateSet,
    owners: &[u32],
    inputs: &[ArrayRef],
    histories: usize,
) -> Result<ArrayRef> {
    let count = u32::try_from(histories).expect("fewer than 2^32 matches");
    let slots: Vec<u32> = (0..count).collect();
    set.resize(histories);
    set.update(&SetInput {
        slots: owners,
        weights: None,
        ends: None,
        columns: inputs,
    })?;
    let mut values = set.values(&slots)?;
    for slot in slots {
        set.clear(slot);
    }
    Ok(values.swap_remove(0))
}
