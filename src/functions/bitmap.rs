//! Functions of `BITMAP`, sets of 32-bit integers.

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int32Type;
use roaring::RoaringBitmap;

use super::builtin::{
    Builtin,
    Resolve::{Custom, Forms},
};
use super::kernel::{BigInt, Bytes, Call, Columns, arrays, collect_bytes, offsets};
use super::signature::{Param, Returns};
use super::{Arg, Kernel, Signature};
use crate::error::{Error, Result};
use crate::types::{DataType, TypeKind, bitmap};

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "BITMAP_BUILD",
        "BITMAP_BUILD(a ARRAY<INT>)",
        "The set of the integers in an array; NULLs in it don't count.",
        Custom(resolve_build),
        |_| Ok(arrays(build)),
    )
    .null_from(0)
    .example("BITMAP_BUILD(ARRAY[3, 1, 3, -1])", "{1,3,4294967295}"),
    Builtin::new(
        "BITMAP_CARDINALITY",
        "BITMAP_CARDINALITY(b BITMAP)",
        "The number of integers in the set.",
        Forms(ONE, Returns::Strict(TypeKind::BigInt)),
        |call| {
            Ok(call.map1::<Bytes, BigInt, _>(|b| {
                bitmap::read(b).map(|set| i64::try_from(set.len()).unwrap_or(i64::MAX))
            }))
        },
    )
    .example("BITMAP_CARDINALITY(BITMAP_BUILD(ARRAY[3, 1, 3]))", "2"),
    Builtin::new(
        "BITMAP_TO_ARRAY",
        "BITMAP_TO_ARRAY(b BITMAP)",
        "The integers of the set, ascending without sign.",
        Forms(ONE, Returns::By(ints)),
        |_| Ok(arrays(to_array)),
    )
    .example("BITMAP_TO_ARRAY(BITMAP_BUILD(ARRAY[3, 1, 3]))", "[1, 3]"),
    Builtin::new(
        "BITMAP_TO_STRING",
        "BITMAP_TO_STRING(b BITMAP)",
        "The integers of the set as text, without sign.",
        Forms(ONE, Returns::Strict(TypeKind::STRING)),
        |call| Ok(call.text1::<Bytes, _>(|b, out: &mut String| bitmap::write(b, out))),
    )
    .example("BITMAP_TO_STRING(BITMAP_BUILD(ARRAY[3, 1, 3]))", "{1,3}"),
    Builtin::new(
        "BITMAP_TO_BYTES",
        "BITMAP_TO_BYTES(b BITMAP)",
        "The set in RoaringBitmap's portable form.",
        Forms(ONE, Returns::Strict(TypeKind::BYTES)),
        |_| {
            Ok(arrays(|c, _| {
                let b = c.column::<Bytes>(0)?;
                collect_bytes(c.rows, c.nulls().as_ref(), |i, out| {
                    out.extend_from_slice(b.value(i));
                    Ok(Some(()))
                })
            }))
        },
    )
    .example(
        "BITMAP_TO_BYTES(BITMAP_BUILD(ARRAY[1]))",
        "[58, 48, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0]",
    ),
    Builtin::new(
        "BITMAP_FROM_BYTES",
        "BITMAP_FROM_BYTES(b BYTES)",
        "The set that bytes in RoaringBitmap's portable form stand for; fails on others.",
        Forms(&[&[Param::Binary]], Returns::Strict(TypeKind::Bitmap)),
        |_| {
            Ok(arrays(|c, _| {
                let b = c.column::<Bytes>(0)?;
                collect_bytes(c.rows, c.nulls().as_ref(), |i, out| {
                    bitmap::append(bitmap::parse(b.value(i))?, out)?;
                    Ok(Some(()))
                })
            }))
        },
    )
    .null_from(0)
    .may_fail()
    .example(
        "BITMAP_FROM_BYTES(x'3A30000001000000000000001000000005000700')",
        "{5}",
    ),
    combine(
        "BITMAP_AND",
        "BITMAP_AND(a BITMAP, b BITMAP)",
        "The integers that are in both sets.",
        |_| Ok(pairs(|a, b| *a &= b)),
    )
    .example(
        "BITMAP_AND(BITMAP_BUILD(ARRAY[1, 2]), BITMAP_BUILD(ARRAY[2, 3]))",
        "{2}",
    ),
    combine(
        "BITMAP_OR",
        "BITMAP_OR(a BITMAP, b BITMAP)",
        "The integers that are in one of the sets.",
        |_| Ok(pairs(|a, b| *a |= b)),
    )
    .example(
        "BITMAP_OR(BITMAP_BUILD(ARRAY[1, 2]), BITMAP_BUILD(ARRAY[2, 3]))",
        "{1,2,3}",
    ),
    combine(
        "BITMAP_XOR",
        "BITMAP_XOR(a BITMAP, b BITMAP)",
        "The integers that are in one of the sets and not in the other.",
        |_| Ok(pairs(|a, b| *a ^= b)),
    )
    .example(
        "BITMAP_XOR(BITMAP_BUILD(ARRAY[1, 2]), BITMAP_BUILD(ARRAY[2, 3]))",
        "{1,3}",
    ),
    combine(
        "BITMAP_ANDNOT",
        "BITMAP_ANDNOT(a BITMAP, b BITMAP)",
        "The integers of the first set that are not in the second.",
        |_| Ok(pairs(|a, b| *a -= b)),
    )
    .example(
        "BITMAP_ANDNOT(BITMAP_BUILD(ARRAY[1, 2]), BITMAP_BUILD(ARRAY[2, 3]))",
        "{1}",
    ),
];

const ONE: &[&[Param]] = &[&[Param::Bitmap]];

const fn combine(
    name: &'static str,
    signature: &'static str,
    summary: &'static str,
    prepare: fn(&Call<'_>) -> Result<Kernel>,
) -> Builtin {
    Builtin::new(
        name,
        signature,
        summary,
        Forms(
            &[&[Param::Bitmap, Param::Bitmap]],
            Returns::Strict(TypeKind::Bitmap),
        ),
        prepare,
    )
}

fn ints(args: &[DataType]) -> DataType {
    let nullable = args.iter().any(|t| t.nullable);
    TypeKind::Array(Box::new(TypeKind::Int.nullable())).with_nullable(nullable)
}

fn resolve_build(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    let [array] = args else {
        return Err(builtin.refuse_count(args));
    };
    let fits = match &array.data_type.kind {
        TypeKind::Null => true,
        TypeKind::Array(element) => matches!(
            element.kind,
            TypeKind::Null | TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int
        ),
        _ => false,
    };
    if !fits {
        return Err(builtin.refuse_types(args));
    }
    let nullable = array.data_type.nullable;
    let ints = TypeKind::Array(Box::new(TypeKind::Int.nullable()));
    Ok(Signature {
        args: vec![ints.with_nullable(nullable)],
        returns: TypeKind::Bitmap.with_nullable(nullable),
    })
}

fn build(c: &Columns, _: &super::EvalContext) -> Result<arrow::array::BinaryArray> {
    let (lists, elements) = c.lists(0)?;
    let elements = elements
        .as_primitive_opt::<Int32Type>()
        .ok_or_else(|| Error::internal("BITMAP_BUILD of no integers"))?;
    collect_bytes(c.rows, c.nulls().as_ref(), |i, out| {
        let set: RoaringBitmap = lists
            .value(i)
            .filter(|at| elements.is_valid(*at))
            .map(|at| elements.value(at).cast_unsigned())
            .collect();
        bitmap::append(set, out)?;
        Ok(Some(()))
    })
}

fn to_array(c: &Columns, _: &super::EvalContext) -> Result<arrow::array::ListArray> {
    let b = c.column::<Bytes>(0)?;
    let mut values = Vec::new();
    let (offsets, nulls) = offsets(c.rows, c.nulls().as_ref(), |i| {
        values.extend(bitmap::read(b.value(i))?.iter().map(u32::cast_signed));
        Ok((true, values.len()))
    })?;
    let item = arrow::datatypes::Field::new("item", arrow::datatypes::DataType::Int32, true);
    let values = arrow::array::Int32Array::from(values);
    Ok(arrow::array::ListArray::try_new(
        item.into(),
        offsets,
        std::sync::Arc::new(values),
        nulls,
    )?)
}

/// A kernel of two sets that changes the first.
fn pairs(change: fn(&mut RoaringBitmap, &RoaringBitmap)) -> Kernel {
    arrays(move |c, _| {
        let (a, b) = (c.column::<Bytes>(0)?, c.column::<Bytes>(1)?);
        collect_bytes(c.rows, c.nulls().as_ref(), |i, out| {
            let mut set = bitmap::read(a.value(i))?;
            change(&mut set, &bitmap::read(b.value(i))?);
            bitmap::append(set, out)?;
            Ok(Some(()))
        })
    })
}
