//! Asks again for keys that have no rows yet: the retry options of the `LOOKUP` hint.

use std::time::Duration;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::{concat_batches, take, take_record_batch};

use super::{LookedUp, Lookup};
use crate::error::Result;

/// How often, and after what time, a missing key is asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Pause before each further attempt.
    pub delay: Duration,
    /// Further attempts at most.
    pub attempts: u32,
}

/// Lookups that wait for missing keys. A key that still has no rows after the last attempt is
/// missing for good.
pub struct Retrying {
    inner: Box<dyn Lookup>,
    retry: Retry,
}

impl Retrying {
    /// Retries the lookups of `inner`.
    #[must_use]
    pub fn new(inner: Box<dyn Lookup>, retry: Retry) -> Self {
        Self { inner, retry }
    }
}

impl Lookup for Retrying {
    fn lookup(&mut self, keys: &[ArrayRef], len: usize, now_ms: i64) -> Result<LookedUp> {
        let mut found = self.inner.lookup(keys, len, now_ms)?;
        let mut now_ms = now_ms;
        for _ in 0..self.retry.attempts {
            let missing = missing_keys(&found.keys, len);
            if missing.is_empty() {
                break;
            }
            std::thread::sleep(self.retry.delay);
            let delay = i64::try_from(self.retry.delay.as_millis()).unwrap_or(i64::MAX);
            now_ms = now_ms.saturating_add(delay);
            let again = keys
                .iter()
                .map(|key| Ok(take(key, &missing, None)?))
                .collect::<Result<Vec<_>>>()?;
            let late = self.inner.lookup(&again, missing.len(), now_ms)?;
            found = merge(&found, &late, &missing)?;
        }
        Ok(found)
    }
}

/// The numbers below `len` that are not in `keys`, which are ascending.
fn missing_keys(keys: &UInt32Array, len: usize) -> UInt32Array {
    let mut found = keys.values().iter().copied().peekable();
    (0..)
        .take(len)
        .filter(|key| {
            let is_found = found.peek() == Some(key);
            while found.next_if_eq(key).is_some() {}
            !is_found
        })
        .collect()
}

/// Puts rows that were found by the keys `missing` in among the others, by key.
fn merge(found: &LookedUp, late: &LookedUp, missing: &UInt32Array) -> Result<LookedUp> {
    if late.keys.is_empty() {
        return Ok(found.clone());
    }
    let late_keys = late.keys.values().iter();
    let late_keys = late_keys.map(|key| missing.value(*key as usize));
    let keys: Vec<u32> = found
        .keys
        .values()
        .iter()
        .copied()
        .chain(late_keys)
        .collect();
    let mut order: Vec<u32> = (0..).take(keys.len()).collect();
    order.sort_by_key(|i| keys[*i as usize]);
    let rows = concat_batches(&found.rows.schema(), [&found.rows, &late.rows])?;
    Ok(LookedUp {
        keys: order.iter().map(|i| keys[*i as usize]).collect(),
        rows: take_record_batch(&rows, &UInt32Array::from(order))?,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int32Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int32Type, Schema};

    use super::*;

    /// Has the rows of key k from the k-th call on; notes how many keys each call asks for.
    struct Late(Vec<usize>);

    impl Lookup for Late {
        fn lookup(&mut self, keys: &[ArrayRef], len: usize, _: i64) -> Result<LookedUp> {
            self.0.push(len);
            let calls = i32::try_from(self.0.len()).unwrap_or(i32::MAX);
            let keys = keys[0].as_primitive::<Int32Type>().values();
            let (by, found): (Vec<u32>, Vec<i32>) = (0..)
                .zip(keys)
                .filter(|(_, key)| **key <= calls)
                .flat_map(|(i, key)| [(i, *key * 10), (i, *key * 10 + 1)])
                .unzip();
            let schema = Schema::new(vec![Field::new("v", DataType::Int32, true)]);
            let rows: ArrayRef = Arc::new(Int32Array::from(found));
            Ok(LookedUp {
                keys: UInt32Array::from(by),
                rows: RecordBatch::try_new(Arc::new(schema), vec![rows])?,
            })
        }
    }

    #[test]
    fn missing_keys_are_asked_for_again_until_they_are_there() {
        let retry = Retry {
            delay: Duration::ZERO,
            attempts: 2,
        };
        let mut lookup = Retrying::new(Box::new(Late(Vec::new())), retry);
        let keys: ArrayRef = Arc::new(Int32Array::from(vec![3, 1, 9, 2]));
        let found = lookup.lookup(&[keys], 4, 0).unwrap();
        assert_eq!(found.keys.values(), &[0, 0, 1, 1, 3, 3]);
        let rows = found.rows.column(0).as_primitive::<Int32Type>();
        assert_eq!(rows.values(), &[30, 31, 10, 11, 20, 21]);
    }
}
