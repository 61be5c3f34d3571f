//! Watermarks that are made split by split, in the source: the partitions of a topic are read at
//! different paces, and the watermark follows the slowest of those that are active.
//!
//! It wraps the readers of a source that says which split its rows come from, and stands in for the
//! `WatermarkAssigner` behind it. As there, a watermark is emitted when it has risen by more than the
//! emit interval, or when the clock says so, and a batch is cut only where a row could notice.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, TimestampMillisecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, TimeUnit, TimestampMillisecondType};

use super::time::null_rowtime;
use crate::changelog::ChangeBatch;
use crate::connectors::{SourcePoll, SourceReader, SourceReaderFactory, SplitPosition};
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::expr::eval::Compiled;
use crate::functions::{Environment, EvalContext};
use crate::runtime::clock::Clock;

/// In front of the name of a split, in the position that holds its watermark.
const WATERMARK_OF: &str = "watermark:";

/// How watermarks are made.
#[derive(Debug, Clone)]
pub struct SplitWatermarksSpec {
    /// The event time of a row.
    pub rowtime: Expr,
    /// The watermark after a row; NULL leaves it as it is.
    pub watermark: Expr,
    /// `pipeline.auto-watermark-interval`, ms; 0 emits every rise.
    pub interval_ms: i64,
    /// After how long without rows a split is idle, ms; 0 is never.
    pub idle_timeout_ms: i64,
    /// Whether every watermark is to be emitted right behind its row.
    pub exact: bool,
}

/// Makes readers that make watermarks.
pub struct SplitWatermarks {
    inner: Arc<dyn SourceReaderFactory>,
    spec: SplitWatermarksSpec,
    environment: Environment,
    clock: Arc<dyn Clock>,
}

impl SplitWatermarks {
    /// Watermarks for the readers of `inner`.
    #[must_use]
    pub fn new(
        inner: Arc<dyn SourceReaderFactory>,
        spec: SplitWatermarksSpec,
        environment: Environment,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            inner,
            spec,
            environment,
            clock,
        }
    }
}

impl SourceReaderFactory for SplitWatermarks {
    fn create(
        &self,
        subtask: usize,
        parallelism: usize,
        restored: &[SplitPosition],
    ) -> Result<Box<dyn SourceReader>> {
        let mut watermarks = BTreeMap::new();
        let mut positions = Vec::new();
        for position in restored {
            match position.split.strip_prefix(WATERMARK_OF) {
                Some(split) => {
                    let watermark = position.position.parse().map_err(|_| {
                        Error::checkpoint(format!("'{}' is no watermark", position.position))
                    })?;
                    watermarks.insert(split.to_string(), watermark);
                }
                None => positions.push(position.clone()),
            }
        }
        let inner = self.inner.create(subtask, parallelism, &positions)?;
        let now = self.clock.now_ms();
        let mut reader = Reader {
            inner,
            rowtime: Compiled::new(&self.spec.rowtime, &self.environment)?,
            watermark: Compiled::new(&self.spec.watermark, &self.environment)?,
            interval_ms: self.spec.interval_ms.max(0),
            idle_timeout_ms: self.spec.idle_timeout_ms.max(0),
            exact: self.spec.exact,
            clock: Arc::clone(&self.clock),
            splits: BTreeMap::new(),
            emitted: i64::MIN,
            idle: false,
            last_emission_ms: now,
            ready: Vec::new(),
        };
        reader.take_splits(now);
        for (name, split) in &mut reader.splits {
            split.watermark = watermarks.get(name).copied().unwrap_or(i64::MIN);
        }
        Ok(Box::new(reader))
    }
}

/// What is known of a split.
#[derive(Debug)]
struct Split {
    /// The highest value of the watermark expression.
    watermark: i64,
    last_row_ms: i64,
    idle: bool,
}

struct Reader {
    inner: Box<dyn SourceReader>,
    rowtime: Compiled,
    watermark: Compiled,
    interval_ms: i64,
    idle_timeout_ms: i64,
    exact: bool,
    clock: Arc<dyn Clock>,
    splits: BTreeMap<String, Split>,
    /// The watermark that was emitted last.
    emitted: i64,
    /// Whether all splits are idle, and who follows knows.
    idle: bool,
    last_emission_ms: i64,
    /// What this poll gives: at once, because a checkpoint may follow it.
    ready: Vec<SourcePoll>,
}

impl Reader {
    /// Brings the splits up to date: new ones hold the watermark, finished ones do not any more.
    fn take_splits(&mut self, now_ms: i64) {
        let Some(names) = self.inner.splits() else {
            return;
        };
        if names.len() == self.splits.len() && names.iter().all(|n| self.splits.contains_key(n)) {
            return;
        }
        let mut former = std::mem::take(&mut self.splits);
        for name in names {
            let split = former.remove(&name).unwrap_or(Split {
                watermark: i64::MIN,
                last_row_ms: now_ms,
                idle: false,
            });
            self.splits.insert(name, split);
        }
    }

    /// The lowest watermark of the active splits, without `except`; `None` if there is none.
    fn lowest(&self, except: Option<&str>) -> Option<i64> {
        let active = self.splits.iter().filter(|(_, s)| !s.idle);
        let others = active.filter(|(name, _)| Some(name.as_str()) != except);
        others.map(|(_, s)| s.watermark).min()
    }

    fn emit(&mut self, watermark: i64) {
        if watermark > self.emitted {
            self.emitted = watermark;
            self.ready.push(SourcePoll::Watermark(watermark));
        }
    }

    fn times(&self, compiled: &Compiled, batch: &ChangeBatch) -> Result<TimestampMillisecondArray> {
        let context = EvalContext {
            rows: batch.len(),
            now_ms: self.clock.now_ms(),
            watermark: self.emitted,
        };
        let values = compiled.evaluate_array(batch.rows(), &context)?;
        let values = cast(&values, &ArrowType::Timestamp(TimeUnit::Millisecond, None))?;
        let values = values.as_primitive_opt::<TimestampMillisecondType>();
        values
            .cloned()
            .ok_or_else(|| Error::internal("a watermark is no timestamp"))
    }

    /// Rows of one split: cuts them where a row could notice a watermark.
    fn take_batch(&mut self, batch: &ChangeBatch) -> Result<()> {
        let now = self.clock.now_ms();
        if self.idle {
            self.idle = false;
            self.ready.push(SourcePoll::Idle(false));
        }
        let name = self.inner.split().map(str::to_string).unwrap_or_default();
        let others = self.lowest(Some(&name));
        let watermarks = self.times(&self.watermark, batch)?;
        let times = self.times(&self.rowtime, batch)?;
        if times.null_count() > 0 {
            return Err(null_rowtime());
        }
        // A split that has just come to its end is not among the splits any more.
        let before = self.splits.get(&name).map_or(i64::MIN, |s| s.watermark);
        let mut own = before;
        let mut emitted = self.emitted;
        let mut start = 0;
        let mut unsent = None;
        let mut out = Vec::new();
        for i in 0..batch.len() {
            if let Some(watermark) = unsent
                && (self.exact || times.value(i) <= i64::saturating_add(watermark, 1))
            {
                out.push(SourcePoll::Batch(batch.slice(start, i - start)));
                out.push(SourcePoll::Watermark(watermark));
                (start, unsent) = (i, None);
            }
            if watermarks.is_valid(i) {
                own = own.max(watermarks.value(i));
            }
            let combined = others.map_or(own, |o| o.min(own));
            if combined.saturating_sub(emitted) > self.interval_ms {
                emitted = combined;
                unsent = Some(combined);
            }
        }
        out.push(SourcePoll::Batch(batch.slice(start, batch.len() - start)));
        if let Some(watermark) = unsent {
            out.push(SourcePoll::Watermark(watermark));
        }
        self.emitted = emitted;
        self.ready.extend(out);
        if let Some(split) = self.splits.get_mut(&name) {
            split.watermark = own;
            split.last_row_ms = now;
            split.idle = false;
        }
        Ok(())
    }

    /// What the clock brings about: the watermark of the interval, splits that become idle.
    fn tick(&mut self) {
        let now = self.clock.now_ms();
        self.take_splits(now);
        if self.idle_timeout_ms > 0 {
            for split in self.splits.values_mut() {
                let due = split.last_row_ms.saturating_add(self.idle_timeout_ms);
                split.idle = split.idle || due <= now;
            }
        }
        match self.lowest(None) {
            Some(watermark) => {
                let due = self.last_emission_ms.saturating_add(self.interval_ms);
                if due <= now {
                    self.last_emission_ms = now;
                    self.emit(watermark);
                }
            }
            None if !self.idle => {
                // All are idle: what the furthest has reached holds for all.
                let highest = self.splits.values().map(|s| s.watermark).max();
                self.emit(highest.unwrap_or(i64::MIN));
                self.idle = true;
                self.ready.push(SourcePoll::Idle(true));
            }
            None => {}
        }
        if self.idle && self.lowest(None).is_some() {
            self.idle = false;
            self.ready.push(SourcePoll::Idle(false));
        }
    }
}

impl SourceReader for Reader {
    fn poll(&mut self, max_rows: usize) -> Result<SourcePoll> {
        match self.inner.poll(max_rows)? {
            SourcePoll::Batch(batch) if batch.is_empty() => {}
            SourcePoll::Batch(batch) => {
                self.take_batch(&batch)?;
                self.tick();
            }
            SourcePoll::Pending(wait) => {
                self.tick();
                self.ready.push(SourcePoll::Pending(wait));
            }
            SourcePoll::End => {
                if self.idle {
                    self.idle = false;
                    self.ready.push(SourcePoll::Idle(false));
                }
                self.ready.push(SourcePoll::End);
            }
            other => return Ok(other),
        }
        Ok(SourcePoll::Several(std::mem::take(&mut self.ready)))
    }

    fn positions(&self) -> Vec<SplitPosition> {
        let known = self.splits.iter().filter(|(_, s)| s.watermark > i64::MIN);
        let watermarks = known.map(|(name, split)| SplitPosition {
            split: format!("{WATERMARK_OF}{name}"),
            position: split.watermark.to_string(),
        });
        watermarks.chain(self.inner.positions()).collect()
    }

    fn checkpoint_complete(&mut self, positions: &[SplitPosition]) {
        let is_position = |p: &&SplitPosition| !p.split.starts_with(WATERMARK_OF);
        let positions: Vec<_> = positions.iter().filter(is_position).cloned().collect();
        self.inner.checkpoint_complete(&positions);
    }

    fn skipped(&self) -> u64 {
        self.inner.skipped()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use super::*;
    use crate::connectors::testing::{batch, lines, schema};
    use crate::runtime::clock::ManualClock;
    use crate::types::TypeKind;

    const COLUMNS: &str = "id INT, ts TIMESTAMP(3)";

    /// Batches of splits `a` and `b`; `None`: nothing now.
    struct Script {
        acts: VecDeque<Option<(&'static str, ChangeBatch)>>,
        last: Option<&'static str>,
    }

    impl SourceReader for Script {
        fn poll(&mut self, _max_rows: usize) -> Result<SourcePoll> {
            Ok(match self.acts.pop_front() {
                None => SourcePoll::End,
                Some(None) => SourcePoll::Pending(Duration::ZERO),
                Some(Some((split, batch))) => {
                    self.last = Some(split);
                    SourcePoll::Batch(batch)
                }
            })
        }

        fn split(&self) -> Option<&str> {
            self.last
        }

        fn splits(&self) -> Option<Vec<String>> {
            Some(vec!["a".into(), "b".into()])
        }

        fn positions(&self) -> Vec<SplitPosition> {
            Vec::new()
        }
    }

    struct Once(std::sync::Mutex<Option<Script>>);

    impl SourceReaderFactory for Once {
        fn create(
            &self,
            _subtask: usize,
            _parallelism: usize,
            _restored: &[SplitPosition],
        ) -> Result<Box<dyn SourceReader>> {
            Ok(Box::new(self.0.lock().unwrap().take().expect("once")))
        }
    }

    fn rows(data: &str) -> ChangeBatch {
        batch(COLUMNS, data)
    }

    fn reader(
        acts: Vec<Option<(&'static str, ChangeBatch)>>,
        clock: &Arc<ManualClock>,
        restored: &[SplitPosition],
    ) -> Box<dyn SourceReader> {
        let script = Script {
            acts: acts.into(),
            last: None,
        };
        let time = Expr::column(1, TypeKind::Timestamp(3).nullable());
        let spec = SplitWatermarksSpec {
            rowtime: time.clone(),
            watermark: time,
            interval_ms: 0,
            idle_timeout_ms: 1_000,
            exact: false,
        };
        let clock = Arc::clone(clock) as Arc<dyn Clock>;
        let inner = Arc::new(Once(std::sync::Mutex::new(Some(script))));
        SplitWatermarks::new(inner, spec, Environment::default(), clock)
            .create(0, 1, restored)
            .unwrap()
    }

    /// What one poll gives.
    fn poll(reader: &mut dyn SourceReader) -> Vec<String> {
        let polls = match reader.poll(100).unwrap() {
            SourcePoll::Several(polls) => polls,
            poll => vec![poll],
        };
        let shown = polls.into_iter().flat_map(|poll| match poll {
            SourcePoll::Batch(batch) => lines(&batch, &schema(COLUMNS)),
            SourcePoll::Watermark(w) => vec![format!("wm {w}")],
            SourcePoll::Idle(idle) => vec![format!("idle {idle}")],
            SourcePoll::Pending(_) => Vec::new(),
            SourcePoll::End => vec!["end".into()],
            SourcePoll::Several(_) => panic!("nested"),
        });
        shown.collect()
    }

    #[test]
    fn the_slowest_split_counts() {
        let clock = Arc::new(ManualClock::new(0));
        let acts = vec![
            Some(("a", rows("+I|1|1970-01-01T00:00:09"))),
            Some((
                "b",
                rows("+I|2|1970-01-01T00:00:02\n+I|3|1970-01-01T00:00:01"),
            )),
            Some(("b", rows("+I|4|1970-01-01T00:00:12"))),
        ];
        let mut reader = reader(acts, &clock, &[]);
        let row = |id: u32, s: u32| format!("+I[{id}, 1970-01-01T00:00:{s:02}]");
        assert_eq!(poll(reader.as_mut()), [row(1, 9)], "b holds the watermark");
        // Row 3 is late by its own split, and must see that.
        let expected = [row(2, 2), "wm 2000".into(), row(3, 1)];
        assert_eq!(poll(reader.as_mut()), expected);
        assert_eq!(poll(reader.as_mut()), [row(4, 12), "wm 9000".into()]);
        let saved = reader.positions();
        assert!(
            saved
                .iter()
                .any(|p| p.split == "watermark:b" && p.position == "12000")
        );
        assert_eq!(poll(reader.as_mut()), ["end"]);
        // A restored reader knows how far each split was.
        let acts = vec![Some(("a", rows("+I|5|1970-01-01T00:00:10")))];
        let mut again = super::tests::reader(acts, &clock, &saved);
        assert_eq!(poll(again.as_mut()), [row(5, 10), "wm 10000".into()]);
    }

    #[test]
    fn idle_splits_do_not_hold_the_watermark() {
        let clock = Arc::new(ManualClock::new(0));
        let acts = vec![
            Some(("a", rows("+I|1|1970-01-01T00:00:09"))),
            None,
            None,
            Some(("b", rows("+I|2|1970-01-01T00:00:03"))),
        ];
        let mut reader = reader(acts, &clock, &[]);
        assert_eq!(poll(reader.as_mut()), ["+I[1, 1970-01-01T00:00:09]"]);
        clock.set(500);
        assert!(poll(reader.as_mut()).is_empty());
        clock.set(1_500);
        assert_eq!(poll(reader.as_mut()), ["wm 9000", "idle true"]);
        assert_eq!(
            poll(reader.as_mut()),
            ["idle false", "+I[2, 1970-01-01T00:00:03]"],
            "the watermark does not go back"
        );
    }
}
