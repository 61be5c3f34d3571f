//! The one loop that every task runs on its thread: read, time, wait, end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::alignment::Alignments;
use super::barrier::{BarrierState, NodeSnapshot, Orders};
use super::channel::Channel;
use super::clock::{Clock, monotonic_ns};
use super::control::{Attempt, Signal};
use super::metrics::VertexMetrics;
use super::node::{Body, Event, Node, Tail};
use super::output::Status;
use super::publishing::Outcome;
use super::step::StepGate;
use crate::checkpoint::CheckpointStore;
use crate::connectors::SourcePoll;
use crate::error::{Error, Result};

/// Longest wait while a timer is set: the clock may be one that is set by hand.
const TIMER_WAIT: Duration = Duration::from_millis(10);
/// Longest wait at all.
const IDLE_WAIT: Duration = Duration::from_millis(100);
/// A busy task hands on what its sinks buffer this often.
const FLUSH_NS: u64 = 100_000_000;
/// State is measured every so many rounds.
const MEASURE_ROUNDS: u32 = 16;

/// What all tasks of an attempt share.
pub(super) struct Shared {
    pub(super) attempt: Attempt,
    pub(super) orders: Orders,
    /// Whether copies of the state are asked for at all.
    pub(super) checkpointing: bool,
    /// Whether operators track what changes, and copy only that.
    pub(super) incremental: bool,
    /// Number of key groups.
    pub(super) max_parallelism: u16,
    /// Whether rows behind a barrier wait until it has come through all channels.
    pub(super) exactly_once: bool,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) batch_size: usize,
    pub(super) mini_batch_latency_ms: Option<i64>,
    pub(super) state_memory_limit: Option<u64>,
    pub(super) gate: Arc<StepGate>,
    pub(super) alignments: Alignments,
    pub(super) metrics: Arc<Vec<VertexMetrics>>,
}

/// A source node of a task.
pub(super) struct SourceSlot {
    /// Its place among the nodes.
    pub(super) node: usize,
    /// Its place in the gate.
    pub(super) reader: usize,
    pub(super) ended: bool,
    /// It has said that it has nothing before this moment.
    pub(super) ready_ns: u64,
}

/// The receiving end of a channel.
pub(super) struct ChannelSlot {
    pub(super) channel: Arc<Channel>,
    /// The node that it leads to, and which of its inputs it is.
    pub(super) node: usize,
    pub(super) input: usize,
    pub(super) ended: bool,
    /// The last barrier that has come through it.
    pub(super) barrier: u64,
}

/// What came of a round of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// Something happened.
    Progress,
    /// There was nothing to do.
    Idle,
    /// All sources and channels have ended.
    Done,
}

/// When a task does what it does not do in every round.
#[derive(Debug, Default)]
pub(super) struct Pace {
    rounds: u32,
    flushed_ns: u64,
    /// When the mini-batch under way must be answered.
    bundle_end: Option<i64>,
}

/// A part of the graph that runs on one thread.
pub(super) struct Task {
    /// For the thread's name.
    pub(super) name: String,
    pub(super) nodes: Vec<Node>,
    pub(super) sources: Vec<SourceSlot>,
    pub(super) channels: Vec<ChannelSlot>,
    pub(super) signal: Arc<Signal>,
    pub(super) shared: Arc<Shared>,
    pub(super) barriers: BarrierState,
    pub(super) pace: Pace,
    /// Number of the task, and where it reports.
    pub(super) index: usize,
    pub(super) reports: Sender<Report>,
}

/// What a task, or somebody outside, tells the coordinator.
pub(super) enum Report {
    /// The task has taken part in a checkpoint.
    Taken {
        task: usize,
        epoch: u64,
        snapshots: Vec<NodeSnapshot>,
    },
    /// The task has ended.
    Ended { task: usize, end: Result<TaskEnd> },
    /// The checkpoint that was gathered is durable and committed, or not.
    Published(Outcome),
    /// The rows that sources were allowed to read have been read.
    BudgetSpent,
    /// Somebody wants a checkpoint and to be told its number.
    Wanted(Sender<Result<u64>>),
    /// The job is to end with a checkpoint.
    Stop(StopRequest),
}

/// Asks a job to end with a checkpoint.
pub(super) struct StopRequest {
    pub(super) mode: StopMode,
    /// Where to keep a copy of the checkpoint.
    pub(super) savepoint: Option<Arc<dyn CheckpointStore>>,
    /// Is told the checkpoint's number.
    pub(super) answer: Sender<Result<u64>>,
}

/// How a job ends that is told to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StopMode {
    /// Sources stand still, and another run goes on from there.
    #[default]
    Suspend,
    /// Sources end as if they had no more rows: windows fire and everything is committed. For a job
    /// that is not to go on.
    Drain,
}

/// How a task ended well.
pub(super) enum TaskEnd {
    /// All is done; copies of its nodes, with what the sinks have pre-committed.
    Finished(Vec<NodeSnapshot>),
    /// It was told to stop.
    Cancelled,
}

impl Task {
    /// Runs to the end.
    pub(super) fn run(mut self) -> Result<TaskEnd> {
        self.pace.flushed_ns = monotonic_ns();
        loop {
            if self.shared.attempt.is_stopped() {
                return Ok(TaskEnd::Cancelled);
            }
            match self.round()? {
                Round::Done => return self.finish(),
                Round::Progress => {}
                Round::Idle => self.signal.wait(self.wait_time(self.pace.bundle_end)),
            }
        }
    }

    /// Reads once from everything that has something. Does not wait, but for room in a channel.
    pub(super) fn round(&mut self) -> Result<Round> {
        self.check_barrier()?;
        let mut progress = false;
        for source in 0..self.sources.len() {
            progress |= self.poll(source)?;
        }
        for channel in 0..self.channels.len() {
            progress |= self.receive(channel)?;
        }
        if self.is_done() {
            return Ok(Round::Done);
        }
        if !self.is_halted() {
            self.fire_timers()?;
        }
        if let Some(latency) = self.shared.mini_batch_latency_ms {
            let now = self.shared.clock.now_ms();
            match self.pace.bundle_end {
                Some(end) if now >= end => {
                    self.flush_operators()?;
                    self.pace.bundle_end = None;
                }
                None if progress => self.pace.bundle_end = Some(now.saturating_add(latency)),
                _ => {}
            }
        }
        self.pace.rounds = self.pace.rounds.wrapping_add(1);
        if self.pace.rounds.is_multiple_of(MEASURE_ROUNDS) || !progress {
            self.measure_state()?;
        }
        if !progress || monotonic_ns() - self.pace.flushed_ns > FLUSH_NS {
            self.flush_sinks()?;
            self.pace.flushed_ns = monotonic_ns();
        }
        Ok(if progress {
            Round::Progress
        } else {
            Round::Idle
        })
    }

    /// What is left after the last round.
    pub(super) fn finish(mut self) -> Result<TaskEnd> {
        self.measure_state()?;
        Ok(TaskEnd::Finished(self.final_snapshot()?))
    }

    fn is_done(&self) -> bool {
        self.sources.iter().all(|s| s.ended) && self.channels.iter().all(|c| c.ended)
    }

    /// Reads once from a source and works that off. Answers whether anything happened.
    fn poll(&mut self, source: usize) -> Result<bool> {
        let halted = self.is_halted();
        let slot = &mut self.sources[source];
        let gate = &self.shared.gate;
        if slot.ended || halted {
            return Ok(false);
        }
        if self.shared.orders.drain.load(Ordering::SeqCst) {
            return self.end_source(source).map(|()| true);
        }
        if slot.ready_ns > monotonic_ns() {
            return Ok(false);
        }
        if !gate.may_read(slot.reader) || !self.shared.alignments.may_read(slot.reader) {
            return Ok(false);
        }
        let orders = &self.shared.orders;
        let max_rows = self.shared.batch_size;
        let max_rows = orders
            .budget
            .as_ref()
            .map_or(max_rows, |b| b.reserve(max_rows));
        if max_rows == 0 {
            return Ok(false);
        }
        gate.enter();
        let node = &mut self.nodes[slot.node];
        let Body::Source(reader) = &mut node.body else {
            return Err(Error::internal("a source slot without a reader"));
        };
        let start = monotonic_ns();
        let poll = reader
            .poll(max_rows)
            .map_err(|e| e.context(&*node.description))?;
        let now = monotonic_ns();
        node.metrics.busy_ns.add(now - start);
        node.metrics.invalid_dropped.set(reader.skipped());
        slot.ready_ns = 0;
        let polls = match poll {
            SourcePoll::Several(polls) => polls,
            poll => vec![poll],
        };
        let (mut rows, mut progress) = (0, false);
        for poll in polls {
            let event = match poll {
                SourcePoll::Batch(batch) => {
                    rows += batch.len();
                    progress = true;
                    (!batch.is_empty()).then_some(Event::Batch(batch))
                }
                SourcePoll::Watermark(watermark) => Some(Event::Watermark(watermark)),
                SourcePoll::Idle(true) => Some(Event::Status(Status::Idle)),
                SourcePoll::Idle(false) => Some(Event::Status(Status::Active)),
                SourcePoll::Several(_) => {
                    return Err(Error::internal("a poll of several polls of several"));
                }
                SourcePoll::Pending(after) => {
                    let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
                    slot.ready_ns = now.saturating_add(after);
                    None
                }
                SourcePoll::End => {
                    slot.ended = true;
                    Some(Event::End)
                }
            };
            if let Some(event) = event {
                progress = true;
                Tail::new(&mut self.nodes).emit(slot.node, event)?;
            }
        }
        let step = match &self.nodes[slot.node].body {
            Body::Source(reader) if !slot.ended => reader.step(),
            _ => None,
        };
        gate.publish(slot.reader, step);
        self.leave(1);
        if let Some(budget) = &self.shared.orders.budget
            && budget.refund(max_rows.saturating_sub(rows))
        {
            self.report(Report::BudgetSpent);
        }
        Ok(progress)
    }

    /// Ends a source that has rows left.
    fn end_source(&mut self, source: usize) -> Result<()> {
        let slot = &mut self.sources[source];
        slot.ended = true;
        self.shared.gate.enter();
        Tail::new(&mut self.nodes).emit(slot.node, Event::End)?;
        self.shared.gate.publish(slot.reader, None);
        self.leave(1);
        Ok(())
    }

    /// Works off what waits at a channel. Answers whether anything did.
    fn receive(&mut self, channel: usize) -> Result<bool> {
        if self.is_blocked(channel) {
            return Ok(false);
        }
        let slot = &mut self.channels[channel];
        if slot.ended {
            return Ok(false);
        }
        let Some(received) = slot.channel.receive(self.shared.batch_size)? else {
            return Ok(false);
        };
        slot.ended = matches!(received.event, Event::End);
        if let Event::Barrier(epoch) = received.event {
            self.on_barrier(channel, epoch);
        } else {
            Tail::new(&mut self.nodes).deliver(slot.node, slot.input, received.event)?;
        }
        self.leave(received.messages);
        Ok(true)
    }

    /// So many polls or messages have been worked off.
    fn leave(&self, messages: usize) {
        let gate = &self.shared.gate;
        if gate.leave(messages) && gate.is_ordered() {
            // Sources wait for this moment, whatever task they are in.
            self.shared.attempt.notify_all();
        }
    }

    fn fire_timers(&mut self) -> Result<()> {
        for node in 0..self.nodes.len() {
            let Some(timer) = self.next_timer(node) else {
                continue;
            };
            let now = self.shared.clock.now_ms();
            if timer <= now {
                let mut tail = Tail::new(&mut self.nodes);
                tail.call(node, |operator, out| operator.processing_time(now, out))?;
            }
        }
        Ok(())
    }

    fn next_timer(&self, node: usize) -> Option<i64> {
        match &self.nodes[node].body {
            Body::Operator(operator) if !self.nodes[node].is_done() => operator.next_timer(),
            _ => None,
        }
    }

    pub(super) fn flush_operators(&mut self) -> Result<()> {
        for node in 0..self.nodes.len() {
            Tail::new(&mut self.nodes).call(node, |operator, out| operator.flush(out))?;
        }
        Ok(())
    }

    fn flush_sinks(&mut self) -> Result<()> {
        for node in &mut self.nodes {
            if let Body::Sink(writer) = &mut node.body {
                writer.flush().map_err(|e| e.context(&*node.description))?;
            }
        }
        Ok(())
    }

    /// Brings the gauges up to date and checks the limit over all tasks.
    fn measure_state(&self) -> Result<()> {
        for node in &self.nodes {
            let size = node.state_size();
            node.metrics.state_rows.set(size.rows as u64);
            node.metrics.state_bytes.set(size.bytes as u64);
        }
        let Some(limit) = self.shared.state_memory_limit else {
            return Ok(());
        };
        let metrics = &self.shared.metrics;
        let total: u64 = metrics.iter().map(|m| m.metrics.state_bytes.get()).sum();
        if total <= limit {
            return Ok(());
        }
        let largest = metrics.iter().max_by_key(|m| m.metrics.state_bytes.get());
        let largest = largest.map_or_else(String::new, |m| {
            let (rows, bytes) = (m.metrics.state_rows.get(), m.metrics.state_bytes.get());
            format!(
                "; the largest is {}: {rows} keys, {bytes} bytes",
                m.description
            )
        });
        Err(Error::state(format!(
            "the state of the job has {total} bytes, more than the limit of {limit}{largest}"
        ))
        .hint("raise 'state.memory.limit', or let state expire with 'table.exec.state.ttl'"))
    }

    fn wait_time(&self, bundle_end: Option<i64>) -> Duration {
        let timers = (0..self.nodes.len()).filter_map(|n| self.next_timer(n));
        let mut wait = IDLE_WAIT;
        if let Some(timer) = timers.chain(bundle_end).min() {
            let left = timer.saturating_sub(self.shared.clock.now_ms()).max(0);
            wait = Duration::from_millis(left.unsigned_abs()).min(TIMER_WAIT);
        }
        let now = monotonic_ns();
        for source in self.sources.iter().filter(|s| !s.ended) {
            wait = wait.min(Duration::from_nanos(source.ready_ns.saturating_sub(now)));
        }
        wait
    }

    pub(super) fn acknowledge(&self, epoch: u64, snapshots: Vec<NodeSnapshot>) {
        let task = self.index;
        self.report(Report::Taken {
            task,
            epoch,
            snapshots,
        });
    }

    fn report(&self, report: Report) {
        // The coordinator listens until all tasks have ended.
        let _ = self.reports.send(report);
    }
}
