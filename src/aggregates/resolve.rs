//! Finds aggregate functions by name, checks their arguments and says their types, as Flink does.

use datafusion::common::ScalarValue;

use super::bitmap::{SetOperation, SetResult};
use super::collect::percentages;
use super::function::{AggregateFunction, AggregateKind};
use super::variance::Spread;
use crate::error::{Error, Result};
use crate::functions::{Arg, families, untyped_null};
use crate::types::{DataType, TypeKind};

/// How a call is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallContext {
    /// Whether there are group keys: without, a result may be NULL for lack of rows.
    pub grouped: bool,
    /// `FILTER (WHERE ...)`.
    pub filtered: bool,
    /// `DISTINCT`.
    pub distinct: bool,
}

/// The names that [`resolve`] knows.
pub const NAMES: [&str; 31] = [
    "APPROX_COUNT_DISTINCT",
    "ARRAY_AGG",
    "AVG",
    "BITMAP_AND_AGG",
    "BITMAP_AND_CARDINALITY_AGG",
    "BITMAP_BUILD_AGG",
    "BITMAP_BUILD_CARDINALITY_AGG",
    "BITMAP_OR_AGG",
    "BITMAP_OR_CARDINALITY_AGG",
    "BITMAP_XOR_AGG",
    "BITMAP_XOR_CARDINALITY_AGG",
    "COLLECT",
    "COUNT",
    "FIRST_VALUE",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "LAST_VALUE",
    "LISTAGG",
    "MAX",
    "MIN",
    "PERCENTILE",
    "SINGLE_VALUE",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "SUM",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
    "$SUM0",
    "$WELFORD_M2",
];

/// Whether `name`, in any case, is an aggregate function.
#[must_use]
pub fn is_aggregate(name: &str) -> bool {
    NAMES.contains(&name.to_uppercase().as_str())
}

/// A call as it is looked at.
struct Call<'a> {
    name: &'a str,
    args: &'a [Arg],
    context: CallContext,
}

/// The function called `name`, in any case, for a call with `args`.
///
/// `COUNT(*)` has no argument. Special forms: `JSON_OBJECTAGG('NULL' | 'ABSENT', key, value)`,
/// `JSON_ARRAYAGG('NULL' | 'ABSENT', value)` with the value bound as `JSON_STRING(value)`;
/// `ARRAY_AGG(value, 'IGNORE NULLS' | 'RESPECT NULLS')`, the second optional.
///
/// # Errors
/// With Flink's reason, if there is no such function or the arguments do not fit.
pub fn resolve(name: &str, args: &[Arg], context: CallContext) -> Result<AggregateFunction> {
    let upper = name.to_uppercase();
    let call = Call {
        name: &upper,
        args,
        context,
    };
    call.check_nulls()?;
    if call.context.distinct {
        call.check_distinct()?;
    }
    match upper.as_str() {
        "COUNT" => call.count(),
        "SUM" => call.sum("SUM", AggregateKind::Sum),
        "$SUM0" => call.sum("$SUM0", AggregateKind::Sum0),
        "AVG" => call.mean("AVG", AggregateKind::Avg),
        "STDDEV_POP" => call.spread("STDDEV_POP", Spread::DeviationPopulation),
        "STDDEV" => call.spread("STDDEV", Spread::DeviationSample),
        "STDDEV_SAMP" => call.spread("STDDEV_SAMP", Spread::DeviationSample),
        "VAR_POP" => call.spread("VAR_POP", Spread::VariancePopulation),
        "VARIANCE" => call.spread("VARIANCE", Spread::VarianceSample),
        "VAR_SAMP" => call.spread("VAR_SAMP", Spread::VarianceSample),
        "$WELFORD_M2" => {
            call.numeric()?;
            let kind = AggregateKind::Variance(Spread::SquaredDistances);
            Ok(call.function("$WELFORD_M2", kind, TypeKind::Double.nullable()))
        }
        "MIN" => call.extreme("MIN", AggregateKind::Min),
        "MAX" => call.extreme("MAX", AggregateKind::Max),
        "FIRST_VALUE" => call.one_of("FIRST_VALUE", AggregateKind::FirstValue),
        "LAST_VALUE" => call.one_of("LAST_VALUE", AggregateKind::LastValue),
        "SINGLE_VALUE" => call.one_of("SINGLE_VALUE", AggregateKind::SingleValue),
        "LISTAGG" => call.list_agg(),
        "ARRAY_AGG" => call.array_agg(),
        "COLLECT" => {
            call.arity(1)?;
            let element = Box::new(args[0].data_type.clone());
            let returns = TypeKind::Multiset(element).not_null();
            Ok(call.function("COLLECT", AggregateKind::Collect, returns))
        }
        "JSON_OBJECTAGG" => call.json_object(),
        "JSON_ARRAYAGG" => call.json_array(),
        "PERCENTILE" => call.percentile(),
        "BITMAP_BUILD_AGG" => {
            call.bitmap("BITMAP_BUILD_AGG", SetOperation::Build, SetResult::Bitmap)
        }
        "BITMAP_BUILD_CARDINALITY_AGG" => call.bitmap(
            "BITMAP_BUILD_CARDINALITY_AGG",
            SetOperation::Build,
            SetResult::Cardinality,
        ),
        "BITMAP_AND_AGG" => call.bitmap("BITMAP_AND_AGG", SetOperation::And, SetResult::Bitmap),
        "BITMAP_AND_CARDINALITY_AGG" => call.bitmap(
            "BITMAP_AND_CARDINALITY_AGG",
            SetOperation::And,
            SetResult::Cardinality,
        ),
        "BITMAP_OR_AGG" => call.bitmap("BITMAP_OR_AGG", SetOperation::Or, SetResult::Bitmap),
        "BITMAP_OR_CARDINALITY_AGG" => call.bitmap(
            "BITMAP_OR_CARDINALITY_AGG",
            SetOperation::Or,
            SetResult::Cardinality,
        ),
        "BITMAP_XOR_AGG" => call.bitmap("BITMAP_XOR_AGG", SetOperation::Xor, SetResult::Bitmap),
        "BITMAP_XOR_CARDINALITY_AGG" => call.bitmap(
            "BITMAP_XOR_CARDINALITY_AGG",
            SetOperation::Xor,
            SetResult::Cardinality,
        ),
        "APPROX_COUNT_DISTINCT" => Err(Error::plan(
            "APPROX_COUNT_DISTINCT aggregate function does not support yet for streaming.",
        )
        .hint("COUNT(DISTINCT x) is exact")),
        _ => Err(Error::plan(format!(
            "No match found for function signature {upper}({})",
            families(args)
        ))),
    }
}

impl Call<'_> {
    /// A function whose columns are all arguments as they are.
    fn function(
        &self,
        name: &'static str,
        kind: AggregateKind,
        returns: DataType,
    ) -> AggregateFunction {
        self.over(name, kind, 0..self.args.len(), returns)
    }

    /// A function over some of the arguments.
    fn over(
        &self,
        name: &'static str,
        kind: AggregateKind,
        positions: impl IntoIterator<Item = usize>,
        returns: DataType,
    ) -> AggregateFunction {
        let positions: Vec<usize> = positions.into_iter().collect();
        let inputs = positions
            .iter()
            .map(|i| self.args[*i].data_type.clone())
            .collect();
        AggregateFunction {
            name: name.into(),
            kind,
            positions,
            inputs,
            returns,
        }
    }

    fn arity(&self, expected: usize) -> Result<()> {
        if self.args.len() == expected {
            return Ok(());
        }
        Err(Error::plan(format!(
            "Invalid number of arguments to function '{}'. Was expecting {expected} arguments",
            self.name
        )))
    }

    fn refuse(&self, supported: &str) -> Error {
        let types: Vec<String> = self
            .args
            .iter()
            .map(|arg| crate::functions::sql_type(&arg.data_type.kind))
            .collect();
        let name = self.name;
        let types = types.join(", ");
        Error::plan(format!(
            "Cannot apply '{name}' to arguments of type '{name}({types})'. Supported form(s): \
             '{supported}'"
        ))
    }

    fn numeric(&self) -> Result<&DataType> {
        self.arity(1)?;
        let argument = &self.args[0].data_type;
        match argument.kind {
            _ if argument.kind.is_numeric() => Ok(argument),
            _ => Err(self.refuse(&format!("{}(<NUMERIC>)", self.name))),
        }
    }

    /// NULL for lack of rows is possible without group keys or with a filter.
    fn nullable_if_empty(&self, argument: &DataType) -> bool {
        argument.nullable || !self.context.grouped || self.context.filtered
    }

    fn check_nulls(&self) -> Result<()> {
        let untyped = |arg: &Arg| arg.data_type.kind == TypeKind::Null;
        if self.args.iter().any(untyped) {
            return Err(untyped_null());
        }
        Ok(())
    }

    fn check_distinct(&self) -> Result<()> {
        let unsupported = self.args.iter().find(|arg| {
            let kind = &arg.data_type.kind;
            kind.is_binary()
                || matches!(
                    kind,
                    TypeKind::Row(_) | TypeKind::Map(..) | TypeKind::Multiset(_)
                )
        });
        match unsupported {
            None => Ok(()),
            Some(arg) => Err(Error::plan(format!(
                "Distinct aggregate function does not support type: {}.\nPlease re-check the data \
                 type.",
                arg.data_type.kind.root_name()
            ))),
        }
    }

    fn count(&self) -> Result<AggregateFunction> {
        match self.args {
            [] | [_] => {}
            _ => {
                return Err(Error::plan("We now only support the count of one field.")
                    .hint("COUNT(ROW(a, b)) counts all rows, CASE counts those without NULL"));
            }
        }
        Ok(self.function("COUNT", AggregateKind::Count, TypeKind::BigInt.not_null()))
    }

    fn sum(&self, name: &'static str, kind: AggregateKind) -> Result<AggregateFunction> {
        let argument = self.numeric()?;
        let nullable = kind != AggregateKind::Sum0 && self.nullable_if_empty(argument);
        let returns = match argument.kind {
            TypeKind::Decimal(_, scale) => TypeKind::Decimal(38, scale),
            ref kind => kind.clone(),
        };
        Ok(self.function(name, kind, returns.with_nullable(nullable)))
    }

    fn mean(&self, name: &'static str, kind: AggregateKind) -> Result<AggregateFunction> {
        let argument = self.numeric()?;
        let nullable = self.nullable_if_empty(argument);
        let returns = match argument.kind {
            TypeKind::Decimal(_, scale) => TypeKind::Decimal(38, scale.max(6)),
            ref kind => kind.clone(),
        };
        Ok(self.function(name, kind, returns.with_nullable(nullable)))
    }

    fn spread(&self, name: &'static str, spread: Spread) -> Result<AggregateFunction> {
        self.mean(name, AggregateKind::Variance(spread))
    }

    fn extreme(&self, name: &'static str, kind: AggregateKind) -> Result<AggregateFunction> {
        self.arity(1)?;
        let argument = &self.args[0].data_type;
        match argument.kind {
            ref t
                if t.is_binary()
                    || t.is_interval()
                    || matches!(
                        t,
                        TypeKind::Array(_)
                            | TypeKind::Map(..)
                            | TypeKind::Multiset(_)
                            | TypeKind::Row(_)
                            | TypeKind::Structured(..)
                            | TypeKind::Variant
                            | TypeKind::Bitmap
                    ) =>
            {
                let function = if name == "MIN" { "Min" } else { "Max" };
                return Err(Error::plan(format!(
                    "{function} aggregate function does not support type: ''{}''.\nPlease re-check \
                     the data type.",
                    t.root_name()
                )));
            }
            _ => {}
        }
        self.one_of(name, kind)
    }

    /// A function that returns one of the values it was given.
    fn one_of(&self, name: &'static str, kind: AggregateKind) -> Result<AggregateFunction> {
        self.arity(1)?;
        let argument = &self.args[0].data_type;
        let nullable = self.nullable_if_empty(argument);
        let returns = argument.kind.clone().with_nullable(nullable);
        Ok(self.function(name, kind, returns))
    }

    fn bitmap(
        &self,
        name: &'static str,
        operation: SetOperation,
        result: SetResult,
    ) -> Result<AggregateFunction> {
        let [argument] = self.args else {
            return Err(Error::plan(format!(
                "No match found for function signature {name}({})",
                families(self.args)
            )));
        };
        let kind = &argument.data_type.kind;
        let (fits, takes) = match operation {
            SetOperation::Build => {
                let fits = matches!(kind, TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int);
                (fits, "INT")
            }
            _ => (*kind == TypeKind::Bitmap, "BITMAP"),
        };
        if !fits {
            return Err(self.refuse(&format!("{name}(<{takes}>)")));
        }
        let returns = match result {
            SetResult::Bitmap => TypeKind::Bitmap,
            SetResult::Cardinality => TypeKind::BigInt,
        };
        let kind = AggregateKind::Bitmap { operation, result };
        let mut function = self.function(name, kind, returns.nullable());
        if operation == SetOperation::Build {
            function.inputs = vec![TypeKind::Int.with_nullable(argument.data_type.nullable)];
        }
        Ok(function)
    }

    fn list_agg(&self) -> Result<AggregateFunction> {
        let forms = "LISTAGG(<CHARACTER>)'\n'LISTAGG(<CHARACTER>, <CHARACTER_LITERAL>)";
        if !(1..=2).contains(&self.args.len()) {
            return Err(Error::plan(
                "Invalid number of arguments to function 'LISTAGG'. Was expecting 1 arguments",
            ));
        }
        if !self.args.iter().all(|a| a.data_type.kind.is_string()) {
            return Err(self.refuse(forms));
        }
        let separator = match self.args.get(1).map(|arg| &arg.literal) {
            None => ",".to_string(),
            Some(None) => {
                return Err(Error::plan(
                    "Argument to function 'LISTAGG' must be a literal",
                ));
            }
            Some(Some(literal)) => match text(literal) {
                Some(text) => text,
                None => {
                    return Err(Error::plan(
                        "Argument to function 'LISTAGG' must not be NULL",
                    ));
                }
            },
        };
        let returns = self.args[0].data_type.clone();
        Ok(self.over(
            "LISTAGG",
            AggregateKind::ListAgg { separator },
            [0],
            returns,
        ))
    }

    fn array_agg(&self) -> Result<AggregateFunction> {
        let nulls = self.args.get(1).and_then(|arg| arg.literal.as_ref());
        let nulls = nulls.and_then(text);
        let clause = ["IGNORE NULLS", "RESPECT NULLS"].contains(&nulls.as_deref().unwrap_or(""));
        if self.args.len() != 2 || !clause {
            self.arity(1)?;
        }
        let ignore_nulls = nulls.as_deref() == Some("IGNORE NULLS");
        let element = self.args[0].data_type.clone();
        let nullable = element.nullable;
        let returns = TypeKind::Array(Box::new(element)).with_nullable(nullable);
        Ok(self.over(
            "ARRAY_AGG",
            AggregateKind::ArrayAgg { ignore_nulls },
            [0],
            returns,
        ))
    }

    /// Whether the first argument says `ABSENT`.
    fn absent_on_null(&self) -> bool {
        let first = self.args.first().and_then(|a| a.literal.as_ref());
        first.and_then(text).as_deref() == Some("ABSENT")
    }

    fn json_object(&self) -> Result<AggregateFunction> {
        self.arity(3)?;
        let absent_on_null = self.absent_on_null();
        if !self.args[1].data_type.kind.is_string() {
            let nulls = if absent_on_null { "ABSENT" } else { "NULL" };
            let name = format!("JSON_OBJECTAGG_{nulls}_ON_NULL");
            let call = Call {
                name: &name,
                args: &self.args[1..],
                context: self.context,
            };
            return Err(call.refuse(&format!("{name}(<CHARACTER>, <ANY>)")));
        }
        let kind = AggregateKind::JsonObjectAgg { absent_on_null };
        Ok(self.over("JSON_OBJECTAGG", kind, [1, 2], JSON.not_null()))
    }

    fn json_array(&self) -> Result<AggregateFunction> {
        self.arity(2)?;
        let kind = AggregateKind::JsonArrayAgg {
            absent_on_null: self.absent_on_null(),
        };
        Ok(self.over("JSON_ARRAYAGG", kind, [1], JSON.not_null()))
    }

    fn percentile(&self) -> Result<AggregateFunction> {
        let invalid = || {
            Error::plan("Invalid input arguments.").hint(
                "it is called as PERCENTILE(number, percentage [, frequency]), the percentage a \
                 constant from 0 to 1 or an array of them, the frequency an integer",
            )
        };
        let (value, percentage, frequency) = match self.args {
            [value, percentage] => (value, percentage, None),
            [value, percentage, frequency] => (value, percentage, Some(frequency)),
            _ => return Err(invalid()),
        };
        let fits = value.data_type.kind.is_numeric()
            && frequency.is_none_or(|f| f.data_type.kind.is_integer());
        let literal = percentage.literal.as_ref().filter(|l| !l.is_null());
        let (percentages, many) = literal
            .and_then(|literal| literal.to_array().ok())
            .filter(|_| fits)
            .and_then(|array| percentages(&array))
            .filter(|(percentages, _)| !percentages.is_empty())
            .ok_or_else(invalid)?;
        let returns = match many {
            true => TypeKind::Array(Box::new(TypeKind::Double.nullable())),
            false => TypeKind::Double,
        };
        let positions = std::iter::once(0).chain(frequency.map(|_| 2));
        let kind = AggregateKind::Percentile { percentages, many };
        Ok(self.over("PERCENTILE", kind, positions, returns.nullable()))
    }
}

const JSON: TypeKind = TypeKind::VarChar(2000);

fn text(literal: &ScalarValue) -> Option<String> {
    match literal {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
            text.clone()
        }
        _ => None,
    }
}
