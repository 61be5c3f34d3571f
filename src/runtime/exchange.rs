//! Spreads the rows of a subtask over the subtasks of the next vertex.
//!
//! Rows that go to the same subtask keep their order: a withdrawal never overtakes its insertion.

use std::sync::Arc;

use arrow::array::UInt32Array;

use super::channel::Channel;
use super::node::Event;
use super::step::StepGate;
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::graph::Distribution;
use crate::state::key_group::{key_groups, owner};

/// The sending half of an edge between tasks.
pub(super) struct Exchange {
    route: Route,
    channels: Vec<Arc<Channel>>,
    gate: Arc<StepGate>,
}

enum Route {
    /// All rows to the only channel.
    One,
    All,
    /// Batch after batch.
    Turns {
        next: usize,
    },
    Hash {
        columns: Vec<usize>,
        max_parallelism: u16,
    },
}

impl Exchange {
    /// An exchange over `channels`, one for each subtask that can be reached. `subtask` is the
    /// producer's number.
    pub(super) fn new(
        distribution: &Distribution,
        subtask: usize,
        channels: Vec<Arc<Channel>>,
        max_parallelism: u16,
        gate: Arc<StepGate>,
    ) -> Self {
        let route = match distribution {
            _ if channels.len() == 1 => Route::One,
            Distribution::Broadcast => Route::All,
            Distribution::Hash(columns) => Route::Hash {
                columns: columns.clone(),
                max_parallelism,
            },
            // Producers begin at different consumers.
            Distribution::Rebalance | Distribution::Forward | Distribution::Single => {
                Route::Turns {
                    next: subtask % channels.len().max(1),
                }
            }
        };
        Self {
            route,
            channels,
            gate,
        }
    }

    /// Sends; watermarks, statuses and the end go everywhere. Answers how long it was blocked, ns.
    pub(super) fn send(&mut self, event: Event) -> Result<u64> {
        let Event::Batch(batch) = event else {
            let mut waited = 0;
            for channel in 0..self.channels.len() {
                waited += self.push(channel, event.clone(), 0)?;
            }
            return Ok(waited);
        };
        let bytes = batch.memory_size();
        match &mut self.route {
            Route::One => self.push(0, Event::Batch(batch), bytes),
            Route::All => {
                let mut waited = 0;
                for channel in 0..self.channels.len() {
                    waited += self.push(channel, Event::Batch(batch.clone()), bytes)?;
                }
                Ok(waited)
            }
            Route::Turns { next } => {
                let channel = *next;
                *next = (channel + 1) % self.channels.len();
                self.push(channel, Event::Batch(batch), bytes)
            }
            Route::Hash {
                columns,
                max_parallelism,
            } => {
                let parallelism = self.channels.len();
                let targets = targets(&batch, columns, parallelism, *max_parallelism)?;
                let mut waited = 0;
                for (channel, part) in scatter(&batch, &targets, parallelism)? {
                    let share = bytes * part.len() / batch.len();
                    waited += self.push(channel, Event::Batch(part), share)?;
                }
                Ok(waited)
            }
        }
    }

    fn push(&self, channel: usize, event: Event, bytes: usize) -> Result<u64> {
        self.gate.enter();
        self.channels[channel].send(event, bytes)
    }
}

fn targets(
    batch: &ChangeBatch,
    columns: &[usize],
    parallelism: usize,
    max_parallelism: u16,
) -> Result<Vec<usize>> {
    let keys: Vec<_> = columns
        .iter()
        .map(|c| Arc::clone(batch.rows().column(*c)))
        .collect();
    let groups = key_groups(&keys, batch.len(), max_parallelism)?;
    let target = |group| owner(group, parallelism, max_parallelism);
    Ok(groups.into_iter().map(target).collect())
}

/// The rows for each target that gets any, in their order: one `take` for all, then slices.
fn scatter(
    batch: &ChangeBatch,
    targets: &[usize],
    parallelism: usize,
) -> Result<Vec<(usize, ChangeBatch)>> {
    let mut ends = vec![0_usize; parallelism];
    for target in targets {
        ends[*target] += 1;
    }
    if let Some(only) = ends.iter().position(|count| *count == batch.len()) {
        return Ok(vec![(only, batch.clone())]);
    }
    // Counts become the places where the rows of each target begin, and in the end where they end.
    let mut begin = 0;
    for end in &mut ends {
        begin += std::mem::replace(end, begin);
    }
    let mut indices = vec![0_u32; targets.len()];
    for (row, target) in targets.iter().enumerate() {
        indices[ends[*target]] = u32::try_from(row).expect("a batch has fewer than 2^32 rows");
        ends[*target] += 1;
    }
    let sorted = batch.take(&UInt32Array::from(indices))?;
    let mut parts = Vec::with_capacity(parallelism);
    let mut begin = 0;
    for (target, end) in ends.into_iter().enumerate() {
        if end > begin {
            parts.push((target, sorted.slice(begin, end - begin)));
        }
        begin = end;
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changelog::RowKind;
    use crate::runtime::testing::{batch, rows};

    #[test]
    fn the_scatter_is_stable_and_keeps_kinds() {
        let all: Vec<_> = (0..7)
            .map(|i| {
                (
                    if i % 2 == 0 {
                        RowKind::Insert
                    } else {
                        RowKind::Delete
                    },
                    vec![i],
                )
            })
            .collect();
        let parts = scatter(&batch(&all), &[2, 0, 2, 0, 2, 2, 0], 4).unwrap();
        let parts: Vec<_> = parts.into_iter().map(|(t, b)| (t, rows(&b))).collect();
        let at = |indices: &[usize]| indices.iter().map(|i| all[*i].clone()).collect::<Vec<_>>();
        assert_eq!(parts, [(0, at(&[1, 3, 6])), (2, at(&[0, 2, 4, 5]))]);
    }

    #[test]
    fn rows_of_one_target_are_not_copied() {
        let all: Vec<_> = (0..3).map(|i| (RowKind::Insert, vec![i])).collect();
        let parts = scatter(&batch(&all), &[1, 1, 1], 2).unwrap();
        assert_eq!(parts.len(), 1);
        assert_eq!((parts[0].0, rows(&parts[0].1)), (1, all));
    }
}
