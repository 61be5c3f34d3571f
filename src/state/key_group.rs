//! Key groups: which of a fixed number of groups a key belongs to, and so which subtask owns it.
//!
//! The group comes from a hash of the key's values that is ours and versioned, because checkpoints
//! depend on it: it is not the hash of [`super::keys`], whose bytes follow the Arrow version.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, DurationMillisecondType, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalYearMonthType,
    Time32MillisecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};

use crate::error::{Error, Result};

/// Version of the hash; a checkpoint names the one it was written with.
pub const HASH_VERSION: u32 = 1;

/// Number of key groups unless configured: `pipeline.max-parallelism`.
pub const DEFAULT_MAX_PARALLELISM: u16 = 128;

const NULL: u64 = 0x6e75_6c6c_6e75_6c6c;
const SEED: u64 = 0x6562_6266_6c6f_7731;

/// The key group of every row: below `max_parallelism`. `len` is the number of rows, for keys
/// without columns.
///
/// # Errors
/// When a column has a type that cannot be a key.
pub fn key_groups(columns: &[ArrayRef], len: usize, max_parallelism: u16) -> Result<Vec<u16>> {
    let groups = u64::from(max_parallelism.max(1));
    let hashes = stable_hashes(columns, len)?;
    Ok(hashes
        .into_iter()
        // The upper bits: a modulus of a power of two would use the lower ones only.
        .map(|hash| u16::try_from((hash >> 32) % groups).unwrap_or(0))
        .collect())
}

/// The subtask that owns a key group, as Flink spreads them.
#[must_use]
pub fn owner(group: u16, parallelism: usize, max_parallelism: u16) -> usize {
    usize::from(group) * parallelism / usize::from(max_parallelism.max(1))
}

/// The key groups that a subtask owns: the first, and one more than the last.
#[must_use]
pub fn owned(subtask: usize, parallelism: usize, max_parallelism: u16) -> (u16, u16) {
    let bound = |subtask: usize| {
        let groups = (subtask * usize::from(max_parallelism)).div_ceil(parallelism.max(1));
        u16::try_from(groups).unwrap_or(max_parallelism)
    };
    (bound(subtask), bound(subtask + 1))
}

/// The hash of version [`HASH_VERSION`] of every row's values.
///
/// # Errors
/// When a column has a type that cannot be a key.
pub fn stable_hashes(columns: &[ArrayRef], len: usize) -> Result<Vec<u64>> {
    let mut hashes = vec![SEED; len];
    for column in columns {
        mix_column(column, &mut hashes)?;
    }
    Ok(hashes)
}

fn mix(hash: u64, value: u64) -> u64 {
    // The finalizer of splitmix64.
    let mut z = hash.rotate_left(23) ^ value;
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words
        .iter()
        .fold(bytes.len() as u64, |h, w| mix(h, u64::from_le_bytes(*w)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(hash, u64::from_le_bytes(last))
}

fn each(column: &dyn Array, hashes: &mut [u64], value: impl Fn(usize) -> u64) {
    let nulls = column.logical_nulls();
    for (i, hash) in hashes.iter_mut().enumerate() {
        let null = nulls.as_ref().is_some_and(|n| n.is_null(i));
        *hash = mix(*hash, if null { NULL } else { value(i) });
    }
}

macro_rules! integers {
    ($column:expr, $hashes:expr, $type:ty) => {{
        let values = $column.as_primitive::<$type>().values();
        each($column, $hashes, |i| i64::from(values[i]).cast_unsigned());
    }};
}

fn mix_column(column: &ArrayRef, hashes: &mut [u64]) -> Result<()> {
    match column.data_type() {
        ArrowType::Null => each(column, hashes, |_| NULL),
        ArrowType::Boolean => {
            let values = column.as_boolean();
            each(column, hashes, |i| u64::from(values.value(i)));
        }
        ArrowType::Int8 => integers!(column, hashes, Int8Type),
        ArrowType::Int16 => integers!(column, hashes, Int16Type),
        ArrowType::Int32 => integers!(column, hashes, Int32Type),
        ArrowType::Int64 => integers!(column, hashes, Int64Type),
        ArrowType::Date32 => integers!(column, hashes, Date32Type),
        ArrowType::Time32(TimeUnit::Millisecond) => {
            integers!(column, hashes, Time32MillisecondType);
        }
        ArrowType::Duration(TimeUnit::Millisecond) => {
            integers!(column, hashes, DurationMillisecondType);
        }
        ArrowType::Interval(arrow::datatypes::IntervalUnit::YearMonth) => {
            integers!(column, hashes, IntervalYearMonthType);
        }
        ArrowType::Timestamp(TimeUnit::Millisecond, _) => {
            integers!(column, hashes, TimestampMillisecondType);
        }
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            integers!(column, hashes, TimestampMicrosecondType);
        }
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => {
            integers!(column, hashes, TimestampNanosecondType);
        }
        ArrowType::Float32 => {
            let values = column.as_primitive::<Float32Type>().values();
            each(column, hashes, |i| match values[i] {
                v if v.is_nan() => u64::from(f32::NAN.to_bits()),
                v => u64::from(v.to_bits()),
            });
        }
        ArrowType::Float64 => {
            let values = column.as_primitive::<Float64Type>().values();
            each(column, hashes, |i| match values[i] {
                v if v.is_nan() => f64::NAN.to_bits(),
                v => v.to_bits(),
            });
        }
        ArrowType::Decimal128(..) => {
            let values = column.as_primitive::<Decimal128Type>().values();
            each(column, hashes, |i| bytes(&values[i].to_le_bytes()));
        }
        ArrowType::Utf8 => {
            let values = column.as_string::<i32>();
            each(column, hashes, |i| bytes(values.value(i).as_bytes()));
        }
        ArrowType::Binary => {
            let values = column.as_binary::<i32>();
            each(column, hashes, |i| bytes(values.value(i)));
        }
        ArrowType::Struct(_) => {
            let rows = column.as_struct();
            let fields = stable_hashes(rows.columns(), rows.len())?;
            each(column, hashes, |i| fields[i]);
        }
        ArrowType::List(_) => {
            let lists = column.as_list::<i32>();
            let elements =
                stable_hashes(std::slice::from_ref(lists.values()), lists.values().len())?;
            mix_lists(column, lists.value_offsets(), &elements, hashes);
        }
        ArrowType::Map(..) => {
            let maps = column.as_map();
            let entries = stable_hashes(maps.entries().columns(), maps.entries().len())?;
            mix_lists(column, maps.value_offsets(), &entries, hashes);
        }
        other => {
            return Err(Error::internal(format!("{other} cannot be a key")));
        }
    }
    Ok(())
}

fn mix_lists(column: &dyn Array, offsets: &[i32], elements: &[u64], hashes: &mut [u64]) {
    each(column, hashes, |i| {
        // Offsets of an Arrow list are never negative.
        let range = offsets[i].cast_unsigned() as usize..offsets[i + 1].cast_unsigned() as usize;
        elements[range.clone()]
            .iter()
            .fold(range.len() as u64, |h, e| mix(h, *e))
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int32Array, Int64Array, StringArray};

    use super::*;

    /// Checkpoints hold state by key group: these numbers may change only with the version.
    #[test]
    fn groups_never_change() {
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![Some(0), Some(1), Some(-1), None]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![
            "",
            "a",
            "ebbflow",
            "longer than eight",
        ]));
        let groups = |columns: &[ArrayRef]| key_groups(columns, 4, 128).unwrap();
        assert_eq!(groups(&[Arc::clone(&ints)]), [78, 123, 62, 78]);
        assert_eq!(groups(&[Arc::clone(&texts)]), [111, 122, 10, 23]);
        assert_eq!(groups(&[ints, texts]), [58, 13, 18, 89]);
        assert_eq!(groups(&[]), [102; 4]);
    }

    #[test]
    fn the_width_of_an_integer_and_the_bits_of_nan_do_not_matter() {
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![-7]));
        let narrow: ArrayRef = Arc::new(Int32Array::from(vec![-7]));
        assert_eq!(
            stable_hashes(&[wide], 1).unwrap(),
            stable_hashes(&[narrow], 1).unwrap()
        );
        let nans: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, -f64::NAN, 0.0, -0.0]));
        let hashes = stable_hashes(&[nans], 4).unwrap();
        assert_eq!(hashes[0], hashes[1]);
        assert_ne!(hashes[2], hashes[3]);
    }

    #[test]
    fn keys_spread_over_all_groups_and_subtasks() {
        let ints: ArrayRef = Arc::new(Int64Array::from_iter_values(0..128 * 64));
        let mut count = [0; 128];
        for group in key_groups(&[ints], 128 * 64, 128).unwrap() {
            count[usize::from(group)] += 1;
        }
        assert!(count.iter().all(|n| (30..110).contains(n)), "{count:?}");
        assert_eq!(owner(0, 3, 128), 0);
        assert_eq!(owner(127, 3, 128), 2);
        for parallelism in [1, 3, 128, 200] {
            let mut next = 0;
            for subtask in 0..parallelism {
                let (from, to) = owned(subtask, parallelism, 128);
                assert_eq!(from, next);
                assert!((from..to).all(|g| owner(g, parallelism, 128) == subtask));
                next = to;
            }
            assert_eq!(next, 128);
        }
    }
}
