//! Runs an operator in unit tests: rows in as text, changes out as transcripts show them, in every
//! way in which the result must be the same.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::compute::cast;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{Operator, OperatorContext};
use crate::changelog::{ChangeBatch, RowKind};
use crate::checkpoint::layers::fold;
use crate::error::Result;
use crate::functions::Environment;
use crate::runtime::clock::ManualClock;
use crate::runtime::metrics::OperatorMetrics;
use crate::runtime::output::{Emitted, Output};
use crate::state::snapshot::{OperatorSnapshot, RestoreState};
use crate::types::text::RowPrinter;
use crate::types::{Column, Schema, TimeAttribute, TypeKind};

/// A schema from text: `k STRING, v INT NOT NULL, ts TIMESTAMP(3) *ROWTIME*`.
pub(crate) fn schema(text: &str) -> Schema {
    let column = |text: &str| {
        let words: Vec<_> = text.split_whitespace().collect();
        let kind = match words[1] {
            "STRING" => TypeKind::STRING,
            "BYTES" => TypeKind::BYTES,
            "BOOLEAN" => TypeKind::Boolean,
            "TINYINT" => TypeKind::TinyInt,
            "SMALLINT" => TypeKind::SmallInt,
            "INT" => TypeKind::Int,
            "BIGINT" => TypeKind::BigInt,
            "FLOAT" => TypeKind::Float,
            "DOUBLE" => TypeKind::Double,
            "DATE" => TypeKind::Date,
            "TIMESTAMP(3)" => TypeKind::Timestamp(3),
            "TIMESTAMP_LTZ(3)" => TypeKind::TimestampLtz(3),
            other => match other.split_once('(') {
                Some(("CHAR", n)) => TypeKind::Char(n.trim_end_matches(')').parse().unwrap()),
                Some(("DECIMAL", digits)) => {
                    let (p, s) = digits.trim_end_matches(')').split_once(',').unwrap();
                    TypeKind::Decimal(p.parse().unwrap(), s.parse().unwrap())
                }
                Some(("VARCHAR", n)) => TypeKind::VarChar(n.trim_end_matches(')').parse().unwrap()),
                _ => panic!("{other}"),
            },
        };
        let data_type = kind.with_nullable(!text.contains("NOT NULL"));
        Column {
            name: words[0].to_string(),
            data_type,
            time: match words.last() {
                Some(&"*ROWTIME*") => Some(TimeAttribute::Rowtime),
                Some(&"*PROCTIME*") => Some(TimeAttribute::Proctime),
                _ => None,
            },
        }
    };
    Schema::new(text.split(", ").map(column).collect())
}

/// Rows of `schema` from lines `+I|a|1`, with `\N` for NULL.
pub(crate) fn batch(schema: &Schema, lines: &[&str]) -> ChangeBatch {
    let rows: Vec<Vec<_>> = lines.iter().map(|l| l.split('|').collect()).collect();
    let arrow = schema.to_arrow();
    let columns = (0..schema.len())
        .map(|c| {
            let text: StringArray = rows
                .iter()
                .map(|row| Some(row[c + 1]).filter(|v| *v != "\\N"))
                .collect();
            let text: ArrayRef = Arc::new(text);
            cast(&text, arrow.field(c).data_type()).unwrap()
        })
        .collect();
    let kinds = rows
        .iter()
        .map(|row| RowKind::from_symbol(row[0]).unwrap())
        .collect();
    let rows = RecordBatch::try_new(arrow, columns).unwrap();
    ChangeBatch::try_new(rows, kinds).unwrap()
}

/// A context with a clock that stands at 0.
pub(crate) fn context() -> OperatorContext {
    OperatorContext {
        subtask: 0,
        parallelism: 1,
        batch_size: 4096,
        environment: Arc::new(Environment::default()),
        metrics: Arc::new(OperatorMetrics::default()),
        clock: Arc::new(ManualClock::new(0)),
    }
}

/// An operator under test.
pub(crate) struct Harness {
    /// Schema of each port.
    pub inputs: Vec<Schema>,
    /// Schema of the output.
    pub output: Schema,
    /// Whether watermarks are part of the answer.
    pub show_watermarks: bool,
    make: Box<Make>,
}

/// What becomes of a copy of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    /// It is durable, and later ones may go on from it.
    Kept,
    /// It comes to nothing.
    Lost,
    /// As kept; the operator is made anew from it.
    Restored,
}

/// Lines of a script before which the state is copied.
type Copies = [(usize, Copied)];

type Make = dyn Fn(&OperatorContext) -> Result<Box<dyn Operator>>;

/// Copies at some lines, which depend on `seed`.
fn some_plan(lines: usize, seed: u64) -> Vec<(usize, Copied)> {
    let mut dice = Dice::new(seed);
    let kinds = [Copied::Kept, Copied::Lost, Copied::Restored];
    let chosen = (0..lines).filter_map(|line| {
        let kind = usize::try_from(dice.below(7)).ok()?;
        Some((line, *kinds.get(kind)?))
    });
    chosen.collect()
}

/// Random numbers that a seed determines.
pub(crate) struct Dice(SplitMix64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }
}

/// A script of `rows` rows of event time, some of them out of order and a few late, with watermarks and
/// an end. `row` makes a line for a time.
pub(crate) fn random_events(
    seed: u64,
    rows: usize,
    mut row: impl FnMut(&mut Dice, &str) -> String,
) -> String {
    let mut dice = Dice::new(seed);
    let (mut front, mut watermark) = (4000, 0);
    let mut text = String::new();
    for _ in 0..rows {
        front += dice.below(600);
        let late = match dice.below(4) {
            0 => dice.below(4000),
            _ => dice.below(300),
        };
        let ms = front - late;
        let (minutes, seconds, ms) = (ms / 60_000, ms / 1000 % 60, ms % 1000);
        let time = format!("1970-01-01T00:{minutes:02}:{seconds:02}.{ms:03}");
        text.push_str(&row(&mut dice, &time));
        text.push('\n');
        if dice.below(5) == 0 && watermark < front - 2000 {
            watermark = front - 2000;
            text.push_str(&format!("@wm {watermark}\n"));
        }
    }
    text + "@end"
}

impl Harness {
    /// A harness of an operator with one input.
    pub fn new<O: Operator + 'static>(
        input: &str,
        output: &str,
        make: impl Fn(&OperatorContext) -> Result<O> + 'static,
    ) -> Self {
        Self::boxed(input, output, move |context| Ok(Box::new(make(context)?)))
    }

    /// The same of an operator in a box.
    pub fn boxed(
        input: &str,
        output: &str,
        make: impl Fn(&OperatorContext) -> Result<Box<dyn Operator>> + 'static,
    ) -> Self {
        Self {
            inputs: vec![schema(input)],
            output: schema(output),
            show_watermarks: false,
            make: Box::new(make),
        }
    }

    /// The changes that `script` leads to, one a line. Lines: `+I|a|1` a row (of port 0, or `1:+I|..`),
    /// `@wm 5000` a watermark, `@time 5000` the clock moves, `@flush` a barrier, `@end` the end. Where
    /// the operator fails, the answer ends with the error.
    pub fn run(&self, script: &str) -> String {
        self.run_with(script, usize::MAX, &[])
    }

    /// Runs `script` in one batch, in batches of one row, and with a restart at every line, from a
    /// whole copy and from a copy and later changes; asserts that all agree, and with `expected`
    /// (compared line by line, indentation ignored).
    pub fn check(&self, script: &str, expected: &str) {
        let tidy = |text: &str| {
            let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
            lines.collect::<Vec<_>>().join("\n")
        };
        let expected = tidy(expected);
        assert_eq!(tidy(&self.run(script)), expected, "in one batch");
        assert_eq!(
            tidy(&self.run_with(script, 1, &[])),
            expected,
            "in batches of one row"
        );
        let lines = script.lines().count();
        for cut in 1..lines {
            let restored = (cut, Copied::Restored);
            let mut plans = vec![vec![restored]];
            for between in [Copied::Kept, Copied::Lost] {
                plans.push(vec![
                    (cut / 3, Copied::Kept),
                    (cut * 2 / 3, between),
                    restored,
                ]);
            }
            plans.push(some_plan(lines, cut as u64));
            for plan in plans {
                let restarted = self.run_with(script, usize::MAX, &plan);
                assert_eq!(tidy(&restarted), expected, "with copies {plan:?}");
            }
        }
    }

    /// Runs `script` with restarts and copies of changes at lines chosen in `plans` ways; asserts that
    /// nothing of it is seen.
    pub fn check_copies(&self, script: &str, plans: u64) {
        let expected = self.run(script);
        assert!(!expected.is_empty());
        let lines = script.lines().count();
        for seed in 0..plans {
            let plan = some_plan(lines, seed);
            let restarted = self.run_with(script, usize::MAX, &plan);
            assert_eq!(restarted, expected, "with copies {plan:?}");
        }
    }

    fn run_with(&self, script: &str, batch_size: usize, copies: &Copies) -> String {
        let mut emitted: Vec<Emitted> = Vec::new();
        let outcome = self.drive(script, batch_size, copies, &mut emitted);
        let mut text = self.render(&emitted);
        if let Err(error) = outcome {
            text.push_str(&format!("ERROR {}\n", error.message()));
        }
        text
    }

    fn drive(
        &self,
        script: &str,
        batch_size: usize,
        copies: &Copies,
        emitted: &mut Vec<Emitted>,
    ) -> Result<()> {
        let clock = Arc::new(ManualClock::new(0));
        let mut context = context();
        context.clock = Arc::clone(&clock) as _;
        let mut operator = (self.make)(&context)?;
        operator.track_changes();
        let mut base: Option<OperatorSnapshot> = None;
        let mut previous_durable = false;
        let mut pending: Vec<(usize, &str)> = Vec::new();
        for (number, line) in script.lines().map(str::trim).enumerate() {
            let port = usize::from(line.starts_with("1:"));
            let row = line.trim_start_matches("0:").trim_start_matches("1:");
            let is_row = RowKind::from_symbol(row.get(..2).unwrap_or_default()).is_some();
            let copied = copies.iter().filter(|(line, _)| *line == number);
            let copied: Vec<Copied> = copied.map(|(_, copied)| *copied).collect();
            let full = pending.len() >= batch_size
                || pending.last().is_some_and(|(p, _)| *p != port)
                || !copied.is_empty();
            if !is_row || full {
                self.send(operator.as_mut(), &mut pending, emitted)?;
            }
            for copied in copied {
                operator.flush(&mut Output::new(emitted))?;
                let snapshot = match &base {
                    None => operator.snapshot()?,
                    Some(_) => operator.changes(previous_durable)?,
                };
                previous_durable = copied != Copied::Lost;
                if previous_durable {
                    base = Some(match base.take() {
                        None => snapshot,
                        Some(base) => fold(base, snapshot),
                    });
                }
                if let (Copied::Restored, Some(base)) = (copied, &base) {
                    operator = (self.make)(&context)?;
                    operator.restore(RestoreState::of(base)?)?;
                    operator.track_changes();
                }
            }
            let out = &mut Output::new(emitted);
            let argument = |prefix| line.strip_prefix(prefix).map(|n: &str| n.parse().unwrap());
            if is_row {
                pending.push((port, row));
            } else if let Some(watermark) = argument("@wm ") {
                operator.flush(out)?;
                operator.watermark(watermark, out)?;
            } else if let Some(now) = argument("@time ") {
                while let Some(timer) = operator.next_timer().filter(|timer| *timer <= now) {
                    clock.set(timer);
                    operator.processing_time(timer, out)?;
                }
                clock.set(now);
            } else if line == "@flush" {
                operator.flush(out)?;
            } else if line == "@end" {
                operator.flush(out)?;
                operator.watermark(i64::MAX, out)?;
                operator.end_input(0, out)?;
            } else {
                assert!(line.is_empty() || line.starts_with('#'), "{line}");
            }
        }
        self.send(operator.as_mut(), &mut pending, emitted)
    }

    fn send(
        &self,
        operator: &mut dyn Operator,
        pending: &mut Vec<(usize, &str)>,
        emitted: &mut Vec<Emitted>,
    ) -> Result<()> {
        let Some((port, _)) = pending.first().copied() else {
            return Ok(());
        };
        let lines: Vec<_> = pending.drain(..).map(|(_, line)| line).collect();
        let batch = batch(&self.inputs[port], &lines);
        operator.process(port, batch, &mut Output::new(emitted))
    }

    fn render(&self, emitted: &[Emitted]) -> String {
        let printer = RowPrinter::new(&self.output);
        let mut text = String::new();
        for message in emitted {
            match message {
                Emitted::Batch(batch) => {
                    let expected = self.output.to_arrow();
                    for (field, column) in expected.fields().iter().zip(batch.rows().columns()) {
                        assert_eq!(field.data_type(), column.data_type(), "{}", field.name());
                    }
                    assert_eq!(expected.fields().len(), batch.rows().num_columns());
                    for i in 0..batch.len() {
                        printer.write(batch, i, &mut text);
                        text.push('\n');
                    }
                }
                Emitted::Watermark(i64::MAX) if self.show_watermarks => text.push_str("wm MAX\n"),
                Emitted::Watermark(w) if self.show_watermarks => {
                    text.push_str(&format!("wm {w}\n"));
                }
                Emitted::Status(status) if self.show_watermarks => {
                    text.push_str(&format!("{status:?}\n"));
                }
                _ => {}
            }
        }
        text
    }
}
