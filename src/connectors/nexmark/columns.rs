//! Columns of many events: exactly the fields that are read, generated into Arrow arrays.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int32Array, Int64Array, StringArray, StructArray, TimestampMillisecondArray,
    new_null_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, TimeUnit};

use super::model::{Kind, Model, auction, bid, person};
use crate::connectors::pushdown::FieldPath;
use crate::error::{Error, Result};
use crate::types::{DataType, Schema, TypeKind};

/// How one field of an event is computed from the event's number.
#[derive(Clone, Copy)]
pub(super) enum Maker {
    Long(fn(i64) -> i64),
    Text(fn(i64, &mut Vec<u8>)),
    Url,
    Time,
    Expires,
}

impl Maker {
    fn data_type(self) -> TypeKind {
        match self {
            Self::Long(_) => TypeKind::BigInt,
            Self::Text(_) | Self::Url => TypeKind::STRING,
            Self::Time | Self::Expires => TypeKind::Timestamp(3),
        }
    }
}

const PERSON: [(&str, Maker); 8] = [
    ("id", Maker::Long(person::id)),
    ("name", Maker::Text(person::name)),
    ("emailAddress", Maker::Text(person::email_address)),
    ("creditCard", Maker::Text(person::credit_card)),
    ("city", Maker::Text(person::city)),
    ("state", Maker::Text(person::state)),
    ("dateTime", Maker::Time),
    ("extra", Maker::Text(person::extra)),
];
const AUCTION: [(&str, Maker); 10] = [
    ("id", Maker::Long(auction::id)),
    ("itemName", Maker::Text(auction::item_name)),
    ("description", Maker::Text(auction::description)),
    ("initialBid", Maker::Long(auction::initial_bid)),
    ("reserve", Maker::Long(auction::reserve)),
    ("dateTime", Maker::Time),
    ("expires", Maker::Expires),
    ("seller", Maker::Long(auction::seller)),
    ("category", Maker::Long(auction::category)),
    ("extra", Maker::Text(auction::extra)),
];
const BID: [(&str, Maker); 7] = [
    ("auction", Maker::Long(bid::auction)),
    ("bidder", Maker::Long(bid::bidder)),
    ("price", Maker::Long(bid::price)),
    ("channel", Maker::Text(bid::channel)),
    ("url", Maker::Url),
    ("dateTime", Maker::Time),
    ("extra", Maker::Text(bid::extra)),
];

fn fields_of(kind: Kind) -> &'static [(&'static str, Maker)] {
    match kind {
        Kind::Person => &PERSON,
        Kind::Auction => &AUCTION,
        Kind::Bid => &BID,
    }
}

/// A declared column: the type of the event, or the fields of one kind of events.
#[derive(Clone)]
enum Declared {
    EventType,
    Row {
        kind: Kind,
        fields: Vec<(ArrowField, Maker)>,
    },
}

/// The columns of a table as it was declared.
pub(super) struct Layout(Vec<Declared>);

impl Layout {
    /// # Errors
    /// When a column or field is none of this connector's, or has another type.
    pub(super) fn of(physical: &Schema) -> Result<Self> {
        let columns = physical.columns.iter();
        let declared = columns.map(|c| declared(&c.name, &c.data_type));
        declared.collect::<Result<_>>().map(Self)
    }

    /// The place of the column `event_type`.
    pub(super) fn event_type(&self) -> Option<usize> {
        let mut columns = self.0.iter();
        columns.position(|c| matches!(c, Declared::EventType))
    }

    /// All fields that hold the time of the event.
    pub(super) fn times(&self) -> Vec<FieldPath> {
        let mut times = Vec::new();
        for (i, column) in self.0.iter().enumerate() {
            if let Declared::Row { fields, .. } = column {
                let is_time =
                    |(_, (_, maker)): &(usize, &(ArrowField, Maker))| matches!(maker, Maker::Time);
                let found = fields.iter().enumerate().filter(is_time);
                times.extend(found.map(|(field, _)| FieldPath::column(i).field(field)));
            }
        }
        times
    }

    /// What makes the column that `path` names.
    pub(super) fn column(&self, path: &FieldPath) -> Result<Column> {
        let unknown = || Error::internal("a field that the table does not have");
        match (self.0.get(path.column), path.fields.as_slice()) {
            (Some(Declared::EventType), []) => Ok(Column::EventType),
            (Some(Declared::Row { kind, fields }), []) => Ok(Column::Row {
                kind: *kind,
                fields: fields.clone(),
            }),
            (Some(Declared::Row { kind, fields }), [field]) => {
                let (_, maker) = fields.get(*field).ok_or_else(unknown)?;
                Ok(Column::Field {
                    kind: *kind,
                    maker: *maker,
                })
            }
            _ => Err(unknown()),
        }
    }
}

fn declared(name: &str, data_type: &DataType) -> Result<Declared> {
    let kind = match name {
        "event_type" if data_type.kind == TypeKind::Int => return Ok(Declared::EventType),
        "event_type" => return Err(wrong_type(name, "INT", data_type)),
        "person" => Kind::Person,
        "auction" => Kind::Auction,
        "bid" => Kind::Bid,
        _ => {
            return Err(
                Error::options(format!("The connector 'nexmark' has no column '{name}'"))
                    .hint("it has event_type, person, auction and bid; compute others with AS"),
            );
        }
    };
    let TypeKind::Row(declared) = &data_type.kind else {
        return Err(wrong_type(name, "ROW<..>", data_type));
    };
    let mut fields = Vec::with_capacity(declared.len());
    for field in declared {
        let known = fields_of(kind);
        let Some((_, maker)) = known.iter().find(|(name, _)| *name == field.name) else {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
            return Err(Error::options(format!(
                "The connector 'nexmark' has no field '{}' in '{name}'",
                field.name
            ))
            .hint(format!("it has {}", names.join(", "))));
        };
        if field.data_type.kind != maker.data_type() {
            let path = format!("{name}.{}", field.name);
            let expected = maker.data_type().to_string();
            return Err(wrong_type(&path, &expected, &field.data_type));
        }
        fields.push((field.data_type.to_field(&field.name), *maker));
    }
    Ok(Declared::Row { kind, fields })
}

fn wrong_type(name: &str, expected: &str, declared: &DataType) -> Error {
    Error::options(format!(
        "The connector 'nexmark' gives '{name}' as {expected}, not as {}",
        declared.kind
    ))
}

/// A column of a scan.
pub(super) enum Column {
    EventType,
    Row {
        kind: Kind,
        fields: Vec<(ArrowField, Maker)>,
    },
    Field {
        kind: Kind,
        maker: Maker,
    },
}

/// The events of a batch, and which are of each kind.
pub(super) struct Events {
    numbers: Vec<i64>,
    counts: [usize; 3],
    validity: [Option<NullBuffer>; 3],
}

impl Events {
    pub(super) fn new(numbers: Vec<i64>) -> Self {
        let kinds: Vec<Kind> = numbers.iter().map(|n| Kind::of(*n)).collect();
        let counts = Kind::ALL.map(|kind| kinds.iter().filter(|k| **k == kind).count());
        let validity = Kind::ALL.map(|kind| {
            let count = counts[kind as usize];
            let mixed = count > 0 && count < kinds.len();
            mixed.then(|| kinds.iter().map(|k| *k == kind).collect::<NullBuffer>())
        });
        Self {
            numbers,
            counts,
            validity,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The column, one value an event.
    pub(super) fn column(&self, column: &Column, model: &Model) -> Result<ArrayRef> {
        match column {
            Column::EventType => {
                let types = self.numbers.iter().map(|n| Kind::of(*n) as i32);
                Ok(Arc::new(Int32Array::from_iter_values(types)))
            }
            Column::Field { kind, maker } => self.field(*kind, *maker, model),
            Column::Row { kind, fields } => {
                let declared: Vec<ArrowField> = fields.iter().map(|(f, _)| f.clone()).collect();
                if self.counts[*kind as usize] == 0 {
                    let data_type = ArrowType::Struct(declared.into());
                    return Ok(new_null_array(&data_type, self.len()));
                }
                let arrays = fields
                    .iter()
                    .map(|(_, maker)| self.field(*kind, *maker, model))
                    .collect::<Result<Vec<_>>>()?;
                let nulls = self.validity[*kind as usize].clone();
                Ok(Arc::new(StructArray::try_new_with_length(
                    declared.into(),
                    arrays,
                    nulls,
                    self.len(),
                )?))
            }
        }
    }

    fn field(&self, kind: Kind, maker: Maker, model: &Model) -> Result<ArrayRef> {
        let nulls = &self.validity[kind as usize];
        if self.counts[kind as usize] == 0 {
            let data_type = match maker {
                Maker::Long(_) => ArrowType::Int64,
                Maker::Text(_) | Maker::Url => ArrowType::Utf8,
                Maker::Time | Maker::Expires => ArrowType::Timestamp(TimeUnit::Millisecond, None),
            };
            return Ok(new_null_array(&data_type, self.len()));
        }
        let times = |values| {
            let array = TimestampMillisecondArray::new(values, nulls.clone());
            Arc::new(array) as ArrayRef
        };
        Ok(match maker {
            Maker::Long(make) => {
                Arc::new(Int64Array::new(self.longs(kind, make), nulls.clone())) as ArrayRef
            }
            Maker::Time => times(self.longs(kind, |n| model.time(n))),
            Maker::Expires => times(self.longs(kind, |n| model.expires(n))),
            Maker::Text(make) => self.texts(kind, make)?,
            Maker::Url => self.texts(kind, |n, out| bid::url(model, n, out))?,
        })
    }

    fn longs(&self, kind: Kind, make: impl Fn(i64) -> i64) -> ScalarBuffer<i64> {
        let numbers = self.numbers.iter();
        let values: Vec<i64> = match &self.validity[kind as usize] {
            None => numbers.map(|n| make(*n)).collect(),
            Some(nulls) => numbers
                .zip(nulls.iter())
                .map(|(n, valid)| if valid { make(*n) } else { 0 })
                .collect(),
        };
        values.into()
    }

    fn texts(&self, kind: Kind, mut make: impl FnMut(i64, &mut Vec<u8>)) -> Result<ArrayRef> {
        let nulls = &self.validity[kind as usize];
        let mut values = Vec::with_capacity(self.counts[kind as usize] * 48);
        let mut ends = Vec::with_capacity(self.len() + 1);
        ends.push(0);
        for (i, n) in self.numbers.iter().enumerate() {
            if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(i)) {
                make(*n, &mut values);
            }
            // batches are short: no column comes near 2^31 bytes
            ends.push(values.len() as i32);
        }
        let offsets = OffsetBuffer::new(ends.into());
        let array = StringArray::try_new(offsets, Buffer::from_vec(values), nulls.clone())?;
        Ok(Arc::new(array))
    }
}
