//! Watermark alignment: a source that has run ahead of its group is not read until the others have
//! caught up, so that operators behind need not keep what it would bring.
//!
//! Every subtask of a source with `scan.watermark.alignment.group` is a member of that group, over
//! all tables of a job. It is read as long as its watermark is not more than its
//! `scan.watermark.alignment.max-drift` ahead of the lowest of the group. Who is idle or has ended
//! holds nobody up; who has no watermark yet does. Watermarks are compared before every poll, not
//! once in an update interval.

use std::sync::Arc;

use super::metrics::{OperatorMetrics, VertexMetrics};
use crate::graph::{Graph, VertexKind};

/// A subtask of a source that waits for others.
struct Member {
    group: String,
    max_drift_ms: i64,
    /// Counters of what makes its watermarks.
    metrics: Arc<OperatorMetrics>,
}

impl Member {
    /// Its watermark; `None` when nobody waits for it.
    fn watermark(&self) -> Option<i64> {
        let gauge = &self.metrics.current_output_watermark;
        (!gauge.is_out()).then(|| gauge.get().unwrap_or(i64::MIN))
    }
}

/// The members of all groups of a job.
#[derive(Default)]
pub(super) struct Alignments {
    members: Vec<Member>,
    /// The member that a reader is, by the reader's number.
    by_reader: Vec<Option<usize>>,
}

impl Alignments {
    pub(super) fn new(graph: &Graph, metrics: &[VertexMetrics]) -> Self {
        let mut this = Self::default();
        if graph.alignments().next().is_none() {
            return this;
        }
        let is_source =
            |m: &&VertexMetrics| matches!(graph.vertices()[m.vertex].kind, VertexKind::Source(_));
        for reader in metrics.iter().filter(is_source) {
            let aligned = graph.alignments().find(|(assigner, _)| {
                let sources = graph.sources_of(*assigner);
                sources.iter().any(|source| source.0 == reader.vertex)
            });
            let member = aligned.and_then(|(assigner, alignment)| {
                let own = metrics
                    .iter()
                    .find(|m| m.vertex == assigner.0 && m.subtask == reader.subtask)?;
                Some(Member {
                    group: alignment.group.clone(),
                    max_drift_ms: alignment.max_drift_ms,
                    metrics: Arc::clone(&own.metrics),
                })
            });
            let number = member.is_some().then_some(this.members.len());
            this.by_reader.push(number);
            this.members.extend(member);
        }
        this
    }

    /// Whether a reader may be polled.
    pub(super) fn may_read(&self, reader: usize) -> bool {
        let Some(Some(number)) = self.by_reader.get(reader) else {
            return true;
        };
        let own = &self.members[*number];
        let Some(watermark) = own.watermark() else {
            return true;
        };
        let group = self.members.iter().filter(|m| m.group == own.group);
        let lowest = group.filter_map(Member::watermark).min();
        lowest.is_none_or(|lowest| watermark <= lowest.saturating_add(own.max_drift_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alignments(groups: &[(&str, i64)]) -> Alignments {
        Alignments {
            members: groups
                .iter()
                .map(|(group, max_drift_ms)| Member {
                    group: (*group).to_string(),
                    max_drift_ms: *max_drift_ms,
                    metrics: Arc::new(OperatorMetrics::default()),
                })
                .collect(),
            by_reader: (0..groups.len()).map(Some).collect(),
        }
    }

    fn set(all: &Alignments, member: usize, watermark: i64) {
        let metrics = &all.members[member].metrics;
        metrics.current_output_watermark.set(watermark);
    }

    #[test]
    fn who_is_too_far_ahead_waits_for_the_slowest_of_its_group() {
        let all = alignments(&[("a", 10), ("a", 10), ("b", 10)]);
        assert!(all.may_read(0));
        set(&all, 0, 100);
        assert!(!all.may_read(0), "the other has no watermark yet");
        assert!(all.may_read(1));
        set(&all, 1, 90);
        assert!(all.may_read(0));
        set(&all, 0, 101);
        assert!(!all.may_read(0));
        assert!(all.may_read(2), "another group");
        assert!(all.may_read(7), "a reader of no group");
    }

    #[test]
    fn idle_and_ended_sources_hold_nobody_up() {
        let all = alignments(&[("a", 10), ("a", 10), ("a", 10)]);
        set(&all, 0, 1000);
        set(&all, 1, 5);
        all.members[1]
            .metrics
            .current_output_watermark
            .set_idle(true);
        assert!(!all.may_read(0));
        set(&all, 2, i64::MAX);
        assert!(all.may_read(0));
        assert!(all.may_read(1));
        all.members[1]
            .metrics
            .current_output_watermark
            .set_idle(false);
        assert!(!all.may_read(0));
    }
}
