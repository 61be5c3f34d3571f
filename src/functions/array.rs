//! Functions on arrays. Elements are compared as SQL compares them, but NULL equals NULL.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, StringArray, UInt32Array};
use arrow::compute::{concat, take};
use arrow::row::Rows;
use hashbrown::HashSet;

use super::builtin::{
    Builtin,
    Resolve::{Custom, Forms},
};
use super::conditional::is_ordered;
use super::kernel::{Bool, Call, Columns, Int, Text, arrays, collect, collect_text, columns};
use super::lists::{Comparable, Lists, take_elements};
use super::signature::{Param, Returns, any_nullable, match_forms};
use super::{Arg, Kernel, Signature};
use crate::error::{Error, Result};
use crate::types::coerce::{common_argument_type, common_type};
use crate::types::{DataType, TypeKind};

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "ARRAY_CONTAINS",
        "ARRAY_CONTAINS(array ARRAY, x)",
        "Whether x is an element.",
        Custom(|builtin, args| {
            let (array, _, types) = array_and_element(builtin, args)?;
            Ok(Signature {
                args: types,
                returns: TypeKind::Boolean.with_nullable(array.nullable),
            })
        }),
        |_| {
            Ok(columns(|c, _| {
                let searched = Searched::new(c)?;
                let to = arrow::datatypes::DataType::Boolean;
                collect::<Bool>(c.rows, c.nulls_of([0]).as_ref(), &to, |i| {
                    Ok(Some(searched.position(i).is_some()))
                })
            }))
        },
    )
    .null_from(1)
    .example("ARRAY_CONTAINS(ARRAY[1, 2], 2)", "true"),
    Builtin::new(
        "ARRAY_POSITION",
        "ARRAY_POSITION(array ARRAY, x)",
        "The position of the first element x, from 1; 0 if there is none.",
        Custom(|builtin, args| {
            let (_, _, types) = array_and_element(builtin, args)?;
            let nullable = any_nullable(&types);
            Ok(Signature {
                args: types,
                returns: TypeKind::Int.with_nullable(nullable),
            })
        }),
        |_| {
            Ok(columns(|c, _| {
                let searched = Searched::new(c)?;
                let to = arrow::datatypes::DataType::Int32;
                collect::<Int>(c.rows, c.nulls().as_ref(), &to, |i| {
                    let at = searched.position(i).map_or(0, |at| at + 1);
                    Ok(Some(i32::try_from(at).unwrap_or(i32::MAX)))
                })
            }))
        },
    )
    .null_from(1)
    .example("ARRAY_POSITION(ARRAY[5, 7], 7)", "2"),
    Builtin::new(
        "ARRAY_REMOVE",
        "ARRAY_REMOVE(array ARRAY, x)",
        "The array without the elements x.",
        Custom(|builtin, args| {
            let (array, _, types) = array_and_element(builtin, args)?;
            Ok(Signature {
                returns: array.clone(),
                args: types,
            })
        }),
        |_| {
            Ok(arrays(|c, _| {
                let searched = Searched::new(c)?;
                let taken = take_elements(c.rows, c.nulls_of([0]).as_ref(), |i, out| {
                    let range = searched.lists.value(i);
                    out.extend(range.filter(|at| !searched.is_wanted(*at, i)).map(place));
                    Ok(Some(()))
                })?;
                taken.lists(&searched.values)
            }))
        },
    )
    .null_from(1)
    .example("ARRAY_REMOVE(ARRAY[1, 2, 1], 1)", "[2]"),
    Builtin::new(
        "ARRAY_APPEND",
        "ARRAY_APPEND(array ARRAY, x)",
        "The array with x at its end.",
        Custom(resolve_append),
        |_| Ok(arrays(|c, _| append(c, false))),
    )
    .null_from(1)
    .example("ARRAY_APPEND(ARRAY[1], 2)", "[1, 2]"),
    Builtin::new(
        "ARRAY_PREPEND",
        "ARRAY_PREPEND(array ARRAY, x)",
        "The array with x at its start.",
        Custom(resolve_append),
        |_| Ok(arrays(|c, _| append(c, true))),
    )
    .null_from(1)
    .example("ARRAY_PREPEND(ARRAY[1], 2)", "[2, 1]"),
    Builtin::new(
        "ARRAY_DISTINCT",
        "ARRAY_DISTINCT(array ARRAY)",
        "The array with the first of equal elements only.",
        Forms(&[&[Param::Array]], Returns::First),
        |_| Ok(arrays(|c, _| set(c, 1, |_, _| true))),
    )
    .example("ARRAY_DISTINCT(ARRAY[1, 2, 1])", "[1, 2]"),
    Builtin::new(
        "ARRAY_REVERSE",
        "ARRAY_REVERSE(array ARRAY)",
        "The elements in reverse order.",
        Forms(&[&[Param::Array]], Returns::First),
        |_| {
            Ok(arrays(|c, _| {
                let (lists, values) = c.lists(0)?;
                let taken = take_elements(c.rows, c.nulls().as_ref(), |i, out| {
                    out.extend(lists.value(i).rev().map(place));
                    Ok(Some(()))
                })?;
                taken.lists(&values)
            }))
        },
    )
    .example("ARRAY_REVERSE(ARRAY[1, 2])", "[2, 1]"),
    Builtin::new(
        "ARRAY_SLICE",
        "ARRAY_SLICE(array ARRAY, start INT [, end INT])",
        "The elements from one position to another, both included; negative positions count from the end.",
        Forms(
            &[
                &[Param::Array, Param::Int],
                &[Param::Array, Param::Int, Param::Int],
            ],
            Returns::First,
        ),
        |call| {
            let given = call.args.len() == 3;
            Ok(arrays(move |c, _| {
                let (lists, values) = c.lists(0)?;
                let start = c.column::<Int>(1)?;
                let end = given.then(|| c.column::<Int>(2)).transpose()?;
                let taken = take_elements(c.rows, c.nulls().as_ref(), |i, out| {
                    let range = lists.value(i);
                    let len = range.len() as i64;
                    let from = position(start.value(i), len).max(1);
                    let to = end.as_ref().map_or(len, |end| position(end.value(i), len)).min(len);
                    let offset = |position: i64| usize::try_from(position).unwrap_or(0);
                    if from <= to {
                        let slice = range.start + offset(from - 1)..range.start + offset(to);
                        out.extend(slice.map(place));
                    }
                    Ok(Some(()))
                })?;
                taken.lists(&values)
            }))
        },
    )
    .null_from(1)
    .example("ARRAY_SLICE(ARRAY[1, 2, 3], 2, 3)", "[2, 3]"),
    Builtin::new(
        "ARRAY_CONCAT",
        "ARRAY_CONCAT(array ARRAY [, ...])",
        "The elements of all arrays.",
        Custom(|builtin, args| resolve_common(builtin, args, 1)),
        |call| {
            let count = call.args.len();
            Ok(arrays(move |c, _| {
                let joined = Joined::new(c, count)?;
                let taken = take_elements(c.rows, c.nulls().as_ref(), |i, out| {
                    (0..count).for_each(|arg| out.extend(joined.elements(arg, i).map(place)));
                    Ok(Some(()))
                })?;
                taken.lists(&joined.values)
            }))
        },
    )
    .example("ARRAY_CONCAT(ARRAY[1], ARRAY[1, 2])", "[1, 1, 2]"),
    Builtin::new(
        "ARRAY_UNION",
        "ARRAY_UNION(a ARRAY, b ARRAY)",
        "The elements of both arrays, each once.",
        Custom(|builtin, args| resolve_common(builtin, args, 2)),
        |_| Ok(arrays(|c, _| set(c, 2, |_, _| true))),
    )
    .example("ARRAY_UNION(ARRAY[1], ARRAY[1, 2])", "[1, 2]"),
    Builtin::new(
        "ARRAY_EXCEPT",
        "ARRAY_EXCEPT(a ARRAY, b ARRAY)",
        "The elements of a that are not in b, each once.",
        Custom(|builtin, args| resolve_common(builtin, args, 2)),
        |_| Ok(arrays(|c, _| set(c, 1, |other, row| !other.contains(row)))),
    )
    .example("ARRAY_EXCEPT(ARRAY[1, 2], ARRAY[1])", "[2]"),
    Builtin::new(
        "ARRAY_INTERSECT",
        "ARRAY_INTERSECT(a ARRAY, b ARRAY)",
        "The elements of a that are in b, each once.",
        Custom(|builtin, args| resolve_common(builtin, args, 2)),
        |_| Ok(arrays(|c, _| set(c, 1, |other, row| other.contains(row)))),
    )
    .example("ARRAY_INTERSECT(ARRAY[1, 2], ARRAY[1])", "[1]"),
    Builtin::new(
        "ARRAY_MAX",
        "ARRAY_MAX(array ARRAY)",
        "The largest element; NULL if there is none.",
        Custom(resolve_extreme),
        |_| Ok(columns(|c, _| extreme(c, Ordering::Greater))),
    )
    .example("ARRAY_MAX(ARRAY[1, 3, 2])", "3"),
    Builtin::new(
        "ARRAY_MIN",
        "ARRAY_MIN(array ARRAY)",
        "The smallest element; NULL if there is none.",
        Custom(resolve_extreme),
        |_| Ok(columns(|c, _| extreme(c, Ordering::Less))),
    )
    .example("ARRAY_MIN(ARRAY[1, 3, 2])", "1"),
    Builtin::new(
        "ARRAY_SORT",
        "ARRAY_SORT(array ARRAY [, ascending BOOLEAN [, nulls_first BOOLEAN]])",
        "The elements in order, ascending by default; NULLs come first when ascending.",
        Custom(|builtin, args| {
            const FORMS: &[&[Param]] = &[
                &[Param::Array],
                &[Param::Array, Param::Boolean],
                &[Param::Array, Param::Boolean, Param::Boolean],
            ];
            let signature = match_forms(builtin, FORMS, &Returns::First, args)?;
            ordered_element(builtin, &args[0])?;
            Ok(signature)
        }),
        prepare_sort,
    )
    .example("ARRAY_SORT(ARRAY[3, 1, 2])", "[1, 2, 3]"),
    Builtin::new(
        "ARRAY_JOIN",
        "ARRAY_JOIN(array ARRAY<STRING>, separator STRING [, null_text STRING])",
        "The elements with the separator between them; NULLs are left out or replaced.",
        Custom(|builtin, args| {
            const FORMS: &[&[Param]] = &[
                &[Param::Array, Param::Text],
                &[Param::Array, Param::Text, Param::Text],
            ];
            let returns = Returns::Strict(TypeKind::STRING);
            let signature = match_forms(builtin, FORMS, &returns, args)?;
            match &args[0].data_type.kind {
                TypeKind::Array(element) if element.kind.is_string() => Ok(signature),
                _ => Err(builtin.refuse_types(args)),
            }
        }),
        prepare_join,
    )
    .null_from(1)
    .example("ARRAY_JOIN(ARRAY['a', 'b'], '-')", "a-b"),
];

/// An element's place as Arrow's `take` wants it.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// A position as counted from the start; 0 is 1.
fn position(position: i32, len: i64) -> i64 {
    match i64::from(position) {
        0 => 1,
        p if p < 0 => len + p + 1,
        p => p,
    }
}

/// The types of an array and something that may be an element, the latter cast to an element's type.
fn array_and_element<'a>(
    builtin: &Builtin,
    args: &'a [Arg],
) -> Result<(&'a DataType, &'a DataType, Vec<DataType>)> {
    let [array, x] = args else {
        return Err(builtin.refuse_count(args));
    };
    let TypeKind::Array(element) = &array.data_type.kind else {
        return Err(builtin.refuse_types(args));
    };
    let (wanted, given) = (&element.kind, &x.data_type.kind);
    let same_family = (wanted.is_string() && given.is_string())
        || (wanted.is_binary() && given.is_binary())
        || common_type(&[element, &x.data_type]).is_some_and(|t| t.kind == *wanted);
    if !same_family {
        return Err(builtin.refuse_types(args));
    }
    let types = vec![
        array.data_type.clone(),
        wanted.clone().with_nullable(x.data_type.nullable),
    ];
    Ok((&array.data_type, element, types))
}

fn resolve_append(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    let (_, element, types) = array_and_element(builtin, args)?;
    let x = &types[1];
    let element = element
        .kind
        .clone()
        .with_nullable(element.nullable || x.nullable);
    let nullable = any_nullable(&types);
    Ok(Signature {
        args: types,
        returns: TypeKind::Array(Box::new(element)).with_nullable(nullable),
    })
}

fn append(c: &Columns, at_start: bool) -> Result<arrow::array::ListArray> {
    let (lists, values) = c.lists(0)?;
    let x = c.array(1)?;
    let first_x = values.len();
    let all = concat(&[values.as_ref(), x.as_ref()])?;
    let taken = take_elements(c.rows, c.nulls_of([0]).as_ref(), |i, out| {
        if at_start {
            out.push(place(first_x + i));
        }
        out.extend(lists.value(i).map(place));
        if !at_start {
            out.push(place(first_x + i));
        }
        Ok(Some(()))
    })?;
    taken.lists(&all)
}

/// An array argument and what is looked for in it.
struct Searched {
    lists: Lists,
    values: ArrayRef,
    rows: Rows,
    wanted: Rows,
}

impl Searched {
    fn new(c: &Columns) -> Result<Self> {
        let (lists, values) = c.lists(0)?;
        let comparable = Comparable::new(values.data_type())?;
        Ok(Self {
            rows: comparable.rows(&values)?,
            wanted: comparable.rows(&c.array(1)?)?,
            lists,
            values,
        })
    }

    fn is_wanted(&self, at: usize, i: usize) -> bool {
        self.rows.row(at) == self.wanted.row(i)
    }

    /// The position, from 0, of the first that is wanted in row `i`.
    fn position(&self, i: usize) -> Option<usize> {
        self.lists.value(i).position(|at| self.is_wanted(at, i))
    }
}

/// Several array arguments whose elements lie one argument after the other.
struct Joined {
    lists: Vec<Lists>,
    starts: Vec<usize>,
    values: ArrayRef,
}

impl Joined {
    fn new(c: &Columns, count: usize) -> Result<Self> {
        let (lists, values): (Vec<_>, Vec<_>) = (0..count)
            .map(|i| c.lists(i))
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .unzip();
        let mut starts = Vec::with_capacity(count);
        let mut start = 0;
        for array in &values {
            starts.push(start);
            start += array.len();
        }
        let sources: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
        Ok(Self {
            lists,
            starts,
            values: concat(&sources)?,
        })
    }

    fn elements(&self, arg: usize, i: usize) -> impl Iterator<Item = usize> {
        let start = self.starts[arg];
        self.lists[arg].value(i).map(move |at| start + at)
    }
}

fn resolve_common(builtin: &Builtin, args: &[Arg], count: usize) -> Result<Signature> {
    if args.is_empty() || (count == 2 && args.len() != 2) {
        return Err(builtin.refuse_count(args));
    }
    let types: Vec<_> = args.iter().map(|a| &a.data_type).collect();
    if !types.iter().all(|t| matches!(t.kind, TypeKind::Array(_))) {
        return Err(builtin.refuse_types(args));
    }
    let common = common_argument_type(&types).ok_or_else(|| {
        let types: Vec<_> = types.iter().map(ToString::to_string).collect();
        Error::plan(format!(
            "Could not find a common type for arguments: [{}]",
            types.join(", ")
        ))
    })?;
    Ok(Signature {
        args: types
            .iter()
            .map(|t| common.kind.clone().with_nullable(t.nullable))
            .collect(),
        returns: common,
    })
}

/// The distinct elements of the first `sources` arguments that `keep` takes; it is told the elements of
/// the next argument, if there is one.
fn set(
    c: &Columns,
    sources: usize,
    keep: fn(&HashSet<arrow::row::Row<'_>>, &arrow::row::Row<'_>) -> bool,
) -> Result<arrow::array::ListArray> {
    let count = c.count();
    let joined = Joined::new(c, count)?;
    let rows = Comparable::new(joined.values.data_type())?.rows(&joined.values)?;
    let (mut seen, mut other) = (HashSet::new(), HashSet::new());
    let taken = take_elements(c.rows, c.nulls().as_ref(), |i, out| {
        seen.clear();
        other.clear();
        if sources < count {
            other.extend(joined.elements(sources, i).map(|at| rows.row(at)));
        }
        for arg in 0..sources {
            for at in joined.elements(arg, i) {
                let row = rows.row(at);
                if keep(&other, &row) && seen.insert(row) {
                    out.push(place(at));
                }
            }
        }
        Ok(Some(()))
    })?;
    taken.lists(&joined.values)
}

/// The element type, which must have an order.
fn ordered_element(builtin: &Builtin, array: &Arg) -> Result<DataType> {
    let TypeKind::Array(element) = &array.data_type.kind else {
        return Err(builtin.refuse_types(std::slice::from_ref(array)));
    };
    if !is_ordered(&element.kind) || element.kind == TypeKind::Boolean {
        return Err(Error::plan(format!(
            "Type '{element}' should support both 'EQUALS' and 'ORDER' comparison with itself."
        )));
    }
    Ok(element.as_ref().clone())
}

fn resolve_extreme(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    let [array] = args else {
        return Err(builtin.refuse_count(args));
    };
    let element = ordered_element(builtin, array)?;
    Ok(Signature {
        args: vec![array.data_type.clone()],
        returns: element.as_nullable(),
    })
}

fn extreme(c: &Columns, wins: Ordering) -> Result<ArrayRef> {
    let (lists, values) = c.lists(0)?;
    let rows = Comparable::new(values.data_type())?.rows(&values)?;
    let best: UInt32Array = (0..c.rows)
        .map(|i| {
            let elements = lists.get(i)?.filter(|at| values.is_valid(*at));
            let best = elements.reduce(|best, at| {
                if rows.row(at).cmp(&rows.row(best)) == wins {
                    at
                } else {
                    best
                }
            });
            best.map(place)
        })
        .collect();
    Ok(take(&values, &best, None)?)
}

fn prepare_sort(call: &Call<'_>) -> Result<Kernel> {
    let count = call.args.len();
    Ok(arrays(move |c, _| {
        let (lists, values) = c.lists(0)?;
        let flag = |arg: usize| (count > arg).then(|| c.column::<Bool>(arg)).transpose();
        let (ascending, nulls_first) = (flag(1)?, flag(2)?);
        let rows = Comparable::new(values.data_type())?.rows(&values)?;
        let taken = take_elements(c.rows, c.nulls().as_ref(), |i, out| {
            let ascending = ascending.as_ref().is_none_or(|flag| flag.value(i));
            let nulls_first = nulls_first.as_ref().map_or(ascending, |flag| flag.value(i));
            let start = out.len();
            out.extend(lists.value(i).map(place));
            out[start..].sort_by(|a, b| {
                let (a, b) = (*a as usize, *b as usize);
                let null_last = |at: usize| values.is_null(at) != nulls_first;
                let nulls = null_last(a).cmp(&null_last(b));
                if values.is_null(a) || values.is_null(b) {
                    return nulls;
                }
                let order = rows.row(a).cmp(&rows.row(b));
                if ascending { order } else { order.reverse() }
            });
            Ok(Some(()))
        })?;
        taken.lists(&values)
    }))
}

fn prepare_join(call: &Call<'_>) -> Result<Kernel> {
    let given = call.args.len() == 3;
    Ok(arrays(move |c, _| {
        let (lists, values) = c.lists(0)?;
        let texts = values
            .as_any()
            .downcast_ref::<StringArray>()
            .ok_or_else(|| Error::internal("ARRAY_JOIN of no texts"))?;
        let separator = c.column::<Text>(1)?;
        let for_null = given.then(|| c.column::<Text>(2)).transpose()?;
        collect_text(c.rows, c.nulls().as_ref(), |i, out| {
            let mut first = true;
            for at in lists.value(i) {
                let text = if texts.is_valid(at) {
                    texts.value(at)
                } else if let Some(for_null) = &for_null {
                    for_null.value(i)
                } else {
                    continue;
                };
                if !std::mem::take(&mut first) {
                    out.push_str(separator.value(i));
                }
                out.push_str(text);
            }
            Ok(Some(()))
        })
    }))
}
