//! Which state of a checkpoint a job takes up: what its vertices claim by uid and signature.
//!
//! State that nobody claims is never lost in silence: the job is refused with the difference between
//! what is saved and what is there now, unless it was told to drop such state.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Checkpoint, SubtaskSnapshot, VertexCheckpoint};
use crate::error::{Error, Result};

/// A vertex of a job that starts.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The plan node's noun.
    pub name: &'a str,
    /// What must agree, a line `part: value` each; empty if its state comes again by itself.
    pub signature: &'a str,
}

/// What happens to state that no vertex claims:
/// `execution.state-recovery.ignore-unclaimed-state`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unclaimed {
    /// The job is refused.
    #[default]
    Refuse,
    /// It is dropped, with a warning.
    Drop,
}

/// The claims of a job, by uid.
#[derive(Debug, Default)]
pub struct Claims<'a>(BTreeMap<String, Claim<'a>>);

impl<'a> FromIterator<(String, Claim<'a>)> for Claims<'a> {
    fn from_iter<T: IntoIterator<Item = (String, Claim<'a>)>>(claims: T) -> Self {
        Self(claims.into_iter().collect())
    }
}

impl Claims<'_> {
    /// What the job restores of `checkpoint`, under its own uids. State of a vertex that several now
    /// claim goes to each.
    ///
    /// # Errors
    /// When state would be lost that `unclaimed` does not give up, or prepared transactions; says
    /// what is gone, changed and new.
    pub fn settle(
        &self,
        checkpoint: &Checkpoint,
        unclaimed: Unclaimed,
    ) -> Result<Vec<VertexCheckpoint>> {
        self.refuse_lost_transactions(checkpoint)?;
        let mut restored = Vec::new();
        let mut claimed = BTreeSet::new();
        let (mut changed, mut new) = (String::new(), String::new());
        for (uid, claim) in &self.0 {
            let Some(saved) = found(checkpoint, uid) else {
                if !claim.signature.is_empty() {
                    let _ = writeln!(new, "  new:     {}", shown(uid));
                }
                continue;
            };
            claimed.insert(saved.uid.as_str());
            if saved.signature == claim.signature || !matters(saved) {
                restored.push(VertexCheckpoint {
                    uid: uid.clone(),
                    ..saved.clone()
                });
            } else {
                let _ = writeln!(changed, "  changed: {}", shown(uid));
                write_difference(&mut changed, saved, claim);
            }
        }
        let unclaimed_state = |v: &&VertexCheckpoint| !claimed.contains(v.uid.as_str());
        let lost = checkpoint.vertices.iter().filter(unclaimed_state);
        let lost = lost.filter(|v| matters(v)).map(|v| shown(&v.uid));
        let gone: String = lost.map(|uid| format!("  gone:    {uid}\n")).collect();
        let epoch = checkpoint.epoch;
        if gone.is_empty() && changed.is_empty() {
            return Ok(restored);
        }
        if unclaimed == Unclaimed::Drop {
            let dropped = format!("{gone}{changed}");
            tracing::warn!(
                "state of checkpoint {epoch} is dropped:\n{}",
                dropped.trim_end()
            );
            return Ok(restored);
        }
        let difference = format!("{gone}{changed}{new}");
        Err(Error::checkpoint(format!(
            "checkpoint {epoch} holds state that does not fit the statements:\n{}",
            difference.trim_end()
        ))
        .hint(
            "run the statements as they were; or drop the state that is gone or changed: \
             'execution.state-recovery.ignore-unclaimed-state' = 'true' (ebbflow run \
             --allow-non-restored-state); or start from nothing (ebbflow run --fresh)",
        ))
    }

    /// Transactions that a crash has left between prepared and committed need their sink.
    fn refuse_lost_transactions(&self, checkpoint: &Checkpoint) -> Result<()> {
        let open = |v: &&VertexCheckpoint| v.subtasks.iter().any(|s| !s.committables.is_empty());
        let lost = checkpoint
            .vertices
            .iter()
            .filter(open)
            .find(|v| !self.0.contains_key(&v.uid));
        match lost {
            Some(sink) if !checkpoint.committed => Err(Error::checkpoint(format!(
                "checkpoint {} holds rows of {} that are written but not visible yet, and the \
                 statements have no such sink",
                checkpoint.epoch, sink.uid
            ))
            .hint("run the statements as they were once, to their next checkpoint")),
            _ => Ok(()),
        }
    }
}

/// The saved vertex with this uid, or the only one that shares a name with it.
fn found<'c>(checkpoint: &'c Checkpoint, uid: &str) -> Option<&'c VertexCheckpoint> {
    if let Some(same) = checkpoint.vertex(uid) {
        return Some(same);
    }
    let shares = |v: &&VertexCheckpoint| v.uid.lines().any(|n| uid.lines().any(|own| own == n));
    let mut candidates = checkpoint.vertices.iter().filter(shares);
    let first = candidates.next();
    first.filter(|_| candidates.next().is_none())
}

/// Whether something would be lost with the state of `saved`.
fn matters(saved: &VertexCheckpoint) -> bool {
    !saved.signature.is_empty() && saved.subtasks.iter().any(SubtaskSnapshot::holds_state)
}

/// A uid in one line.
fn shown(uid: &str) -> String {
    uid.replace('\n', " & ")
}

fn write_difference(text: &mut String, saved: &VertexCheckpoint, claim: &Claim<'_>) {
    let (before, now) = (parts(&saved.signature), parts(claim.signature));
    let names = before
        .keys()
        .chain(now.keys().filter(|n| !before.contains_key(*n)));
    for name in names {
        let nothing = "(nothing)";
        let before = before.get(name).copied().unwrap_or(nothing);
        let now = now.get(name).copied().unwrap_or(nothing);
        if before != now {
            let _ = writeln!(
                text,
                "    {name}\n      saved: {before}\n      now:   {now}"
            );
        }
    }
}

/// The lines of a signature by their names.
fn parts(signature: &str) -> BTreeMap<&str, &str> {
    let lines = signature.lines();
    let part = |line| str::split_once(line, ": ").unwrap_or((line, ""));
    lines.map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;
    use crate::state::snapshot::OperatorSnapshot;

    const SIGNATURE: &str = "keys: k STRING\naggregates: SUM(v) INT";

    fn saved(committed: bool) -> Checkpoint {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let mut operator = OperatorSnapshot::default();
        operator.add("t", 1, RecordBatch::try_from_iter([("k", column)]).unwrap());
        let vertex = |uid: &str, signature: &str, snapshot: SubtaskSnapshot| VertexCheckpoint {
            uid: uid.into(),
            name: "GroupAggregate".into(),
            signature: signature.into(),
            subtasks: vec![snapshot],
        };
        let state = SubtaskSnapshot {
            operator,
            ..SubtaskSnapshot::default()
        };
        let prepared = SubtaskSnapshot {
            committables: vec![vec![1]],
            ..SubtaskSnapshot::default()
        };
        Checkpoint {
            epoch: 4,
            committed,
            vertices: vec![
                vertex("agg", SIGNATURE, state.clone()),
                vertex("calc", "", state),
                vertex("sink", "columns: k", prepared),
            ],
            ..Checkpoint::default()
        }
    }

    fn settle(
        claims: &[(&str, &'static str)],
        committed: bool,
        unclaimed: Unclaimed,
    ) -> Result<Vec<String>> {
        let claim = |(uid, signature): &(&str, &'static str)| {
            let name = "GroupAggregate";
            ((*uid).to_string(), Claim { name, signature })
        };
        let claims: Claims<'_> = claims.iter().map(claim).collect();
        let restored = claims.settle(&saved(committed), unclaimed)?;
        let vertex = |v: VertexCheckpoint| {
            let state = if matters(&v) { " with state" } else { "" };
            format!("{}{state}", shown(&v.uid))
        };
        Ok(restored.into_iter().map(vertex).collect())
    }

    #[test]
    fn what_fits_is_taken_up_and_stateless_vertices_do_not_matter() {
        let claims = [
            ("agg", SIGNATURE),
            ("sink", "columns: k"),
            ("new", "keys: x"),
        ];
        let restored = settle(&claims, false, Unclaimed::Refuse).unwrap();
        assert_eq!(restored, ["agg with state", "sink"]);
        // a sink that holds nothing any more may go
        let claims = [("agg", SIGNATURE)];
        assert!(settle(&claims, true, Unclaimed::Refuse).is_ok());
    }

    #[test]
    fn a_name_in_common_is_enough_and_state_goes_to_all_who_claim_it() {
        let claims = [
            ("agg\nother", SIGNATURE),
            ("agg\nthird", SIGNATURE),
            ("sink", ""),
        ];
        let restored = settle(&claims, true, Unclaimed::Refuse).unwrap();
        let expected = ["agg & other with state", "agg & third with state", "sink"];
        assert_eq!(restored, expected);
        // two states do not become one
        let claims = [("agg\ncalc", SIGNATURE), ("sink", "")];
        let text = settle(&claims, true, Unclaimed::Refuse)
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("gone:    agg\n  new:     agg & calc"),
            "{text}"
        );
    }

    #[test]
    fn lost_state_is_refused_and_named_with_what_is_new() {
        let claims = [("agg-2", "keys: k INT"), ("sink", "")];
        let text = settle(&claims, false, Unclaimed::Refuse)
            .unwrap_err()
            .to_string();
        assert!(text.contains("checkpoint 4"), "{text}");
        assert!(text.contains("gone:    agg\n"), "{text}");
        assert!(text.contains("new:     agg-2"), "{text}");
        let kept = settle(&claims, false, Unclaimed::Drop).unwrap();
        assert_eq!(kept, ["sink"]);
    }

    #[test]
    fn changed_state_is_refused_part_by_part() {
        let changed = "keys: k STRING\naggregates: SUM(v) INT, COUNT(*) BIGINT";
        let claims = [("agg", changed), ("sink", "")];
        let text = settle(&claims, false, Unclaimed::Refuse)
            .unwrap_err()
            .to_string();
        let expected = "changed: agg\n    aggregates\n      saved: SUM(v) INT\n      now:   SUM(v) INT, COUNT(*) BIGINT";
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("keys"), "{text}");
    }

    #[test]
    fn transactions_that_are_not_committed_are_never_dropped() {
        let claims = [("agg", SIGNATURE)];
        let text = settle(&claims, false, Unclaimed::Drop)
            .unwrap_err()
            .to_string();
        assert!(text.contains("rows of sink"), "{text}");
    }
}
