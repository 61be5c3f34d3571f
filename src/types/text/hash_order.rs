//! The order in which a Java `HashMap` shows its entries: users see it whenever a map is printed.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType,
};
use num_bigint::BigInt;

use super::moment;
use super::temporal::Moment;
use crate::types::calendar::civil_from_days;
use crate::types::{DataType, TypeKind};

/// How keys of one type are hashed; keys of other types stay in their order.
#[derive(Debug, Clone)]
pub(super) struct HashOrder(Option<TypeKind>);

impl HashOrder {
    pub(super) fn new(key: &DataType) -> Self {
        let hashable = match key.kind {
            TypeKind::Null
            | TypeKind::Boolean
            | TypeKind::Decimal(..)
            | TypeKind::Char(_)
            | TypeKind::VarChar(_)
            | TypeKind::Date
            | TypeKind::Time(_)
            | TypeKind::Timestamp(_)
            | TypeKind::TimestampLtz(_) => true,
            ref kind => kind.is_integer() || kind.is_approximate(),
        };
        Self(hashable.then(|| key.kind.clone()))
    }

    /// Positions of the entries in the order of a `HashMap` into which `keys` were put one by one;
    /// `None` if they stay as they are.
    pub(super) fn of(&self, keys: &ArrayRef) -> Option<Vec<usize>> {
        let kind = self.0.as_ref()?;
        if keys.len() < 2 {
            return None;
        }
        // The table has 16 buckets and doubles when it is three quarters full; entries of one
        // bucket stay in the order of their insertion.
        let buckets = (keys.len() * 4).div_ceil(3).next_power_of_two().max(16);
        let mask = u32::try_from(buckets - 1).unwrap_or(u32::MAX);
        let mut order: Vec<(u32, usize)> = (0..keys.len())
            .map(|i| {
                let hash = if keys.is_null(i) {
                    0
                } else {
                    hash(kind, keys, i)
                };
                ((hash ^ (hash >> 16)) & mask, i)
            })
            .collect();
        order.sort_unstable();
        Some(order.into_iter().map(|(_, i)| i).collect())
    }
}

#[allow(clippy::cast_possible_truncation)]
fn fold(bits: u64) -> u32 {
    (bits ^ (bits >> 32)) as u32
}

/// Java's `hashCode` of the key in row `i`, which is not NULL.
fn hash(kind: &TypeKind, keys: &ArrayRef, i: usize) -> u32 {
    match kind {
        TypeKind::Boolean => [1237, 1231][usize::from(keys.as_boolean().value(i))],
        TypeKind::TinyInt => i32::from(keys.as_primitive::<Int8Type>().value(i)).cast_unsigned(),
        TypeKind::SmallInt => i32::from(keys.as_primitive::<Int16Type>().value(i)).cast_unsigned(),
        TypeKind::Int => keys.as_primitive::<Int32Type>().value(i).cast_unsigned(),
        TypeKind::BigInt => fold(keys.as_primitive::<Int64Type>().value(i).cast_unsigned()),
        TypeKind::Float => keys.as_primitive::<Float32Type>().value(i).to_bits(),
        TypeKind::Double => fold(keys.as_primitive::<Float64Type>().value(i).to_bits()),
        TypeKind::Decimal(_, scale) => {
            decimal(keys.as_primitive::<Decimal128Type>().value(i), *scale)
        }
        TypeKind::Char(_) | TypeKind::VarChar(_) => keys
            .as_string::<i32>()
            .value(i)
            .encode_utf16()
            .fold(0u32, |h, unit| h.wrapping_mul(31).wrapping_add(unit.into())),
        TypeKind::Date => date(keys.as_primitive::<Date32Type>().value(i).into()),
        TypeKind::Time(_) => {
            let millis = keys.as_primitive::<Time32MillisecondType>().value(i);
            time(Moment::new(millis.into(), 1000))
        }
        TypeKind::Timestamp(p) => {
            let moment = moment(keys, i, *p);
            date(moment.seconds.div_euclid(86_400)) ^ time(moment)
        }
        TypeKind::TimestampLtz(p) => {
            let moment = moment(keys, i, *p);
            fold(moment.seconds.cast_unsigned()).wrapping_add(moment.nano.wrapping_mul(51))
        }
        _ => 0,
    }
}

/// `LocalDate.hashCode`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn date(days: i64) -> u32 {
    let (year, month, day) = civil_from_days(days);
    let year = year as u32;
    (year & 0xFFFF_F800) ^ ((year << 11).wrapping_add(month << 6).wrapping_add(day))
}

/// `LocalTime.hashCode`.
fn time(moment: Moment) -> u32 {
    let nanos = moment.seconds.rem_euclid(86_400) * 1_000_000_000 + i64::from(moment.nano);
    fold(nanos.cast_unsigned())
}

/// `BigDecimal.hashCode`: compact values and big ones are hashed alike, by 32-bit words.
fn decimal(unscaled: i128, scale: u8) -> u32 {
    let (_, words) = BigInt::from(unscaled).to_u32_digits();
    let hash = words
        .iter()
        .rev()
        .fold(0u32, |h, word| h.wrapping_mul(31).wrapping_add(*word));
    let hash = if unscaled < 0 {
        hash.wrapping_neg()
    } else {
        hash
    };
    hash.wrapping_mul(31).wrapping_add(scale.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int32Array, StringArray};

    use super::*;

    #[test]
    fn strings_and_numbers_fall_into_buckets() {
        let strings: ArrayRef = Arc::new(StringArray::from(vec!["zebra", "b", "apple", "a"]));
        let order = HashOrder::new(&TypeKind::STRING.not_null()).of(&strings);
        // Buckets: zebra 0, apple 1, a 1, b 2.
        assert_eq!(order, Some(vec![0, 2, 3, 1]));
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![17, 3, 1, 16]));
        let order = HashOrder::new(&TypeKind::Int.not_null()).of(&numbers);
        assert_eq!(order, Some(vec![3, 0, 2, 1]));
    }
}
