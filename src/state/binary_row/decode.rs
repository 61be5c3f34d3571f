//! Binary rows to columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, ListArray, MapArray, NullArray,
    PrimitiveArray, StringArray, StructArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, DurationMillisecondType, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalYearMonthType,
    Time32MillisecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};

use super::{
    Layout, array_header_size, bitset_size, high, is_int32, is_null, low, word_at, wrong_type,
};
use crate::error::{Error, Result};

/// Where the values of a column lie.
pub(super) enum Cells<'a> {
    /// One field of rows; an empty row is NULL.
    Field {
        rows: &'a [&'a [u8]],
        null_bit: usize,
        slot: usize,
    },
    /// Elements of arrays, one after the other; NULL when the first part is empty.
    Elements(Vec<(&'a [u8], usize)>),
}

impl<'a> Cells<'a> {
    fn len(&self) -> usize {
        match self {
            Self::Field { rows, .. } => rows.len(),
            Self::Elements(cells) => cells.len(),
        }
    }

    /// The bytes that offsets of value `i` count from, and its slot; `None` if it is NULL.
    #[inline]
    fn get(&self, i: usize) -> Option<(&'a [u8], usize)> {
        match self {
            Self::Field {
                rows,
                null_bit,
                slot,
            } => {
                let row = rows[i];
                (!row.is_empty() && !is_null(row, *null_bit)).then_some((row, *slot))
            }
            Self::Elements(cells) => Some(cells[i]).filter(|(base, _)| !base.is_empty()),
        }
    }

    fn nulls(&self) -> Option<NullBuffer> {
        let valid = BooleanBuffer::collect_bool(self.len(), |i| self.get(i).is_some());
        let nulls = NullBuffer::new(valid);
        (nulls.null_count() > 0).then_some(nulls)
    }

    /// The bytes in the variable part that value `i` points at.
    #[inline]
    fn variable(&self, i: usize) -> Option<&'a [u8]> {
        self.get(i).map(|(base, slot)| {
            let word = word_at(base, slot);
            let offset = high(word);
            &base[offset..offset + low(word)]
        })
    }

    /// The bytes of a string or binary.
    #[inline]
    fn text(&self, i: usize) -> Option<&'a [u8]> {
        self.get(i).map(|(base, slot)| {
            let word = word_at(base, slot);
            if word[7] & 0x80 != 0 {
                let length = usize::from(word[7] & 0x7f);
                &base[slot..slot + length]
            } else {
                let offset = high(word);
                &base[offset..offset + low(word)]
            }
        })
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        read: impl Fn(&[u8], usize) -> T::Native,
    ) -> PrimitiveArray<T>
    where
        T::Native: Default,
    {
        let values: Vec<T::Native> = (0..self.len())
            .map(|i| {
                self.get(i)
                    .map_or_else(T::Native::default, |(base, slot)| read(base, slot))
            })
            .collect();
        PrimitiveArray::new(ScalarBuffer::from(values), self.nulls())
    }
}

macro_rules! read {
    ($type:ty) => {
        |base: &[u8], slot: usize| {
            <$type>::from_le_bytes(
                base[slot..slot + size_of::<$type>()]
                    .try_into()
                    .expect("as many bytes as the type has"),
            )
        }
    };
}

/// A column of values of `layout`, as `arrow`.
pub(super) fn decode_column(
    layout: &Layout,
    arrow: &ArrowType,
    cells: &Cells<'_>,
) -> Result<ArrayRef> {
    let array: ArrayRef = match layout {
        Layout::Null => Arc::new(NullArray::new(cells.len())),
        Layout::Boolean => {
            let values = BooleanBuffer::collect_bool(cells.len(), |i| {
                cells.get(i).is_some_and(|(base, slot)| base[slot] != 0)
            });
            Arc::new(BooleanArray::new(values, cells.nulls()))
        }
        Layout::Int8 => Arc::new(cells.primitive::<Int8Type>(read!(i8))),
        Layout::Int16 => Arc::new(cells.primitive::<Int16Type>(read!(i16))),
        Layout::Int32 if is_int32(arrow) => match arrow {
            ArrowType::Date32 => Arc::new(cells.primitive::<Date32Type>(read!(i32))),
            ArrowType::Time32(_) => Arc::new(cells.primitive::<Time32MillisecondType>(read!(i32))),
            ArrowType::Interval(_) => {
                Arc::new(cells.primitive::<IntervalYearMonthType>(read!(i32)))
            }
            _ => Arc::new(cells.primitive::<Int32Type>(read!(i32))),
        },
        Layout::Int64 | Layout::CompactTimestamp => match arrow {
            ArrowType::Duration(_) => {
                Arc::new(cells.primitive::<DurationMillisecondType>(read!(i64)))
            }
            ArrowType::Timestamp(_, zone) => Arc::new(
                cells
                    .primitive::<TimestampMillisecondType>(read!(i64))
                    .with_timezone_opt(zone.clone()),
            ),
            _ => Arc::new(cells.primitive::<Int64Type>(read!(i64))),
        },
        Layout::Float32 => Arc::new(cells.primitive::<Float32Type>(read!(f32))),
        Layout::Float64 => Arc::new(cells.primitive::<Float64Type>(read!(f64))),
        Layout::CompactDecimal => {
            let read = read!(i64);
            let values = cells.primitive::<Decimal128Type>(|b, s| i128::from(read(b, s)));
            Arc::new(values.with_data_type(arrow.clone()))
        }
        Layout::Decimal => {
            let values = cells.primitive::<Decimal128Type>(|base, slot| {
                let word = word_at(base, slot);
                let bytes = &base[high(word)..high(word) + low(word)];
                let sign = if bytes[0] & 0x80 != 0 { 0xff } else { 0 };
                let mut buffer = [sign; 16];
                buffer[16 - bytes.len()..].copy_from_slice(bytes);
                i128::from_be_bytes(buffer)
            });
            Arc::new(values.with_data_type(arrow.clone()))
        }
        Layout::Timestamp { per_milli } => timestamp(cells, *per_milli, arrow)?,
        Layout::Bytes => bytes(cells, arrow)?,
        Layout::Array(element) => array(element, arrow, cells)?,
        Layout::Map(key, value) => map(key, value, arrow, cells)?,
        Layout::Row(fields) => row(fields, arrow, cells)?,
        Layout::Int32 => return Err(wrong_type(layout, arrow)),
    };
    Ok(array)
}

fn timestamp(cells: &Cells<'_>, per_milli: i64, arrow: &ArrowType) -> Result<ArrayRef> {
    let read = |base: &[u8], slot: usize| {
        let word = word_at(base, slot);
        let millis = i64::from_le_bytes(word_at(base, high(word)));
        let nanos = i64::try_from(low(word)).unwrap_or(0);
        millis
            .wrapping_mul(per_milli)
            .wrapping_add(nanos / (1_000_000 / per_milli))
    };
    Ok(match arrow {
        ArrowType::Timestamp(TimeUnit::Microsecond, zone) => Arc::new(
            cells
                .primitive::<TimestampMicrosecondType>(read)
                .with_timezone_opt(zone.clone()),
        ),
        ArrowType::Timestamp(TimeUnit::Nanosecond, zone) => Arc::new(
            cells
                .primitive::<TimestampNanosecondType>(read)
                .with_timezone_opt(zone.clone()),
        ),
        _ => return Err(wrong_type(&Layout::Timestamp { per_milli }, arrow)),
    })
}

fn bytes(cells: &Cells<'_>, arrow: &ArrowType) -> Result<ArrayRef> {
    let mut offsets = Vec::with_capacity(cells.len() + 1);
    let mut total = 0_usize;
    offsets.push(0);
    for i in 0..cells.len() {
        total += cells.text(i).map_or(0, <[u8]>::len);
        offsets.push(offset(total)?);
    }
    let mut values = Vec::with_capacity(total);
    for i in 0..cells.len() {
        values.extend_from_slice(cells.text(i).unwrap_or_default());
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let values = Buffer::from_vec(values);
    Ok(match arrow {
        ArrowType::Utf8 => Arc::new(StringArray::try_new(offsets, values, cells.nulls())?),
        _ => Arc::new(BinaryArray::try_new(offsets, values, cells.nulls())?),
    })
}

fn offset(n: usize) -> Result<i32> {
    i32::try_from(n).map_err(|_| Error::execution("more than 2 GB of values in one column"))
}

/// Number of elements of an array, and its elements.
fn elements<'a>(layout: &Layout, array: &'a [u8], out: &mut Vec<(&'a [u8], usize)>) -> usize {
    let count = u32::from_le_bytes(array[..4].try_into().expect("four bytes")) as usize;
    let header = array_header_size(count);
    let size = layout.element_size();
    out.extend((0..count).map(|i| {
        if is_null(array, 32 + i) {
            (&[] as &[u8], 0)
        } else {
            (array, header + i * size)
        }
    }));
    count
}

fn array(element: &Layout, arrow: &ArrowType, cells: &Cells<'_>) -> Result<ArrayRef> {
    let ArrowType::List(field) = arrow else {
        return Err(wrong_type(element, arrow));
    };
    let mut inner = Vec::new();
    let mut offsets = vec![0];
    for i in 0..cells.len() {
        if let Some(bytes) = cells.variable(i) {
            elements(element, bytes, &mut inner);
        }
        offsets.push(offset(inner.len())?);
    }
    let values = decode_column(element, field.data_type(), &Cells::Elements(inner))?;
    Ok(Arc::new(ListArray::try_new(
        Arc::clone(field),
        OffsetBuffer::new(ScalarBuffer::from(offsets)),
        values,
        cells.nulls(),
    )?))
}

fn map(key: &Layout, value: &Layout, arrow: &ArrowType, cells: &Cells<'_>) -> Result<ArrayRef> {
    let ArrowType::Map(entries, sorted) = arrow else {
        return Err(wrong_type(key, arrow));
    };
    let ArrowType::Struct(fields) = entries.data_type() else {
        return Err(wrong_type(key, arrow));
    };
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    let mut offsets = vec![0];
    for i in 0..cells.len() {
        if let Some(bytes) = cells.variable(i) {
            let size = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
            elements(key, &bytes[4..4 + size], &mut keys);
            elements(value, &bytes[4 + size..], &mut values);
        }
        offsets.push(offset(keys.len())?);
    }
    let keys = decode_column(key, fields[0].data_type(), &Cells::Elements(keys))?;
    let values = decode_column(value, fields[1].data_type(), &Cells::Elements(values))?;
    Ok(Arc::new(MapArray::try_new(
        Arc::clone(entries),
        OffsetBuffer::new(ScalarBuffer::from(offsets)),
        StructArray::try_new(fields.clone(), vec![keys, values], None)?,
        cells.nulls(),
        *sorted,
    )?))
}

fn row(layouts: &[Layout], arrow: &ArrowType, cells: &Cells<'_>) -> Result<ArrayRef> {
    let ArrowType::Struct(fields) = arrow else {
        return Err(Error::internal("a nested row met a column that is none"));
    };
    let rows: Vec<&[u8]> = (0..cells.len())
        .map(|i| cells.variable(i).unwrap_or_default())
        .collect();
    let bitset = bitset_size(layouts.len());
    let columns = layouts
        .iter()
        .zip(fields)
        .enumerate()
        .map(|(f, (layout, field))| {
            let cells = Cells::Field {
                rows: &rows,
                null_bit: f + 8,
                slot: bitset + 8 * f,
            };
            decode_column(layout, field.data_type(), &cells)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new_with_length(
        fields.clone(),
        columns,
        cells.nulls(),
        cells.len(),
    )?))
}
