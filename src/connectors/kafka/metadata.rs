//! What a record tells beside its key and value.

use rdkafka::Timestamp;
use rdkafka::message::{Headers, Message};

use crate::formats::builder::ColumnBuilder;
use crate::types::{DataType, TypeKind};

/// A metadata column of the connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metadata {
    Topic,
    Partition,
    Headers,
    LeaderEpoch,
    Offset,
    Timestamp,
    TimestampType,
}

impl Metadata {
    pub(super) const ALL: [(&'static str, Self); 7] = [
        ("topic", Self::Topic),
        ("partition", Self::Partition),
        ("headers", Self::Headers),
        ("leader-epoch", Self::LeaderEpoch),
        ("offset", Self::Offset),
        ("timestamp", Self::Timestamp),
        ("timestamp-type", Self::TimestampType),
    ];

    /// Those that a sink can write.
    pub(super) const WRITABLE: [(&'static str, Self); 3] = [
        ("topic", Self::Topic),
        ("headers", Self::Headers),
        ("timestamp", Self::Timestamp),
    ];

    pub(super) fn find(key: &str) -> Option<Self> {
        Self::ALL.iter().find(|(k, _)| *k == key).map(|(_, m)| *m)
    }

    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Topic | Self::TimestampType => TypeKind::STRING.not_null(),
            Self::Partition => TypeKind::Int.not_null(),
            Self::LeaderEpoch => TypeKind::Int.nullable(),
            Self::Offset => TypeKind::BigInt.not_null(),
            Self::Timestamp => TypeKind::TimestampLtz(3).not_null(),
            Self::Headers => TypeKind::Map(
                Box::new(TypeKind::STRING.not_null()),
                Box::new(TypeKind::BYTES.not_null()),
            )
            .not_null(),
        }
    }

    /// Appends what `message` tells to `column`, which is of [`data_type`](Self::data_type).
    pub(super) fn push<M: Message>(self, message: &M, column: &mut ColumnBuilder) {
        match (self, column) {
            (Self::Topic, ColumnBuilder::String(s)) => s.push(message.topic().as_bytes()),
            (Self::Partition, ColumnBuilder::Int(p)) => p.push(message.partition()),
            (Self::Offset, ColumnBuilder::BigInt(p)) => p.push(message.offset()),
            (Self::Timestamp, ColumnBuilder::Timestamp(p, ..)) => {
                p.push(message.timestamp().to_millis().unwrap_or(-1));
            }
            (Self::TimestampType, ColumnBuilder::String(s)) => s.push(match message.timestamp() {
                Timestamp::NotAvailable => b"NoTimestampType",
                Timestamp::CreateTime(_) => b"CreateTime",
                Timestamp::LogAppendTime(_) => b"LogAppendTime",
            }),
            (Self::Headers, ColumnBuilder::Map(ends, key, value)) => {
                push_headers(message, key, value);
                ends.push(key.len());
            }
            // The leader's epoch is not told by the client.
            (_, column) => column.push_null(),
        }
    }
}

fn push_headers<M: Message>(message: &M, key: &mut ColumnBuilder, value: &mut ColumnBuilder) {
    let (ColumnBuilder::String(keys), ColumnBuilder::Binary(values)) = (key, value) else {
        return;
    };
    for header in message.headers().into_iter().flat_map(Headers::iter) {
        keys.push(header.key.as_bytes());
        values.push(header.value.unwrap_or_default());
    }
}
