//! The `protobuf` format: a record is a message of a descriptor set.
//!
//! Flink needs a generated class; here the set that `protoc --include_imports
//! --descriptor_set_out=FILE` writes says what the fields are. The rules are Flink's: fields are
//! matched by name, an enum is a string or a number, what a message does not set is NULL if the
//! message can tell.
//!
//! - [`read`], [`write`]: messages to columns and back.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};

use super::view::views;
use super::{
    DecodedColumns, Decoder, DecodingFormat, Encoder, EncodingFormat, Format, FormatOptions,
    Records, Rows,
};
use crate::changelog::{ChangeBatch, RowKind};
use crate::connectors::options::{missing_required, optional};
use crate::connectors::{OptionSpec, Origin};
use crate::error::{Error, Result, did_you_mean};
use crate::types::{DataType, Schema, TypeKind};

/// The format.
#[derive(Debug)]
pub struct ProtobufFormat;

fn extension(key: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec {
        flink: false,
        ..optional(key, help)
    }
}

impl Format for ProtobufFormat {
    fn identifier(&self) -> &'static str {
        "protobuf"
    }

    fn origin(&self) -> Origin {
        Origin::Jar("flink-sql-protobuf")
    }

    fn options(&self) -> Vec<OptionSpec> {
        vec![
            extension(
                "descriptor-set",
                "file that protoc --include_imports --descriptor_set_out wrote",
            ),
            extension("message-name", "full name of the message: package.Message"),
            optional(
                "message-class-name",
                "Java class of the message, in place of message-name",
            ),
            optional("ignore-parse-errors", "bad records are skipped (false)"),
            optional(
                "read-default-values",
                "what is not set has its default value, not NULL (false)",
            ),
            optional(
                "write-null-string-literal",
                "stands for NULL in a list or map of strings (empty)",
            ),
        ]
    }

    fn decoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn DecodingFormat>> {
        Ok(Arc::new(Coding::read(options)?))
    }

    fn encoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn EncodingFormat>> {
        Ok(Arc::new(Coding::read(options)?))
    }
}

/// The format with its options.
struct Coding {
    message: MessageDescriptor,
    ignore_errors: bool,
    read_defaults: bool,
    null_string: String,
}

impl Coding {
    fn read(options: &FormatOptions<'_>) -> Result<Self> {
        let key = options.key("descriptor-set");
        let path = options
            .get("descriptor-set")
            .ok_or_else(|| missing_required(&[&key]))?;
        let bytes = std::fs::read(path.strip_prefix("file://").unwrap_or(path)).map_err(|e| {
            Error::options(format!(
                "Option '{key}' names '{path}', which cannot be read: {e}"
            ))
        })?;
        let pool = DescriptorPool::decode(bytes.as_slice()).map_err(|e| {
            Error::options(format!("'{path}' is no descriptor set: {e}"))
                .hint("make it with protoc --include_imports --descriptor_set_out=FILE")
        })?;
        Ok(Self {
            message: message(&pool, options, path)?,
            ignore_errors: options.boolean("ignore-parse-errors", false)?,
            read_defaults: options.boolean("read-default-values", false)?,
            null_string: options
                .get("write-null-string-literal")
                .unwrap_or_default()
                .to_string(),
        })
    }

    /// The fields of `schema`'s columns.
    fn fields(&self, schema: &Schema) -> Result<Vec<FieldDescriptor>> {
        let columns = schema.columns.iter();
        columns
            .map(|c| field(&self.message, &c.name, &c.data_type))
            .collect()
    }
}

/// The message that the options name.
fn message(
    pool: &DescriptorPool,
    options: &FormatOptions<'_>,
    path: &str,
) -> Result<MessageDescriptor> {
    let found = match (
        options.get("message-name"),
        options.get("message-class-name"),
    ) {
        (Some(name), _) => pool.get_message_by_name(name).ok_or(name),
        (None, Some(class)) => {
            // com.example.Orders$Order, com.example.Order
            let name = class.rsplit(['.', '$']).next().unwrap_or(class);
            let mut all = pool.all_messages().filter(|m| m.name() == name);
            match (all.next(), all.next()) {
                (Some(only), None) => Ok(only),
                _ => Err(class),
            }
        }
        (None, None) => return Err(missing_required(&[&options.key("message-name")])),
    };
    found.map_err(|name| {
        let names: Vec<String> = pool.all_messages().map(|m| m.full_name().into()).collect();
        let error = Error::options(format!(
            "There is no one message '{name}' in '{path}'. It has: {}",
            names.join(", ")
        ));
        match did_you_mean(name, names.iter().map(String::as_str)) {
            Some(close) => error.hint(format!("did you mean '{close}'?")),
            None => error,
        }
    })
}

/// The field of a column.
fn field(message: &MessageDescriptor, name: &str, t: &DataType) -> Result<FieldDescriptor> {
    let field = message.get_field_by_name(name).ok_or_else(|| {
        let error = Error::options(format!(
            "The message '{}' has no field '{name}'.",
            message.full_name()
        ));
        let names: Vec<String> = message.fields().map(|f| f.name().to_string()).collect();
        error.hint(format!("it has: {}", names.join(", ")))
    })?;
    let fits = match &t.kind {
        TypeKind::Array(element) if field.is_list() => fits(&field.kind(), element)?,
        TypeKind::Map(key, value) => match field.kind() {
            Kind::Message(entry) if entry.is_map_entry() => {
                fits(&entry.map_entry_key_field().kind(), key)?
                    && fits(&entry.map_entry_value_field().kind(), value)?
            }
            _ => false,
        },
        _ => !field.is_list() && !field.is_map() && fits(&field.kind(), t)?,
    };
    if fits {
        return Ok(field);
    }
    Err(Error::options(format!(
        "The field '{name}' of message '{}' cannot be a column of type {t}.",
        message.full_name()
    )))
}

fn fits(kind: &Kind, t: &DataType) -> Result<bool> {
    Ok(match (kind, &t.kind) {
        (Kind::Message(message), TypeKind::Row(fields)) => {
            for f in fields {
                field(message, &f.name, &f.data_type)?;
            }
            true
        }
        (Kind::Bool, TypeKind::Boolean)
        | (Kind::Float, TypeKind::Float)
        | (Kind::Double, TypeKind::Double)
        | (
            Kind::Int32
            | Kind::Sint32
            | Kind::Sfixed32
            | Kind::Uint32
            | Kind::Fixed32
            | Kind::Enum(_),
            TypeKind::Int,
        )
        | (
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 | Kind::Uint64 | Kind::Fixed64,
            TypeKind::BigInt,
        ) => true,
        (Kind::Bytes, kind) => kind.is_binary(),
        (Kind::String | Kind::Enum(_), kind) => kind.is_string(),
        _ => false,
    })
}

impl DecodingFormat for Coding {
    fn decoder(&self, columns: &DecodedColumns) -> Result<Box<dyn Decoder>> {
        let wanted = columns.schema.project(&columns.projection);
        Ok(Box::new(ProtobufDecoder {
            message: self.message.clone(),
            fields: self.fields(&wanted)?,
            rows: Rows::new(&columns.produced()),
            ignore_errors: self.ignore_errors,
            read_defaults: self.read_defaults,
            skipped: 0,
        }))
    }
}

struct ProtobufDecoder {
    message: MessageDescriptor,
    /// One a column.
    fields: Vec<FieldDescriptor>,
    rows: Rows,
    ignore_errors: bool,
    read_defaults: bool,
    skipped: u64,
}

impl ProtobufDecoder {
    fn read(&mut self, record: &[u8]) -> Result<()> {
        let message = DynamicMessage::decode(self.message.clone(), record).map_err(|e| {
            Error::format(format!(
                "this is no message '{}': {e}",
                self.message.full_name()
            ))
        })?;
        for (field, (_, column)) in self.fields.iter().zip(&mut self.rows.columns) {
            read::field(&message, field, column, self.read_defaults)?;
        }
        self.rows.commit(RowKind::Insert);
        Ok(())
    }
}

impl Decoder for ProtobufDecoder {
    fn decode(&mut self, record: &[u8]) -> Result<()> {
        let before = self.rows.len();
        let read = self.read(record);
        if read.is_err() {
            self.rows.truncate(before);
        }
        if read.is_err() && self.ignore_errors {
            self.skipped += 1;
            return Ok(());
        }
        read
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn bytes_used(&self) -> usize {
        self.rows.bytes_used()
    }

    fn finish(&mut self) -> Result<ChangeBatch> {
        self.rows.finish()
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl EncodingFormat for Coding {
    fn encoder(&self, schema: &Schema) -> Result<Box<dyn Encoder>> {
        Ok(Box::new(ProtobufEncoder {
            message: self.message.clone(),
            fields: self.fields(schema)?,
            schema: schema.clone(),
            null_string: self.null_string.clone(),
        }))
    }
}

struct ProtobufEncoder {
    message: MessageDescriptor,
    fields: Vec<FieldDescriptor>,
    schema: Schema,
    null_string: String,
}

impl Encoder for ProtobufEncoder {
    fn encode(&mut self, batch: &ChangeBatch, out: &mut Records) -> Result<()> {
        let views = views(batch, &self.schema)?;
        for i in 0..batch.len() {
            let mut message = DynamicMessage::new(self.message.clone());
            for (field, view) in self.fields.iter().zip(&views) {
                write::field(&mut message, field, view, i, &self.null_string)?;
            }
            write::append(&message, &mut out.data)?;
            out.commit();
        }
        Ok(())
    }
}
