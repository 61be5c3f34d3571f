//! Aggregate functions of the embedding program.
//!
//! An accumulator is a few typed values, so that checkpoints hold it as columns and a job restores it
//! at another parallelism.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, new_empty_array};
use datafusion::common::ScalarValue;

use super::state::Kernel;
use crate::error::{Error, Result};
use crate::types::DataType;

/// An aggregate function written in Rust: Flink's `AggregateFunction`.
///
/// - A value has the Arrow type of its [`DataType`]; NULL is the NULL of that type.
/// - Functions MUST be deterministic, and MUST not depend on the order of rows where `merge` is used.
/// - `retract` MUST undo `accumulate`; it may meet a row that was never accumulated.
///
/// ```
/// use datafusion::common::ScalarValue;
/// use ebbflow::aggregates::UserAggregate;
/// use ebbflow::error::Result;
/// use ebbflow::session::Session;
/// use ebbflow::types::{DataType, TypeKind};
///
/// /// The product of integers.
/// #[derive(Debug)]
/// struct Product;
///
/// impl UserAggregate for Product {
///     fn name(&self) -> &str {
///         "product"
///     }
///     fn inputs(&self) -> Vec<DataType> {
///         vec![TypeKind::BigInt.nullable()]
///     }
///     fn returns(&self) -> DataType {
///         TypeKind::BigInt.nullable()
///     }
///     // the product of what is not zero, and how many zeros there were
///     fn accumulator(&self) -> Vec<(DataType, ScalarValue)> {
///         vec![
///             (TypeKind::BigInt.not_null(), ScalarValue::Int64(Some(1))),
///             (TypeKind::BigInt.not_null(), ScalarValue::Int64(Some(0))),
///         ]
///     }
///     fn accumulate(&self, acc: &mut [ScalarValue], row: &[ScalarValue]) -> Result<()> {
///         match (&mut acc[0], &row[0]) {
///             (_, ScalarValue::Int64(Some(0))) => acc[1] = add(&acc[1], 1),
///             (ScalarValue::Int64(Some(product)), ScalarValue::Int64(Some(x))) => *product *= x,
///             _ => {}
///         }
///         Ok(())
///     }
///     fn can_retract(&self) -> bool {
///         true
///     }
///     fn retract(&self, acc: &mut [ScalarValue], row: &[ScalarValue]) -> Result<()> {
///         match (&mut acc[0], &row[0]) {
///             (_, ScalarValue::Int64(Some(0))) => acc[1] = add(&acc[1], -1),
///             (ScalarValue::Int64(Some(product)), ScalarValue::Int64(Some(x))) => *product /= x,
///             _ => {}
///         }
///         Ok(())
///     }
///     fn value(&self, acc: &[ScalarValue]) -> Result<ScalarValue> {
///         match acc[1] {
///             ScalarValue::Int64(Some(0)) => Ok(acc[0].clone()),
///             _ => Ok(ScalarValue::Int64(Some(0))),
///         }
///     }
/// }
///
/// fn add(value: &ScalarValue, delta: i64) -> ScalarValue {
///     match value {
///         ScalarValue::Int64(Some(n)) => ScalarValue::Int64(Some(n + delta)),
///         other => other.clone(),
///     }
/// }
///
/// let mut session = Session::new();
/// session.functions_mut().register_aggregate(Product);
/// let mut query = session.query("SELECT product(x) FROM (VALUES (2), (3), (7)) AS t (x)")?;
/// assert_eq!(query.collect_changes()?.last().map(String::as_str), Some("+U[42]"));
/// # Ok::<(), ebbflow::error::Error>(())
/// ```
pub trait UserAggregate: Debug + Send + Sync + 'static {
    /// Its name; it is called in any case.
    fn name(&self) -> &str;

    /// The types of its arguments; what a call gives is cast to them where Flink widens.
    fn inputs(&self) -> Vec<DataType>;

    /// The type of its result.
    fn returns(&self) -> DataType;

    /// The parts of an accumulator: their types, and their values for a new group.
    fn accumulator(&self) -> Vec<(DataType, ScalarValue)>;

    /// Takes in a row's arguments.
    ///
    /// # Errors
    /// When the function refuses the row; ends the job.
    fn accumulate(&self, accumulator: &mut [ScalarValue], row: &[ScalarValue]) -> Result<()>;

    /// Whether [`retract`](Self::retract) works; without it, input with withdrawals is refused.
    fn can_retract(&self) -> bool {
        false
    }

    /// Takes a row's arguments out again.
    ///
    /// # Errors
    /// When the function refuses the row; ends the job.
    fn retract(&self, accumulator: &mut [ScalarValue], row: &[ScalarValue]) -> Result<()> {
        let _ = (accumulator, row);
        Err(Error::execution(format!(
            "{} cannot take rows back: it has no retract",
            self.name()
        )))
    }

    /// Whether [`merge`](Self::merge) works; sliding, cumulating and session windows need it.
    fn can_merge(&self) -> bool {
        false
    }

    /// Takes in what another accumulator has.
    ///
    /// # Errors
    /// When the function refuses it; ends the job.
    fn merge(&self, accumulator: &mut [ScalarValue], other: &[ScalarValue]) -> Result<()> {
        let _ = (accumulator, other);
        Err(Error::execution(format!(
            "{} cannot put windows together: it has no merge",
            self.name()
        ))
        .hint("implement UserAggregate::merge"))
    }

    /// The result for an accumulator.
    ///
    /// # Errors
    /// When there is none; ends the job.
    fn value(&self, accumulator: &[ScalarValue]) -> Result<ScalarValue>;
}

/// A shared function. Two are equal if they are the same object.
#[derive(Debug, Clone)]
pub struct UserAggregateRef(pub(crate) Arc<dyn UserAggregate>);

impl PartialEq for UserAggregateRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The accumulators of all groups.
#[derive(Debug)]
pub(super) struct User {
    function: UserAggregateRef,
    types: Vec<DataType>,
    fresh: Vec<ScalarValue>,
    accumulators: Vec<Vec<ScalarValue>>,
    returns: arrow::datatypes::DataType,
}

impl User {
    pub(super) fn new(function: &UserAggregateRef) -> Self {
        let (types, fresh) = function.0.accumulator().into_iter().unzip();
        Self {
            types,
            fresh,
            accumulators: Vec::new(),
            returns: function.0.returns().to_arrow(),
            function: function.clone(),
        }
    }

    /// A column of values that the function gave.
    fn column(
        &self,
        values: Vec<ScalarValue>,
        t: &arrow::datatypes::DataType,
        what: &str,
    ) -> Result<ArrayRef> {
        if values.is_empty() {
            return Ok(new_empty_array(t));
        }
        let array = ScalarValue::iter_to_array(values)?;
        if array.data_type() != t {
            return Err(Error::execution(format!(
                "{} gave {what} of type {}, not {t} as it declares",
                self.function.0.name(),
                array.data_type()
            )));
        }
        Ok(array)
    }
}

impl Kernel for User {
    type Columns = Vec<ArrayRef>;
    type Builder = Vec<ScalarValue>;

    fn resize(&mut self, slots: usize) {
        if slots > self.accumulators.len() {
            self.accumulators.resize(slots, self.fresh.clone());
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        Ok(args.to_vec())
    }

    fn add(&mut self, slot: usize, columns: &Vec<ArrayRef>, row: usize) -> Result<()> {
        let row = row_of(columns, row)?;
        self.function
            .0
            .accumulate(&mut self.accumulators[slot], &row)
    }

    fn subtract(&mut self, slot: usize, columns: &Vec<ArrayRef>, row: usize) -> Result<()> {
        let row = row_of(columns, row)?;
        self.function.0.retract(&mut self.accumulators[slot], &row)
    }

    fn clear(&mut self, slot: usize) {
        self.accumulators[slot].clone_from(&self.fresh);
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        let other = self.accumulators[from].clone();
        self.function.0.merge(&mut self.accumulators[into], &other)
    }

    fn builder(&self, capacity: usize) -> Vec<ScalarValue> {
        Vec::with_capacity(capacity)
    }

    fn push(&self, slot: usize, builder: &mut Vec<ScalarValue>) -> Result<()> {
        builder.push(self.function.0.value(&self.accumulators[slot])?);
        Ok(())
    }

    fn last_two_differ(builder: &Vec<ScalarValue>) -> bool {
        matches!(builder.as_slice(), [.., a, b] if a != b)
    }

    fn finish(&self, builder: Vec<ScalarValue>) -> Result<ArrayRef> {
        self.column(builder, &self.returns, "a result")
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let parts = self.types.iter().enumerate();
        parts
            .map(|(part, t)| {
                let values = slots
                    .iter()
                    .map(|slot| self.accumulators[*slot as usize].get(part).cloned())
                    .collect::<Option<Vec<_>>>();
                let values = values.ok_or_else(|| {
                    Error::execution(format!(
                        "{} made an accumulator shorter than it declares",
                        self.function.0.name()
                    ))
                })?;
                self.column(values, &t.to_arrow(), "a part of an accumulator")
            })
            .collect()
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let fits = columns.len() == self.types.len()
            && columns
                .iter()
                .zip(&self.types)
                .all(|(column, t)| *column.data_type() == t.to_arrow());
        if !fits {
            return Err(Error::checkpoint(format!(
                "the saved state is of another {}: its accumulator has other types",
                self.function.0.name()
            )));
        }
        for (row, slot) in slots.iter().enumerate() {
            self.accumulators[*slot as usize] = row_of(columns, row)?;
        }
        Ok(())
    }

    fn memory_size(&self) -> usize {
        super::saved::sampled(&self.accumulators, |accumulator| {
            accumulator.iter().map(ScalarValue::size).sum::<usize>() + size_of::<Vec<ScalarValue>>()
        })
    }
}

fn row_of(columns: &[ArrayRef], row: usize) -> Result<Vec<ScalarValue>> {
    columns
        .iter()
        .map(|column| Ok(ScalarValue::try_from_array(column, row)?))
        .collect()
}
