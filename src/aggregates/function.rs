//! A resolved aggregate function, and the state that it needs.

use std::borrow::Cow;

use super::bitmap::{CountedSets, SetOperation, SetResult, Sets};
use super::collect::{Collect, Percentile};
use super::count::Count;
use super::extreme::{End, Extreme, RetractableExtreme};
use super::first_last::{FirstLast, RetractableFirstLast, Which};
use super::json_object::JsonObject;
use super::list::{ArrayAgg, Join, Joined};
use super::single_value::SingleValue;
use super::state::{AggregateState, Looped};
use super::sum::{DecimalSum, FloatSum, IntSum, Mode};
use super::user::{User, UserAggregateRef};
use super::value::{Value, with_value};
use super::variance::{Spread, Variance};
use crate::error::{Error, Result};
use crate::types::{DataType, TypeKind};

/// What an aggregate computes.
#[derive(Debug, Clone, PartialEq)]
pub enum AggregateKind {
    /// `COUNT(*)` without argument, else `COUNT(x)`.
    Count,
    /// `SUM`.
    Sum,
    /// `$SUM0`: a sum that is zero without a value.
    Sum0,
    /// `AVG`.
    Avg,
    /// `MIN`.
    Min,
    /// `MAX`.
    Max,
    /// `FIRST_VALUE`.
    FirstValue,
    /// `LAST_VALUE`.
    LastValue,
    /// `VAR_*`, `STDDEV_*` and `$WELFORD_M2`.
    Variance(Spread),
    /// `LISTAGG`.
    ListAgg {
        /// What stands between the texts.
        separator: String,
    },
    /// `ARRAY_AGG`.
    ArrayAgg {
        /// `IGNORE NULLS`.
        ignore_nulls: bool,
    },
    /// `COLLECT`.
    Collect,
    /// `JSON_OBJECTAGG`.
    JsonObjectAgg {
        /// `ABSENT ON NULL`.
        absent_on_null: bool,
    },
    /// `JSON_ARRAYAGG`.
    JsonArrayAgg {
        /// `ABSENT ON NULL`.
        absent_on_null: bool,
    },
    /// `PERCENTILE`.
    Percentile {
        /// From 0 to 1.
        percentages: Vec<f64>,
        /// Whether they were given as an array.
        many: bool,
    },
    /// `BITMAP_BUILD_AGG` and its kin.
    Bitmap {
        /// How values make a set.
        operation: SetOperation,
        /// What is given for it.
        result: SetResult,
    },
    /// A function of the embedding program.
    User(UserAggregateRef),
    /// `SINGLE_VALUE`: the value of a scalar subquery.
    SingleValue,
}

/// A function with its types.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateFunction {
    pub(super) name: Cow<'static, str>,
    pub(super) kind: AggregateKind,
    pub(super) positions: Vec<usize>,
    pub(super) inputs: Vec<DataType>,
    pub(super) returns: DataType,
}

impl AggregateFunction {
    /// A call of a function of the embedding program.
    ///
    /// # Errors
    /// When the number or types of the arguments do not fit.
    pub fn user(function: UserAggregateRef, args: &[DataType]) -> Result<Self> {
        let name = function.0.name().to_uppercase();
        let inputs = crate::functions::user::accept(&name, &function.0.inputs(), args)?;
        Ok(Self {
            name: name.into(),
            positions: (0..args.len()).collect(),
            inputs,
            returns: function.0.returns(),
            kind: AggregateKind::User(function),
        })
    }

    /// Its name as Flink prints it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it computes.
    #[must_use]
    pub fn kind(&self) -> &AggregateKind {
        &self.kind
    }

    /// Which arguments of the call become columns; the others are constants that the function has
    /// taken in.
    #[must_use]
    pub fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// The types of these columns: arguments are cast to them.
    #[must_use]
    pub fn inputs(&self) -> &[DataType] {
        &self.inputs
    }

    /// The type of the result.
    #[must_use]
    pub fn returns(&self) -> &DataType {
        &self.returns
    }

    /// Whether a value that comes twice makes a difference, so that `DISTINCT` has a meaning.
    #[must_use]
    pub fn minds_duplicates(&self) -> bool {
        !matches!(self.kind, AggregateKind::Min | AggregateKind::Max)
    }

    /// Whether Flink can aggregate parts first and merge them: what decides about two phases.
    #[must_use]
    pub fn merges_in_flink(&self) -> bool {
        use AggregateKind::{FirstValue, JsonArrayAgg, LastValue};
        if let AggregateKind::User(function) = &self.kind {
            return function.0.can_merge();
        }
        !matches!(self.kind, FirstValue | LastValue | JsonArrayAgg { .. })
    }

    /// Empty state. `retracting` says whether rows may be withdrawn.
    ///
    /// # Errors
    /// When the argument's type cannot be kept.
    pub fn state(&self, retracting: bool) -> Result<Box<dyn AggregateState>> {
        let result = self.returns.to_arrow();
        let sum = |mode: Mode| -> Box<dyn AggregateState> {
            let argument = &self.inputs[0];
            match &argument.kind {
                TypeKind::Decimal(..) => {
                    let argument = argument.to_arrow();
                    Box::new(Looped(DecimalSum::new(mode, &argument, result.clone())))
                }
                kind if kind.is_approximate() => {
                    Box::new(Looped(FloatSum::new(mode, result.clone())))
                }
                _ => Box::new(Looped(IntSum::new(mode, result.clone()))),
            }
        };
        let value = self.inputs.first();
        let value = || value.ok_or_else(|| Error::internal("an aggregate lacks its argument"));
        Ok(match &self.kind {
            AggregateKind::Count => Box::new(Looped(Count::default())),
            AggregateKind::Sum => sum(Mode::Sum),
            AggregateKind::Sum0 => sum(Mode::Sum0),
            AggregateKind::Avg => sum(Mode::Avg),
            AggregateKind::Min => with_value!(value()?, extreme(End::Lowest, retracting)),
            AggregateKind::Max => with_value!(value()?, extreme(End::Highest, retracting)),
            AggregateKind::FirstValue => {
                with_value!(value()?, first_last(Which::First, retracting))
            }
            AggregateKind::LastValue => with_value!(value()?, first_last(Which::Last, retracting)),
            AggregateKind::Variance(spread) => Box::new(Looped(Variance::new(*spread, result))),
            AggregateKind::ListAgg { separator } => {
                let join = Join::Separator(separator.clone());
                Box::new(Looped(Joined::new(join, false)))
            }
            AggregateKind::JsonArrayAgg { absent_on_null } => {
                Box::new(Looped(Joined::new(Join::Json, !absent_on_null)))
            }
            AggregateKind::ArrayAgg { ignore_nulls } => {
                with_value!(value()?, array_agg(!*ignore_nulls))
            }
            AggregateKind::Collect => with_value!(value()?, collect()),
            AggregateKind::JsonObjectAgg { absent_on_null } => {
                Box::new(Looped(JsonObject::new(!absent_on_null)))
            }
            AggregateKind::Percentile { percentages, many } => {
                Box::new(Looped(Percentile::new(percentages.clone(), *many)))
            }
            AggregateKind::Bitmap { operation, result } => {
                if retracting && *operation != SetOperation::Xor {
                    Box::new(Looped(CountedSets::new(*operation, *result)))
                } else {
                    Box::new(Looped(Sets::new(*operation, *result)))
                }
            }
            AggregateKind::User(function) => {
                if retracting && !function.0.can_retract() {
                    return Err(Error::plan(format!(
                        "{} cannot take rows back, and its input withdraws rows",
                        function.0.name()
                    ))
                    .hint("implement UserAggregate::retract and can_retract"));
                }
                Box::new(Looped(User::new(function)))
            }
            AggregateKind::SingleValue => with_value!(value()?, single_value()),
        })
    }
}

fn extreme<V: Value>(value: V, end: End, retracting: bool) -> Box<dyn AggregateState> {
    if retracting {
        Box::new(Looped(RetractableExtreme::new(value, end)))
    } else {
        Box::new(Looped(Extreme::new(value, end)))
    }
}

fn first_last<V: Value>(value: V, which: Which, retracting: bool) -> Box<dyn AggregateState> {
    if retracting {
        Box::new(Looped(RetractableFirstLast::new(value, which)))
    } else {
        Box::new(Looped(FirstLast::new(value, which)))
    }
}

fn array_agg<V: Value>(value: V, keep_nulls: bool) -> Box<dyn AggregateState> {
    Box::new(Looped(ArrayAgg::new(value, keep_nulls)))
}

fn collect<V: Value>(value: V) -> Box<dyn AggregateState> {
    Box::new(Looped(Collect::new(value)))
}

fn single_value<V: Value>(value: V) -> Box<dyn AggregateState> {
    Box::new(Looped(SingleValue::new(value)))
}
