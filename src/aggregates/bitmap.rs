//! The `BITMAP_*_AGG` functions: sets of integers, united, intersected or their parity, and how many
//! there are. NULL without a value.
//!
//! On input without withdrawals a group keeps the set itself. Where rows are withdrawn it keeps how
//! often each integer came; parity needs no counts, for to withdraw is to add once more.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder};
use arrow::datatypes::{DataType as ArrowType, Int32Type, Int64Type};
use roaring::RoaringBitmap;

use super::extreme::{load_maps, maps_size, save_maps};
use super::saved::{column, gather, sampled, scatter};
use super::state::Kernel;
use super::value::{BytesBuilder, Ints, NumbersBuilder};
use crate::error::{Error, Result};
use crate::state::keys::grow;
use crate::state::multiset::CountedMap;
use crate::types::bitmap;

/// How values make one set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperation {
    /// `BITMAP_BUILD_AGG`: the integers that came.
    Build,
    /// `BITMAP_OR_AGG`: the integers of one of the sets.
    Or,
    /// `BITMAP_AND_AGG`: the integers of all sets.
    And,
    /// `BITMAP_XOR_AGG`: the integers of an odd number of sets.
    Xor,
}

/// What is given for a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetResult {
    /// The set, as `BITMAP`.
    Bitmap,
    /// Its size, as `BIGINT`.
    Cardinality,
}

/// The argument column.
#[derive(Debug)]
pub(super) enum SetColumn {
    /// Integers.
    Ints(arrow::array::Int32Array),
    /// Sets.
    Sets(BinaryArray),
}

impl SetColumn {
    fn read(operation: SetOperation, args: &[ArrayRef]) -> Result<Self> {
        let array = &args[0];
        let found = match operation {
            SetOperation::Build => array
                .as_primitive_opt::<Int32Type>()
                .cloned()
                .map(Self::Ints),
            _ => array.as_binary_opt::<i32>().cloned().map(Self::Sets),
        };
        found.ok_or_else(|| Error::internal("a bitmap aggregate of another type's column"))
    }

    /// The set in a row; `None` for NULL.
    fn get(&self, row: usize) -> Result<Option<RoaringBitmap>> {
        match self {
            Self::Ints(ints) if ints.is_valid(row) => Ok(Some(RoaringBitmap::from_iter([ints
                .value(row)
                .cast_unsigned()]))),
            Self::Sets(sets) if sets.is_valid(row) => bitmap::read(sets.value(row)).map(Some),
            _ => Ok(None),
        }
    }
}

/// Collects results.
pub(super) enum SetBuilder {
    /// Sets.
    Bitmaps(BytesBuilder),
    /// Sizes.
    Sizes(NumbersBuilder<i64>),
}

impl SetBuilder {
    fn new(result: SetResult, capacity: usize) -> Self {
        match result {
            SetResult::Bitmap => Self::Bitmaps(BytesBuilder::new(capacity)),
            SetResult::Cardinality => Self::Sizes(NumbersBuilder::new(capacity)),
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::Bitmaps(bitmaps) => bitmaps.push(None),
            Self::Sizes(sizes) => sizes.push(None),
        }
    }

    fn push_size(sizes: &mut NumbersBuilder<i64>, size: u64) {
        sizes.push(Some(i64::try_from(size).unwrap_or(i64::MAX)));
    }

    fn last_two_differ(&self) -> bool {
        match self {
            Self::Bitmaps(bitmaps) => bitmaps.last_two_differ(),
            Self::Sizes(sizes) => sizes.last_two_differ(),
        }
    }

    fn finish(self) -> Result<ArrayRef> {
        match self {
            Self::Bitmaps(mut bitmaps) => bitmaps.finish(&ArrowType::Binary),
            Self::Sizes(sizes) => Ok(Arc::new(sizes.finish::<Int64Type>())),
        }
    }
}

/// Sets as such: for input without withdrawals, and for parity.
#[derive(Debug)]
pub(super) struct Sets {
    operation: SetOperation,
    result: SetResult,
    /// Values that are not NULL, by slot.
    values: Vec<i64>,
    sets: Vec<RoaringBitmap>,
}

impl Sets {
    pub(super) fn new(operation: SetOperation, result: SetResult) -> Self {
        Self {
            operation,
            result,
            values: Vec::new(),
            sets: Vec::new(),
        }
    }

    fn join(&mut self, slot: usize, set: &RoaringBitmap, values: i64) {
        let first = self.values[slot] == 0;
        self.values[slot] += values;
        let own = &mut self.sets[slot];
        match self.operation {
            SetOperation::And if first => own.clone_from(set),
            SetOperation::And => *own &= set,
            SetOperation::Build | SetOperation::Or => *own |= set,
            SetOperation::Xor => *own ^= set,
        }
    }
}

impl Kernel for Sets {
    type Columns = SetColumn;
    type Builder = SetBuilder;

    fn resize(&mut self, slots: usize) {
        if slots > self.values.len() {
            grow(&mut self.values, slots, 0);
            grow(&mut self.sets, slots, RoaringBitmap::new());
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<SetColumn> {
        SetColumn::read(self.operation, args)
    }

    fn add(&mut self, slot: usize, column: &SetColumn, row: usize) -> Result<()> {
        if let SetColumn::Ints(ints) = column {
            if ints.is_valid(row) {
                self.values[slot] += 1;
                self.sets[slot].insert(ints.value(row).cast_unsigned());
            }
        } else if let Some(set) = column.get(row)? {
            self.join(slot, &set, 1);
        }
        Ok(())
    }

    fn subtract(&mut self, slot: usize, column: &SetColumn, row: usize) -> Result<()> {
        if self.operation == SetOperation::Xor
            && let Some(set) = column.get(row)?
        {
            self.join(slot, &set, -1);
        }
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.values[slot] = 0;
        self.sets[slot] = RoaringBitmap::new();
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        if self.values[from] != 0 {
            let other = std::mem::take(&mut self.sets[from]);
            self.join(into, &other, self.values[from]);
            self.sets[from] = other;
        }
        Ok(())
    }

    fn builder(&self, capacity: usize) -> SetBuilder {
        SetBuilder::new(self.result, capacity)
    }

    fn push(&self, slot: usize, builder: &mut SetBuilder) -> Result<()> {
        if self.values[slot] <= 0 {
            builder.push_null();
            return Ok(());
        }
        let set = &self.sets[slot];
        match builder {
            SetBuilder::Bitmaps(bitmaps) => {
                bitmaps.push(Some(&bitmap::to_bytes(set.clone())?));
            }
            SetBuilder::Sizes(sizes) => SetBuilder::push_size(sizes, set.len()),
        }
        Ok(())
    }

    fn last_two_differ(builder: &SetBuilder) -> bool {
        builder.last_two_differ()
    }

    fn finish(&self, builder: SetBuilder) -> Result<ArrayRef> {
        builder.finish()
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut sets = BinaryBuilder::new();
        for slot in slots {
            sets.append_value(bitmap::to_bytes(self.sets[*slot as usize].clone())?);
        }
        Ok(vec![
            gather::<Int64Type>(&self.values, slots),
            Arc::new(sets.finish()),
        ])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        scatter::<Int64Type>(&mut self.values, slots, columns, 0)?;
        let sets = column(columns, 1)?
            .as_binary_opt::<i32>()
            .ok_or_else(|| Error::checkpoint("the saved state holds no bitmaps"))?;
        for (slot, set) in slots.iter().zip(sets.iter().flatten()) {
            self.sets[*slot as usize] = bitmap::read(set)?;
        }
        Ok(())
    }

    fn memory_size(&self) -> usize {
        let sets = sampled(&self.sets, |set| size_of_val(set) + set.serialized_size());
        self.values.capacity() * size_of::<i64>() + sets
    }
}

/// How often each integer came: for input with withdrawals.
#[derive(Debug)]
pub(super) struct CountedSets {
    operation: SetOperation,
    result: SetResult,
    /// Values that are not NULL, by slot.
    values: Vec<i64>,
    maps: Vec<CountedMap<i64>>,
}

const INTS: Ints = Ints(ArrowType::Int64);

impl CountedSets {
    pub(super) fn new(operation: SetOperation, result: SetResult) -> Self {
        Self {
            operation,
            result,
            values: Vec::new(),
            maps: Vec::new(),
        }
    }

    fn change(&mut self, slot: usize, column: &SetColumn, row: usize, delta: i64) -> Result<()> {
        if let Some(set) = column.get(row)? {
            self.values[slot] += delta;
            for member in set {
                self.maps[slot].add(&i64::from(member), delta, |v| *v);
            }
        }
        Ok(())
    }

    /// The integers of the result.
    fn members(&self, slot: usize) -> impl Iterator<Item = u32> {
        let all = match self.operation {
            SetOperation::And => self.values[slot],
            _ => 1,
        };
        self.maps[slot]
            .iter()
            .filter(move |(_, count)| *count >= all)
            .filter_map(|(member, _)| u32::try_from(*member).ok())
    }
}

impl Kernel for CountedSets {
    type Columns = SetColumn;
    type Builder = SetBuilder;

    fn resize(&mut self, slots: usize) {
        if slots > self.values.len() {
            grow(&mut self.values, slots, 0);
            grow(&mut self.maps, slots, CountedMap::default());
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<SetColumn> {
        SetColumn::read(self.operation, args)
    }

    fn add(&mut self, slot: usize, column: &SetColumn, row: usize) -> Result<()> {
        self.change(slot, column, row, 1)
    }

    fn subtract(&mut self, slot: usize, column: &SetColumn, row: usize) -> Result<()> {
        self.change(slot, column, row, -1)
    }

    fn clear(&mut self, slot: usize) {
        self.values[slot] = 0;
        self.maps[slot] = CountedMap::default();
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        let other = std::mem::take(&mut self.maps[from]);
        for (key, count) in other.iter() {
            self.maps[into].add(key, count, |v| *v);
        }
        self.maps[from] = other;
        self.values[into] += self.values[from];
        Ok(())
    }

    fn builder(&self, capacity: usize) -> SetBuilder {
        SetBuilder::new(self.result, capacity)
    }

    fn push(&self, slot: usize, builder: &mut SetBuilder) -> Result<()> {
        if self.values[slot] <= 0 {
            builder.push_null();
            return Ok(());
        }
        match builder {
            SetBuilder::Bitmaps(bitmaps) => {
                bitmaps.push(Some(&bitmap::to_bytes(self.members(slot).collect())?));
            }
            SetBuilder::Sizes(sizes) => {
                SetBuilder::push_size(sizes, self.members(slot).count() as u64);
            }
        }
        Ok(())
    }

    fn last_two_differ(builder: &SetBuilder) -> bool {
        builder.last_two_differ()
    }

    fn finish(&self, builder: SetBuilder) -> Result<ArrayRef> {
        builder.finish()
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut columns = save_maps(&INTS, &self.maps, slots)?;
        columns.push(gather::<Int64Type>(&self.values, slots));
        Ok(columns)
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        load_maps(&INTS, &mut self.maps, slots, columns)?;
        scatter::<Int64Type>(&mut self.values, slots, columns, 2)
    }

    fn memory_size(&self) -> usize {
        self.values.capacity() * size_of::<i64>() + maps_size::<Ints>(&self.maps)
    }
}
