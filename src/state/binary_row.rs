//! Rows in the byte layout of Flink's `BinaryRowData`.
//!
//! Equal rows have equal bytes, their [`hash`] is the one that Flink computes, and so the order in
//! which Flink's heap state walks over a map of rows can be followed ([`super::java_map`]). All fields
//! of a row lie side by side: reading a row at random costs one cache miss, not one a column.
//!
//! ```text
//! | header 8 bits | null bits ... 64-bit aligned | one 8-byte slot a field | variable part |
//! ```
//!
//! A slot holds the value, or the offset (upper half) and length (lower half) of its bytes in the
//! variable part; up to 7 bytes of a string lie in the slot. The layout MUST not be written to disk:
//! checkpoints hold typed columns.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType as ArrowType, IntervalUnit, TimeUnit};

use crate::error::{Error, Result};
use crate::types::{DataType, TypeKind};

/// How the values of a type lie in a row.
#[derive(Debug, Clone, PartialEq)]
enum Layout {
    Null,
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
    /// `DECIMAL` of up to 18 digits: its unscaled value.
    CompactDecimal,
    /// `DECIMAL` of more digits: 16 bytes of the variable part.
    Decimal,
    /// Milliseconds.
    CompactTimestamp,
    /// Finer timestamps: milliseconds in the variable part, nanoseconds of the millisecond in the
    /// slot. The value counts as many units to the millisecond.
    Timestamp {
        per_milli: i64,
    },
    /// Strings and binaries.
    Bytes,
    Array(Box<Layout>),
    Map(Box<Layout>, Box<Layout>),
    Row(Vec<Layout>),
}

impl Layout {
    fn of(kind: &TypeKind) -> Self {
        let element = |t: &DataType| Box::new(Self::of(&t.kind));
        match kind {
            TypeKind::Null => Self::Null,
            TypeKind::Boolean => Self::Boolean,
            TypeKind::TinyInt => Self::Int8,
            TypeKind::SmallInt => Self::Int16,
            TypeKind::Int | TypeKind::Date | TypeKind::Time(_) | TypeKind::IntervalYearMonth => {
                Self::Int32
            }
            TypeKind::BigInt | TypeKind::IntervalDayTime => Self::Int64,
            TypeKind::Float => Self::Float32,
            TypeKind::Double => Self::Float64,
            TypeKind::Decimal(p, _) if *p <= 18 => Self::CompactDecimal,
            TypeKind::Decimal(..) => Self::Decimal,
            TypeKind::Timestamp(p) | TypeKind::TimestampLtz(p) => match p {
                0..=3 => Self::CompactTimestamp,
                4..=6 => Self::Timestamp { per_milli: 1_000 },
                _ => Self::Timestamp {
                    per_milli: 1_000_000,
                },
            },
            TypeKind::Char(_)
            | TypeKind::VarChar(_)
            | TypeKind::Binary(_)
            | TypeKind::VarBinary(_)
            | TypeKind::Variant
            | TypeKind::Bitmap => Self::Bytes,
            TypeKind::Array(e) => Self::Array(element(e)),
            TypeKind::Map(k, v) => Self::Map(element(k), element(v)),
            TypeKind::Multiset(e) => Self::Map(element(e), Box::new(Self::Int32)),
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                Self::Row(fields.iter().map(|f| Self::of(&f.data_type.kind)).collect())
            }
        }
    }

    /// Whether the slot holds the whole value of any row.
    fn is_fixed(&self) -> bool {
        !matches!(
            self,
            Self::Decimal
                | Self::Timestamp { .. }
                | Self::Bytes
                | Self::Array(_)
                | Self::Map(..)
                | Self::Row(_)
        )
    }

    /// Bytes of an element in an array.
    fn element_size(&self) -> usize {
        match self {
            Self::Boolean | Self::Int8 => 1,
            Self::Int16 => 2,
            Self::Int32 | Self::Float32 => 4,
            _ => 8,
        }
    }
}

/// Bytes before the slots of a row of `arity` fields.
fn bitset_size(arity: usize) -> usize {
    (arity + 63 + 8) / 64 * 8
}

/// Bytes before the elements of an array of `len` elements.
fn array_header_size(len: usize) -> usize {
    4 + len.div_ceil(32) * 4
}

fn aligned(n: usize) -> usize {
    n.div_ceil(8) * 8
}

/// Translates between columns and binary rows of some types.
#[derive(Debug, Clone)]
pub struct BinaryRowCodec {
    layouts: Vec<Layout>,
    types: Vec<ArrowType>,
    /// Bytes before the variable part.
    fixed: usize,
    bitset: usize,
    all_fixed: bool,
}

/// The rows of a batch as binary rows. A buffer to be reused from batch to batch.
#[derive(Debug, Default)]
pub struct BinaryRows {
    bytes: Vec<u8>,
    /// Where a row begins; one entry more than rows.
    starts: Vec<u32>,
}

impl BinaryRows {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of row `i`.
    #[must_use]
    #[inline]
    pub fn get(&self, i: usize) -> &[u8] {
        &self.bytes[self.starts[i] as usize..self.starts[i + 1] as usize]
    }
}

impl BinaryRowCodec {
    /// A codec of rows with fields of these types.
    #[must_use]
    pub fn new(types: &[DataType]) -> Self {
        let layouts: Vec<_> = types.iter().map(|t| Layout::of(&t.kind)).collect();
        let bitset = bitset_size(layouts.len());
        Self {
            all_fixed: layouts.iter().all(Layout::is_fixed),
            fixed: bitset + 8 * layouts.len(),
            bitset,
            types: types.iter().map(DataType::to_arrow).collect(),
            layouts,
        }
    }

    /// Encodes `len` rows into `out`, replacing what is there.
    ///
    /// # Errors
    /// When the columns are not of the codec's types.
    pub fn encode(&self, columns: &[ArrayRef], len: usize, out: &mut BinaryRows) -> Result<()> {
        if columns.len() != self.layouts.len() {
            return Err(Error::internal("a row codec met another number of columns"));
        }
        encode::encode_rows(self, columns, len, out)
    }

    /// The columns of rows that this codec encoded. An empty slice stands for a row of NULLs.
    ///
    /// # Errors
    /// When the bytes are not of this codec.
    pub fn decode(&self, rows: &[&[u8]]) -> Result<Vec<ArrayRef>> {
        (0..self.layouts.len())
            .map(|field| self.decode_field(rows, field))
            .collect()
    }

    /// One column of rows that this codec encoded. An empty slice stands for a row of NULLs.
    ///
    /// # Errors
    /// When the bytes are not of this codec.
    pub fn decode_field(&self, rows: &[&[u8]], field: usize) -> Result<ArrayRef> {
        decode::decode_column(
            &self.layouts[field],
            &self.types[field],
            &decode::Cells::Field {
                rows,
                null_bit: field + 8,
                slot: self.bitset + 8 * field,
            },
        )
    }

    /// Writes the row of some fields of `row`, in that order, into `out`.
    pub fn project(&self, row: &[u8], fields: &[usize], out: &mut Vec<u8>) {
        let bitset = bitset_size(fields.len());
        out.clear();
        out.resize(bitset + 8 * fields.len(), 0);
        for (target, field) in fields.iter().enumerate() {
            let slot = bitset + 8 * target;
            if is_null(row, field + 8) {
                set_bit(out, target + 8);
                continue;
            }
            let source = self.bitset + 8 * field;
            let word: [u8; 8] = word_at(row, source);
            let (offset, length) = match &self.layouts[*field] {
                Layout::Bytes if word[7] & 0x80 != 0 => {
                    out[slot..slot + 8].copy_from_slice(&word);
                    continue;
                }
                layout if layout.is_fixed() => {
                    out[slot..slot + 8].copy_from_slice(&word);
                    continue;
                }
                Layout::Timestamp { .. } => (high(word), 8),
                Layout::Decimal => (high(word), 16),
                _ => (high(word), low(word)),
            };
            let start = out.len();
            out.extend_from_slice(&row[offset..offset + length]);
            out.resize(start + aligned(length), 0);
            let offset = u32::try_from(start).expect("a row has less than 4 GB");
            out[slot..slot + 4].copy_from_slice(&word[..4]);
            out[slot + 4..slot + 8].copy_from_slice(&offset.to_le_bytes());
        }
    }
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> [u8; 8] {
    bytes[at..at + 8].try_into().expect("eight bytes")
}

/// The lower half of a slot: a length.
#[inline]
fn low(word: [u8; 8]) -> usize {
    u32::from_le_bytes([word[0], word[1], word[2], word[3]]) as usize
}

/// The upper half of a slot: an offset.
#[inline]
fn high(word: [u8; 8]) -> usize {
    u32::from_le_bytes([word[4], word[5], word[6], word[7]]) as usize
}

#[inline]
fn is_null(bytes: &[u8], bit: usize) -> bool {
    bytes[bit / 8] >> (bit % 8) & 1 == 1
}

#[inline]
fn set_bit(bytes: &mut [u8], bit: usize) {
    bytes[bit / 8] |= 1 << (bit % 8);
}

/// The hash that Flink's `BinaryRowData` has: Murmur3 over 32-bit words.
#[must_use]
#[inline]
pub fn hash(row: &[u8]) -> u32 {
    let mut h = 42_u32;
    let (words, _) = row.as_chunks::<4>();
    for word in words {
        let k = u32::from_le_bytes(*word)
            .wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593);
        h = (h ^ k)
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    #[allow(clippy::cast_possible_truncation)] // rows have less than 4 GB
    let length = row.len() as u32;
    h ^= length;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

/// Whether the Arrow type is carried as 32-bit integers.
fn is_int32(t: &ArrowType) -> bool {
    matches!(
        t,
        ArrowType::Int32
            | ArrowType::Date32
            | ArrowType::Time32(TimeUnit::Millisecond)
            | ArrowType::Interval(IntervalUnit::YearMonth)
    )
}

fn wrong_type(expected: &Layout, found: &ArrowType) -> Error {
    Error::internal(format!(
        "a row field of layout {expected:?} met a column of type {found}"
    ))
}
