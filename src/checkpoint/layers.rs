//! Puts the copies of a table together: for every key, the newest copy that says anything about it.
//!
//! A table of a checkpoint consists of pieces, each of one subtask at one checkpoint. A piece speaks
//! for the keys among its rows, for the keys that it says are removed, and for all keys of the key
//! groups that it supersedes. What an older piece says of these means nothing.

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;

use super::{Checkpoint, VertexCheckpoint};
use crate::error::{Error, Result};
use crate::state::key_group::{key_groups, owned};
use crate::state::keys::{EncodedKeys, KeyEncoder, KeyTable, NO_SLOT};
#[cfg(test)]
use crate::state::snapshot::OperatorSnapshot;
use crate::state::snapshot::{LazyBatch, Part, StateTable};

/// Key groups from the first, the second excluded.
pub(super) type Groups = (u16, u16);

/// Batches, read one after another.
pub(super) type Batches<'a> = Box<dyn Iterator<Item = Result<RecordBatch>> + 'a>;

/// What one subtask, or several, have said of a table at a checkpoint.
pub(super) struct Piece<'a> {
    /// Higher is newer; pieces of one layer have no key in common.
    pub(super) layer: u64,
    /// Where its keys are.
    pub(super) groups: Groups,
    /// Where older pieces mean nothing.
    pub(super) supersedes: Vec<Groups>,
    pub(super) rows: Batches<'a>,
    pub(super) removed: Batches<'a>,
}

/// Where merged rows and removed keys go.
pub(super) trait Merged {
    fn rows(&mut self, batch: RecordBatch) -> Result<()>;
    fn removed(&mut self, keys: RecordBatch) -> Result<()>;
}

/// Merges the pieces of a table whose first `keys` columns are its key. Removed keys are reported if
/// there may be pieces older than these.
pub(super) fn merge(
    keys: usize,
    max_parallelism: u16,
    mut pieces: Vec<Piece<'_>>,
    report_removed: bool,
    out: &mut dyn Merged,
) -> Result<()> {
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.layer));
    let oldest = pieces.last().map(|piece| piece.layer);
    let mut covered = Covered::new(max_parallelism);
    let mut seen = Seen::default();
    let mut pieces = pieces.into_iter().peekable();
    while let Some(layer) = pieces.peek().map(|piece| piece.layer) {
        let mut supersedes = Vec::new();
        // Keys of the oldest layer need not be remembered.
        let remember = oldest != Some(layer);
        while let Some(piece) = pieces.next_if(|piece| piece.layer == layer) {
            supersedes.extend_from_slice(&piece.supersedes);
            if keys > 0 && covered.all(piece.groups) {
                continue;
            }
            let check = keys > 0 && covered.any(piece.groups);
            let mut pick = |batch: RecordBatch| -> Result<RecordBatch> {
                if batch.num_columns() < keys {
                    return Err(Error::checkpoint("a table has fewer columns than keys"));
                }
                let kept = if remember {
                    seen.remember(&batch, keys, layer)?
                } else {
                    seen.unseen(&batch, keys)?
                };
                let batch = filter(batch, kept)?;
                let kept = if check {
                    covered.outside(&batch, keys)?
                } else {
                    None
                };
                filter(batch, kept)
            };
            for batch in piece.rows {
                out.rows(pick(batch?)?)?;
            }
            if remember || report_removed {
                for batch in piece.removed {
                    let batch = pick(batch?)?;
                    if report_removed {
                        out.removed(batch)?;
                    }
                }
            }
        }
        covered.add(&supersedes);
    }
    Ok(())
}

fn filter(batch: RecordBatch, kept: Option<BooleanArray>) -> Result<RecordBatch> {
    match kept {
        Some(kept) if kept.true_count() < kept.len() => Ok(filter_record_batch(&batch, &kept)?),
        _ => Ok(batch),
    }
}

/// The key groups that newer layers have settled.
struct Covered(Vec<bool>);

impl Covered {
    fn new(max_parallelism: u16) -> Self {
        Self(vec![false; usize::from(max_parallelism)])
    }

    fn of(&self, groups: Groups) -> &[bool] {
        let end = usize::from(groups.1).min(self.0.len());
        self.0.get(usize::from(groups.0)..end).unwrap_or(&[])
    }

    fn all(&self, groups: Groups) -> bool {
        let groups = self.of(groups);
        !groups.is_empty() && groups.iter().all(|covered| *covered)
    }

    fn any(&self, groups: Groups) -> bool {
        self.of(groups).contains(&true)
    }

    fn add(&mut self, ranges: &[Groups]) {
        for (from, to) in ranges {
            let end = usize::from(*to).min(self.0.len());
            if let Some(groups) = self.0.get_mut(usize::from(*from)..end) {
                groups.fill(true);
            }
        }
    }

    fn outside(&self, batch: &RecordBatch, keys: usize) -> Result<Option<BooleanArray>> {
        let max_parallelism = u16::try_from(self.0.len()).unwrap_or(u16::MAX);
        let groups = key_groups(&batch.columns()[..keys], batch.num_rows(), max_parallelism)?;
        let outside = groups.iter().map(|g| Some(!self.0[usize::from(*g)]));
        Ok(Some(outside.collect()))
    }
}

/// The keys that newer layers have spoken of.
#[derive(Default)]
struct Seen {
    keys: Option<(KeyEncoder, KeyTable)>,
    /// By slot: the newest layer with the key.
    layers: Vec<u64>,
    encoded: EncodedKeys,
    slots: Vec<u32>,
    fresh: Vec<u32>,
}

impl Seen {
    /// Remembers the keys of `batch`; answers which rows are not of a newer layer.
    fn remember(
        &mut self,
        batch: &RecordBatch,
        keys: usize,
        layer: u64,
    ) -> Result<Option<BooleanArray>> {
        if keys == 0 {
            return Ok(None);
        }
        self.encode(batch, keys)?;
        let Some((_, table)) = &mut self.keys else {
            return Ok(None);
        };
        table.intern(&self.encoded, &mut self.slots, &mut self.fresh)?;
        self.layers.resize(table.slot_bound(), layer);
        let layers = self.slots.iter().map(|slot| self.layers[*slot as usize]);
        Ok(Some(layers.map(|l| Some(l == layer)).collect()))
    }

    /// Which rows are not of a newer layer.
    fn unseen(&mut self, batch: &RecordBatch, keys: usize) -> Result<Option<BooleanArray>> {
        if keys == 0 || self.keys.is_none() {
            return Ok(None);
        }
        self.encode(batch, keys)?;
        let Some((_, table)) = &self.keys else {
            return Ok(None);
        };
        table.find(&self.encoded, &mut self.slots);
        let unseen = self.slots.iter().map(|slot| Some(*slot == NO_SLOT));
        Ok(Some(unseen.collect()))
    }

    fn encode(&mut self, batch: &RecordBatch, keys: usize) -> Result<()> {
        let columns = &batch.columns()[..keys];
        if self.keys.is_none() {
            let types: Vec<_> = columns.iter().map(|c| c.data_type().clone()).collect();
            let encoder = KeyEncoder::of_arrow(&types)?;
            let table = encoder.table();
            self.keys = Some((encoder, table));
        }
        let Some((encoder, _)) = &self.keys else {
            return Ok(());
        };
        encoder
            .encode(columns, batch.num_rows(), &mut self.encoded)
            .map_err(|_| Error::checkpoint("the copies of a table have keys of several types"))
    }
}

/// Merged rows in memory.
#[derive(Default)]
pub(super) struct InMemory(pub(super) Vec<LazyBatch>);

impl Merged for InMemory {
    fn rows(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() > 0 {
            self.0.push(batch.into());
        }
        Ok(())
    }

    fn removed(&mut self, _: RecordBatch) -> Result<()> {
        Ok(())
    }
}

/// The checkpoint of whole tables that `changes` makes of `base`.
pub(super) fn apply(base: Option<&Checkpoint>, changes: &Checkpoint) -> Result<Checkpoint> {
    let mut whole = changes.clone();
    let max_parallelism = changes.max_parallelism;
    for vertex in &mut whole.vertices {
        let old = base.and_then(|base| base.vertex(&vertex.uid));
        let old = old.filter(|old| old.signature == vertex.signature);
        for (name, keys) in tables(vertex) {
            let mut pieces = Vec::new();
            for table in old.into_iter().flat_map(|v| subtables(v, &name)) {
                pieces.push(piece(0, (0, max_parallelism), table.1));
            }
            let subtasks = vertex.subtasks.len();
            for (subtask, table) in subtables(vertex, &name) {
                pieces.push(piece(1, owned(subtask, subtasks, max_parallelism), table));
            }
            // A subtask without the table has none of its rows.
            for (subtask, saved) in vertex.subtasks.iter().enumerate() {
                if !saved.operator.tables.contains_key(&name) {
                    let groups = owned(subtask, subtasks, max_parallelism);
                    pieces.push(piece(1, groups, &StateTable::default()));
                }
            }
            let mut merged = InMemory::default();
            merge(keys, max_parallelism, pieces, false, &mut merged)?;
            for saved in &mut vertex.subtasks {
                saved.operator.tables.remove(&name);
            }
            let table = StateTable {
                keys,
                batches: merged.0,
                part: Part::Whole,
            };
            if let Some(first) = vertex.subtasks.first_mut()
                && !table.batches.is_empty()
            {
                first.operator.tables.insert(name, table);
            }
        }
    }
    Ok(whole)
}

/// The copy of whole tables that `changes` makes of `base`, for tests of operators.
#[cfg(test)]
pub(crate) fn fold(base: OperatorSnapshot, changes: OperatorSnapshot) -> OperatorSnapshot {
    let checkpoint = |operator| Checkpoint {
        vertices: vec![VertexCheckpoint {
            uid: String::new(),
            name: String::new(),
            signature: String::new(),
            subtasks: vec![super::SubtaskSnapshot {
                operator,
                ..Default::default()
            }],
        }],
        ..Checkpoint::default()
    };
    let folded = apply(Some(&checkpoint(base)), &checkpoint(changes));
    let mut folded = folded.expect("copies of one operator");
    folded.vertices.remove(0).subtasks.remove(0).operator
}

/// Names of the tables of a vertex of which there are changes only, and their numbers of keys.
fn tables(vertex: &VertexCheckpoint) -> Vec<(String, usize)> {
    let mut tables = Vec::new();
    for saved in &vertex.subtasks {
        for (name, table) in &saved.operator.tables {
            let changes = matches!(table.part, Part::Changes { .. });
            if changes && !tables.iter().any(|(n, _)| n == name) {
                tables.push((name.clone(), table.keys));
            }
        }
    }
    tables
}

fn subtables<'a>(
    vertex: &'a VertexCheckpoint,
    name: &'a str,
) -> impl Iterator<Item = (usize, &'a StateTable)> {
    let subtasks = vertex.subtasks.iter().enumerate();
    subtasks.filter_map(move |(i, s)| Some((i, s.operator.tables.get(name)?)))
}

fn piece(layer: u64, groups: Groups, table: &StateTable) -> Piece<'static> {
    let get = |batches: &[LazyBatch]| -> Batches<'static> {
        let batches = batches.to_vec();
        Box::new(batches.into_iter().map(|batch| batch.get()))
    };
    let (supersedes, removed) = match &table.part {
        Part::Whole => (vec![groups], &[][..]),
        Part::Changes { removed } => (Vec::new(), removed.as_slice()),
    };
    Piece {
        layer,
        groups,
        supersedes,
        rows: get(&table.batches),
        removed: get(removed),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn batch(rows: &[(i64, i64)]) -> RecordBatch {
        let column = |f: fn(&(i64, i64)) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(rows.iter().map(f)))
        };
        RecordBatch::try_from_iter([("k", column(|r| r.0)), ("v", column(|r| r.1))]).unwrap()
    }

    fn changes(
        layer: u64,
        rows: &[(i64, i64)],
        removed: &[i64],
        supersedes: &[Groups],
    ) -> Piece<'static> {
        let keys: Vec<_> = removed.iter().map(|k| (*k, 0)).collect();
        let keys = batch(&keys).project(&[0]).unwrap();
        Piece {
            layer,
            groups: (0, 128),
            supersedes: supersedes.to_vec(),
            rows: Box::new([Ok(batch(rows))].into_iter()),
            removed: Box::new([Ok(keys)].into_iter()),
        }
    }

    #[derive(Default)]
    struct Both(Vec<(i64, i64)>, Vec<i64>);

    impl Merged for Both {
        fn rows(&mut self, batch: RecordBatch) -> Result<()> {
            let column = |i: usize| batch.column(i).as_primitive::<Int64Type>().values();
            let rows = column(0).iter().zip(column(1));
            self.0.extend(rows.map(|(k, v)| (*k, *v)));
            Ok(())
        }

        fn removed(&mut self, keys: RecordBatch) -> Result<()> {
            self.1
                .extend(keys.column(0).as_primitive::<Int64Type>().values());
            Ok(())
        }
    }

    #[test]
    fn the_newest_word_on_a_key_counts_and_all_its_rows_in_order() {
        let pieces = || {
            vec![
                changes(1, &[(1, 10), (2, 20), (2, 21), (3, 30), (4, 40)], &[], &[]),
                changes(2, &[(2, 22), (2, 23), (5, 50)], &[3, 6], &[]),
                changes(3, &[(6, 60)], &[5], &[]),
            ]
        };
        let mut out = Both::default();
        merge(1, 128, pieces(), false, &mut out).unwrap();
        assert_eq!(out.0, [(6, 60), (2, 22), (2, 23), (1, 10), (4, 40)]);
        assert!(out.1.is_empty());
        let mut out = Both::default();
        merge(1, 128, pieces(), true, &mut out).unwrap();
        assert_eq!(out.1, [5, 3], "6 came back");
    }

    #[test]
    fn superseded_key_groups_hide_what_is_older() {
        let all: Vec<_> = (0..100).map(|k| (k, 1)).collect();
        let old = changes(1, &all, &[], &[]);
        let mut out = Both::default();
        let new = changes(2, &[(0, 2)], &[], &[(0, 64)]);
        merge(1, 128, vec![old, new], false, &mut out).unwrap();
        let groups = |k: i64| key_groups(batch(&[(k, 0)]).columns()[..1].as_ref(), 1, 128);
        let upper = all.iter().filter(|(k, _)| groups(*k).unwrap()[0] >= 64);
        let mut expected = vec![(0, 2)];
        expected.extend(upper.filter(|(k, _)| *k != 0));
        assert_eq!(out.0, expected);
        let old = changes(1, &all, &[], &[]);
        let new = changes(2, &[], &[], &[(0, 64), (64, 128)]);
        let mut out = Both::default();
        merge(1, 128, vec![old, new], false, &mut out).unwrap();
        assert!(out.0.is_empty());
    }
}
