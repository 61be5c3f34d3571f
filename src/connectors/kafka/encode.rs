//! Rows to records.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::TimestampMillisecondType;

use super::fields::Fields;
use super::metadata::Metadata;
use super::settings::Topics;
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::formats::{Encoder, EncodingFormat, Records};
use crate::types::{Column, Schema};

/// A record to write.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutRecord<'a> {
    pub(super) topic: &'a str,
    pub(super) key: Option<&'a [u8]>,
    /// `None`: the row of the key is deleted.
    pub(super) value: Option<&'a [u8]>,
    /// ms; `None`: when it is sent.
    pub(super) timestamp: Option<i64>,
    pub(super) headers: &'a [(String, Vec<u8>)],
}

/// What is made of rows: the part of it that all subtasks share.
pub(super) struct EncodePlan {
    pub(super) topics: Topics,
    pub(super) fields: Fields,
    pub(super) physical: Schema,
    /// The writable metadata columns, which follow the physical ones.
    pub(super) metadata: Vec<(Metadata, Column)>,
    pub(super) key: Option<Arc<dyn EncodingFormat>>,
    pub(super) value: Arc<dyn EncodingFormat>,
    pub(super) upsert: bool,
}

impl EncodePlan {
    /// An encoder for one subtask.
    pub(super) fn encoder(self: &Arc<Self>) -> Result<RecordEncoder> {
        let key_schema = self.fields.key_schema(&self.physical);
        let value_schema = self.fields.value_schema(&self.physical);
        Ok(RecordEncoder {
            key: match &self.key {
                Some(format) => Some(format.encoder(&key_schema)?),
                None => None,
            },
            value: self.value.encoder(&value_schema)?,
            plan: Arc::clone(self),
            keys: Records::default(),
            values: Records::default(),
        })
    }
}

/// Encodes the rows of one subtask.
pub(super) struct RecordEncoder {
    plan: Arc<EncodePlan>,
    key: Option<Box<dyn Encoder>>,
    value: Box<dyn Encoder>,
    keys: Records,
    values: Records,
}

impl RecordEncoder {
    /// Hands the record of each row to `out`.
    pub(super) fn encode(
        &mut self,
        batch: &ChangeBatch,
        out: &mut dyn FnMut(&OutRecord<'_>) -> Result<()>,
    ) -> Result<()> {
        self.keys.clear();
        self.values.clear();
        let fields = &self.plan.fields;
        if let Some(encoder) = &mut self.key {
            let rows = ChangeBatch::inserts(batch.rows().project(&fields.key)?);
            encoder
                .encode(&rows, &mut self.keys)
                .map_err(|e| e.context("key"))?;
        }
        let rows = batch.rows().project(&fields.value)?;
        let rows = if self.plan.upsert {
            ChangeBatch::inserts(rows)
        } else {
            batch.with_rows(rows)?
        };
        self.value.encode(&rows, &mut self.values)?;
        let metadata = RowMetadata::new(&self.plan, batch.rows())?;
        let mut headers = Vec::new();
        for (i, kind) in batch.kinds().enumerate() {
            let is_gone = matches!(kind, RowKind::UpdateBefore | RowKind::Delete);
            metadata.headers(i, &mut headers);
            out(&OutRecord {
                topic: metadata.topic(i)?,
                key: self.key.is_some().then(|| self.keys.get(i)).flatten(),
                value: if self.plan.upsert && is_gone {
                    None
                } else {
                    self.values.get(i)
                },
                timestamp: metadata.timestamp(i),
                headers: &headers,
            })?;
        }
        Ok(())
    }
}

/// The metadata columns of a batch.
struct RowMetadata<'a> {
    topics: &'a Topics,
    topic: Option<&'a arrow::array::StringArray>,
    timestamp: Option<arrow::array::TimestampMillisecondArray>,
    headers: Option<&'a arrow::array::MapArray>,
}

impl<'a> RowMetadata<'a> {
    fn new(plan: &'a EncodePlan, rows: &'a RecordBatch) -> Result<Self> {
        let column = |which: Metadata| {
            let at = plan.metadata.iter().position(|(m, _)| *m == which)?;
            rows.columns().get(plan.physical.len() + at)
        };
        let millis = Metadata::Timestamp.data_type().to_arrow();
        let timestamp = match column(Metadata::Timestamp) {
            Some(array) => cast(array, &millis)?
                .as_primitive_opt::<TimestampMillisecondType>()
                .cloned(),
            None => None,
        };
        Ok(Self {
            topics: &plan.topics,
            topic: column(Metadata::Topic).and_then(|a| a.as_string_opt()),
            timestamp,
            headers: column(Metadata::Headers).and_then(|a| a.as_map_opt()),
        })
    }

    fn topic(&self, i: usize) -> Result<&'a str> {
        if let Some(single) = self.topics.single() {
            return Ok(single);
        }
        let Some(topics) = self.topic.filter(|t| t.is_valid(i)) else {
            return Err(Error::execution(
                "The topic of the sink record is not valid. Expected a single topic but no topic is \
                 set.",
            ));
        };
        let topic = topics.value(i);
        if self.topics.contains(topic) {
            return Ok(topic);
        }
        Err(Error::execution(format!(
            "The topic of the sink record is not valid: '{topic}' is none of the table's topics."
        )))
    }

    fn timestamp(&self, i: usize) -> Option<i64> {
        let column = self.timestamp.as_ref()?;
        column.is_valid(i).then(|| column.value(i))
    }

    fn headers(&self, i: usize, out: &mut Vec<(String, Vec<u8>)>) {
        out.clear();
        let Some(map) = self.headers.filter(|h| h.is_valid(i)) else {
            return;
        };
        let (Some(keys), Some(values)) = (
            map.keys().as_string_opt::<i32>(),
            map.values().as_binary_opt::<i32>(),
        ) else {
            return;
        };
        let at = |n: usize| usize::try_from(map.offsets()[n]).unwrap_or(0);
        for entry in at(i)..at(i + 1) {
            // As in Flink, an entry without a key or a value is left out.
            if keys.is_valid(entry) && values.is_valid(entry) {
                out.push((keys.value(entry).to_string(), values.value(entry).to_vec()));
            }
        }
    }
}
