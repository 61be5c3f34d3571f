//! `ARRAY[..]`, `MAP[..]` and `ROW(..)`, and access to what is in them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, ListArray, StringArray, StructArray, Time32MillisecondArray,
    UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{concat, interleave, take};
use arrow::datatypes::{DataType as ArrowType, Field, Fields};

use super::builtin::{Builtin, Resolve::Custom};
use super::kernel::{BigInt, Call, Columns, Int, Text, collect, columns};
use super::lists::{Comparable, take_elements};
use super::variant;
use super::{Arg, Kernel, Signature};
use crate::error::{Error, Result};
use crate::types::coerce::common_type;
use crate::types::{DataType, RowField, TypeKind};

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "ARRAY",
        "ARRAY[x [, ...]]",
        "An array of the values, which have one type in common.",
        Custom(resolve_array),
        |_| Ok(columns(|c, _| make_array(c))),
    )
    .null_from(0)
    .example("ARRAY[1, 2]", "[1, 2]"),
    Builtin::new(
        "MAP",
        "MAP[key, value [, ...]]",
        "A map of the pairs; of equal keys the last counts.",
        Custom(resolve_map),
        |_| Ok(columns(|c, _| make_map(c))),
    )
    .null_from(0)
    .may_fail()
    .example("MAP['a', 1]", "{a=1}"),
    Builtin::new(
        "ROW",
        "ROW(x [, ...])\n(x, y [, ...])",
        "A row of the values.",
        Custom(resolve_row),
        |_| Ok(columns(|c, _| make_row(c))),
    )
    .example("ROW(1, 'a')", "+I[1, a]"),
    Builtin::new(
        "ITEM",
        "array[i INT]\nmap[key]",
        "Element i, from 1, of an array, or the value of a key of a map; NULL if there is none. Of a row, the field of \
         that constant name or position.",
        Custom(resolve_item),
        prepare_item,
    )
    .may_fail()
    .example("ARRAY['a', 'b'][2]", "b"),
    Builtin::new(
        "CARDINALITY",
        "CARDINALITY(collection ARRAY | MAP)",
        "The number of elements.",
        Custom(|builtin, args| {
            let [arg] = args else {
                return Err(builtin.refuse_count(args));
            };
            match arg.data_type.kind {
                TypeKind::Multiset(_) => Err(Error::plan("Expect an array or a map.")),
                TypeKind::Array(_) | TypeKind::Map(..) => Ok(Signature {
                    args: vec![arg.data_type.clone()],
                    returns: TypeKind::Int.with_nullable(arg.data_type.nullable),
                }),
                _ => Err(builtin.refuse_types(args)),
            }
        }),
        prepare_cardinality,
    )
    .example("CARDINALITY(ARRAY[1, 2])", "2"),
    Builtin::new(
        "ELEMENT",
        "ELEMENT(array ARRAY)",
        "The only element of an array, NULL if it is empty; fails on more.",
        Custom(|builtin, args| {
            let [arg] = args else {
                return Err(builtin.refuse_count(args));
            };
            let TypeKind::Array(element) = &arg.data_type.kind else {
                return Err(builtin.refuse_types(args));
            };
            let nullable = element.nullable || arg.data_type.nullable;
            Ok(Signature {
                args: vec![arg.data_type.clone()],
                returns: element.kind.clone().with_nullable(nullable),
            })
        }),
        |_| {
            Ok(columns(|c, _| {
                let (lists, values) = c.lists(0)?;
                let at = (0..c.rows)
                    .map(|i| match lists.get(i) {
                        Some(range) if range.len() > 1 => {
                            Err(Error::execution("Array has more than one element."))
                        }
                        Some(range) if range.len() == 1 => Ok(u32::try_from(range.start).ok()),
                        _ => Ok(None),
                    })
                    .collect::<Result<UInt32Array>>()?;
                Ok(take(&values, &at, None)?)
            }))
        },
    )
    .may_fail()
    .example("ELEMENT(ARRAY[7])", "7"),
];

/// The one type of some arguments.
fn one_type(args: &[&DataType]) -> Result<DataType> {
    common_type(args).ok_or_else(|| Error::plan("Parameters must be of the same type"))
}

fn at_least_one(args: &[Arg]) -> Result<()> {
    if args.is_empty() {
        return Err(Error::plan("Require at least 1 argument"));
    }
    Ok(())
}

fn resolve_array(_: &Builtin, args: &[Arg]) -> Result<Signature> {
    at_least_one(args)?;
    let types: Vec<_> = args.iter().map(|a| &a.data_type).collect();
    let element = one_type(&types)?;
    if element.kind == TypeKind::Null {
        return Err(Error::plan("Parameters must be of the same type")
            .hint("give NULL a type: CAST(NULL AS ...)"));
    }
    Ok(Signature {
        args: args.iter().map(|_| element.clone()).collect(),
        returns: TypeKind::Array(Box::new(element)).not_null(),
    })
}

/// Lays the arguments of each row side by side.
fn side_by_side(c: &Columns, args: impl Iterator<Item = usize>) -> Result<(ArrayRef, usize)> {
    let arrays = args.map(|i| c.array(i)).collect::<Result<Vec<_>>>()?;
    let width = arrays.len();
    let sources: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    let places: Vec<_> = (0..c.rows)
        .flat_map(|row| (0..width).map(move |arg| (arg, row)))
        .collect();
    Ok((interleave(&sources, &places)?, width))
}

fn make_array(c: &Columns) -> Result<ArrayRef> {
    let (values, width) = side_by_side(c, 0..c.count())?;
    let field = Arc::new(Field::new("item", values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(width, c.rows));
    Ok(Arc::new(ListArray::try_new(field, offsets, values, None)?))
}

fn resolve_map(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    at_least_one(args)?;
    if args.len() % 2 == 1 {
        return Err(builtin.refuse_count(args));
    }
    // A NULL without a type has that of the first key.
    let types: Vec<_> = args
        .iter()
        .map(|arg| match arg.data_type.kind {
            TypeKind::Null => args[0].data_type.as_nullable(),
            _ => arg.data_type.clone(),
        })
        .collect();
    let every = |start: usize| types.iter().skip(start).step_by(2).collect::<Vec<_>>();
    let (key, value) = (one_type(&every(0))?, one_type(&every(1))?);
    if key.kind == TypeKind::Null {
        return Err(Error::plan("Parameters must be of the same type")
            .hint("give NULL a type: CAST(NULL AS ...)"));
    }
    Ok(Signature {
        args: (0..args.len())
            .map(|i| if i % 2 == 0 { &key } else { &value }.clone())
            .collect(),
        returns: TypeKind::Map(Box::new(key), Box::new(value)).not_null(),
    })
}

fn make_map(c: &Columns) -> Result<ArrayRef> {
    let (keys, width) = side_by_side(c, (0..c.count()).step_by(2))?;
    let (values, _) = side_by_side(c, (1..c.count()).step_by(2))?;
    let rows = Comparable::new(keys.data_type())?.rows(&keys)?;
    let taken = take_elements(c.rows, None, |i, out| {
        let start = out.len();
        for at in i * width..(i + 1) * width {
            // A key takes the place of an equal one.
            let same = out[start..]
                .iter()
                .position(|known| rows.row(*known as usize) == rows.row(at));
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            match same {
                Some(same) => out[start + same] = at,
                None => out.push(at),
            }
        }
        Ok(Some(()))
    })?;
    Ok(Arc::new(taken.maps(&keys, &values)?))
}

fn resolve_row(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    if args.is_empty() {
        return Err(builtin.refuse_count(args));
    }
    let types: Vec<_> = args.iter().map(|a| a.data_type.clone()).collect();
    let fields = types.iter().enumerate().map(|(i, t)| RowField {
        name: format!("EXPR${i}"),
        data_type: t.clone(),
    });
    Ok(Signature {
        returns: TypeKind::Row(fields.collect()).not_null(),
        args: types,
    })
}

fn make_row(c: &Columns) -> Result<ArrayRef> {
    let arrays = (0..c.count())
        .map(|i| c.array(i))
        .collect::<Result<Vec<_>>>()?;
    let fields: Fields = arrays
        .iter()
        .enumerate()
        .map(|(i, array)| Field::new(format!("EXPR${i}"), array.data_type().clone(), true))
        .collect();
    Ok(Arc::new(StructArray::try_new(fields, arrays, None)?))
}

fn resolve_item(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    let [collection, index] = args else {
        return Err(builtin.refuse_count(args));
    };
    let nullable = |kind: &TypeKind| kind.clone().with_nullable(index.data_type.nullable);
    let (index_type, element) = match &collection.data_type.kind {
        TypeKind::Array(element) if index.data_type.kind.is_integer() => {
            first_is_one(index)?;
            (nullable(&TypeKind::BigInt), &element.kind)
        }
        TypeKind::Map(key, value) => {
            let common = common_type(&[key, &index.data_type]);
            let fits = common
                .is_some_and(|t| t.kind == key.kind || t.kind.is_numeric() || t.kind.is_string());
            if !fits {
                return Err(builtin.refuse_types(args));
            }
            // A cast to CHAR(n) would cut the text that is looked for.
            let wanted = match key.kind.is_string() {
                true => index.data_type.clone(),
                false => nullable(&key.kind),
            };
            (wanted, &value.kind)
        }
        TypeKind::Variant if index.data_type.kind.is_string() => {
            (index.data_type.clone(), &TypeKind::Variant)
        }
        TypeKind::Variant if index.data_type.kind.is_integer() => {
            (nullable(&TypeKind::BigInt), &TypeKind::Variant)
        }
        _ => return Err(builtin.refuse_types(args)),
    };
    Ok(Signature {
        args: vec![collection.data_type.clone(), index_type],
        returns: element.clone().nullable(),
    })
}

/// Refuses a constant index below 1.
fn first_is_one(index: &Arg) -> Result<()> {
    let value = index.literal.as_ref().and_then(super::round::int_literal);
    match value {
        Some(value) if value < 1 => Err(Error::plan(format!(
            "Array element access needs an index starting at 1 but was {value}."
        ))),
        _ => Ok(()),
    }
}

fn prepare_item(call: &Call<'_>) -> Result<Kernel> {
    match call.kind(0) {
        TypeKind::Array(_) => Ok(columns(|c, _| {
            let (lists, values) = c.lists(0)?;
            let index = c.column::<BigInt>(1)?;
            let at: UInt32Array = (0..c.rows)
                .map(|i| {
                    let (range, index) = (lists.get(i)?, index.get(i)?);
                    let index = usize::try_from(index).ok()?.checked_sub(1)?;
                    let at = range
                        .start
                        .checked_add(index)
                        .filter(|at| *at < range.end)?;
                    u32::try_from(at).ok()
                })
                .collect();
            Ok(take(&values, &at, None)?)
        })),
        TypeKind::Map(_, value) => {
            let missing = if value.nullable {
                None
            } else {
                missing(&value.kind)
            };
            Ok(columns(move |c, _| map_item(c, missing.as_ref())))
        }
        _ if call.kind(1).is_string() => Ok(call.text2::<Text, Text, _>(variant::field)),
        _ => Ok(call.text2::<Text, BigInt, _>(variant::element)),
    }
}

fn map_item(c: &Columns, missing: Option<&ArrayRef>) -> Result<ArrayRef> {
    let (maps, keys, values) = c.maps(0)?;
    let (wanted, constant) = (c.array(1)?, c.raw(1).1);
    let comparable = Comparable::new(keys.data_type())?;
    let (keys, wanted_rows) = (comparable.rows(&keys)?, comparable.rows(&wanted)?);
    // The value for a missing key stands behind all others.
    let (values, default) = match missing {
        Some(missing) => {
            let place = u32::try_from(values.len()).ok();
            (concat(&[values.as_ref(), missing.as_ref()])?, place)
        }
        None => (values, None),
    };
    let at: UInt32Array = (0..c.rows)
        .map(|i| {
            let mut range = maps.get(i)?;
            if wanted.is_null(i) {
                return if constant { None } else { default };
            }
            let wanted = wanted_rows.row(i);
            match range.find(|at| keys.row(*at) == wanted) {
                Some(at) => u32::try_from(at).ok(),
                None => default,
            }
        })
        .collect();
    Ok(take(&values, &at, None)?)
}

/// What Flink gives for a key that is missing, or NULL in a column, when the map's values are NOT NULL: it
/// never looks whether it found one.
fn missing(kind: &TypeKind) -> Option<ArrayRef> {
    Some(match kind {
        TypeKind::Boolean => Arc::new(BooleanArray::from(vec![false])),
        TypeKind::TinyInt => Arc::new(Int8Array::from(vec![-1])),
        TypeKind::SmallInt => Arc::new(Int16Array::from(vec![-1])),
        TypeKind::Int => Arc::new(Int32Array::from(vec![-1])),
        TypeKind::BigInt => Arc::new(Int64Array::from(vec![-1])),
        TypeKind::Float => Arc::new(Float32Array::from(vec![-1.0])),
        TypeKind::Double => Arc::new(Float64Array::from(vec![-1.0])),
        TypeKind::Char(_) | TypeKind::VarChar(_) => Arc::new(StringArray::from(vec![""])),
        TypeKind::Date => Arc::new(Date32Array::from(vec![-1])),
        TypeKind::Time(_) => Arc::new(Time32MillisecondArray::from(vec![-1])),
        _ => return None,
    })
}

fn prepare_cardinality(call: &Call<'_>) -> Result<Kernel> {
    let kind = call.kind(0).clone();
    Ok(columns(move |c, _| {
        let lists = match &kind {
            TypeKind::Array(_) => c.lists(0)?.0,
            _ => c.maps(0)?.0,
        };
        collect::<Int>(c.rows, c.nulls().as_ref(), &ArrowType::Int32, |i| {
            Ok(Some(
                i32::try_from(lists.value(i).len()).unwrap_or(i32::MAX),
            ))
        })
    }))
}
