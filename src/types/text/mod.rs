//! The text of values, in the two forms that Flink has.
//!
//! - [`Style::Row`]: what the `print` connector shows, Java's `Row.toString`: `2024-01-01T00:00`,
//!   `1.0E10`, `[1, 2]`, `{a=1}`, `+I[nested, row]`, bytes as `[65, 66]`, `null`.
//! - [`Style::Cast`]: what `CAST(x AS STRING)` gives: `2024-01-01 00:00:00`, `TRUE`, `(1, a)`, `NULL`.
//!
//! A [`Printer`] is made once a column; the writers of single values are in [`number`] and
//! [`temporal`].

mod hash_order;
mod java_float;
pub mod number;
pub mod temporal;

use arrow::array::{Array, AsArray, StructArray};
use arrow::datatypes::{
    Date32Type, Decimal128Type, DurationMillisecondType, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, IntervalYearMonthType, Time32MillisecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use chrono_tz::Tz;

use self::hash_order::HashOrder;
use self::temporal::Moment;
use super::calendar::utc_offset;
use super::{DataType, Schema, TypeKind, bitmap};
use crate::changelog::ChangeBatch;

/// Which of the two text forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// As the `print` connector shows a value.
    Row,
    /// As `CAST` makes a string of it.
    Cast,
    /// As `CAST` did under `table.exec.legacy-cast-behaviour`: `true`, `(1,a)`, `null`.
    LegacyCast,
}

/// Writes values of one type.
#[derive(Debug, Clone)]
pub struct Printer {
    style: Style,
    zone: Tz,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    Null,
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Float,
    Double,
    Decimal(u8),
    Text,
    Bytes,
    Bitmap,
    Date,
    Time(u8),
    Timestamp(u8),
    TimestampLtz(u8),
    Months,
    Millis,
    Array(Box<Printer>),
    Map(Box<Printer>, Box<Printer>, HashOrder),
    Row(Vec<Printer>),
    Structured(Vec<Printer>),
}

impl Printer {
    /// A printer of `data_type`. `zone` is the session's; only [`Style::Cast`] shows instants in it.
    #[must_use]
    pub fn new(data_type: &DataType, style: Style, zone: Tz) -> Self {
        let nested = |t: &DataType| Box::new(Self::new(t, style, zone));
        let form = match &data_type.kind {
            TypeKind::Null => Form::Null,
            TypeKind::Boolean => Form::Boolean,
            TypeKind::TinyInt => Form::TinyInt,
            TypeKind::SmallInt => Form::SmallInt,
            TypeKind::Int => Form::Int,
            TypeKind::BigInt => Form::BigInt,
            TypeKind::Float => Form::Float,
            TypeKind::Double => Form::Double,
            TypeKind::Decimal(_, scale) => Form::Decimal(*scale),
            TypeKind::Char(_) | TypeKind::VarChar(_) | TypeKind::Variant => Form::Text,
            TypeKind::Binary(_) | TypeKind::VarBinary(_) => Form::Bytes,
            TypeKind::Bitmap => Form::Bitmap,
            TypeKind::Date => Form::Date,
            TypeKind::Time(p) => Form::Time(*p),
            TypeKind::Timestamp(p) => Form::Timestamp(*p),
            TypeKind::TimestampLtz(p) => Form::TimestampLtz(*p),
            TypeKind::IntervalYearMonth => Form::Months,
            TypeKind::IntervalDayTime => Form::Millis,
            TypeKind::Array(element) => Form::Array(nested(element)),
            TypeKind::Map(key, value) => Form::Map(nested(key), nested(value), HashOrder::new(key)),
            TypeKind::Multiset(element) => Form::Map(
                nested(element),
                nested(&TypeKind::Int.not_null()),
                HashOrder::new(element),
            ),
            TypeKind::Row(fields) => {
                Form::Row(fields.iter().map(|f| *nested(&f.data_type)).collect())
            }
            TypeKind::Structured(_, fields) => {
                Form::Structured(fields.iter().map(|f| *nested(&f.data_type)).collect())
            }
        };
        Self { style, zone, form }
    }

    /// Appends the value in `row` of `array`, `null` or `NULL` if it is none.
    pub fn write(&self, array: &dyn Array, row: usize, out: &mut String) {
        if array.is_null(row) || matches!(self.form, Form::Null) {
            out.push_str(match self.style {
                Style::Row | Style::LegacyCast => "null",
                Style::Cast => "NULL",
            });
            return;
        }
        let cast = self.style != Style::Row;
        match &self.form {
            Form::Null => {}
            Form::Boolean => {
                let text = match (array.as_boolean().value(row), self.style) {
                    (true, Style::Row | Style::LegacyCast) => "true",
                    (false, Style::Row | Style::LegacyCast) => "false",
                    (true, Style::Cast) => "TRUE",
                    (false, Style::Cast) => "FALSE",
                };
                out.push_str(text);
            }
            Form::TinyInt => {
                number::write_integer(array.as_primitive::<Int8Type>().value(row).into(), out);
            }
            Form::SmallInt => {
                number::write_integer(array.as_primitive::<Int16Type>().value(row).into(), out);
            }
            Form::Int => {
                number::write_integer(array.as_primitive::<Int32Type>().value(row).into(), out);
            }
            Form::BigInt => {
                number::write_integer(array.as_primitive::<Int64Type>().value(row), out);
            }
            Form::Float => number::write_float(array.as_primitive::<Float32Type>().value(row), out),
            Form::Double => {
                number::write_double(array.as_primitive::<Float64Type>().value(row), out);
            }
            Form::Decimal(scale) => {
                let unscaled = array.as_primitive::<Decimal128Type>().value(row);
                if cast {
                    number::write_decimal(unscaled, *scale, out);
                } else {
                    number::write_big_decimal(unscaled, *scale, out);
                }
            }
            Form::Text => out.push_str(array.as_string::<i32>().value(row)),
            Form::Bytes => {
                let bytes = array.as_binary::<i32>().value(row);
                if cast {
                    out.push_str(&String::from_utf8_lossy(bytes));
                } else {
                    let signed = |i: usize, out: &mut String| {
                        number::write_integer(i64::from(bytes[i].cast_signed()), out);
                    };
                    list('[', bytes.len(), ']', out, signed);
                }
            }
            Form::Bitmap => bitmap::write(array.as_binary::<i32>().value(row), out),
            Form::Date => {
                let days = array.as_primitive::<Date32Type>().value(row);
                temporal::write_date(days.into(), out);
            }
            Form::Time(precision) => {
                let millis = array.as_primitive::<Time32MillisecondType>().value(row);
                if cast {
                    temporal::write_time_sql(millis, *precision, out);
                } else {
                    temporal::write_time(millis, out);
                }
            }
            Form::Timestamp(precision) => {
                let moment = moment(array, row, *precision);
                if cast {
                    moment.write_sql(*precision, out);
                } else {
                    moment.write_local(out);
                }
            }
            Form::TimestampLtz(precision) => {
                let mut moment = moment(array, row, *precision);
                if cast {
                    moment.seconds += utc_offset(self.zone, moment.seconds);
                    moment.write_sql(*precision, out);
                } else {
                    moment.write_instant(out);
                }
            }
            Form::Months => {
                let months = array.as_primitive::<IntervalYearMonthType>().value(row);
                if cast {
                    temporal::write_months_sql(months, out);
                } else {
                    temporal::write_period(months, out);
                }
            }
            Form::Millis => {
                let millis = array.as_primitive::<DurationMillisecondType>().value(row);
                if cast {
                    temporal::write_millis_sql(millis, out);
                } else {
                    temporal::write_duration(millis, out);
                }
            }
            Form::Array(element) => {
                let values = array.as_list::<i32>().value(row);
                list('[', values.len(), ']', out, |i, out| {
                    element.write(&values, i, out);
                });
            }
            Form::Map(key, value, order) => {
                let entries = array.as_map().value(row);
                let (keys, values) = (entries.column(0), entries.column(1));
                // A Row holds a Java HashMap; a cast walks the map as it is.
                let order = if cast { None } else { order.of(keys) };
                let len = order.as_ref().map_or(entries.len(), Vec::len);
                list('{', len, '}', out, |i, out| {
                    let i = order.as_ref().map_or(i, |order| order[i]);
                    key.write(keys, i, out);
                    out.push('=');
                    value.write(values, i, out);
                });
            }
            Form::Structured(fields) if cast => {
                let columns = array.as_struct();
                list('(', fields.len(), ')', out, |f, out| {
                    out.push_str(columns.fields()[f].name());
                    out.push('=');
                    fields[f].write(columns.column(f), row, out);
                });
            }
            Form::Row(fields) | Form::Structured(fields) => {
                let columns = array.as_struct();
                self.write_fields(fields, columns, row, out);
            }
        }
    }

    fn write_fields(&self, fields: &[Printer], row: &StructArray, i: usize, out: &mut String) {
        let (open, part, close) = match self.style {
            Style::Row => {
                out.push_str("+I");
                ('[', ", ", ']')
            }
            Style::Cast => ('(', ", ", ')'),
            Style::LegacyCast => ('(', ",", ')'),
        };
        parted(open, fields.len(), part, close, out, |f, out| {
            fields[f].write(row.column(f), i, out);
        });
    }
}

/// The moment in `row` of a timestamp column of `precision`.
fn moment(array: &dyn Array, row: usize, precision: u8) -> Moment {
    match precision {
        0..=3 => Moment::new(
            array.as_primitive::<TimestampMillisecondType>().value(row),
            1000,
        ),
        4..=6 => Moment::new(
            array.as_primitive::<TimestampMicrosecondType>().value(row),
            1_000_000,
        ),
        _ => Moment::new(
            array.as_primitive::<TimestampNanosecondType>().value(row),
            1_000_000_000,
        ),
    }
}

fn list(
    open: char,
    len: usize,
    close: char,
    out: &mut String,
    write: impl FnMut(usize, &mut String),
) {
    parted(open, len, ", ", close, out, write);
}

/// Items in brackets with `part` between them.
fn parted(
    open: char,
    len: usize,
    part: &str,
    close: char,
    out: &mut String,
    mut write: impl FnMut(usize, &mut String),
) {
    out.push(open);
    for i in 0..len {
        if i > 0 {
            out.push_str(part);
        }
        write(i, out);
    }
    out.push(close);
}

/// Writes whole rows as transcripts and the `print` connector show them: `+U[a, 1]`.
#[derive(Debug, Clone)]
pub struct RowPrinter {
    columns: Vec<Printer>,
}

impl RowPrinter {
    /// A printer of rows of `schema`.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        let columns = schema
            .columns
            .iter()
            .map(|c| Printer::new(&c.data_type, Style::Row, Tz::UTC))
            .collect();
        Self { columns }
    }

    /// Appends row `i` of `batch` with its kind.
    pub fn write(&self, batch: &ChangeBatch, i: usize, out: &mut String) {
        out.push_str(batch.kind(i).symbol());
        list('[', self.columns.len(), ']', out, |c, out| {
            self.columns[c].write(batch.rows().column(c), i, out);
        });
    }
}

#[cfg(test)]
mod tests;
