//! Checkpoints of a made-up job, whose state at every epoch is known.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::checkpoint::{Checkpoint, SubtaskSnapshot, VertexCheckpoint};
use crate::connectors::SplitPosition;
use crate::state::key_group::{key_groups, owner};
use crate::state::snapshot::{OperatorSnapshot, Part};

const GROUPS: u16 = 128;

fn table(seed: i64) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![Some(seed), None, Some(-seed)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("ä"), None, Some("")]));
    RecordBatch::try_from_iter([("k", keys), ("t", texts)]).unwrap()
}

/// A checkpoint with something of everything.
pub(crate) fn checkpoint(epoch: u64) -> Checkpoint {
    let seed = i64::try_from(epoch).unwrap();
    let mut operator = OperatorSnapshot::default();
    operator.add("rows", 1, table(seed));
    operator.add("rows", 1, table(seed + 100));
    operator.add("timers", 0, table(seed + 200));
    operator.watermark = Some(i64::MIN + seed);
    let full = SubtaskSnapshot {
        operator,
        positions: vec![SplitPosition {
            split: "a\nb".into(),
            position: "{\"offset\":1}".into(),
        }],
        writer: vec![0, 255, 10],
        committables: vec![vec![1, 2], Vec::new(), long(epoch)],
        input_watermark: Some(5),
        output_watermark: Some(-4),
        ended: true,
    };
    Checkpoint {
        epoch,
        vertices: vec![VertexCheckpoint {
            uid: "agg".into(),
            name: "GroupAggregate".into(),
            signature: "k BIGINT".into(),
            subtasks: vec![full, SubtaskSnapshot::default()],
        }],
        ..Checkpoint::default()
    }
}

/// What a sink has pre-committed, too long for a manifest.
fn long(epoch: u64) -> Vec<u8> {
    epoch.to_le_bytes().repeat(600)
}

/// What the sink of a model has pre-committed: now and then too much for a manifest.
fn prepared(epoch: u64) -> Vec<Vec<u8>> {
    let mut prepared = vec![epoch.to_le_bytes().to_vec()];
    if epoch.is_multiple_of(3) {
        prepared.push(long(epoch));
    }
    prepared
}

/// All of a checkpoint that a store must keep.
pub(crate) fn text(checkpoint: &Checkpoint) -> String {
    format!("{} {:?}", checkpoint.epoch, checkpoint.vertices)
}

type Rows = BTreeMap<i64, i64>;

/// A job with one keyed table, of which every epoch changes a tenth.
pub(crate) struct Model {
    random: SplitMix64,
    keys: u64,
    /// State at every epoch.
    states: BTreeMap<u64, Rows>,
}

impl Model {
    pub(crate) fn new(seed: u64, keys: u64) -> Self {
        Self {
            random: SplitMix64::seed_from_u64(seed),
            keys,
            states: BTreeMap::from([(0, Rows::new())]),
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    /// Lets the job run to `epoch`; the checkpoint says what has changed since `base`, or all.
    pub(crate) fn next(&mut self, epoch: u64, base: Option<u64>, parallelism: usize) -> Checkpoint {
        self.advance(epoch);
        self.checkpoint(epoch, base, parallelism, |_| base)
    }

    /// As `next`, but every second subtask says all.
    pub(crate) fn next_mixed(&mut self, epoch: u64, base: u64, parallelism: usize) -> Checkpoint {
        self.advance(epoch);
        self.checkpoint(epoch, Some(base), parallelism, |subtask| {
            (subtask % 2 == 1).then_some(base)
        })
    }

    fn advance(&mut self, epoch: u64) {
        let (_, last) = self.states.last_key_value().unwrap();
        let mut rows = last.clone();
        if rows.is_empty() {
            rows = (0..i64::try_from(self.keys).unwrap())
                .map(|k| (k, 0))
                .collect();
        }
        for _ in 0..self.keys / 10 + 1 {
            let key = i64::try_from(self.below(self.keys)).unwrap();
            if self.below(3) == 0 {
                rows.remove(&key);
            } else {
                rows.insert(key, i64::try_from(epoch).unwrap());
            }
        }
        self.states.insert(epoch, rows);
    }

    /// The state at an epoch.
    pub(crate) fn rows(&self, epoch: u64) -> Vec<(i64, i64)> {
        self.states[&epoch].iter().map(|(k, v)| (*k, *v)).collect()
    }

    /// The rows that are new or other at `epoch` than at `base`.
    pub(crate) fn changed(&self, base: u64, epoch: u64) -> Vec<(i64, i64)> {
        let old = &self.states[&base];
        let rows = self.rows(epoch).into_iter();
        rows.filter(|(k, v)| old.get(k) != Some(v)).collect()
    }

    fn checkpoint(
        &self,
        epoch: u64,
        base: Option<u64>,
        parallelism: usize,
        base_of: impl Fn(usize) -> Option<u64>,
    ) -> Checkpoint {
        let subtask = |subtask: usize| {
            let own = |keys: &mut Vec<(i64, i64)>| {
                let columns = [Arc::clone(batch(keys).column(0))];
                let groups = key_groups(&columns, keys.len(), GROUPS).unwrap();
                let mut groups = groups.iter();
                keys.retain(|_| owner(*groups.next().unwrap(), parallelism, GROUPS) == subtask);
            };
            let base = base_of(subtask);
            let mut rows = match base {
                Some(base) => self.changed(base, epoch),
                None => self.rows(epoch),
            };
            own(&mut rows);
            let mut operator = OperatorSnapshot::default();
            for rows in rows.chunks(37) {
                operator.add("t", 1, batch(rows));
            }
            if let Some(base) = base {
                let gone = self.states[&base].keys();
                let gone = gone.filter(|k| !self.states[&epoch].contains_key(k));
                let mut gone: Vec<_> = gone.map(|k| (*k, 0)).collect();
                own(&mut gone);
                let gone = batch(&gone).project(&[0]).unwrap();
                operator.changes("t", 1, Some(gone.into()));
            }
            SubtaskSnapshot {
                operator,
                committables: prepared(epoch),
                ..SubtaskSnapshot::default()
            }
        };
        Checkpoint {
            epoch,
            base,
            vertices: vec![VertexCheckpoint {
                uid: "job".into(),
                name: "Job".into(),
                signature: "k BIGINT".into(),
                subtasks: (0..parallelism).map(subtask).collect(),
            }],
            ..Checkpoint::default()
        }
    }

    /// The table in a checkpoint that came out of a store.
    pub(crate) fn read(&self, checkpoint: &Checkpoint) -> Vec<(i64, i64)> {
        let vertex = checkpoint.vertex("job").expect("a vertex");
        let mut rows = Vec::new();
        for table in vertex
            .subtasks
            .iter()
            .flat_map(|s| s.operator.tables.values())
        {
            assert!(matches!(table.part, Part::Whole));
            for batch in &table.batches {
                let batch = batch.get().unwrap();
                let column = |i: usize| batch.column(i).as_primitive::<Int64Type>().clone();
                let (keys, values) = (column(0), column(1));
                rows.extend((0..keys.len()).map(|i| (keys.value(i), values.value(i))));
            }
        }
        for subtask in &vertex.subtasks {
            assert_eq!(subtask.committables, prepared(checkpoint.epoch));
        }
        rows.sort_unstable();
        rows
    }
}

fn batch(rows: &[(i64, i64)]) -> RecordBatch {
    let column = |f: fn(&(i64, i64)) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(f)))
    };
    RecordBatch::try_from_iter([("k", column(|r| r.0)), ("v", column(|r| r.1))]).unwrap()
}
