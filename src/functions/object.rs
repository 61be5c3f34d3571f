//! Structured types: rows that carry the name of a class. The class itself is never loaded.

use std::sync::Arc;

use arrow::array::{ArrayRef, StructArray};
use arrow::datatypes::{DataType as ArrowType, Fields};
use datafusion::common::ScalarValue;

use super::builtin::{Builtin, Resolve::Custom};
use super::kernel::{Call, Columns, columns};
use super::{Arg, Kernel, Signature};
use crate::error::{Error, Result, did_you_mean};
use crate::types::{RowField, TypeKind};

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "OBJECT_OF",
        "OBJECT_OF(class STRING [, field STRING, value] ...)",
        "A value of the structured type of that name, with these fields.",
        Custom(resolve_of),
        |call| prepare(call, 0),
    )
    .null_from(0)
    .example(
        "OBJECT_OF('com.example.User', 'name', 'Ann', 'age', 42)",
        "+I[Ann, 42]",
    ),
    Builtin::new(
        "OBJECT_UPDATE",
        "OBJECT_UPDATE(object [, field STRING, value] ...)",
        "A structured value with some fields replaced.",
        Custom(resolve_update),
        |call| prepare(call, 1),
    )
    .example(
        "OBJECT_UPDATE(OBJECT_OF('com.example.User', 'name', 'Ann', 'age', 42), 'age', 43)",
        "+I[Ann, 43]",
    ),
];

/// The constant text of argument `i`, which is what `what` says.
fn text<'a>(args: &'a [Arg], i: usize, what: &str) -> Result<&'a str> {
    let data_type = &args[i].data_type;
    if !data_type.kind.is_string() || data_type.nullable {
        return Err(Error::plan(format!(
            "{what} must be a non-nullable character string, but was {data_type}."
        )));
    }
    match &args[i].literal {
        Some(ScalarValue::Utf8(Some(text))) => Ok(text),
        _ => Err(Error::plan(format!(
            "{what} must be a non-nullable character string literal."
        ))),
    }
}

/// The names of the fields that the arguments from the second on give values to.
fn names(args: &[Arg]) -> Result<Vec<&str>> {
    let mut names = Vec::with_capacity(args.len() / 2);
    for i in (1..args.len()).step_by(2) {
        let name = text(args, i, &format!("The field key at position {}", i + 1))?;
        if names.contains(&name) {
            return Err(Error::plan(format!(
                "The field name '{name}' at position {} is repeated.",
                i + 1
            )));
        }
        names.push(name);
    }
    Ok(names)
}

fn resolve_of(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    if args.len().is_multiple_of(2) {
        return Err(builtin.refuse_count(args));
    }
    let class = text(args, 0, "The first argument, the class name,")?;
    if !is_class(class) {
        return Err(Error::plan(format!(
            "Invalid class name '{class}'. The class name must comply with JVM identifier rules."
        )));
    }
    let fields = names(args)?
        .into_iter()
        .zip(args[1..].chunks_exact(2))
        .map(|(name, pair)| RowField {
            name: name.to_string(),
            data_type: pair[1].data_type.clone(),
        })
        .collect();
    Ok(Signature {
        args: args.iter().map(|a| a.data_type.clone()).collect(),
        returns: TypeKind::Structured(class.to_string(), fields).nullable(),
    })
}

/// Whether a name is one of a Java class: identifiers parted by dots.
fn is_class(name: &str) -> bool {
    name.split('.').all(|part| {
        let mut chars = part.chars();
        let first = chars.next();
        first.is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$')
            && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '$')
    })
}

fn resolve_update(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    if args.len().is_multiple_of(2) {
        return Err(builtin.refuse_count(args));
    }
    let object = &args[0].data_type;
    let TypeKind::Structured(class, known) = &object.kind else {
        return Err(Error::plan(format!(
            "The first argument must be a structured type, but was {object}."
        ))
        .hint("OBJECT_OF(class, field, value, ...) makes one"));
    };
    let mut fields = known.clone();
    for (i, name) in names(args)?.into_iter().enumerate() {
        let Some(field) = fields.iter_mut().find(|f| f.name == name) else {
            let all: Vec<_> = known.iter().map(|f| f.name.as_str()).collect();
            let error = Error::plan(format!(
                "The field name '{name}' at position {} is not part of the structured type \
                 attributes. Available attributes: [{}].",
                2 * i + 2,
                all.join(", ")
            ));
            return Err(match did_you_mean(name, all) {
                Some(close) => error.hint(format!("did you mean '{close}'?")),
                None => error,
            });
        };
        field.data_type = args[2 * i + 2].data_type.clone();
    }
    Ok(Signature {
        args: args.iter().map(|a| a.data_type.clone()).collect(),
        returns: TypeKind::Structured(class.clone(), fields).with_nullable(object.nullable),
    })
}

/// Makes the fields of the result: those of the first argument, if `objects` is one, then those that
/// the other arguments give.
fn prepare(call: &Call<'_>, objects: usize) -> Result<Kernel> {
    let fields = match call.returns.to_arrow() {
        ArrowType::Struct(fields) => fields,
        other => return Err(Error::internal(format!("{other} is no structured type"))),
    };
    let names = names(call.args)?;
    // the argument behind the name of each field
    let given: Vec<Option<usize>> = fields
        .iter()
        .map(|field| {
            let at = names.iter().position(|name| name == field.name());
            at.map(|at| 2 * at + 2)
        })
        .collect();
    Ok(columns(move |c, _| make(c, &fields, &given, objects == 1)))
}

fn make(c: &Columns, fields: &Fields, given: &[Option<usize>], update: bool) -> Result<ArrayRef> {
    let object = if update { Some(c.array(0)?) } else { None };
    let object = object
        .as_ref()
        .and_then(|o| o.as_any().downcast_ref::<StructArray>());
    let arrays = given
        .iter()
        .enumerate()
        .map(|(i, given)| match (given, object) {
            (Some(arg), _) => c.array(*arg),
            (None, Some(object)) => Ok(Arc::clone(object.column(i))),
            (None, None) => Err(Error::internal("a field of an object has no value")),
        })
        .collect::<Result<Vec<_>>>()?;
    let nulls = object.and_then(|o| arrow::array::Array::nulls(o).cloned());
    if arrays.is_empty() {
        return Ok(Arc::new(StructArray::new_empty_fields(c.rows, nulls)));
    }
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        arrays,
        nulls,
    )?))
}
