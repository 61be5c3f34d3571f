//! What a task does about checkpoints: it aligns barriers, copies its state, and passes them on.
//!
//! A task has one barrier for all its nodes: it takes its copy when the barrier has come through all
//! channels that are still open. A task without open channels takes it when the coordinator asks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::node::{Body, Event, Node};
use super::task::Task;
use crate::checkpoint::SubtaskSnapshot;
use crate::connectors::SplitPosition;
use crate::error::Result;
use crate::state::snapshot::OperatorSnapshot;

/// What the coordinator tells the tasks.
#[derive(Debug)]
pub(super) struct Orders {
    /// The newest checkpoint that was asked for.
    pub(super) requested: AtomicU64,
    /// The newest checkpoint that is durable and committed.
    pub(super) completed: AtomicU64,
    /// The newest checkpoint in the store, which changes can go on from; 0 for none.
    pub(super) stored: AtomicU64,
    /// How many rows may still be read; `None`: as many as there are.
    pub(super) budget: Option<Budget>,
    /// Sources read nothing behind the barrier of this checkpoint: it is the last one.
    pub(super) last: AtomicU64,
    /// Sources are to end as if they had no more rows.
    pub(super) drain: AtomicBool,
}

impl Default for Orders {
    fn default() -> Self {
        Self {
            requested: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            stored: AtomicU64::new(0),
            budget: None,
            last: AtomicU64::new(u64::MAX),
            drain: AtomicBool::new(false),
        }
    }
}

/// Rows that sources may read until something is to happen.
#[derive(Debug)]
pub(super) struct Budget {
    left: AtomicU64,
    spent: AtomicBool,
}

impl Budget {
    pub(super) fn new(rows: u64) -> Self {
        Self {
            left: AtomicU64::new(rows),
            spent: AtomicBool::new(false),
        }
    }

    /// Takes up to `rows` out.
    pub(super) fn reserve(&self, rows: usize) -> usize {
        let take = |left: u64| Some(left.saturating_sub(rows as u64));
        let before = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        usize::try_from(before.unwrap_or(0)).map_or(rows, |left| left.min(rows))
    }

    /// Puts back what was not used. Answers whether the budget is spent, once.
    pub(super) fn refund(&self, rows: usize) -> bool {
        let before = self.left.fetch_add(rows as u64, Ordering::SeqCst);
        before + rows as u64 == 0 && !self.spent.swap(true, Ordering::SeqCst)
    }

    pub(super) fn renew(&self, rows: u64) {
        // In this order: what is there may be spent at once, and that has to be told.
        self.spent.store(false, Ordering::SeqCst);
        self.left.store(rows, Ordering::SeqCst);
    }
}

/// How much of the state is copied.
#[derive(Debug, Clone, Copy)]
enum Scope {
    /// Nothing: the job runs without checkpoints.
    NoState,
    /// All of it.
    Whole,
    /// What has changed since the newest durable checkpoint.
    Changes { previous_durable: bool },
}

/// The copy of one node.
pub(super) struct NodeSnapshot {
    pub(super) vertex: usize,
    pub(super) subtask: usize,
    pub(super) snapshot: SubtaskSnapshot,
}

/// Where a task stands with checkpoints.
#[derive(Default)]
pub(super) struct BarrierState {
    /// The last one that it has taken part in.
    epoch: u64,
    /// The one whose barrier has come through some channels.
    aligning: Option<u64>,
    /// The last one whose completion the readers know of.
    notified: u64,
    /// Positions of checkpoints that are not known to be complete: epoch, node, positions.
    positions: Vec<(u64, usize, Vec<SplitPosition>)>,
}

impl BarrierState {
    /// Nothing has been taken since checkpoint `epoch`.
    pub(super) fn after(epoch: u64) -> Self {
        Self {
            epoch,
            notified: epoch,
            ..Self::default()
        }
    }
}

impl Task {
    /// Whether sources have to stand still: the last barrier is behind them.
    pub(super) fn is_halted(&self) -> bool {
        self.barriers.epoch >= self.shared.orders.last.load(Ordering::SeqCst)
    }

    /// Whether channel `channel` has to wait until the other channels have delivered the barrier.
    pub(super) fn is_blocked(&self, channel: usize) -> bool {
        let barrier = self.channels[channel].barrier;
        self.shared.exactly_once && self.barriers.aligning == Some(barrier)
    }

    /// A barrier has come through channel `channel`.
    pub(super) fn on_barrier(&mut self, channel: usize, epoch: u64) {
        self.channels[channel].barrier = epoch;
        // A newer barrier overtakes one that was given up; an older one means nothing any more.
        if epoch > self.barriers.epoch && self.barriers.aligning.is_none_or(|a| epoch > a) {
            self.barriers.aligning = Some(epoch);
        }
    }

    /// Takes part in a checkpoint if its time has come.
    pub(super) fn check_barrier(&mut self) -> Result<()> {
        self.notify_readers();
        let is_open = |e: u64| self.channels.iter().any(|c| !c.ended && c.barrier < e);
        let due = match self.barriers.aligning {
            Some(epoch) => (!is_open(epoch)).then_some(epoch),
            None => {
                let requested = self.shared.orders.requested.load(Ordering::SeqCst);
                let new = requested > self.barriers.epoch && !is_open(u64::MAX);
                new.then_some(requested)
            }
        };
        due.map_or(Ok(()), |epoch| self.take_part(epoch))
    }

    fn take_part(&mut self, epoch: u64) -> Result<()> {
        self.flush_operators()?;
        for node in &mut self.nodes {
            node.send_out(&Event::Barrier(epoch))?;
        }
        self.barriers.aligning = None;
        let previous = std::mem::replace(&mut self.barriers.epoch, epoch);
        let stored = self.shared.orders.stored.load(Ordering::SeqCst);
        let scope = match (self.shared.checkpointing, self.shared.incremental) {
            (false, _) => Scope::NoState,
            (true, true) if stored > 0 => Scope::Changes {
                previous_durable: stored == previous,
            },
            (true, _) => Scope::Whole,
        };
        let snapshots = self.snapshot(epoch, scope)?;
        for slot in &self.sources {
            if let Body::Source(reader) = &self.nodes[slot.node].body {
                let positions = reader.positions();
                self.barriers.positions.push((epoch, slot.node, positions));
            }
        }
        self.acknowledge(epoch, snapshots);
        Ok(())
    }

    /// Copies of all nodes after their last row.
    pub(super) fn final_snapshot(&mut self) -> Result<Vec<NodeSnapshot>> {
        let scope = match self.shared.checkpointing {
            true => Scope::Whole,
            false => Scope::NoState,
        };
        self.snapshot(self.barriers.epoch + 1, scope)
    }

    fn snapshot(&mut self, epoch: u64, scope: Scope) -> Result<Vec<NodeSnapshot>> {
        let copy = |node: &mut Node| {
            let snapshot = node.snapshot(epoch, scope);
            Ok(NodeSnapshot {
                vertex: node.vertex.0,
                subtask: node.subtask,
                snapshot: snapshot.map_err(|e| e.context(&*node.description))?,
            })
        };
        self.nodes.iter_mut().map(copy).collect()
    }

    fn notify_readers(&mut self) {
        let completed = self.shared.orders.completed.load(Ordering::SeqCst);
        if completed <= self.barriers.notified {
            return;
        }
        self.barriers.notified = completed;
        for (epoch, node, positions) in &self.barriers.positions {
            if let Body::Source(reader) = &mut self.nodes[*node].body
                && *epoch == completed
            {
                reader.checkpoint_complete(positions);
            }
        }
        self.barriers
            .positions
            .retain(|(epoch, ..)| *epoch > completed);
    }
}

impl Node {
    /// A copy of the state, and for a sink the end of its transaction.
    fn snapshot(&mut self, epoch: u64, scope: Scope) -> Result<SubtaskSnapshot> {
        let between = |watermark: i64| (i64::MIN + 1..i64::MAX).contains(&watermark);
        let mut snapshot = SubtaskSnapshot {
            ended: self.is_done(),
            input_watermark: Some(self.inputs.watermark()).filter(|w| between(*w)),
            output_watermark: Some(self.watermark).filter(|w| between(*w)),
            ..SubtaskSnapshot::default()
        };
        match &mut self.body {
            Body::Source(reader) => snapshot.positions = reader.positions(),
            Body::Operator(operator) => {
                snapshot.operator = match scope {
                    Scope::NoState => OperatorSnapshot::default(),
                    Scope::Whole => operator.snapshot()?,
                    Scope::Changes { previous_durable } => operator.changes(previous_durable)?,
                };
            }
            Body::Sink(writer) => {
                if !snapshot.ended {
                    writer.flush()?;
                }
                snapshot.committables = writer.pre_commit(epoch)?;
                if !matches!(scope, Scope::NoState) {
                    snapshot.writer = writer.snapshot()?;
                }
            }
        }
        Ok(snapshot)
    }
}
