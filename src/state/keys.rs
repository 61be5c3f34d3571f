//! Keys of keyed state: columns to canonical bytes and hashes, once a batch, and the table that
//! gives every key a dense slot number.
//!
//! Two rows have one key exactly if their bytes are equal: NULL equals NULL, all NaN are one value,
//! 0.0 and -0.0 are two. Bytes and hashes are for memory only; checkpoints hold columns.

use std::hash::{BuildHasher, Hasher};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, StringBuilder};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, DurationMillisecondType, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::arena::{ByteArena, Offset, VACANT};
use super::rows::{EncodedRows, RowCodec};
use crate::error::{Error, Result};
use crate::types::DataType;

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
        let layout = match types {
            [] => Layout::Empty,
            [one] => match one.to_arrow() {
                t if is_word(&t) => Layout::Word(t),
                ArrowType::Utf8 => Layout::Text,
                _ => Layout::Rows(RowCodec::new(types)?),
            },
            _ => Layout::Rows(RowCodec::new(types)?),
        };
        Ok(Self {
            layout,
            columns: types.len(),
        })
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
        KeyTable {
            table: HashTable::new(),
            keys: match &self.layout {
                Layout::Word(_) => Keys::Words {
                    words: Vec::new(),
                    live: Vec::new(),
                    null_slot: NO_SLOT,
                },
                _ => Keys::Bytes {
                    arena: ByteArena::default(),
                    offsets: Vec::new(),
                },
            },
            slots: 0,
            free: Vec::new(),
            vacated: Vec::new(),
        }
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

/// Gives every key a slot: a small number, dense but for freed slots, by which operators address
/// their columns of state.
#[derive(Debug)]
pub struct KeyTable {
    table: HashTable<u32>,
    keys: Keys,
    /// Slots given out so far, freed ones included.
    slots: u32,
    free: Vec<u32>,
    /// Freed since the last call of `intern`.
    vacated: Vec<u32>,
}

#[derive(Debug)]
enum Keys {
    Words {
        words: Vec<[u8; 8]>,
        /// One bit a slot.
        live: Vec<u64>,
        null_slot: u32,
    },
    Bytes {
        arena: ByteArena,
        offsets: Vec<Offset>,
    },
}

impl KeyTable {
    /// The slots of all keys, made for those that are new; `fresh` receives the rows in which a key
    /// was seen for the first time. Both are replaced.
    ///
    /// Slots freed before this call may be given out, those freed after it are not until the next.
    ///
    /// # Errors
    /// When there are more than 2^32 - 2 keys.
    pub fn intern(
        &mut self,
        keys: &EncodedKeys,
        slots: &mut Vec<u32>,
        fresh: &mut Vec<u32>,
    ) -> Result<()> {
        self.free.append(&mut self.vacated);
        slots.clear();
        slots.reserve(keys.len());
        fresh.clear();
        if matches!(keys.form, Form::Empty) && !keys.is_empty() {
            let (slot, new) = self.intern_one(keys, 0)?;
            slots.resize(keys.len(), slot);
            fresh.extend(new.then_some(0));
            return Ok(());
        }
        for i in 0..keys.len() {
            let mut slot = self.find_one(keys, i);
            if slot == NO_SLOT {
                slot = self.add(keys, i)?;
                fresh.push(u32::try_from(i).expect("a batch has fewer than 2^32 rows"));
            }
            slots.push(slot);
        }
        Ok(())
    }

    /// The slot of the key of one row, made if it is new (then `true`). Does not give out slots
    /// freed since the last [`intern`](Self::intern).
    ///
    /// # Errors
    /// When there are more than 2^32 - 2 keys.
    pub fn intern_one(&mut self, keys: &EncodedKeys, i: usize) -> Result<(u32, bool)> {
        match self.find_one(keys, i) {
            NO_SLOT => Ok((self.add(keys, i)?, true)),
            slot => Ok((slot, false)),
        }
    }

    /// The slots of all keys, [`NO_SLOT`] for one that is not there. Replaces `slots`.
    pub fn find(&self, keys: &EncodedKeys, slots: &mut Vec<u32>) {
        slots.clear();
        slots.extend((0..keys.len()).map(|i| self.find_one(keys, i)));
    }

    /// The slot of the key of row `i`, or [`NO_SLOT`].
    #[must_use]
    #[inline]
    pub fn find_one(&self, keys: &EncodedKeys, i: usize) -> u32 {
        let hash = keys.hash(i);
        let found = match (&self.keys, &keys.form) {
            (
                Keys::Words {
                    words, null_slot, ..
                },
                Form::Words(new),
            ) => {
                if keys.has_null(i) {
                    return *null_slot;
                }
                let word = new[i];
                self.table.find(hash, |slot| words[*slot as usize] == word)
            }
            (Keys::Bytes { arena, offsets }, _) => {
                let bytes = keys.bytes(i);
                self.table
                    .find(hash, |slot| arena.get(offsets[*slot as usize]) == bytes)
            }
            (Keys::Words { .. }, _) => None,
        };
        found.copied().unwrap_or(NO_SLOT)
    }

    fn add(&mut self, keys: &EncodedKeys, i: usize) -> Result<u32> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots == NO_SLOT => {
                return Err(Error::state("more than 2^32 keys in one operator"));
            }
            None => {
                self.slots += 1;
                self.slots - 1
            }
        };
        let index = slot as usize;
        let hash = keys.hash(i);
        match (&mut self.keys, &keys.form) {
            (
                Keys::Words {
                    words,
                    live,
                    null_slot,
                },
                Form::Words(new),
            ) => {
                if index >= words.len() {
                    grow(words, index + 1, [0; 8]);
                    live.resize(index / 64 + 1, 0);
                }
                live[index / 64] |= 1 << (index % 64);
                if keys.has_null(i) {
                    *null_slot = slot;
                    return Ok(slot);
                }
                words[index] = new[i];
                let rehash = |s: &u32| hash_word(u64::from_le_bytes(words[*s as usize]));
                self.table.insert_unique(hash, slot, rehash);
            }
            (Keys::Bytes { arena, offsets }, _) => {
                if index >= offsets.len() {
                    grow(offsets, index + 1, VACANT);
                }
                offsets[index] = arena.push(keys.bytes(i));
                self.table
                    .insert_unique(hash, slot, |s| hash_bytes(arena.get(offsets[*s as usize])));
            }
            (Keys::Words { .. }, _) => {
                return Err(Error::internal("keys of another encoder"));
            }
        }
        Ok(slot)
    }

    /// Forgets the key of a slot that is in use. The slot is given out again after the next batch
    /// has begun.
    pub fn remove(&mut self, slot: u32) {
        let index = slot as usize;
        match &mut self.keys {
            Keys::Words {
                words,
                live,
                null_slot,
            } => {
                live[index / 64] &= !(1 << (index % 64));
                if *null_slot == slot {
                    *null_slot = NO_SLOT;
                } else {
                    let hash = hash_word(u64::from_le_bytes(words[index]));
                    if let Ok(entry) = self.table.find_entry(hash, |s| *s == slot) {
                        entry.remove();
                    }
                }
            }
            Keys::Bytes { arena, offsets } => {
                if let Ok(entry) = self
                    .table
                    .find_entry(hash_bytes(arena.get(offsets[index])), |s| *s == slot)
                {
                    entry.remove();
                }
                arena.release(std::mem::replace(&mut offsets[index], VACANT));
                if arena.wants_compaction() {
                    arena.compact(offsets.iter_mut());
                }
            }
        }
        self.vacated.push(slot);
    }

    /// Whether the slot holds a key.
    #[must_use]
    pub fn is_live(&self, slot: u32) -> bool {
        let index = slot as usize;
        match &self.keys {
            Keys::Words { live, .. } => live
                .get(index / 64)
                .is_some_and(|bits| bits >> (index % 64) & 1 == 1),
            Keys::Bytes { offsets, .. } => offsets.get(index).is_some_and(|o| *o != VACANT),
        }
    }

    /// The key of a slot that is in use.
    #[must_use]
    pub fn key_bytes(&self, slot: u32) -> &[u8] {
        match &self.keys {
            Keys::Words { null_slot, .. } if *null_slot == slot => &[],
            Keys::Words { words, .. } => &words[slot as usize],
            Keys::Bytes { arena, offsets, .. } => arena.get(offsets[slot as usize]),
        }
    }

    /// The key columns of slots that are in use, in that order.
    ///
    /// # Errors
    /// When `encoder` is not the table's.
    pub fn decode(
        &self,
        encoder: &KeyEncoder,
        slots: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<ArrayRef>> {
        encoder.decode(slots.into_iter().map(|slot| self.key_bytes(slot)))
    }

    /// The slots in use, in rising order.
    pub fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.slots).filter(|slot| self.is_live(*slot))
    }

    /// One more than the highest slot ever given out: the length that columns of state need.
    #[must_use]
    pub fn slot_bound(&self) -> usize {
        self.slots as usize
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slot_bound() - self.free.len() - self.vacated.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        let keys = match &self.keys {
            Keys::Words { words, live, .. } => (words.capacity() + live.capacity()) * 8,
            Keys::Bytes { arena, offsets } => arena.memory_size() + offsets.capacity() * 8,
        };
        keys + self.table.allocation_size() + (self.free.capacity() + self.vacated.capacity()) * 4
    }
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
