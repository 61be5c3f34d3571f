//! Columns to binary rows.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, DurationMillisecondType, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalYearMonthType,
    Time32MillisecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};

use super::{
    BinaryRowCodec, BinaryRows, Layout, aligned, array_header_size, bitset_size, set_bit,
    wrong_type,
};
use crate::error::{Error, Result};

/// A column made ready: typed slices, nested values as bytes already.
enum Column<'a> {
    Null,
    Boolean(&'a arrow::array::BooleanArray),
    Int8(&'a [i8]),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    CompactDecimal(&'a [i128]),
    Decimal(&'a [i128]),
    Timestamp(&'a [i64], i64),
    Text(&'a arrow::array::StringArray),
    Binary(&'a arrow::array::BinaryArray),
    Nested { bytes: Vec<u8>, starts: Vec<usize> },
}

struct Prepared<'a> {
    column: Column<'a>,
    nulls: Option<NullBuffer>,
}

fn values<T: ArrowPrimitiveType>(column: &dyn Array) -> Option<&[T::Native]> {
    column.as_primitive_opt::<T>().map(|a| a.values().as_ref())
}

fn int32(column: &dyn Array) -> Option<&[i32]> {
    match column.data_type() {
        ArrowType::Date32 => values::<Date32Type>(column),
        ArrowType::Time32(_) => values::<Time32MillisecondType>(column),
        ArrowType::Interval(_) => values::<IntervalYearMonthType>(column),
        _ => values::<Int32Type>(column),
    }
}

fn int64(column: &dyn Array) -> Option<&[i64]> {
    match column.data_type() {
        ArrowType::Duration(_) => values::<DurationMillisecondType>(column),
        ArrowType::Timestamp(TimeUnit::Millisecond, _) => {
            values::<TimestampMillisecondType>(column)
        }
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            values::<TimestampMicrosecondType>(column)
        }
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => values::<TimestampNanosecondType>(column),
        _ => values::<Int64Type>(column),
    }
}

fn prepare<'a>(layout: &Layout, array: &'a ArrayRef) -> Result<Prepared<'a>> {
    let column = match layout {
        Layout::Null => Some(Column::Null),
        Layout::Boolean => array.as_boolean_opt().map(Column::Boolean),
        Layout::Int8 => values::<Int8Type>(array).map(Column::Int8),
        Layout::Int16 => values::<Int16Type>(array).map(Column::Int16),
        Layout::Int32 => int32(array).map(Column::Int32),
        Layout::Int64 | Layout::CompactTimestamp => int64(array).map(Column::Int64),
        Layout::Float32 => values::<Float32Type>(array).map(Column::Float32),
        Layout::Float64 => values::<Float64Type>(array).map(Column::Float64),
        Layout::CompactDecimal => values::<Decimal128Type>(array).map(Column::CompactDecimal),
        Layout::Decimal => values::<Decimal128Type>(array).map(Column::Decimal),
        Layout::Timestamp { per_milli } => {
            int64(array).map(|values| Column::Timestamp(values, *per_milli))
        }
        Layout::Bytes => match array.data_type() {
            ArrowType::Utf8 => array.as_string_opt::<i32>().map(Column::Text),
            _ => array.as_binary_opt::<i32>().map(Column::Binary),
        },
        Layout::Array(_) | Layout::Map(..) | Layout::Row(_) => {
            let mut bytes = Vec::new();
            let mut starts = Vec::with_capacity(array.len() + 1);
            for i in 0..array.len() {
                starts.push(bytes.len());
                if !array.is_null(i) {
                    write_nested(layout, array, i, &mut bytes)?;
                }
            }
            starts.push(bytes.len());
            Some(Column::Nested { bytes, starts })
        }
    };
    Ok(Prepared {
        column: column.ok_or_else(|| wrong_type(layout, array.data_type()))?,
        nulls: array.logical_nulls(),
    })
}

impl Column<'_> {
    /// Bytes that value `i`, which is not NULL, takes in the variable part.
    fn variable_size(&self, i: usize) -> usize {
        let bytes = |n: usize| if n <= 7 { 0 } else { aligned(n) };
        match self {
            Self::Decimal(_) => 16,
            Self::Timestamp(..) => 8,
            Self::Text(a) => bytes(a.value(i).len()),
            Self::Binary(a) => bytes(a.value(i).len()),
            Self::Nested { starts, .. } => aligned(starts[i + 1] - starts[i]),
            _ => 0,
        }
    }

    fn is_fixed(&self) -> bool {
        !matches!(
            self,
            Self::Decimal(_)
                | Self::Timestamp(..)
                | Self::Text(_)
                | Self::Binary(_)
                | Self::Nested { .. }
        )
    }
}

pub(super) fn encode_rows(
    codec: &BinaryRowCodec,
    columns: &[ArrayRef],
    len: usize,
    out: &mut BinaryRows,
) -> Result<()> {
    let columns: Vec<_> = codec
        .layouts
        .iter()
        .zip(columns)
        .map(|(layout, column)| prepare(layout, column))
        .collect::<Result<_>>()?;
    out.starts.clear();
    out.bytes.clear();
    // Where the variable part of a row is filled up to, from the row's begin.
    let mut cursors = Vec::new();
    let fixed = codec.fixed;
    let mut total = 0;
    if codec.all_fixed {
        out.starts
            .extend((0..=len).map(|i| u32::try_from(i * fixed).unwrap_or(u32::MAX)));
        total = len * fixed;
    } else {
        let mut sizes = vec![fixed; len];
        for Prepared { column, nulls } in columns.iter().filter(|c| !c.column.is_fixed()) {
            for (i, size) in sizes.iter_mut().enumerate() {
                if nulls.as_ref().is_none_or(|n| n.is_valid(i)) {
                    *size += column.variable_size(i);
                }
            }
        }
        out.starts.push(0);
        for size in sizes {
            total += size;
            out.starts.push(u32::try_from(total).unwrap_or(u32::MAX));
        }
        cursors.resize(len, u32::try_from(fixed).unwrap_or(u32::MAX));
    }
    if u32::try_from(total).is_err() {
        return Err(Error::execution("a batch of rows is larger than 4 GB"));
    }
    out.bytes.resize(total, 0);
    for (field, prepared) in columns.iter().enumerate() {
        let slot = codec.bitset + 8 * field;
        write_column(prepared, field + 8, slot, out, &mut cursors);
    }
    Ok(())
}

/// Writes a column's slots and variable parts into all rows.
fn write_column(
    prepared: &Prepared<'_>,
    null_bit: usize,
    slot: usize,
    out: &mut BinaryRows,
    cursors: &mut [u32],
) {
    let nulls = prepared.nulls.as_ref();
    macro_rules! each {
        ($put:expr) => {
            each_row(out, nulls, null_bit, $put)
        };
    }
    macro_rules! fixed {
        ($values:expr, $width:literal) => {
            each!(|row, i| {
                row[slot..slot + $width].copy_from_slice(&$values[i].to_le_bytes());
            })
        };
    }
    let mut variable = |row: &mut [u8], i: usize, lower: u32, value: &[u8], reserved: usize| {
        let at = cursors[i] as usize;
        row[slot..slot + 4].copy_from_slice(&lower.to_le_bytes());
        row[slot + 4..slot + 8].copy_from_slice(&cursors[i].to_le_bytes());
        row[at..at + value.len()].copy_from_slice(value);
        cursors[i] += u32::try_from(reserved).expect("checked with the batch's size");
    };
    match &prepared.column {
        Column::Null => each!(|row, _| set_bit(row, null_bit)),
        Column::Boolean(a) => each!(|row, i| row[slot] = u8::from(a.value(i))),
        Column::Int8(v) => fixed!(v, 1),
        Column::Int16(v) => fixed!(v, 2),
        Column::Int32(v) => fixed!(v, 4),
        Column::Int64(v) => fixed!(v, 8),
        Column::Float32(v) => each!(|row, i| {
            let value = if v[i].is_nan() { f32::NAN } else { v[i] };
            row[slot..slot + 4].copy_from_slice(&value.to_le_bytes());
        }),
        Column::Float64(v) => each!(|row, i| {
            let value = if v[i].is_nan() { f64::NAN } else { v[i] };
            row[slot..slot + 8].copy_from_slice(&value.to_le_bytes());
        }),
        Column::CompactDecimal(v) => each!(|row, i| {
            row[slot..slot + 8].copy_from_slice(&v[i].to_le_bytes()[..8]);
        }),
        Column::Decimal(v) => each!(|row, i| {
            let (buffer, skip) = big_endian(v[i]);
            variable(
                row,
                i,
                16 - u32::from(skip),
                &buffer[usize::from(skip)..],
                16,
            );
        }),
        Column::Timestamp(v, per_milli) => each!(|row, i| {
            let (millis, nanos) = split_timestamp(v[i], *per_milli);
            variable(row, i, nanos, &millis.to_le_bytes(), 8);
        }),
        Column::Text(a) => each!(|row, i| {
            let value = a.value(i).as_bytes();
            if !write_inline(row, slot, value) {
                variable(row, i, length(value), value, aligned(value.len()));
            }
        }),
        Column::Binary(a) => each!(|row, i| {
            let value = a.value(i);
            if !write_inline(row, slot, value) {
                variable(row, i, length(value), value, aligned(value.len()));
            }
        }),
        Column::Nested {
            bytes: nested,
            starts,
        } => each!(|row, i| {
            let value = &nested[starts[i]..starts[i + 1]];
            variable(row, i, length(value), value, aligned(value.len()));
        }),
    }
}

/// Marks the NULLs and hands every other row, with its index, to `put`.
fn each_row(
    out: &mut BinaryRows,
    nulls: Option<&NullBuffer>,
    null_bit: usize,
    mut put: impl FnMut(&mut [u8], usize),
) {
    let BinaryRows { bytes, starts } = out;
    for (i, ends) in starts.windows(2).enumerate() {
        let row = &mut bytes[ends[0] as usize..ends[1] as usize];
        if nulls.is_some_and(|n| n.is_null(i)) {
            set_bit(row, null_bit);
        } else {
            put(row, i);
        }
    }
}

fn length(value: &[u8]) -> u32 {
    u32::try_from(value.len()).expect("Arrow's 32-bit offsets bound a value")
}

/// Up to 7 bytes lie in the slot itself, their number in the last byte.
fn write_inline(row: &mut [u8], slot: usize, value: &[u8]) -> bool {
    let Ok(n @ 0..=7) = u8::try_from(value.len()) else {
        return false;
    };
    row[slot..slot + value.len()].copy_from_slice(value);
    row[slot + 7] = 0x80 | n;
    true
}

/// Big-endian bytes, and how many of them repeat the sign.
fn big_endian(value: i128) -> (Vec<u8>, u8) {
    let bytes = value.to_be_bytes();
    let sign = if value < 0 { 0xff } else { 0 };
    let mut skip = 0;
    while skip < 15 && bytes[skip] == sign && bytes[skip + 1] & 0x80 == sign & 0x80 {
        skip += 1;
    }
    (bytes.to_vec(), u8::try_from(skip).expect("at most 15"))
}

fn split_timestamp(value: i64, per_milli: i64) -> (i64, u32) {
    let nanos = value.rem_euclid(per_milli) * (1_000_000 / per_milli);
    (
        value.div_euclid(per_milli),
        u32::try_from(nanos).expect("below a million"),
    )
}

/// Appends the bytes of element `i` of a collection or row column, which is not NULL.
fn write_nested(layout: &Layout, array: &ArrayRef, i: usize, out: &mut Vec<u8>) -> Result<()> {
    let wrong = || wrong_type(layout, array.data_type());
    match layout {
        Layout::Array(element) => {
            let list = array.as_list_opt::<i32>().ok_or_else(wrong)?;
            write_array(element, &list.value(i), out)
        }
        Layout::Map(key, value) => {
            let map = array.as_map_opt().ok_or_else(wrong)?;
            let entries = map.value(i);
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            write_array(key, entries.column(0), out)?;
            let size = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
            out[start..start + 4].copy_from_slice(&size.to_le_bytes());
            write_array(value, entries.column(1), out)
        }
        Layout::Row(fields) => {
            let row = array.as_struct_opt().ok_or_else(wrong)?;
            let start = out.len();
            let bitset = bitset_size(fields.len());
            out.resize(start + bitset + 8 * fields.len(), 0);
            for (f, (field, column)) in fields.iter().zip(row.columns()).enumerate() {
                let slot = bitset + 8 * f;
                if column.is_null(i) {
                    set_bit(&mut out[start..], f + 8);
                } else {
                    write_value(field, column, i, start, slot, out)?;
                }
            }
            Ok(())
        }
        _ => Err(wrong()),
    }
}

fn write_array(element: &Layout, values: &ArrayRef, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let n = values.len();
    let header = array_header_size(n);
    let size = element.element_size();
    out.resize(start + aligned(header + n * size), 0);
    let count = u32::try_from(n).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&count.to_le_bytes());
    for i in 0..n {
        if values.is_null(i) {
            set_bit(&mut out[start..], 32 + i);
        } else {
            write_value(element, values, i, start, header + i * size, out)?;
        }
    }
    Ok(())
}

/// Writes value `i`, which is not NULL, into the slot at `slot` of what begins at `start`.
fn write_value(
    layout: &Layout,
    array: &ArrayRef,
    i: usize,
    start: usize,
    slot: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let at = start + slot;
    let slice = array.slice(i, 1);
    if matches!(layout, Layout::Array(_) | Layout::Map(..) | Layout::Row(_)) {
        let begin = out.len();
        write_nested(layout, array, i, out)?;
        let len = out.len() - begin;
        out.resize(begin + aligned(len), 0);
        point(
            out,
            at,
            begin - start,
            u32::try_from(len).unwrap_or(u32::MAX),
        );
        return Ok(());
    }
    let prepared = prepare(layout, &slice)?;
    match &prepared.column {
        Column::Null | Column::Nested { .. } => {}
        Column::Boolean(a) => out[at] = u8::from(a.value(0)),
        Column::Int8(v) => out[at..=at].copy_from_slice(&v[0].to_le_bytes()),
        Column::Int16(v) => out[at..at + 2].copy_from_slice(&v[0].to_le_bytes()),
        Column::Int32(v) => out[at..at + 4].copy_from_slice(&v[0].to_le_bytes()),
        Column::Int64(v) => out[at..at + 8].copy_from_slice(&v[0].to_le_bytes()),
        Column::Float32(v) => {
            let value = if v[0].is_nan() { f32::NAN } else { v[0] };
            out[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        Column::Float64(v) => {
            let value = if v[0].is_nan() { f64::NAN } else { v[0] };
            out[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        Column::CompactDecimal(v) => {
            out[at..at + 8].copy_from_slice(&v[0].to_le_bytes()[..8]);
        }
        Column::Decimal(v) => {
            let (bytes, skip) = big_endian(v[0]);
            let value = &bytes[usize::from(skip)..];
            append(out, start, at, length(value), value, 16);
        }
        Column::Timestamp(v, per_milli) => {
            let (millis, nanos) = split_timestamp(v[0], *per_milli);
            append(out, start, at, nanos, &millis.to_le_bytes(), 8);
        }
        Column::Text(a) => {
            let value = a.value(0).as_bytes();
            if !write_inline(out, at, value) {
                append(out, start, at, length(value), value, aligned(value.len()));
            }
        }
        Column::Binary(a) => {
            let value = a.value(0);
            if !write_inline(out, at, value) {
                append(out, start, at, length(value), value, aligned(value.len()));
            }
        }
    }
    Ok(())
}

fn append(out: &mut Vec<u8>, start: usize, at: usize, lower: u32, value: &[u8], reserved: usize) {
    let begin = out.len();
    out.extend_from_slice(value);
    out.resize(begin + reserved, 0);
    point(out, at, begin - start, lower);
}

fn point(out: &mut [u8], at: usize, offset: usize, lower: u32) {
    let offset = u32::try_from(offset).unwrap_or(u32::MAX);
    out[at..at + 4].copy_from_slice(&lower.to_le_bytes());
    out[at + 4..at + 8].copy_from_slice(&offset.to_le_bytes());
}
