//! Functions of the embedding program, made of closures. Whoever needs more than fixed types
//! implements [`ScalarFunction`] or [`TableFunction`] itself.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array, new_empty_array};
use arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use super::table::{TableFunction, TableFunctionRef};
use super::{
    Arg, Environment, EvalContext, FunctionDoc, FunctionKind, FunctionRef, Kernel, ScalarFunction,
    Signature, sql_type,
};
use crate::error::{Error, Result};
use crate::types::coerce::assignable;
use crate::types::{Column, DataType, Schema, TypeKind};

/// The description of a user's function with these parameters.
pub(super) fn doc(kind: FunctionKind, name: &str, parameters: &[DataType]) -> FunctionDoc {
    let types: Vec<_> = parameters.iter().map(|t| t.kind.to_string()).collect();
    FunctionDoc {
        signature: format!("{name}({})", types.join(", ")).into(),
        ..FunctionDoc::new(kind, "user", "", "A function of the embedding program.")
    }
}

/// The types that the arguments of a call are cast to.
///
/// # Errors
/// When their number or types do not fit.
pub(crate) fn accept(
    name: &str,
    parameters: &[DataType],
    args: &[DataType],
) -> Result<Vec<DataType>> {
    let refuse = || {
        let types = |types: &[DataType]| {
            let types: Vec<_> = types.iter().map(|t| sql_type(&t.kind)).collect();
            types.join(", ")
        };
        Error::plan(format!(
            "Cannot apply '{name}' to arguments of type '{name}({})'",
            types(args)
        ))
        .hint(format!("it takes ({})", types(parameters)))
    };
    if args.len() != parameters.len() {
        return Err(refuse());
    }
    args.iter()
        .zip(parameters)
        .map(|(arg, parameter)| {
            if !assignable(arg, parameter) {
                return Err(refuse());
            }
            let nullable = parameter.nullable || arg.nullable;
            Ok(parameter.kind.clone().with_nullable(nullable))
        })
        .collect()
}

/// What a scalar function computes: columns of one length in, a column of that length out.
type Columns = dyn Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync;

struct Scalar {
    name: String,
    parameters: Vec<DataType>,
    returns: DataType,
    columns: Arc<Columns>,
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A deterministic scalar function: columns of the parameters' types in, a column of the result's type
/// and of the same length out. See [`FunctionRegistry::register_scalar`].
///
/// [`FunctionRegistry::register_scalar`]: super::FunctionRegistry::register_scalar
pub fn scalar(
    name: &str,
    parameters: &[TypeKind],
    returns: TypeKind,
    columns: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
) -> FunctionRef {
    Arc::new(Scalar {
        name: name.to_uppercase(),
        parameters: parameters.iter().map(|t| t.clone().nullable()).collect(),
        returns: returns.nullable(),
        columns: Arc::new(columns),
    })
}

impl ScalarFunction for Scalar {
    fn name(&self) -> &str {
        &self.name
    }

    fn resolve(&self, args: &[Arg]) -> Result<Signature> {
        let types: Vec<_> = args.iter().map(|a| a.data_type.clone()).collect();
        Ok(Signature {
            args: accept(&self.name, &self.parameters, &types)?,
            returns: self.returns.clone(),
        })
    }

    fn prepare(&self, _: &[Arg], returns: &DataType, _: &Environment) -> Result<Kernel> {
        let (name, t) = (self.name.clone(), returns.to_arrow());
        let columns = Arc::clone(&self.columns);
        Ok(Box::new(
            move |args: &[ColumnarValue], ctx: &EvalContext| {
                let arrays = args
                    .iter()
                    .map(|arg| Ok(arg.to_array(ctx.rows)?))
                    .collect::<Result<Vec<_>>>()?;
                let result = columns(&arrays)?;
                if result.len() != ctx.rows || *result.data_type() != t {
                    return Err(Error::execution(format!(
                        "{name} gave {} rows of {}, not {} of {t}",
                        result.len(),
                        result.data_type(),
                        ctx.rows
                    )));
                }
                Ok(ColumnarValue::Array(result))
            },
        ))
    }

    fn may_fail(&self) -> bool {
        true
    }
}

/// What a table function computes: a call's arguments in, rows out.
type Rows = dyn Fn(&[ScalarValue]) -> Result<Vec<Vec<ScalarValue>>> + Send + Sync;

struct Table {
    name: String,
    parameters: Vec<DataType>,
    columns: Vec<Column>,
    rows: Box<Rows>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A table function: a call's arguments in, rows of the columns' types out. See
/// [`FunctionRegistry::register_table`].
///
/// [`FunctionRegistry::register_table`]: super::FunctionRegistry::register_table
pub fn table(
    name: &str,
    parameters: &[TypeKind],
    columns: &[(&str, TypeKind)],
    rows: impl Fn(&[ScalarValue]) -> Result<Vec<Vec<ScalarValue>>> + Send + Sync + 'static,
) -> TableFunctionRef {
    Arc::new(Table {
        name: name.to_uppercase(),
        parameters: parameters.iter().map(|t| t.clone().nullable()).collect(),
        columns: columns
            .iter()
            .map(|(name, kind)| Column::new(*name, kind.clone().nullable()))
            .collect(),
        rows: Box::new(rows),
    })
}

impl Table {
    fn column(&self, index: usize, values: &[Vec<ScalarValue>], t: &ArrowType) -> Result<ArrayRef> {
        if values.is_empty() {
            return Ok(new_empty_array(t));
        }
        let column = values
            .iter()
            .map(|row| row.get(index).cloned())
            .collect::<Option<Vec<_>>>()
            .filter(|_| values.iter().all(|row| row.len() == self.columns.len()))
            .map(ScalarValue::iter_to_array)
            .transpose()?;
        match column {
            Some(column) if column.data_type() == t => Ok(column),
            Some(column) => Err(Error::execution(format!(
                "{} gave {} for its column {}, not {t}",
                self.name,
                column.data_type(),
                self.columns[index].name
            ))),
            None => Err(Error::execution(format!(
                "{} gave a row that has not {} values",
                self.name,
                self.columns.len()
            ))),
        }
    }
}

impl TableFunction for Table {
    fn name(&self) -> &str {
        &self.name
    }

    fn resolve(&self, args: &[DataType]) -> Result<(Vec<DataType>, Schema)> {
        let args = accept(&self.name, &self.parameters, args)?;
        Ok((args, Schema::new(self.columns.clone())))
    }

    fn evaluate(&self, args: &[ArrayRef]) -> Result<(UInt32Array, RecordBatch)> {
        let calls = args.first().map_or(0, |column| column.len());
        let (mut owners, mut values) = (Vec::new(), Vec::new());
        for call in 0..calls {
            let row = args
                .iter()
                .map(|column| Ok(ScalarValue::try_from_array(column, call)?))
                .collect::<Result<Vec<_>>>()?;
            let rows = (self.rows)(&row)?;
            let call = u32::try_from(call).map_err(|_| Error::internal("a batch is too long"))?;
            owners.extend(std::iter::repeat_n(call, rows.len()));
            values.extend(rows);
        }
        let columns = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                let t = column.data_type.to_arrow();
                Ok((column.name.clone(), self.column(i, &values, &t)?, true))
            })
            .collect::<Result<Vec<_>>>()?;
        let rows = RecordBatch::try_from_iter_with_nullable(columns)?;
        Ok((UInt32Array::from(owners), rows))
    }
}
