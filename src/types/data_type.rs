//! Flink's logical types: names, printed forms and the Arrow type that carries their values.
//!
//! Arrow cannot hold `CHAR(3)` or `NOT NULL` inside an expression, so the logical type travels beside
//! the column. The mapping to Arrow ([`DataType::to_arrow`]) is fixed:
//!
//! | Flink | Arrow |
//! |---|---|
//! | `BOOLEAN`, `TINYINT` .. `BIGINT`, `FLOAT`, `DOUBLE` | `Boolean`, `Int8` .. `Int64`, `Float32`, `Float64` |
//! | `DECIMAL(p, s)` | `Decimal128(p, s)` |
//! | `CHAR(n)`, `VARCHAR(n)`, `STRING` | `Utf8` |
//! | `BINARY(n)`, `VARBINARY(n)`, `BYTES` | `Binary` |
//! | `DATE`, `TIME(p)` | `Date32`, `Time32(Millisecond)` |
//! | `TIMESTAMP(p)` | `Timestamp(unit)`: ms for p <= 3, us for p <= 6, else ns |
//! | `TIMESTAMP_LTZ(p)` | the same with zone `UTC`; the value is the instant |
//! | `INTERVAL YEAR TO MONTH`, `INTERVAL DAY TO SECOND` | `Interval(YearMonth)`, `Duration(Millisecond)` |
//! | `ARRAY<T>`, `MAP<K, V>`, `ROW<..>`, `STRUCTURED<..>` | `List`, `Map`, `Struct`, `Struct` |
//! | `MULTISET<T>` | `Map` from `T` to its count, `Int32` |
//! | `VARIANT` | `Utf8` holding JSON text |
//! | `BITMAP` | `Binary` holding the portable form of [`crate::types::bitmap`] |

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, Fields, IntervalUnit, TimeUnit};

/// The length of `STRING` and `BYTES`.
pub const MAX_LENGTH: u32 = i32::MAX as u32;

/// The name of the only time zone that Arrow timestamps of an instant carry.
pub const UTC: &str = "UTC";

/// A type without its nullability.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// The type of an untyped `NULL`.
    Null,
    /// `BOOLEAN`.
    Boolean,
    /// `TINYINT`, 8 bits.
    TinyInt,
    /// `SMALLINT`, 16 bits.
    SmallInt,
    /// `INT`, 32 bits.
    Int,
    /// `BIGINT`, 64 bits.
    BigInt,
    /// `FLOAT`, 32 bits.
    Float,
    /// `DOUBLE`, 64 bits.
    Double,
    /// `DECIMAL(precision, scale)`, precision up to 38.
    Decimal(u8, u8),
    /// `CHAR(n)`, n characters.
    Char(u32),
    /// `VARCHAR(n)`; `STRING` at [`MAX_LENGTH`].
    VarChar(u32),
    /// `BINARY(n)`, n bytes.
    Binary(u32),
    /// `VARBINARY(n)`; `BYTES` at [`MAX_LENGTH`].
    VarBinary(u32),
    /// `DATE`, days since 1970-01-01.
    Date,
    /// `TIME(p)`, milliseconds of the day.
    Time(u8),
    /// `TIMESTAMP(p)` without time zone.
    Timestamp(u8),
    /// `TIMESTAMP_LTZ(p)`: an instant, shown in the session's zone.
    TimestampLtz(u8),
    /// `INTERVAL YEAR TO MONTH`, in months.
    IntervalYearMonth,
    /// `INTERVAL DAY TO SECOND`, in milliseconds.
    IntervalDayTime,
    /// `ARRAY<element>`.
    Array(Box<DataType>),
    /// `MAP<key, value>`.
    Map(Box<DataType>, Box<DataType>),
    /// `MULTISET<element>`.
    Multiset(Box<DataType>),
    /// `ROW<name type, ...>`.
    Row(Vec<RowField>),
    /// `STRUCTURED<'class', name type, ...>`: a row that carries the name of a class.
    Structured(String, Vec<RowField>),
    /// `VARIANT`.
    Variant,
    /// `BITMAP`, a set of 32-bit integers.
    Bitmap,
}

/// A field of a `ROW`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RowField {
    /// Name, as written.
    pub name: String,
    /// Type.
    pub data_type: DataType,
}

/// A type with its nullability.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DataType {
    /// The type.
    pub kind: TypeKind,
    /// Whether `NULL` is a value of it.
    pub nullable: bool,
}

impl TypeKind {
    /// `STRING`.
    pub const STRING: Self = Self::VarChar(MAX_LENGTH);
    /// `BYTES`.
    pub const BYTES: Self = Self::VarBinary(MAX_LENGTH);

    /// This type, with `NULL`.
    #[must_use]
    pub fn nullable(self) -> DataType {
        DataType {
            kind: self,
            nullable: true,
        }
    }

    /// This type, without `NULL`.
    #[must_use]
    pub fn not_null(self) -> DataType {
        DataType {
            kind: self,
            nullable: false,
        }
    }

    /// This type, nullable or not.
    #[must_use]
    pub fn with_nullable(self, nullable: bool) -> DataType {
        DataType {
            kind: self,
            nullable,
        }
    }

    /// `TINYINT` to `BIGINT`.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        matches!(
            self,
            Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt
        )
    }

    /// `FLOAT` or `DOUBLE`.
    #[must_use]
    pub fn is_approximate(&self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }

    /// Integers, `DECIMAL`, `FLOAT`, `DOUBLE`.
    #[must_use]
    pub fn is_numeric(&self) -> bool {
        self.is_integer() || self.is_approximate() || matches!(self, Self::Decimal(..))
    }

    /// `CHAR` or `VARCHAR`.
    #[must_use]
    pub fn is_string(&self) -> bool {
        matches!(self, Self::Char(_) | Self::VarChar(_))
    }

    /// `BINARY` or `VARBINARY`.
    #[must_use]
    pub fn is_binary(&self) -> bool {
        matches!(self, Self::Binary(_) | Self::VarBinary(_))
    }

    /// `TIMESTAMP` or `TIMESTAMP_LTZ`.
    #[must_use]
    pub fn is_timestamp(&self) -> bool {
        matches!(self, Self::Timestamp(_) | Self::TimestampLtz(_))
    }

    /// `DATE`, `TIME` or a timestamp.
    #[must_use]
    pub fn is_temporal(&self) -> bool {
        matches!(self, Self::Date | Self::Time(_)) || self.is_timestamp()
    }

    /// One of the two intervals.
    #[must_use]
    pub fn is_interval(&self) -> bool {
        matches!(self, Self::IntervalYearMonth | Self::IntervalDayTime)
    }

    /// The fields of a `ROW` or a structured type.
    #[must_use]
    pub fn fields(&self) -> Option<&[RowField]> {
        match self {
            Self::Row(fields) | Self::Structured(_, fields) => Some(fields),
            _ => None,
        }
    }

    /// The number of characters or bytes that a string or binary type declares.
    #[must_use]
    pub fn length(&self) -> Option<u32> {
        match self {
            Self::Char(n) | Self::VarChar(n) | Self::Binary(n) | Self::VarBinary(n) => Some(*n),
            _ => None,
        }
    }

    /// Precision and scale of the `DECIMAL` that holds every value of an exact numeric type.
    #[must_use]
    pub fn as_decimal(&self) -> Option<(u8, u8)> {
        match self {
            Self::TinyInt => Some((3, 0)),
            Self::SmallInt => Some((5, 0)),
            Self::Int => Some((10, 0)),
            Self::BigInt => Some((19, 0)),
            Self::Decimal(p, s) => Some((*p, *s)),
            _ => None,
        }
    }

    /// The name of the type's root, as Flink's error messages say it: `INTEGER`, `CHAR`, `DECIMAL`...
    #[must_use]
    pub fn root_name(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Boolean => "BOOLEAN",
            Self::TinyInt => "TINYINT",
            Self::SmallInt => "SMALLINT",
            Self::Int => "INTEGER",
            Self::BigInt => "BIGINT",
            Self::Float => "FLOAT",
            Self::Double => "DOUBLE",
            Self::Decimal(..) => "DECIMAL",
            Self::Char(_) => "CHAR",
            Self::VarChar(_) => "VARCHAR",
            Self::Binary(_) => "BINARY",
            Self::VarBinary(_) => "VARBINARY",
            Self::Date => "DATE",
            Self::Time(_) => "TIME",
            Self::Timestamp(_) => "TIMESTAMP",
            Self::TimestampLtz(_) => "TIMESTAMP_WITH_LOCAL_TIME_ZONE",
            Self::IntervalYearMonth => "INTERVAL_YEAR_MONTH",
            Self::IntervalDayTime => "INTERVAL_DAY_TIME",
            Self::Array(_) => "ARRAY",
            Self::Map(..) => "MAP",
            Self::Multiset(_) => "MULTISET",
            Self::Row(_) => "ROW",
            Self::Structured(..) => "STRUCTURED_TYPE",
            Self::Variant => "VARIANT",
            Self::Bitmap => "BITMAP",
        }
    }

    /// The Arrow type that carries the values.
    #[must_use]
    pub fn to_arrow(&self) -> ArrowType {
        match self {
            Self::Null => ArrowType::Null,
            Self::Boolean => ArrowType::Boolean,
            Self::TinyInt => ArrowType::Int8,
            Self::SmallInt => ArrowType::Int16,
            Self::Int => ArrowType::Int32,
            Self::BigInt => ArrowType::Int64,
            Self::Float => ArrowType::Float32,
            Self::Double => ArrowType::Float64,
            Self::Decimal(p, s) => ArrowType::Decimal128(*p, i8::try_from(*s).unwrap_or(i8::MAX)),
            Self::Char(_) | Self::VarChar(_) | Self::Variant => ArrowType::Utf8,
            Self::Binary(_) | Self::VarBinary(_) | Self::Bitmap => ArrowType::Binary,
            Self::Date => ArrowType::Date32,
            Self::Time(_) => ArrowType::Time32(TimeUnit::Millisecond),
            Self::Timestamp(p) => ArrowType::Timestamp(timestamp_unit(*p), None),
            Self::TimestampLtz(p) => ArrowType::Timestamp(timestamp_unit(*p), Some(UTC.into())),
            Self::IntervalYearMonth => ArrowType::Interval(IntervalUnit::YearMonth),
            Self::IntervalDayTime => ArrowType::Duration(TimeUnit::Millisecond),
            Self::Array(element) => {
                ArrowType::List(Arc::new(Field::new("item", element.to_arrow(), true)))
            }
            Self::Map(key, value) => map_type(&key.kind, &value.kind),
            Self::Multiset(element) => map_type(&element.kind, &Self::Int),
            Self::Row(fields) | Self::Structured(_, fields) => ArrowType::Struct(
                fields
                    .iter()
                    .map(|f| Field::new(&f.name, f.data_type.to_arrow(), true))
                    .collect::<Fields>(),
            ),
        }
    }
}

/// The Arrow unit that holds a timestamp of `precision` digits.
#[must_use]
pub fn timestamp_unit(precision: u8) -> TimeUnit {
    match precision {
        0..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

fn map_type(key: &TypeKind, value: &TypeKind) -> ArrowType {
    let entries = Fields::from(vec![
        Field::new("keys", key.to_arrow(), false),
        Field::new("values", value.to_arrow(), true),
    ]);
    ArrowType::Map(
        Arc::new(Field::new("entries", ArrowType::Struct(entries), false)),
        false,
    )
}

impl DataType {
    /// The Arrow type that carries the values.
    #[must_use]
    pub fn to_arrow(&self) -> ArrowType {
        self.kind.to_arrow()
    }

    /// The same type with `NULL`.
    #[must_use]
    pub fn as_nullable(&self) -> Self {
        self.kind.clone().nullable()
    }

    /// The Arrow field of a column of this type. Arrow's nullability is always true: whether `NULL`
    /// may occur is the logical type's business, enforced at sinks.
    #[must_use]
    pub fn to_field(&self, name: &str) -> Field {
        Field::new(name, self.to_arrow(), true)
    }
}

impl From<TypeKind> for DataType {
    /// With `NULL`.
    fn from(kind: TypeKind) -> Self {
        kind.nullable()
    }
}

fn write_fields(fields: &[RowField], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (i, field) in fields.iter().enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        let name = field.name.replace('`', "``");
        write!(f, "{comma}`{name}` {}", field.data_type)?;
    }
    Ok(())
}

impl fmt::Display for TypeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::TinyInt => f.write_str("TINYINT"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::Float => f.write_str("FLOAT"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Decimal(p, s) => write!(f, "DECIMAL({p}, {s})"),
            Self::Char(n) => write!(f, "CHAR({n})"),
            Self::VarChar(MAX_LENGTH) => f.write_str("STRING"),
            Self::VarChar(n) => write!(f, "VARCHAR({n})"),
            Self::Binary(n) => write!(f, "BINARY({n})"),
            Self::VarBinary(MAX_LENGTH) => f.write_str("BYTES"),
            Self::VarBinary(n) => write!(f, "VARBINARY({n})"),
            Self::Date => f.write_str("DATE"),
            Self::Time(p) => write!(f, "TIME({p})"),
            Self::Timestamp(p) => write!(f, "TIMESTAMP({p})"),
            Self::TimestampLtz(p) => write!(f, "TIMESTAMP_LTZ({p})"),
            Self::IntervalYearMonth => f.write_str("INTERVAL MONTH"),
            Self::IntervalDayTime => f.write_str("INTERVAL SECOND(3)"),
            Self::Array(e) => write!(f, "ARRAY<{e}>"),
            Self::Map(k, v) => write!(f, "MAP<{k}, {v}>"),
            Self::Multiset(e) => write!(f, "MULTISET<{e}>"),
            Self::Row(fields) => {
                f.write_str("ROW<")?;
                write_fields(fields, f)?;
                f.write_str(">")
            }
            Self::Structured(class, fields) => {
                write!(f, "STRUCTURED<'{}', ", class.replace('\'', "''"))?;
                write_fields(fields, f)?;
                f.write_str(">")
            }
            Self::Variant => f.write_str("VARIANT"),
            Self::Bitmap => f.write_str("BITMAP"),
        }
    }
}

/// Flink's summary form: `INT NOT NULL`, `ROW<`a` INT>`.
impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}",
            self.kind,
            if self.nullable { "" } else { " NOT NULL" }
        )
    }
}
