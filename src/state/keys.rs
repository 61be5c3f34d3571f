//! Keys of keyed state: columns to canonical bytes and hashes, once a batch, and the table that
//! gives every key a dense slot number.
//!
//! Two rows have one key exactly if their bytes are equal: NULL equals NULL, all NaN are one value,
//! 0.0 and -0.0 are two. Bytes and hashes are for memory only; checkpoints hold columns.

mod changes;
mod table;

use std::hash::{BuildHasher, Hasher};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, StringBuilder};
use arrow::buffer::NullBuffer;
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, DurationMillisecondType, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};
use foldhash::fast::FixedState;

use super::rows::{EncodedRows, RowCodec};
use crate::error::{Error, Result};
use crate::types::DataType;

pub use changes::{Changed, KeyBytes};
pub use table::KeyTable;

/// Stands for "no slot".
pub const NO_SLOT: u32 = u32::MAX;

const NULL_HASH: u64 = 0x9e37_79b9_7f4a_7c15;

/// Turns key columns into [`EncodedKeys`] and back.
#[derive(Debug)]
pub struct KeyEncoder {
    layout: Layout,
    columns: usize,
}

#[derive(Debug)]
enum Layout {
    /// No key columns: all rows have the empty key.
    Empty,
    /// One column whose values fit eight bytes.
    Word(ArrowType),
    /// One string column: a 1 and the text; a 0 for NULL.
    Text,
    /// Anything else.
    Rows(RowCodec),
}

/// The keys of one batch. A buffer to be reused from batch to batch.
#[derive(Debug, Default)]
pub struct EncodedKeys {
    form: Form,
    hashes: Vec<u64>,
    nulls: Option<NullBuffer>,
}

#[derive(Debug, Default)]
enum Form {
    #[default]
    Empty,
    /// Little-endian; NULL is the empty string.
    Words(Vec<[u8; 8]>),
    Text {
        data: Vec<u8>,
        ends: Vec<usize>,
    },
    Rows(EncodedRows),
}

impl EncodedKeys {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The key of row `i`.
    #[must_use]
    pub fn bytes(&self, i: usize) -> &[u8] {
        match &self.form {
            Form::Empty => &[],
            Form::Words(_) if self.has_null(i) => &[],
            Form::Words(words) => &words[i],
            Form::Text { data, ends } => {
                let start = if i == 0 { 0 } else { ends[i - 1] };
                &data[start..ends[i]]
            }
            Form::Rows(rows) => rows.bytes(i),
        }
    }

    /// The hash of the key of row `i`.
    #[must_use]
    pub fn hash(&self, i: usize) -> u64 {
        self.hashes[i]
    }

    /// Whether a column of the key is NULL in row `i`.
    #[must_use]
    pub fn has_null(&self, i: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(i))
    }

    /// Whether a column of the key is NULL in any row.
    #[must_use]
    pub fn any_null(&self) -> bool {
        self.nulls.as_ref().is_some_and(|n| n.null_count() > 0)
    }
}

impl KeyEncoder {
    /// An encoder of keys of these types.
    ///
    /// # Errors
    /// When a type has no row form.
    pub fn new(types: &[DataType]) -> Result<Self> {
        let types: Vec<_> = types.iter().map(DataType::to_arrow).collect();
        Self::of_arrow(&types)
    }

    /// An encoder of keys of these Arrow types.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn of_arrow(types: &[ArrowType]) -> Result<Self> {
        let layout = match types {
            [] => Layout::Empty,
            [one] if is_word(one) => Layout::Word(one.clone()),
            [ArrowType::Utf8] => Layout::Text,
            _ => {
                let fields = types.iter().map(|t| (t.clone(), SortOptions::default()));
                Layout::Rows(RowCodec::of_arrow(fields)?)
            }
        };
        Ok(Self {
            layout,
            columns: types.len(),
        })
    }

    /// Number of key columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Encodes the keys of `len` rows into `out`, replacing what is there.
    ///
    /// # Errors
    /// When the columns are not of the encoder's types.
    pub fn encode(&self, columns: &[ArrayRef], len: usize, out: &mut EncodedKeys) -> Result<()> {
        if columns.len() != self.columns || columns.iter().any(|c| c.len() != len) {
            return Err(Error::internal("key columns do not fit the encoder"));
        }
        out.hashes.clear();
        out.nulls = columns.iter().fold(None, |nulls, column| {
            NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
        });
        match &self.layout {
            Layout::Empty => {
                out.form = Form::Empty;
                out.hashes.resize(len, hash_bytes(&[]));
            }
            Layout::Word(_) => {
                let words = out.words();
                words.clear();
                append_words(&columns[0], words)?;
                out.hash_words();
            }
            Layout::Text => out.encode_text(&columns[0])?,
            Layout::Rows(codec) => {
                if !matches!(out.form, Form::Rows(_)) {
                    out.form = Form::Rows(EncodedRows::default());
                }
                let Form::Rows(rows) = &mut out.form else {
                    unreachable!("set above")
                };
                codec.encode(columns, len, rows)?;
                out.hashes
                    .extend((0..len).map(|i| hash_bytes(rows.bytes(i))));
            }
        }
        Ok(())
    }

    /// The key columns of keys in bytes.
    ///
    /// # Errors
    /// When the bytes are not of this encoder.
    pub fn decode<'a>(&self, keys: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        match &self.layout {
            Layout::Empty => Ok(Vec::new()),
            Layout::Word(t) => {
                let words: PrimitiveArray<Int64Type> = keys
                    .into_iter()
                    .map(|bytes| bytes.try_into().ok().map(i64::from_le_bytes))
                    .collect();
                Ok(vec![from_words(&words, t)?])
            }
            Layout::Text => {
                let mut builder = StringBuilder::new();
                for key in keys {
                    match key.split_first() {
                        Some((1, text)) => builder.append_value(
                            std::str::from_utf8(text)
                                .map_err(|_| Error::internal("a string key is not UTF-8"))?,
                        ),
                        _ => builder.append_null(),
                    }
                }
                Ok(vec![std::sync::Arc::new(builder.finish())])
            }
            Layout::Rows(codec) => codec.decode(keys),
        }
    }

    /// An empty table for keys of this encoder.
    #[must_use]
    pub fn table(&self) -> KeyTable {
        KeyTable::new(matches!(self.layout, Layout::Word(_)))
    }
}

impl EncodedKeys {
    fn words(&mut self) -> &mut Vec<[u8; 8]> {
        if !matches!(self.form, Form::Words(_)) {
            self.form = Form::Words(Vec::new());
        }
        match &mut self.form {
            Form::Words(words) => words,
            _ => unreachable!("set above"),
        }
    }

    fn hash_words(&mut self) {
        let Form::Words(words) = &self.form else {
            return;
        };
        self.hashes
            .extend(words.iter().map(|w| hash_word(u64::from_le_bytes(*w))));
        if let Some(nulls) = self.nulls.as_ref().filter(|n| n.null_count() > 0) {
            for (hash, valid) in self.hashes.iter_mut().zip(nulls) {
                if !valid {
                    *hash = NULL_HASH;
                }
            }
        }
    }

    fn encode_text(&mut self, column: &ArrayRef) -> Result<()> {
        let texts = column
            .as_string_opt::<i32>()
            .ok_or_else(|| Error::internal("a string key is not Utf8"))?;
        if !matches!(self.form, Form::Text { .. }) {
            self.form = Form::Text {
                data: Vec::new(),
                ends: Vec::new(),
            };
        }
        let Form::Text { data, ends } = &mut self.form else {
            unreachable!("set above")
        };
        data.clear();
        ends.clear();
        for i in 0..texts.len() {
            let start = data.len();
            if texts.is_null(i) {
                data.push(0);
            } else {
                data.push(1);
                data.extend_from_slice(texts.value(i).as_bytes());
            }
            ends.push(data.len());
            self.hashes.push(hash_bytes(&data[start..]));
        }
        Ok(())
    }
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    const STATE: FixedState = FixedState::with_seed(0x5eed);
    let mut hasher = STATE.build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

#[inline]
fn hash_word(word: u64) -> u64 {
    let product = u128::from(word ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15_u128;
    #[allow(clippy::cast_possible_truncation)] // folding the two halves is the point
    let folded = (product as u64) ^ ((product >> 64) as u64);
    folded
}

fn is_word(t: &ArrowType) -> bool {
    matches!(
        t,
        ArrowType::Int8
            | ArrowType::Int16
            | ArrowType::Int32
            | ArrowType::Int64
            | ArrowType::Date32
            | ArrowType::Time32(TimeUnit::Millisecond)
            | ArrowType::Duration(TimeUnit::Millisecond)
            | ArrowType::Timestamp(
                TimeUnit::Millisecond | TimeUnit::Microsecond | TimeUnit::Nanosecond,
                _
            )
    )
}

fn append_words(column: &ArrayRef, words: &mut Vec<[u8; 8]>) -> Result<()> {
    fn append<T: ArrowPrimitiveType>(column: &ArrayRef, words: &mut Vec<[u8; 8]>) -> Option<()>
    where
        T::Native: Into<i64>,
    {
        let values = column.as_primitive_opt::<T>()?.values();
        words.extend(values.iter().map(|v| Into::<i64>::into(*v).to_le_bytes()));
        Some(())
    }
    match column.data_type() {
        ArrowType::Int8 => append::<Int8Type>(column, words),
        ArrowType::Int16 => append::<Int16Type>(column, words),
        ArrowType::Int32 => append::<Int32Type>(column, words),
        ArrowType::Int64 => append::<Int64Type>(column, words),
        ArrowType::Date32 => append::<Date32Type>(column, words),
        ArrowType::Time32(_) => append::<Time32MillisecondType>(column, words),
        ArrowType::Duration(_) => append::<DurationMillisecondType>(column, words),
        ArrowType::Timestamp(TimeUnit::Millisecond, _) => {
            append::<TimestampMillisecondType>(column, words)
        }
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            append::<TimestampMicrosecondType>(column, words)
        }
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => {
            append::<TimestampNanosecondType>(column, words)
        }
        _ => None,
    }
    .ok_or_else(|| Error::internal("a key column has another type than the encoder"))
}

fn from_words(words: &PrimitiveArray<Int64Type>, t: &ArrowType) -> Result<ArrayRef> {
    // Arrow casts 64-bit integers to 32-bit temporal types by way of Int32 only.
    let narrow = matches!(t, ArrowType::Date32 | ArrowType::Time32(_));
    if narrow {
        return Ok(cast(&cast(words, &ArrowType::Int32)?, t)?);
    }
    Ok(cast(words, t)?)
}

/// Grows a vector to `len`, with little slack once it is large.
pub(crate) fn grow<T: Clone>(values: &mut Vec<T>, len: usize, fill: T) {
    if len > values.capacity() {
        let slack = if len < 1 << 16 { len } else { len / 4 };
        values.reserve_exact(len + slack - values.len());
    }
    values.resize(len, fill);
}

#[cfg(test)]
mod tests;
