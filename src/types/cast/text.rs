//! Casts to and from text and bytes.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BinaryBuilder, BooleanBuilder,
    PrimitiveBuilder, StringArray, StringBuilder,
};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, Time32MillisecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType,
};

use super::{Context, Convert, unreadable};
use crate::error::{Error, Result};
use crate::types::TypeKind;
use crate::types::calendar::local_to_instant;
use crate::types::data_type::MAX_LENGTH;
use crate::types::parse::{self, timestamp_value};
use crate::types::text::{Printer, Style};

/// How a string is brought to the length that its type declares.
#[derive(Clone, Copy)]
enum Fit {
    /// Any length will do.
    Free,
    /// Characters past the length are cut off (VARCHAR).
    Cut(usize),
    /// The same, and blanks are added up to the length (CHAR).
    Pad(usize),
    /// Only blanks are added (CHAR under `table.exec.legacy-cast-behaviour`).
    PadOnly(usize),
}

impl Fit {
    fn of(to: &TypeKind, legacy: bool) -> Self {
        match to {
            TypeKind::Char(n) if legacy => Self::PadOnly(usize::try_from(*n).unwrap_or(usize::MAX)),
            _ if legacy => Self::Free,
            TypeKind::Char(n) => Self::Pad(usize::try_from(*n).unwrap_or(usize::MAX)),
            TypeKind::VarChar(n) if *n < MAX_LENGTH => {
                Self::Cut(usize::try_from(*n).unwrap_or(usize::MAX))
            }
            _ => Self::Free,
        }
    }

    /// The text cut, and the number of blanks to add.
    fn apply(self, text: &str) -> (&str, usize) {
        let (length, pad) = match self {
            Self::Free => return (text, 0),
            Self::Cut(length) => (length, false),
            Self::Pad(length) => (length, true),
            Self::PadOnly(length) => return (text, length.saturating_sub(text.chars().count())),
        };
        if text.len() <= length && !pad {
            return (text, 0);
        }
        let mut count = 0;
        for (at, _) in text.char_indices() {
            if count == length {
                return (&text[..at], 0);
            }
            count += 1;
        }
        (text, if pad { length - count } else { 0 })
    }
}

/// Appends rows of text, each fitted to a length.
struct Texts {
    fit: Fit,
    builder: StringBuilder,
    padded: String,
}

impl Texts {
    fn new(fit: Fit, rows: usize) -> Self {
        Self {
            fit,
            builder: StringBuilder::with_capacity(rows, rows * 8),
            padded: String::new(),
        }
    }

    fn push(&mut self, text: &str) {
        let (text, blanks) = self.fit.apply(text);
        if blanks == 0 {
            self.builder.append_value(text);
            return;
        }
        self.padded.clear();
        self.padded.push_str(text);
        self.padded.extend(std::iter::repeat_n(' ', blanks));
        self.builder.append_value(&self.padded);
    }

    fn finish(mut self) -> ArrayRef {
        Arc::new(self.builder.finish())
    }
}

/// Any value as text.
pub(super) fn to_string(from: &TypeKind, to: &TypeKind, context: &Context) -> Convert {
    let legacy = context.env.legacy_cast;
    let fit = Fit::of(to, legacy);
    let from = from.clone().nullable();
    let style = if legacy {
        Style::LegacyCast
    } else {
        Style::Cast
    };
    let printer = Printer::new(&from, style, context.env.time_zone);
    Box::new(move |array| {
        if matches!(fit, Fit::Free) {
            return print(&printer, array);
        }
        let mut texts = Texts::new(fit, array.len());
        let mut text = String::new();
        for row in 0..array.len() {
            if array.is_null(row) {
                texts.builder.append_null();
            } else {
                text.clear();
                printer.write(array, row, &mut text);
                texts.push(&text);
            }
        }
        Ok(texts.finish())
    })
}

/// The text of every value, one behind the other.
fn print(printer: &Printer, array: &ArrayRef) -> Result<ArrayRef> {
    let mut text = String::with_capacity(array.len() * 16);
    let mut offsets = Vec::with_capacity(array.len() + 1);
    offsets.push(0);
    for row in 0..array.len() {
        if array.is_valid(row) {
            printer.write(array, row, &mut text);
        }
        let end = i32::try_from(text.len());
        offsets.push(end.map_err(|_| Error::execution("a column of text is past 2 GiB"))?);
    }
    let offsets = OffsetBuffer::new(offsets.into());
    let values = Buffer::from(text.into_bytes());
    let nulls = array.logical_nulls();
    Ok(Arc::new(StringArray::try_new(offsets, values, nulls)?))
}

/// Text of another length; `None` if every value fits.
pub(super) fn string_to_string(
    from: &TypeKind,
    to: &TypeKind,
    context: &Context,
) -> Option<Convert> {
    let fit = Fit::of(to, context.env.legacy_cast);
    match fit {
        Fit::Free => return None,
        Fit::Cut(_) if from.length() <= to.length() => return None,
        Fit::Cut(_) | Fit::Pad(_) | Fit::PadOnly(_) => {}
    }
    Some(Box::new(move |array| {
        let mut texts = Texts::new(fit, array.len());
        for text in array.as_string::<i32>() {
            match text {
                Some(text) => texts.push(text),
                None => texts.builder.append_null(),
            }
        }
        Ok(texts.finish())
    }))
}

/// Bytes brought to the length of `to`: cut, and zeros added for BINARY.
fn fit_bytes(array: &BinaryArray, to: &TypeKind) -> ArrayRef {
    let length = to.length().unwrap_or(MAX_LENGTH);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let pad = matches!(to, TypeKind::Binary(_));
    let mut builder = BinaryBuilder::with_capacity(array.len(), array.value_data().len());
    let mut padded = Vec::new();
    for bytes in array {
        match bytes {
            None => builder.append_null(),
            Some(bytes) if bytes.len() < length && pad => {
                padded.clear();
                padded.extend_from_slice(bytes);
                padded.resize(length, 0);
                builder.append_value(&padded);
            }
            Some(bytes) => builder.append_value(&bytes[..bytes.len().min(length)]),
        }
    }
    Arc::new(builder.finish())
}

/// The UTF-8 bytes of text.
pub(super) fn string_to_binary(to: &TypeKind) -> Convert {
    let to = to.clone();
    Box::new(move |array| {
        let bytes = BinaryArray::from(array.as_string::<i32>().clone());
        Ok(match to {
            TypeKind::VarBinary(MAX_LENGTH) => Arc::new(bytes),
            _ => fit_bytes(&bytes, &to),
        })
    })
}

/// Bytes of another length; `None` if every value fits.
pub(super) fn binary_to_binary(from: &TypeKind, to: &TypeKind) -> Option<Convert> {
    if matches!(to, TypeKind::VarBinary(_)) && from.length() <= to.length() {
        return None;
    }
    let to = to.clone();
    Some(Box::new(move |array| Ok(fit_bytes(array.as_binary(), &to))))
}

/// Reads text as numbers; a text that is none is NULL if `lenient`.
fn primitives<T: ArrowPrimitiveType>(
    to: &TypeKind,
    lenient: bool,
    read: impl Fn(&str) -> Result<T::Native, &'static str> + Send + Sync + 'static,
) -> Convert {
    let (to, arrow) = (to.clone(), to.to_arrow());
    Box::new(move |array| {
        let array: &StringArray = array.as_string();
        let mut builder =
            PrimitiveBuilder::<T>::with_capacity(array.len()).with_data_type(arrow.clone());
        for text in array {
            let value = match text.map(&read) {
                None => None,
                Some(Ok(value)) => Some(value),
                Some(Err(_)) if lenient => None,
                Some(Err(reason)) => {
                    return Err(unreadable(text.unwrap_or_default(), &to, reason));
                }
            };
            builder.append_option(value);
        }
        Ok(Arc::new(builder.finish()))
    })
}

/// Text to values of `to`; `None` if there is no such cast.
pub(super) fn parse(to: &TypeKind, context: &Context) -> Option<Convert> {
    fn integers<T: ArrowPrimitiveType>(
        to: &TypeKind,
        lenient: bool,
        (min, max): (i64, i64),
        narrow: fn(i64) -> T::Native,
    ) -> Convert {
        primitives::<T>(to, lenient, move |text| {
            parse::integer(text, min, max).map(narrow)
        })
    }
    let lenient = context.lenient;
    let number = "it is not a number";
    // The parser has checked the range.
    #[allow(clippy::cast_possible_truncation)]
    Some(match to {
        TypeKind::Boolean => {
            let to = to.clone();
            Box::new(move |array| {
                let mut builder = BooleanBuilder::with_capacity(array.len());
                for text in array.as_string::<i32>() {
                    let value = text.and_then(parse::boolean);
                    if let (Some(text), None, false) = (text, value, lenient) {
                        return Err(unreadable(text, &to, "it is neither true nor false"));
                    }
                    builder.append_option(value);
                }
                Ok(Arc::new(builder.finish()))
            })
        }
        TypeKind::TinyInt => {
            let range = (i8::MIN.into(), i8::MAX.into());
            integers::<Int8Type>(to, lenient, range, |v| v as i8)
        }
        TypeKind::SmallInt => {
            let range = (i16::MIN.into(), i16::MAX.into());
            integers::<Int16Type>(to, lenient, range, |v| v as i16)
        }
        TypeKind::Int => {
            let range = (i32::MIN.into(), i32::MAX.into());
            integers::<Int32Type>(to, lenient, range, |v| v as i32)
        }
        TypeKind::BigInt => integers::<Int64Type>(to, lenient, (i64::MIN, i64::MAX), |v| v),
        TypeKind::Float => {
            primitives::<Float32Type>(to, lenient, move |text| parse::float(text).ok_or(number))
        }
        TypeKind::Double => {
            primitives::<Float64Type>(to, lenient, move |text| parse::double(text).ok_or(number))
        }
        TypeKind::Decimal(p, s) => {
            let (p, s) = (*p, *s);
            primitives::<Decimal128Type>(to, lenient, move |text| parse::decimal(text, p, s))
        }
        TypeKind::Date => primitives::<Date32Type>(to, lenient, |text| {
            parse::cast_date(text).ok_or("it is not a date like yyyy-MM-dd")
        }),
        TypeKind::Time(precision) => {
            let unit = 10i32.pow(3 - u32::from(*precision).min(3));
            primitives::<Time32MillisecondType>(to, lenient, move |text| {
                let millis = parse::cast_time(text);
                let millis = millis.ok_or("it is not a time like HH:mm:ss[.fff]")?;
                Ok(millis - millis % unit)
            })
        }
        TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision) => {
            let zone = matches!(to, TypeKind::TimestampLtz(_)).then_some(context.env.time_zone);
            let precision = *precision;
            let read = move |text: &str| {
                let (mut seconds, nanos) = parse::cast_timestamp(text)
                    .ok_or("it is not a timestamp like yyyy-MM-dd HH:mm:ss[.fff]")?;
                if let Some(zone) = zone {
                    seconds = local_to_instant(zone, seconds);
                }
                timestamp_value(seconds, nanos, precision).ok_or("it is out of range")
            };
            match to.to_arrow() {
                ArrowType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, _) => {
                    primitives::<TimestampMillisecondType>(to, lenient, read)
                }
                ArrowType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, _) => {
                    primitives::<TimestampMicrosecondType>(to, lenient, read)
                }
                _ => primitives::<TimestampNanosecondType>(to, lenient, read),
            }
        }
        _ => return None,
    })
}
