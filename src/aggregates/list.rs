//! `LISTAGG`, `JSON_ARRAYAGG` and `ARRAY_AGG`: all values, in the order of arrival. A withdrawal
//! removes the first value that is equal.

use std::borrow::Borrow;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanBufferBuilder, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType as ArrowType, Field};

use super::saved::{list_ranges, lists, sampled};
use super::state::Kernel;
use super::value::{Bytes, BytesBuilder, Value};
use crate::error::{Error, Result};
use crate::state::keys::grow;
use crate::state::multiset::Arrivals;

type List<V> = Arrivals<Option<<V as Value>::Owned>>;

/// The lists of all slots.
#[derive(Debug)]
struct Lists<V: Value> {
    value: V,
    keep_nulls: bool,
    lists: Vec<List<V>>,
}

impl<V: Value> Lists<V> {
    fn new(value: V, keep_nulls: bool) -> Self {
        Self {
            value,
            keep_nulls,
            lists: Vec::new(),
        }
    }

    fn resize(&mut self, slots: usize) {
        if slots > self.lists.len() {
            grow(&mut self.lists, slots, Arrivals::default());
        }
    }

    fn get(&self, column: &V::Column, row: usize) -> Option<Option<V::Owned>> {
        match V::get(column, row) {
            Some(key) => Some(Some(V::own(key))),
            None => self.keep_nulls.then_some(None),
        }
    }

    fn add(&mut self, slot: usize, column: &V::Column, row: usize) {
        if let Some(value) = self.get(column, row) {
            self.lists[slot].push(value);
        }
    }

    fn subtract(&mut self, slot: usize, column: &V::Column, row: usize) {
        if let Some(value) = self.get(column, row) {
            self.lists[slot].remove(&value);
        }
    }

    /// `from` arrived after `into`.
    fn merge(&mut self, into: usize, from: usize) {
        let other = std::mem::take(&mut self.lists[from]);
        for value in other.iter() {
            self.lists[into].push(value.clone());
        }
        self.lists[from] = other;
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let arrivals = slots.iter().map(|slot| &self.lists[*slot as usize]);
        let lengths: Vec<usize> = arrivals.clone().map(Arrivals::len).collect();
        let mut builder = V::builder(lengths.iter().sum());
        for value in arrivals.flat_map(Arrivals::iter) {
            V::push(&mut builder, value.as_ref().map(Borrow::borrow));
        }
        Ok(vec![lists(&lengths, self.value.finish(builder)?)?])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let (ranges, values) = list_ranges(columns, 0)?;
        let values = self.value.read(&values)?;
        for (slot, range) in slots.iter().zip(ranges) {
            for i in range {
                self.lists[*slot as usize].push(V::get(&values, i).map(V::own));
            }
        }
        Ok(())
    }

    fn memory_size(&self) -> usize {
        sampled(&self.lists, |list| {
            let heap: usize = list.iter().flatten().map(V::heap_size).sum();
            size_of_val(list) + list.memory_size() + heap
        })
    }
}

/// How texts are put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Join {
    /// With a separator; NULL without a text.
    Separator(String),
    /// As the elements of a JSON array.
    Json,
}

/// `LISTAGG` of texts, `JSON_ARRAYAGG` of JSON texts.
#[derive(Debug)]
pub(super) struct Joined {
    join: Join,
    lists: Lists<Bytes>,
}

impl Joined {
    pub(super) fn new(join: Join, keep_nulls: bool) -> Self {
        Self {
            join,
            lists: Lists::new(Bytes(ArrowType::Utf8), keep_nulls),
        }
    }
}

impl Kernel for Joined {
    type Columns = <Bytes as Value>::Column;
    type Builder = BytesBuilder;

    fn resize(&mut self, slots: usize) {
        self.lists.resize(slots);
    }

    fn read(&self, args: &[ArrayRef]) -> Result<Self::Columns> {
        self.lists.value.read(&args[0])
    }

    fn add(&mut self, slot: usize, column: &Self::Columns, row: usize) -> Result<()> {
        self.lists.add(slot, column, row);
        Ok(())
    }

    fn subtract(&mut self, slot: usize, column: &Self::Columns, row: usize) -> Result<()> {
        self.lists.subtract(slot, column, row);
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.lists.lists[slot] = Arrivals::default();
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        self.lists.merge(into, from);
        Ok(())
    }

    fn builder(&self, capacity: usize) -> BytesBuilder {
        BytesBuilder::new(capacity)
    }

    fn push(&self, slot: usize, builder: &mut BytesBuilder) -> Result<()> {
        let list = &self.lists.lists[slot];
        let mut text = Vec::new();
        let separator = match &self.join {
            Join::Separator(_) if list.is_empty() => {
                builder.push(None);
                return Ok(());
            }
            Join::Separator(separator) => separator.as_bytes(),
            Join::Json => {
                text.push(b'[');
                b","
            }
        };
        for (i, value) in list.iter().enumerate() {
            if i > 0 {
                text.extend_from_slice(separator);
            }
            text.extend_from_slice(value.as_deref().unwrap_or(b"null"));
        }
        if self.join == Join::Json {
            text.push(b']');
        }
        builder.push(Some(&text));
        Ok(())
    }

    fn last_two_differ(builder: &BytesBuilder) -> bool {
        builder.last_two_differ()
    }

    fn finish(&self, mut builder: BytesBuilder) -> Result<ArrayRef> {
        builder.finish(&ArrowType::Utf8)
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.lists.save(slots)
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        self.lists.load(slots, columns)
    }

    fn memory_size(&self) -> usize {
        self.lists.memory_size()
    }
}

/// `ARRAY_AGG`; NULL without a value.
#[derive(Debug)]
pub(super) struct ArrayAgg<V: Value> {
    lists: Lists<V>,
}

impl<V: Value> ArrayAgg<V> {
    pub(super) fn new(value: V, keep_nulls: bool) -> Self {
        Self {
            lists: Lists::new(value, keep_nulls),
        }
    }
}

/// Collects arrays.
pub(super) struct ListBuilder<V: Value> {
    values: V::Builder,
    lengths: Vec<usize>,
    valid: BooleanBufferBuilder,
    last: Vec<Option<V::Owned>>,
    differ: bool,
}

impl<V: Value> Kernel for ArrayAgg<V> {
    type Columns = V::Column;
    type Builder = ListBuilder<V>;

    fn resize(&mut self, slots: usize) {
        self.lists.resize(slots);
    }

    fn read(&self, args: &[ArrayRef]) -> Result<V::Column> {
        self.lists.value.read(&args[0])
    }

    fn add(&mut self, slot: usize, column: &V::Column, row: usize) -> Result<()> {
        self.lists.add(slot, column, row);
        Ok(())
    }

    fn subtract(&mut self, slot: usize, column: &V::Column, row: usize) -> Result<()> {
        self.lists.subtract(slot, column, row);
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.lists.lists[slot] = Arrivals::default();
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        self.lists.merge(into, from);
        Ok(())
    }

    fn builder(&self, capacity: usize) -> ListBuilder<V> {
        ListBuilder {
            values: V::builder(capacity),
            lengths: Vec::with_capacity(capacity),
            valid: BooleanBufferBuilder::new(capacity),
            last: Vec::new(),
            differ: false,
        }
    }

    fn push(&self, slot: usize, builder: &mut ListBuilder<V>) -> Result<()> {
        let list = &self.lists.lists[slot];
        for value in list.iter() {
            V::push(&mut builder.values, value.as_ref().map(Borrow::borrow));
        }
        builder.lengths.push(list.len());
        builder.valid.append(!list.is_empty());
        let list: Vec<_> = list.iter().cloned().collect();
        builder.differ = list != builder.last;
        builder.last = list;
        Ok(())
    }

    fn last_two_differ(builder: &ListBuilder<V>) -> bool {
        builder.differ
    }

    fn finish(&self, mut builder: ListBuilder<V>) -> Result<ArrayRef> {
        let values = self.lists.value.finish(builder.values)?;
        let field = Arc::new(Field::new("item", values.data_type().clone(), true));
        if builder.lengths.iter().sum::<usize>() > i32::MAX as usize {
            return Err(Error::state(
                "ARRAY_AGG: the arrays of one batch are too long",
            ));
        }
        Ok(Arc::new(ListArray::try_new(
            field,
            OffsetBuffer::from_lengths(builder.lengths),
            values,
            Some(NullBuffer::new(builder.valid.finish())),
        )?))
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.lists.save(slots)
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        self.lists.load(slots, columns)
    }

    fn memory_size(&self) -> usize {
        self.lists.memory_size()
    }
}
