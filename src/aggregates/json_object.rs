//! `JSON_OBJECTAGG`: pairs as the members of a JSON object, by key. Values come as JSON texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray};
use arrow::datatypes::DataType as ArrowType;

use super::convert::to_binary;
use super::saved::{list_ranges, lists, sampled};
use super::state::Kernel;
use super::value::BytesBuilder;
use crate::error::{Error, Result};
use crate::state::keys::grow;

type Text = Box<[u8]>;

#[derive(Debug)]
pub(super) struct JsonObject {
    keep_nulls: bool,
    objects: Vec<BTreeMap<Text, Option<Text>>>,
}

impl JsonObject {
    pub(super) fn new(keep_nulls: bool) -> Self {
        Self {
            keep_nulls,
            objects: Vec::new(),
        }
    }

    fn put(&mut self, slot: usize, key: Text, value: Option<Text>) -> Result<()> {
        let object = &mut self.objects[slot];
        if object.contains_key(&key) {
            return Err(Error::execution(format!(
                "Key '{}' is already present. Duplicate keys are not allowed in JSON_OBJECTAGG. \
                 Please ensure that keys are unique.",
                String::from_utf8_lossy(&key)
            )));
        }
        if value.is_some() || self.keep_nulls {
            object.insert(key, value);
        }
        Ok(())
    }
}

/// Keys and values of a batch.
#[derive(Debug)]
pub(super) struct Pairs {
    keys: BinaryArray,
    values: BinaryArray,
}

impl Pairs {
    fn key(&self, row: usize) -> Result<Text> {
        if self.keys.is_null(row) {
            return Err(Error::execution("JSON_OBJECTAGG: a key is NULL"));
        }
        Ok(self.keys.value(row).into())
    }

    fn value(&self, row: usize) -> Option<Text> {
        self.values
            .is_valid(row)
            .then(|| self.values.value(row).into())
    }
}

impl Kernel for JsonObject {
    type Columns = Pairs;
    type Builder = BytesBuilder;

    fn resize(&mut self, slots: usize) {
        if slots > self.objects.len() {
            grow(&mut self.objects, slots, BTreeMap::new());
        }
    }

    fn read(&self, args: &[ArrayRef]) -> Result<Pairs> {
        Ok(Pairs {
            keys: to_binary(&args[0])?,
            values: to_binary(&args[1])?,
        })
    }

    fn add(&mut self, slot: usize, pairs: &Pairs, row: usize) -> Result<()> {
        self.put(slot, pairs.key(row)?, pairs.value(row))
    }

    fn subtract(&mut self, slot: usize, pairs: &Pairs, row: usize) -> Result<()> {
        let key = pairs.key(row)?;
        let value = pairs.value(row);
        if self.objects[slot].get(&key) == Some(&value) {
            self.objects[slot].remove(&key);
        }
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.objects[slot].clear();
    }

    fn merge(&mut self, into: usize, from: usize) -> Result<()> {
        for (key, value) in self.objects[from].clone() {
            self.put(into, key, value)?;
        }
        Ok(())
    }

    fn builder(&self, capacity: usize) -> BytesBuilder {
        BytesBuilder::new(capacity)
    }

    fn push(&self, slot: usize, builder: &mut BytesBuilder) -> Result<()> {
        let mut text = vec![b'{'];
        for (i, (key, value)) in self.objects[slot].iter().enumerate() {
            if i > 0 {
                text.push(b',');
            }
            quote(&String::from_utf8_lossy(key), &mut text);
            text.push(b':');
            text.extend_from_slice(value.as_deref().unwrap_or(b"null"));
        }
        text.push(b'}');
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
        let objects = slots.iter().map(|slot| &self.objects[*slot as usize]);
        let lengths: Vec<usize> = objects.clone().map(BTreeMap::len).collect();
        let total = lengths.iter().sum();
        let (mut keys, mut values) = (BytesBuilder::new(total), BytesBuilder::new(total));
        for (key, value) in objects.flatten() {
            keys.push(Some(key));
            values.push(value.as_deref());
        }
        Ok(vec![
            lists(&lengths, keys.finish(&ArrowType::Utf8)?)?,
            lists(&lengths, values.finish(&ArrowType::Utf8)?)?,
        ])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let (ranges, keys) = list_ranges(columns, 0)?;
        let (_, values) = list_ranges(columns, 1)?;
        let pairs = self.read(&[keys, Arc::clone(&values)])?;
        for (slot, range) in slots.iter().zip(ranges) {
            for row in range {
                self.objects[*slot as usize].insert(pairs.key(row)?, pairs.value(row));
            }
        }
        Ok(())
    }

    fn memory_size(&self) -> usize {
        let pair = |(key, value): (&Text, &Option<Text>)| {
            key.len() + value.as_ref().map_or(0, |v| v.len()) + 64
        };
        sampled(&self.objects, |object| {
            size_of_val(object) + object.iter().map(pair).sum::<usize>()
        })
    }
}

/// Appends a text as a JSON string, as Jackson writes it.
fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
