//! The formats made of Avro: `avro`, `avro-confluent` and `debezium-avro-confluent`.
//!
//! - [`schema`]: Avro's types, and the schema of a table,
//! - [`read`], [`write`]: bytes to columns and back,
//! - [`registry`]: schemas by number, over HTTP,
//! - here: the formats' options, and the decoder and encoder of whole records.

mod read;
mod registry;
mod schema;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::read::{Input, Plan, read_row};
use self::registry::Registry;
use self::schema::Node;
use super::view::{View, views};
use super::{
    DecodedColumns, Decoder, DecodingFormat, Encoder, EncodingFormat, Format, FormatOptions,
    Records, Rows,
};
use crate::changelog::{ChangeBatch, ChangelogMode, RowKind};
use crate::connectors::options::{optional, required};
use crate::connectors::{OptionSpec, Origin};
use crate::error::{Error, Result};
use crate::types::{DataType, Schema};

/// One of the formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AvroFormat {
    /// `avro`: the schema is that of the table.
    Plain,
    /// `avro-confluent`: the schema is in a registry.
    Confluent,
    /// `debezium-avro-confluent`: so are the envelopes of changes.
    Debezium,
}

fn secret(key: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec {
        secret: true,
        ..optional(key, help)
    }
}

impl Format for AvroFormat {
    fn identifier(&self) -> &'static str {
        match self {
            Self::Plain => "avro",
            Self::Confluent => "avro-confluent",
            Self::Debezium => "debezium-avro-confluent",
        }
    }

    fn origin(&self) -> Origin {
        match self {
            Self::Plain => Origin::Jar("flink-sql-avro"),
            Self::Confluent | Self::Debezium => Origin::Jar("flink-sql-avro-confluent-registry"),
        }
    }

    fn options(&self) -> Vec<OptionSpec> {
        let legacy = optional(
            "timestamp_mapping.legacy",
            "TIMESTAMP is Avro's instant; TIMESTAMP_LTZ is refused (true)",
        );
        if *self == Self::Plain {
            return vec![
                legacy,
                optional("encoding", "binary (binary)"),
                optional("codec", "compression of files (null)"),
            ];
        }
        vec![
            required("url", "the schema registry"),
            optional("subject", "the subject to register under (TOPIC-value)"),
            optional("schema", "the schema to write with (of the table)"),
            OptionSpec {
                flink: false,
                ..legacy
            },
            optional("basic-auth.credentials-source", "USER_INFO"),
            secret("basic-auth.user-info", "user:password"),
            optional("bearer-auth.credentials-source", "STATIC_TOKEN"),
            secret("bearer-auth.token", "token"),
            optional("ssl.truststore.location", "certificates to trust, PEM"),
        ]
    }

    fn decoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn DecodingFormat>> {
        Ok(Arc::new(Coding::read(*self, options)?))
    }

    fn encoding(&self, options: &FormatOptions<'_>) -> Result<Arc<dyn EncodingFormat>> {
        Ok(Arc::new(Coding::read(*self, options)?))
    }
}

/// A format with its options.
struct Coding {
    format: AvroFormat,
    legacy: bool,
    registry: Option<Arc<Registry>>,
    subject: Option<String>,
    /// The schema to write with, as text.
    schema: Option<String>,
}

impl Coding {
    fn read(format: AvroFormat, options: &FormatOptions<'_>) -> Result<Self> {
        options.choice("encoding", &[("binary", ())], ())?;
        let registry = match format {
            AvroFormat::Plain => None,
            AvroFormat::Confluent | AvroFormat::Debezium => {
                Some(Arc::new(Registry::read(options)?))
            }
        };
        let schema = options.get("schema").map(str::to_string);
        if let Some(schema) = &schema {
            Node::parse(schema).map_err(|e| e.context(options.key("schema")))?;
        }
        Ok(Self {
            format,
            legacy: options.boolean("timestamp_mapping.legacy", true)?,
            registry,
            subject: options
                .get("subject")
                .map(str::to_string)
                .or_else(|| options.default_subject()),
            schema,
        })
    }

    fn changelog_mode(&self) -> ChangelogMode {
        match self.format {
            AvroFormat::Debezium => ChangelogMode::RETRACT,
            AvroFormat::Plain | AvroFormat::Confluent => ChangelogMode::APPEND,
        }
    }

    /// The schema of a table, as text.
    fn derived(&self, schema: &Schema) -> Result<String> {
        match self.format {
            AvroFormat::Debezium => schema::derive_envelope(schema, self.legacy),
            AvroFormat::Plain | AvroFormat::Confluent => schema::derive(schema, self.legacy),
        }
    }
}

impl DecodingFormat for Coding {
    fn changelog_mode(&self) -> ChangelogMode {
        Coding::changelog_mode(self)
    }

    fn decoder(&self, columns: &DecodedColumns) -> Result<Box<dyn Decoder>> {
        let derived = Node::parse(&self.derived(&columns.schema)?)?;
        let wanted = columns.schema.project(&columns.projection);
        let mut decoder = AvroDecoder {
            is_envelope: self.format == AvroFormat::Debezium,
            registry: self.registry.clone(),
            rows: Rows::new(&columns.produced()),
            wanted,
            plans: BTreeMap::new(),
        };
        if self.registry.is_none() {
            let plan = decoder.plan(&derived)?;
            decoder.plans.insert(0, plan);
        }
        Ok(Box::new(decoder))
    }
}

/// How the records of one schema are read.
enum RecordPlan {
    Row(Plan),
    /// The places of the parts of an envelope.
    Envelope(Vec<EnvelopeField>),
}

/// A field of Debezium's envelope.
enum EnvelopeField {
    /// The row before or after: the branch of the union that is a row, and its plan.
    Image {
        is_after: bool,
        /// The branches of the union; `None` for NULL. A single one: there is no union.
        branches: Vec<Option<Plan>>,
    },
    Op(Node),
    Other(Plan),
}

struct AvroDecoder {
    is_envelope: bool,
    registry: Option<Arc<Registry>>,
    /// The columns of the rows.
    wanted: Schema,
    rows: Rows,
    /// By number of the schema.
    plans: BTreeMap<u32, RecordPlan>,
}

impl AvroDecoder {
    fn plan(&self, node: &Node) -> Result<RecordPlan> {
        let Node::Record(fields) = node else {
            return Err(Error::format(format!(
                "the schema is no record, but {}",
                node.name()
            )));
        };
        let columns = self.wanted.columns.iter();
        let columns: Vec<(&str, &DataType)> =
            columns.map(|c| (c.name.as_str(), &c.data_type)).collect();
        if !self.is_envelope {
            return Ok(RecordPlan::Row(Plan::row(fields, &columns, "")?));
        }
        let row = |node: &Node| -> Result<Option<Plan>> {
            match node {
                Node::Record(fields) => Ok(Some(Plan::row(fields, &columns, "")?)),
                Node::Null => Ok(None),
                other => Err(Error::format(format!(
                    "the envelope holds {} instead of a row",
                    other.name()
                ))),
            }
        };
        let fields = fields
            .iter()
            .map(|(name, node)| match name.as_str() {
                "before" | "after" => {
                    let branches = match node {
                        Node::Union(branches) => branches.iter().map(row).collect::<Result<_>>()?,
                        other => vec![row(other)?],
                    };
                    Ok(EnvelopeField::Image {
                        is_after: name == "after",
                        branches,
                    })
                }
                "op" => Ok(EnvelopeField::Op(node.clone())),
                _ => Ok(EnvelopeField::Other(Plan::Skip(node.clone()))),
            })
            .collect::<Result<_>>()?;
        Ok(RecordPlan::Envelope(fields))
    }

    fn read(&mut self, record: &[u8]) -> Result<()> {
        let (id, bytes) = match &self.registry {
            Some(registry) => {
                let (id, bytes) = registry::split(record)?;
                if !self.plans.contains_key(&id) {
                    let schema = registry.schema(id)?;
                    let plan = self.plan(&schema)?;
                    self.plans.insert(id, plan);
                }
                (id, bytes)
            }
            None => (0, record),
        };
        let plan = self
            .plans
            .get(&id)
            .ok_or_else(|| Error::internal("a schema without a plan"))?;
        let mut input = Input(bytes);
        match plan {
            RecordPlan::Row(plan) => {
                read_row(plan, &mut input, &mut self.rows.columns)?;
                self.rows.commit(RowKind::Insert);
            }
            RecordPlan::Envelope(fields) => read_envelope(fields, &mut input, &mut self.rows)?,
        }
        if !input.0.is_empty() {
            return Err(Error::format(format!(
                "{} bytes follow the Avro record",
                input.0.len()
            )));
        }
        Ok(())
    }
}

/// Reads an envelope: the rows come before the kind of the change is known.
fn read_envelope(fields: &[EnvelopeField], input: &mut Input<'_>, rows: &mut Rows) -> Result<()> {
    // Where the images lie; they are read once the kind is known.
    let (mut before, mut after, mut op) = (None, None, None);
    for field in fields {
        match field {
            EnvelopeField::Image { is_after, branches } => {
                let branch = match branches.as_slice() {
                    [single] => single.as_ref(),
                    several => several[input.branch(several.len())?].as_ref(),
                };
                let Some(plan) = branch else { continue };
                let start = input.0;
                plan.step_over(input)?;
                let image = Some((start, plan));
                if *is_after {
                    after = image;
                } else {
                    before = image;
                }
            }
            EnvelopeField::Op(node) => op = Some(input.text(node)?),
            EnvelopeField::Other(plan) => plan.step_over(input)?,
        }
    }
    let op = op.ok_or_else(|| Error::format("the envelope has no field \"op\""))?;
    let mut push = |image: Option<(&[u8], &Plan)>, name: &str, kind: RowKind| -> Result<()> {
        let (bytes, plan) = image.ok_or_else(|| {
            Error::format(format!(
                "The \"{name}\" field of the message is null: if you are using Debezium Postgres \
                 Connector, please check the Postgres table has been set REPLICA IDENTITY to FULL \
                 level."
            ))
        })?;
        read_row(plan, &mut Input(bytes), &mut rows.columns)?;
        rows.commit(kind);
        Ok(())
    };
    match op.as_str() {
        "c" | "r" => push(after, "after", RowKind::Insert),
        "u" => {
            push(before, "before", RowKind::UpdateBefore)?;
            push(after, "after", RowKind::UpdateAfter)
        }
        "d" => push(before, "before", RowKind::Delete),
        other => Err(Error::format(format!(
            "Unknown \"op\" value \"{other}\" in the envelope"
        ))),
    }
}

impl Decoder for AvroDecoder {
    fn decode(&mut self, record: &[u8]) -> Result<()> {
        let before = self.rows.len();
        let read = self.read(record);
        if read.is_err() {
            self.rows.truncate(before);
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
        0
    }
}

impl EncodingFormat for Coding {
    fn changelog_mode(&self) -> ChangelogMode {
        Coding::changelog_mode(self)
    }

    fn encoder(&self, schema: &Schema) -> Result<Box<dyn Encoder>> {
        let text = match &self.schema {
            Some(text) => text.clone(),
            None => self.derived(schema)?,
        };
        let Node::Record(fields) = Node::parse(&text)? else {
            return Err(Error::options("The schema to write with is no record."));
        };
        let registration = match (&self.registry, &self.subject) {
            (Some(registry), Some(subject)) => Some((Arc::clone(registry), subject.clone())),
            (Some(_), None) => {
                return Err(Error::options(format!(
                    "Option {}.subject is required for serialization",
                    self.format.identifier()
                )));
            }
            (None, _) => None,
        };
        Ok(Box::new(AvroEncoder {
            is_envelope: self.format == AvroFormat::Debezium,
            fields,
            schema: schema.clone(),
            text,
            registration,
            id: None,
        }))
    }
}

struct AvroEncoder {
    is_envelope: bool,
    /// The fields of a record.
    fields: Vec<(String, Node)>,
    /// The columns.
    schema: Schema,
    /// The schema as text.
    text: String,
    /// Where the schema is registered, before the first record.
    registration: Option<(Arc<Registry>, String)>,
    id: Option<u32>,
}

impl Encoder for AvroEncoder {
    fn encode(&mut self, batch: &ChangeBatch, out: &mut Records) -> Result<()> {
        if let (Some((registry, subject)), None) = (&self.registration, self.id) {
            self.id = Some(registry.register(subject, &self.text)?);
        }
        let views = views(batch, &self.schema)?;
        let names = self.schema.columns.iter().map(|c| c.name.as_str());
        let columns: Vec<(&str, View<'_>)> = names.zip(views).collect();
        for (i, kind) in batch.kinds().enumerate() {
            if let Some(id) = self.id {
                registry::prefix(id, &mut out.data);
            }
            if self.is_envelope {
                write_envelope(&self.fields, &columns, i, kind, &mut out.data)?;
            } else {
                write::write_record(&self.fields, &columns, i, &mut out.data)?;
            }
            out.commit();
        }
        Ok(())
    }
}

/// Every change is an addition or a removal, as in Flink.
fn write_envelope(
    fields: &[(String, Node)],
    columns: &[(&str, View<'_>)],
    i: usize,
    kind: RowKind,
    out: &mut Vec<u8>,
) -> Result<()> {
    for (name, node) in fields {
        let is_there = (name == "after") == kind.is_add();
        match name.as_str() {
            "before" | "after" => {
                let no_row = || Error::format("the schema's envelope holds no nullable row");
                let Node::Union(branches) = node else {
                    return Err(no_row());
                };
                let place = |wanted: &dyn Fn(&Node) -> bool| branches.iter().position(wanted);
                let branch = if is_there {
                    place(&|b| matches!(b, Node::Record(_)))
                } else {
                    place(&|b| *b == Node::Null)
                };
                let branch = branch.ok_or_else(no_row)?;
                write::branch(branch, out);
                if let Node::Record(fields) = &branches[branch] {
                    write::write_record(fields, columns, i, out)?;
                }
            }
            "op" => write::text(node, if kind.is_add() { "c" } else { "d" }, out)?,
            _ => write::write(node, &View::Null, i, out)?,
        }
    }
    Ok(())
}
