//! Columns that are the same in all rows of a file: partitions and metadata.

use arrow::array::ArrayRef;

use super::listing::DataFile;
use super::source::{FileInfo, Origin, ReadPlan};
use crate::error::{Error, Result};
use crate::formats::builder::ColumnBuilder;
use crate::formats::text;
use crate::types::TypeKind;

impl ReadPlan {
    /// The one value that a column has in all rows of a file.
    pub(super) fn constant(&self, origin: Origin, file: &DataFile) -> Result<Option<ArrayRef>> {
        let string = TypeKind::STRING.nullable();
        let mut column;
        match origin {
            Origin::Decoded(_) => return Ok(None),
            Origin::Partition(index) => {
                let data_type =
                    &self.layout.physical.columns[self.layout.partitions[index]].data_type;
                column = ColumnBuilder::new(data_type);
                let values = self.layout.partition_values(&file.path)?;
                match values.into_iter().nth(index).flatten() {
                    None => column.push_null(),
                    Some(value) => push_partition(&mut column, &value).ok_or_else(|| {
                        Error::connector(format!(
                            "Can not convert {value} to type {data_type} for partition value ({})",
                            file.path.display()
                        ))
                    })?,
                }
            }
            Origin::Info(info) => {
                let text = match info {
                    FileInfo::Path => Some(file.path.to_string_lossy()),
                    FileInfo::Name => file.path.file_name().map(|n| n.to_string_lossy()),
                    FileInfo::Size | FileInfo::ModificationTime => None,
                };
                column = ColumnBuilder::new(&match info {
                    FileInfo::Path | FileInfo::Name => string,
                    FileInfo::Size => TypeKind::BigInt.not_null(),
                    FileInfo::ModificationTime => TypeKind::TimestampLtz(3).not_null(),
                });
                match (&mut column, text) {
                    (ColumnBuilder::String(b), Some(text)) => b.push(text.as_bytes()),
                    (ColumnBuilder::BigInt(p), _) => {
                        p.push(i64::try_from(file.size).unwrap_or(i64::MAX));
                    }
                    (ColumnBuilder::Timestamp(p, ..), _) => p.push(file.modified),
                    _ => column.push_null(),
                }
            }
        }
        Ok(Some(column.finish()?))
    }
}

/// Appends the value of a partition column that a folder's name tells.
fn push_partition(column: &mut ColumnBuilder, value: &str) -> Option<()> {
    let integer = |min: i64, max: i64| text::parse_integer(value, min, max);
    match column {
        ColumnBuilder::String(b) => b.push(value.as_bytes()),
        ColumnBuilder::Boolean(values, nulls) => {
            values.append(value.eq_ignore_ascii_case("true"));
            nulls.append_non_null();
        }
        ColumnBuilder::TinyInt(p) => {
            p.push(i8::try_from(integer(i8::MIN.into(), i8::MAX.into())?).ok()?);
        }
        ColumnBuilder::SmallInt(p) => {
            p.push(i16::try_from(integer(i16::MIN.into(), i16::MAX.into())?).ok()?);
        }
        ColumnBuilder::Int(p) => {
            p.push(i32::try_from(integer(i32::MIN.into(), i32::MAX.into())?).ok()?);
        }
        ColumnBuilder::BigInt(p) => p.push(integer(i64::MIN, i64::MAX)?),
        ColumnBuilder::Float(p) => p.push(text::parse_float(value)?),
        ColumnBuilder::Double(p) => p.push(text::parse_double(value)?),
        ColumnBuilder::Decimal(p, precision, scale) => {
            match text::parse_decimal(value, *precision, *scale)? {
                text::Decimal::Value(v) => p.push(v),
                text::Decimal::TooLarge => return None,
            }
        }
        ColumnBuilder::Date(p) => p.push(text::parse_date(value)?),
        ColumnBuilder::Timestamp(p, unit, false) => {
            p.push(text::parse_timestamp(value, 'T')?.in_unit(*unit)?);
        }
        _ => return None,
    }
    Some(())
}
