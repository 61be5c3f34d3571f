//! Session windows of keys: they grow and merge as rows come.

use std::collections::{BTreeSet, HashMap};

use smallvec::SmallVec;

use super::windowing::TimeWindow;

/// An open session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Session {
    /// Its extent.
    pub(super) window: TimeWindow,
    /// What the operator keeps for it.
    pub(super) state: u32,
    /// Sessions that end together do so in this order.
    pub(super) order: u64,
}

/// What a row did to the sessions of its key.
#[derive(Debug)]
pub(super) struct Added {
    /// The session that the row is in now.
    pub(super) window: TimeWindow,
    /// The states of the sessions that it consists of, oldest first. The first one is kept; none if
    /// the session is new.
    pub(super) states: SmallVec<[u32; 2]>,
}

/// The open sessions of all keys, by slot of the key.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// By start; they don't touch.
    open: HashMap<u32, SmallVec<[Session; 1]>, foldhash::fast::FixedState>,
    /// By end, then in the order in which sessions were begun: end, order, key.
    ends: BTreeSet<(i64, u64, u32)>,
    begun: u64,
}

impl Sessions {
    /// What adding `new` to the sessions of `key` would make, without doing it. Sessions that touch
    /// become one.
    pub(super) fn preview(&self, key: u32, new: TimeWindow) -> Added {
        let mut window = new;
        let mut states = SmallVec::new();
        for session in self.open.get(&key).into_iter().flatten() {
            let other = session.window;
            if other.start <= new.end && new.start <= other.end {
                window.start = window.start.min(other.start);
                window.end = window.end.max(other.end);
                states.push(session.state);
            }
        }
        Added { window, states }
    }

    /// Does what `added` says, for a session whose state is `state` (the first of
    /// [`Added::states`], or a new one).
    pub(super) fn put(&mut self, key: u32, added: &Added, state: u32) {
        let sessions = self.open.entry(key).or_default();
        let mut order = None;
        sessions.retain(|session| {
            let absorbed = added.states.contains(&session.state);
            if absorbed {
                order.get_or_insert(session.order);
                self.ends.remove(&(session.window.end, session.order, key));
            }
            !absorbed
        });
        let order = order.unwrap_or_else(|| {
            self.begun += 1;
            self.begun
        });
        let at = sessions.partition_point(|s| s.window.start < added.window.start);
        let window = added.window;
        sessions.insert(
            at,
            Session {
                window,
                state,
                order,
            },
        );
        self.ends.insert((window.end, order, key));
    }

    /// Puts a session of a copy back: one of `key` that touches no other.
    pub(super) fn restore(&mut self, key: u32, session: Session) {
        self.begun = self.begun.max(session.order);
        let sessions = self.open.entry(key).or_default();
        let at = sessions.partition_point(|s| s.window.start < session.window.start);
        sessions.insert(at, session);
        self.ends.insert((session.window.end, session.order, key));
    }

    /// The open sessions of `key`, by start.
    pub(super) fn of(&self, key: u32) -> &[Session] {
        self.open.get(&key).map_or(&[], |sessions| sessions)
    }

    /// The session of `key` that covers `window`.
    pub(super) fn covering(&self, key: u32, window: TimeWindow) -> Option<Session> {
        let sessions = self.open.get(&key)?.iter();
        let covers = |s: &&Session| s.window.start <= window.start && window.end <= s.window.end;
        sessions.copied().find(|s| covers(&s))
    }

    /// The session that ends first, and its key.
    pub(super) fn first(&self) -> Option<(u32, Session)> {
        let (_, order, key) = *self.ends.first()?;
        Some((key, self.find(key, order)?))
    }

    fn find(&self, key: u32, order: u64) -> Option<Session> {
        let mut sessions = self.open.get(&key)?.iter();
        sessions.find(|s| s.order == order).copied()
    }

    /// Ends a session. Says whether its key has no other.
    pub(super) fn close(&mut self, key: u32, session: Session) -> bool {
        self.ends.remove(&(session.window.end, session.order, key));
        let Some(sessions) = self.open.get_mut(&key) else {
            return true;
        };
        sessions.retain(|s| s.order != session.order);
        let last = sessions.is_empty();
        if last {
            self.open.remove(&key);
        }
        last
    }

    /// Whether `key` has an open session.
    pub(super) fn has(&self, key: u32) -> bool {
        self.open.contains_key(&key)
    }

    /// All open sessions with their keys, in the order in which they were begun.
    pub(super) fn in_order(&self) -> Vec<(u32, Session)> {
        let all = self.ends.iter();
        let found = all.filter_map(|(_, order, key)| Some((*key, self.find(*key, *order)?)));
        let mut all: Vec<_> = found.collect();
        all.sort_by_key(|(_, session)| session.order);
        all
    }

    /// Bytes of memory held, estimated.
    pub(super) fn memory_size(&self) -> usize {
        self.ends.len() * (size_of::<(i64, u64, u32)>() * 2 + size_of::<Session>())
            + self.open.capacity() * size_of::<(u32, SmallVec<[Session; 1]>)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(sessions: &mut Sessions, start: i64, state: u32) -> (i64, i64, Vec<u32>) {
        let window = TimeWindow {
            start,
            end: start + 5,
        };
        let added = sessions.preview(1, window);
        let kept = added.states.first().copied().unwrap_or(state);
        sessions.put(1, &added, kept);
        (added.window.start, added.window.end, added.states.to_vec())
    }

    #[test]
    fn sessions_that_touch_become_one() {
        let mut sessions = Sessions::default();
        assert_eq!(add(&mut sessions, 0, 0), (0, 5, vec![]));
        assert_eq!(add(&mut sessions, 10, 1), (10, 15, vec![]));
        assert_eq!(add(&mut sessions, 20, 2), (20, 25, vec![]));
        assert_eq!(add(&mut sessions, 5, 3), (0, 15, vec![0, 1]));
        assert_eq!(sessions.ends.len(), 2);
        let (key, first) = sessions.first().unwrap();
        assert_eq!((key, first.state, first.window.end), (1, 0, 15));
        assert!(!sessions.close(key, first));
        assert_eq!(add(&mut sessions, 15, 4), (15, 25, vec![2]));
        let (key, last) = sessions.first().unwrap();
        assert!(sessions.close(key, last));
        assert!(sessions.first().is_none() && !sessions.has(1));
    }
}
