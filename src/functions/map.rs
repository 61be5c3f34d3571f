//! Functions on maps.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, StructArray};
use arrow::compute::concat;
use arrow::datatypes::{Field, Fields};

use super::builtin::{
    Builtin,
    Resolve::{Custom, Forms},
};
use super::kernel::{Columns, arrays};
use super::lists::{Comparable, Taken, take_elements};
use super::signature::{Param, Returns, any_nullable, match_forms};
use super::{Arg, Signature};
use crate::error::{Error, Result};
use crate::types::coerce::common_argument_type;
use crate::types::{DataType, RowField, TypeKind};

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "MAP_KEYS",
        "MAP_KEYS(map MAP)",
        "The keys as an array.",
        Forms(&[&[Param::Map]], Returns::By(|args| of_map(args, |k, _| k.clone()))),
        |_| {
            Ok(arrays(|c, _| {
                let (keys, _) = entries(c)?;
                let taken = all(c)?;
                taken.lists(&keys)
            }))
        },
    )
    .example("MAP_KEYS(MAP['a', 1])", "[a]"),
    Builtin::new(
        "MAP_VALUES",
        "MAP_VALUES(map MAP)",
        "The values as an array.",
        Forms(&[&[Param::Map]], Returns::By(|args| of_map(args, |_, v| v.clone()))),
        |_| {
            Ok(arrays(|c, _| {
                let (_, values) = entries(c)?;
                let taken = all(c)?;
                taken.lists(&values)
            }))
        },
    )
    .example("MAP_VALUES(MAP['a', 1])", "[1]"),
    Builtin::new(
        "MAP_ENTRIES",
        "MAP_ENTRIES(map MAP)",
        "The pairs as an array of ROW<key, value>.",
        Forms(
            &[&[Param::Map]],
            Returns::By(|args| {
                of_map(args, |key, value| {
                    let field = |name: &str, data_type: &DataType| RowField {
                        name: name.to_string(),
                        data_type: data_type.clone(),
                    };
                    TypeKind::Row(vec![field("key", key), field("value", value)]).nullable()
                })
            }),
        ),
        |_| {
            Ok(arrays(|c, _| {
                let (keys, values) = entries(c)?;
                let fields = Fields::from(vec![
                    Field::new("key", keys.data_type().clone(), true),
                    Field::new("value", values.data_type().clone(), true),
                ]);
                let rows = StructArray::try_new(fields, vec![keys, values], None)?;
                let rows: ArrayRef = Arc::new(rows);
                let lists: ListArray = all(c)?.lists(&rows)?;
                Ok(lists)
            }))
        },
    )
    .example("MAP_ENTRIES(MAP['a', 1])", "[+I[a, 1]]"),
    Builtin::new(
        "MAP_FROM_ARRAYS",
        "MAP_FROM_ARRAYS(keys ARRAY, values ARRAY)",
        "The map of keys and values side by side; of equal keys the last counts. Fails if there are more of one than of the other.",
        Custom(resolve_from_arrays),
        |_| {
            Ok(arrays(|c, _| {
                let ((key_lists, keys), (value_lists, values)) = (c.lists(0)?, c.lists(1)?);
                let rows = Comparable::new(keys.data_type())?.rows(&keys)?;
                let mut pairs = Vec::new();
                let taken = take_elements(c.rows, c.nulls().as_ref(), |i, out| {
                    let (k, v) = (key_lists.value(i), value_lists.value(i));
                    if k.len() != v.len() {
                        return Err(Error::execution(format!(
                            "Invalid function MAP_FROM_ARRAYS call:\nThe length of the keys array {} is not equal to the length of the values array {}",
                            k.len(),
                            v.len()
                        )));
                    }
                    let start = out.len();
                    for (key, value) in k.zip(v) {
                        let known = out[start..].iter().position(|known| {
                            let (known, _): (usize, usize) = pairs[*known as usize];
                            rows.row(known) == rows.row(key)
                        });
                        match known {
                            Some(known) => pairs[out[start + known] as usize] = (key, value),
                            None => {
                                out.push(u32::try_from(pairs.len()).unwrap_or(u32::MAX));
                                pairs.push((key, value));
                            }
                        }
                    }
                    Ok(Some(()))
                })?;
                let pick = |array: &ArrayRef, at: &dyn Fn(&(usize, usize)) -> usize| {
                    let at: arrow::array::UInt32Array = pairs
                        .iter()
                        .map(|pair| u32::try_from(at(pair)).ok())
                        .collect();
                    arrow::compute::take(array, &at, None)
                };
                taken.maps(&pick(&keys, &|p| p.0)?, &pick(&values, &|p| p.1)?)
            }))
        },
    )
    .may_fail()
    .example("MAP_FROM_ARRAYS(ARRAY['a'], ARRAY[1])", "{a=1}"),
    Builtin::new(
        "MAP_UNION",
        "MAP_UNION(map MAP [, ...])",
        "The pairs of all maps; of equal keys the last counts.",
        Custom(resolve_union),
        |call| {
            let count = call.args.len();
            Ok(arrays(move |c, _| {
                let maps = (0..count).map(|i| c.maps(i)).collect::<Result<Vec<_>>>()?;
                let all = |part: fn(&(super::lists::Lists, ArrayRef, ArrayRef)) -> &ArrayRef| {
                    let arrays: Vec<&dyn Array> = maps.iter().map(|m| part(m).as_ref()).collect();
                    concat(&arrays)
                };
                let (keys, values) = (all(|m| &m.1)?, all(|m| &m.2)?);
                let rows = Comparable::new(keys.data_type())?.rows(&keys)?;
                let taken = take_elements(c.rows, c.nulls().as_ref(), |i, out| {
                    let start = out.len();
                    let mut first = 0;
                    for (lists, keys, _) in &maps {
                        for at in lists.value(i) {
                            let at = first + at;
                            let known = out[start..]
                                .iter()
                                .position(|known| rows.row(*known as usize) == rows.row(at));
                            let at = u32::try_from(at).unwrap_or(u32::MAX);
                            match known {
                                Some(known) => out[start + known] = at,
                                None => out.push(at),
                            }
                        }
                        first += keys.len();
                    }
                    Ok(Some(()))
                })?;
                taken.maps(&keys, &values)
            }))
        },
    )
    .example("MAP_UNION(MAP['a', 1], MAP['a', 2])", "{a=2}"),
];

/// An array made of a map's key and value type.
fn of_map(args: &[DataType], element: fn(&DataType, &DataType) -> DataType) -> DataType {
    let kind = match &args[0].kind {
        TypeKind::Map(key, value) => TypeKind::Array(Box::new(element(key, value))),
        other => other.clone(),
    };
    kind.with_nullable(args[0].nullable)
}

fn entries(c: &Columns) -> Result<(ArrayRef, ArrayRef)> {
    let (_, keys, values) = c.maps(0)?;
    Ok((keys, values))
}

/// All entries of each row.
fn all(c: &Columns) -> Result<Taken> {
    let (lists, ..) = c.maps(0)?;
    take_elements(c.rows, c.nulls().as_ref(), |i, out| {
        out.extend(
            lists
                .value(i)
                .map(|at| u32::try_from(at).unwrap_or(u32::MAX)),
        );
        Ok(Some(()))
    })
}

fn resolve_from_arrays(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    let returns = Returns::By(|args| match (&args[0].kind, &args[1].kind) {
        (TypeKind::Array(key), TypeKind::Array(value)) => {
            TypeKind::Map(key.clone(), value.clone()).with_nullable(any_nullable(args))
        }
        _ => TypeKind::Null.nullable(),
    });
    match_forms(builtin, &[&[Param::Array, Param::Array]], &returns, args)
}

fn resolve_union(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    if args.is_empty() {
        return Err(builtin.refuse_count(args));
    }
    let types: Vec<_> = args.iter().map(|a| &a.data_type).collect();
    if !types.iter().all(|t| matches!(t.kind, TypeKind::Map(..))) {
        return Err(builtin.refuse_types(args));
    }
    let common = common_argument_type(&types).ok_or_else(|| builtin.refuse_types(args))?;
    Ok(Signature {
        args: types
            .iter()
            .map(|t| common.kind.clone().with_nullable(t.nullable))
            .collect(),
        returns: common,
    })
}
