//! The aggregates of one operator together: filters, shared `DISTINCT` values, all calls' states.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};

use super::distinct::DistinctValues;
use super::state::{AggregateInput, AggregateState};
use super::{AggregateCall, AggregateFunction};
use crate::error::{Error, Result};
use crate::types::DataType;

/// Rows for all aggregates of an operator.
#[derive(Debug, Clone, Copy)]
pub struct SetInput<'a> {
    /// The group of each row.
    pub slots: &'a [u32],
    /// +1 adds a row, -1 withdraws it, 0 leaves it out. `None`: all add.
    pub weights: Option<&'a [i8]>,
    /// Rows after which the group is gone. `None`: none.
    pub ends: Option<&'a [bool]>,
    /// All columns of the operator's input.
    pub columns: &'a [ArrayRef],
}

/// The aggregates of an operator, over slots that the operator gives out.
#[derive(Debug)]
pub struct AggregateSet {
    members: Vec<Member>,
    distinct: Vec<DistinctGroup>,
    /// One vector of weights for each distinct combination of filter and `DISTINCT`.
    weights: Vec<Vec<i8>>,
}

#[derive(Debug)]
struct Member {
    function: AggregateFunction,
    args: Vec<usize>,
    filter: Option<usize>,
    /// Group and filter of its values.
    distinct: Option<(usize, usize)>,
    state: Box<dyn AggregateState>,
}

#[derive(Debug)]
struct DistinctGroup {
    args: Vec<usize>,
    filters: Vec<Option<usize>>,
    values: DistinctValues,
    /// Of the rows under each filter.
    weights: Vec<Vec<i8>>,
}

/// The place of a call's `DISTINCT` values: those of its arguments are made if they are not there yet.
fn place(groups: &mut Vec<DistinctGroup>, call: &AggregateCall) -> Result<(usize, usize)> {
    let group = match groups.iter().position(|g| g.args == call.args) {
        Some(group) => group,
        None => {
            groups.push(DistinctGroup {
                args: call.args.clone(),
                filters: Vec::new(),
                values: DistinctValues::new(call.function.inputs())?,
                weights: Vec::new(),
            });
            groups.len() - 1
        }
    };
    let DistinctGroup {
        filters,
        values,
        weights,
        ..
    } = &mut groups[group];
    let filter = match filters.iter().position(|f| *f == call.filter) {
        Some(filter) => filter,
        None => {
            filters.push(call.filter);
            weights.push(Vec::new());
            values.add_filter();
            filters.len() - 1
        }
    };
    Ok((group, filter))
}

impl AggregateSet {
    /// The aggregates of `calls`. `retracting` says whether rows may be withdrawn.
    ///
    /// # Errors
    /// When an argument's type cannot be kept.
    pub fn new(calls: &[AggregateCall], retracting: bool) -> Result<Self> {
        let mut distinct = Vec::new();
        let mut members = Vec::with_capacity(calls.len());
        for call in calls {
            let place = if call.distinct && call.function.minds_duplicates() {
                Some(place(&mut distinct, call)?)
            } else {
                None
            };
            members.push(Member {
                function: call.function.clone(),
                args: call.args.clone(),
                filter: call.filter,
                distinct: place,
                state: call.function.state(retracting)?,
            });
        }
        Ok(Self {
            members,
            distinct,
            weights: Vec::new(),
        })
    }

    /// Number of aggregates.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no aggregate.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Types of the results, in the order of the calls.
    #[must_use]
    pub fn types(&self) -> Vec<DataType> {
        self.members
            .iter()
            .map(|m| m.function.returns().clone())
            .collect()
    }

    /// Makes sure that slots below `slots` exist, fresh if they are new.
    pub fn resize(&mut self, slots: usize) {
        for group in &mut self.distinct {
            group.values.resize(slots);
        }
        for member in &mut self.members {
            member.state.resize(slots);
        }
    }

    /// Adds and withdraws rows.
    ///
    /// # Errors
    /// When an aggregate refuses a value.
    pub fn update(&mut self, input: &SetInput<'_>) -> Result<()> {
        self.run(input, |state, input| state.update(input))
    }

    /// As [`update`](Self::update), and returns a column for each aggregate with its values before
    /// and after every row: those of row i are at 2i and 2i + 1. Sets `changed[i]` if one differs.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn trace(&mut self, input: &SetInput<'_>, changed: &mut [bool]) -> Result<Vec<ArrayRef>> {
        let mut columns = Vec::with_capacity(self.members.len());
        self.run(input, |state, input| {
            columns.push(state.trace(input, changed)?);
            Ok(())
        })?;
        Ok(columns)
    }

    fn run(
        &mut self,
        input: &SetInput<'_>,
        mut each: impl FnMut(&mut dyn AggregateState, &AggregateInput<'_>) -> Result<()>,
    ) -> Result<()> {
        let args_of = |indices: &[usize]| -> Vec<ArrayRef> {
            indices
                .iter()
                .map(|i| ArrayRef::clone(&input.columns[*i]))
                .collect()
        };
        let mut filters: Vec<(usize, Vec<i8>)> = Vec::new();
        let used = self.members.iter().filter_map(|m| m.filter);
        for filter in used {
            if !filters.iter().any(|(f, _)| *f == filter) {
                let mut weights = self.weights.pop().unwrap_or_default();
                filtered(input, filter, &mut weights)?;
                filters.push((filter, weights));
            }
        }
        let weights_of = |filter: Option<usize>| match filter {
            None => input.weights,
            Some(filter) => filters
                .iter()
                .find(|(f, _)| *f == filter)
                .map(|(_, weights)| weights.as_slice()),
        };
        for group in &mut self.distinct {
            let args = args_of(&group.args);
            let input = AggregateInput {
                slots: input.slots,
                weights: None,
                ends: input.ends,
                args: &args,
            };
            let filters = group.filters.iter();
            let weights: Vec<_> = filters.map(|filter| weights_of(*filter)).collect();
            group.values.update(&input, &weights, &mut group.weights)?;
        }
        for member in &mut self.members {
            let args = args_of(&member.args);
            let weights = match member.distinct {
                Some((group, filter)) => Some(self.distinct[group].weights[filter].as_slice()),
                None => weights_of(member.filter),
            };
            let input = AggregateInput {
                slots: input.slots,
                weights,
                ends: input.ends,
                args: &args,
            };
            each(member.state.as_mut(), &input)?;
        }
        self.weights.extend(filters.into_iter().map(|(_, w)| w));
        Ok(())
    }

    /// The current values of slots, a column for each aggregate.
    ///
    /// # Errors
    /// When an aggregate has no value for what it was given.
    pub fn values(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.members.iter().map(|m| m.state.values(slots)).collect()
    }

    /// Makes a slot fresh.
    pub fn clear(&mut self, slot: u32) {
        for group in &mut self.distinct {
            group.values.clear(slot);
        }
        for member in &mut self.members {
            member.state.clear(slot);
        }
    }

    /// Adds what slot `from` has to slot `into`, as if its rows came after; `from` stays as it is.
    ///
    /// # Errors
    /// When an aggregate refuses a value.
    pub fn merge(&mut self, into: u32, from: u32) -> Result<()> {
        let mut gained = Vec::with_capacity(self.distinct.len());
        for group in &mut self.distinct {
            gained.push(group.values.merge(into, from)?);
        }
        for member in &mut self.members {
            match member.distinct {
                None => member.state.merge(into, from)?,
                Some((group, filter)) => {
                    let (weights, args) = &gained[group][filter];
                    member.state.update(&AggregateInput {
                        slots: &vec![into; weights.len()],
                        weights: Some(weights),
                        ends: None,
                        args,
                    })?;
                }
            }
        }
        Ok(())
    }

    /// The state of slots as columns, for a checkpoint.
    ///
    /// # Errors
    /// When the state cannot be read back.
    pub fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut columns = Vec::new();
        for group in &self.distinct {
            columns.extend(group.values.save(slots)?);
        }
        for member in &self.members {
            columns.extend(member.state.save(slots)?);
        }
        Ok(columns)
    }

    /// Puts saved state into fresh slots.
    ///
    /// # Errors
    /// When the columns are not of these aggregates.
    pub fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let mut rest = columns;
        let mut take = |n: usize| -> Result<&[ArrayRef]> {
            let (head, tail) = rest
                .split_at_checked(n)
                .ok_or_else(|| Error::checkpoint("the saved state is of other aggregates"))?;
            rest = tail;
            Ok(head)
        };
        for group in &mut self.distinct {
            group
                .values
                .load(slots, take(group.values.saved_columns())?)?;
        }
        for member in &mut self.members {
            // How many columns an aggregate saves does not depend on what it holds.
            let n = member.state.save(&[])?.len();
            member.state.load(slots, take(n)?)?;
        }
        if rest.is_empty() {
            return Ok(());
        }
        Err(Error::checkpoint("the saved state is of other aggregates"))
    }

    /// Bytes of memory held, estimated.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        let distinct: usize = self.distinct.iter().map(|g| g.values.memory_size()).sum();
        let states: usize = self.members.iter().map(|m| m.state.memory_size()).sum();
        distinct + states
    }
}

/// The weights of rows for which the filter column is true, else 0.
fn filtered(input: &SetInput<'_>, filter: usize, weights: &mut Vec<i8>) -> Result<()> {
    let passes: &BooleanArray = input.columns[filter]
        .as_boolean_opt()
        .ok_or_else(|| Error::internal("a FILTER column is not BOOLEAN"))?;
    weights.clear();
    weights.extend((0..passes.len()).map(|row| {
        if passes.is_valid(row) && passes.value(row) {
            input.weights.map_or(1, |w| w[row])
        } else {
            0
        }
    }));
    Ok(())
}
