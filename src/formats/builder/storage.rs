//! The growing buffers that columns under construction are made of.

use arrow::array::{ArrowPrimitiveType, NullBufferBuilder, PrimitiveArray};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};

/// A column of fixed-width values.
#[derive(Debug)]
pub struct Primitive<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    nulls: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType> Primitive<T> {
    pub(super) fn new() -> Self {
        Self {
            values: Vec::new(),
            nulls: NullBufferBuilder::new(1024),
        }
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: T::Native) {
        self.values.push(value);
        self.nulls.append_non_null();
    }

    /// Appends NULL.
    pub fn push_null(&mut self) {
        self.values.push(T::Native::default());
        self.nulls.append_null();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.nulls.truncate(len);
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn push_copy(&mut self, from: usize) {
        if self.nulls.is_valid(from) {
            self.push(self.values[from]);
        } else {
            self.push_null();
        }
    }

    pub(super) fn retain_tail(&mut self, first: usize, kept: &[usize]) {
        let value = |i: &usize| self.nulls.is_valid(*i).then(|| self.values[*i]);
        let values: Vec<_> = kept.iter().map(value).collect();
        self.truncate(first);
        for value in values {
            match value {
                Some(value) => self.push(value),
                None => self.push_null(),
            }
        }
    }

    pub(super) fn finish(&mut self) -> PrimitiveArray<T> {
        PrimitiveArray::new(std::mem::take(&mut self.values).into(), self.nulls.finish())
    }
}

/// A column of strings or bytes.
#[derive(Debug)]
pub struct Bytes {
    data: Vec<u8>,
    ends: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Bytes {
    pub(super) fn new() -> Self {
        Self {
            data: Vec::new(),
            ends: Vec::new(),
            nulls: NullBufferBuilder::new(1024),
        }
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        self.data.extend_from_slice(value);
        self.close(true);
    }

    /// Value `i`, empty if it is NULL.
    #[must_use]
    pub fn get(&self, i: usize) -> &[u8] {
        let at = |n: usize| usize::try_from(self.ends[n]).unwrap_or(0);
        let start = if i == 0 { 0 } else { at(i - 1) };
        &self.data[start..at(i)]
    }

    /// Where the next value is written; [`commit`](Self::commit) ends it.
    pub fn data(&mut self) -> &mut Vec<u8> {
        &mut self.data
    }

    /// Ends the value that was written to [`data`](Self::data).
    pub fn commit(&mut self) {
        self.close(true);
    }

    pub(super) fn push_null(&mut self) {
        self.close(false);
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn bytes_used(&self) -> usize {
        self.data.len()
    }

    pub(super) fn push_copy(&mut self, from: usize) {
        let at = |i: usize| usize::try_from(self.ends[i]).unwrap_or(0);
        let start = if from == 0 { 0 } else { at(from - 1) };
        self.data.extend_from_within(start..at(from));
        self.close(self.nulls.is_valid(from));
    }

    pub(super) fn retain_tail(&mut self, first: usize, kept: &[usize]) {
        let saved: Vec<_> = kept
            .iter()
            .map(|i| (self.get(*i).to_vec(), self.nulls.is_valid(*i)))
            .collect();
        self.truncate(first);
        for (value, valid) in saved {
            self.data.extend_from_slice(&value);
            self.close(valid);
        }
    }

    fn close(&mut self, valid: bool) {
        // A batch is cut long before 2 GiB: see `bytes_used`.
        self.ends
            .push(i32::try_from(self.data.len()).unwrap_or(i32::MAX));
        if valid {
            self.nulls.append_non_null();
        } else {
            self.nulls.append_null();
        }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.nulls.truncate(len);
        let end = self.ends.last().copied().unwrap_or(0);
        self.data.truncate(usize::try_from(end).unwrap_or(0));
    }

    pub(super) fn finish(&mut self) -> (OffsetBuffer<i32>, Vec<u8>, Option<NullBuffer>) {
        let ends = std::mem::take(&mut self.ends);
        let data = std::mem::take(&mut self.data);
        (offsets(&ends), data, self.nulls.finish())
    }
}

fn offsets(ends: &[i32]) -> OffsetBuffer<i32> {
    let all: Vec<i32> = std::iter::once(0).chain(ends.iter().copied()).collect();
    OffsetBuffer::new(ScalarBuffer::from(all))
}

/// The ends of lists or maps.
#[derive(Debug)]
pub struct Ends {
    ends: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Ends {
    pub(super) fn new() -> Self {
        Self {
            ends: Vec::new(),
            nulls: NullBufferBuilder::new(1024),
        }
    }

    /// Ends a collection after `children` values of the whole column.
    pub fn push(&mut self, children: usize) {
        self.ends.push(i32::try_from(children).unwrap_or(i32::MAX));
        self.nulls.append_non_null();
    }

    pub(super) fn push_null(&mut self, children: usize) {
        self.ends.push(i32::try_from(children).unwrap_or(i32::MAX));
        self.nulls.append_null();
    }

    pub(super) fn truncate(&mut self, len: usize) -> usize {
        self.ends.truncate(len);
        self.nulls.truncate(len);
        usize::try_from(self.ends.last().copied().unwrap_or(0)).unwrap_or(0)
    }

    pub(super) fn finish(&mut self) -> (OffsetBuffer<i32>, Option<NullBuffer>) {
        let ends = std::mem::take(&mut self.ends);
        (offsets(&ends), self.nulls.finish())
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn range(&self, i: usize) -> std::ops::Range<usize> {
        let at = |n: usize| usize::try_from(self.ends[n]).unwrap_or(0);
        (if i == 0 { 0 } else { at(i - 1) })..at(i)
    }

    /// Keeps `kept` of the collections from `first` on; the answer is the first child after the
    /// collections before them, and the children that stay.
    pub(super) fn retain_tail(&mut self, first: usize, kept: &[usize]) -> (usize, Vec<usize>) {
        let saved: Vec<_> = kept
            .iter()
            .map(|i| (self.range(*i), self.nulls.is_valid(*i)))
            .collect();
        let child = self.truncate(first);
        let mut children = Vec::new();
        for (range, valid) in saved {
            children.extend(range);
            let end = child + children.len();
            if valid {
                self.push(end);
            } else {
                self.push_null(end);
            }
        }
        (child, children)
    }

    pub(super) fn push_as(&mut self, from: usize, children: usize) {
        if self.nulls.is_valid(from) {
            self.push(children);
        } else {
            self.push_null(children);
        }
    }
}
