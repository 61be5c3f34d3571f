//! Rows to envelopes.

use super::CdcFormat;
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::formats::json::{EncodeOptions, JsonWriter};
use crate::formats::{Encoder, Records};
use crate::types::Schema;

pub(super) struct CdcEncoder {
    flavor: CdcFormat,
    ignore_null_fields: bool,
    writer: JsonWriter,
}

impl CdcEncoder {
    pub(super) fn new(flavor: CdcFormat, schema: &Schema, options: EncodeOptions) -> Result<Self> {
        Ok(Self {
            flavor,
            ignore_null_fields: options.ignore_null_fields,
            writer: JsonWriter::new(schema, options)?,
        })
    }

    /// The texts before and behind a row that is added or removed.
    fn frame(&self, is_add: bool) -> (&'static str, &'static str) {
        match (self.flavor, is_add, self.ignore_null_fields) {
            (CdcFormat::Debezium, true, false) => (r#"{"before":null,"after":"#, r#","op":"c"}"#),
            (CdcFormat::Debezium, true, true) => (r#"{"after":"#, r#","op":"c"}"#),
            (CdcFormat::Debezium, false, false) => (r#"{"before":"#, r#","after":null,"op":"d"}"#),
            (CdcFormat::Debezium, false, true) => (r#"{"before":"#, r#","op":"d"}"#),
            (CdcFormat::Ogg, true, false) => (r#"{"before":null,"after":"#, r#","op_type":"I"}"#),
            (CdcFormat::Ogg, true, true) => (r#"{"after":"#, r#","op_type":"I"}"#),
            (CdcFormat::Ogg, false, false) => (r#"{"before":"#, r#","after":null,"op_type":"D"}"#),
            (CdcFormat::Ogg, false, true) => (r#"{"before":"#, r#","op_type":"D"}"#),
            (CdcFormat::Canal, true, _) => (r#"{"data":["#, r#"],"type":"INSERT"}"#),
            (CdcFormat::Canal, false, _) => (r#"{"data":["#, r#"],"type":"DELETE"}"#),
            (CdcFormat::Maxwell, true, _) => (r#"{"data":"#, r#","type":"insert"}"#),
            (CdcFormat::Maxwell, false, _) => (r#"{"data":"#, r#","type":"delete"}"#),
        }
    }
}

impl Encoder for CdcEncoder {
    fn encode(&mut self, batch: &ChangeBatch, out: &mut Records) -> Result<()> {
        let mut rows = self.writer.rows(batch)?;
        for (i, kind) in batch.kinds().enumerate() {
            let (before, behind) = self.frame(kind.is_add());
            out.data.extend_from_slice(before.as_bytes());
            rows.write(i, &mut out.data)?;
            out.data.extend_from_slice(behind.as_bytes());
            out.commit();
        }
        Ok(())
    }
}
