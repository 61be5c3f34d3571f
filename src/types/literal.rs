//! Literals of SQL text: their values and types.

use std::sync::Arc;

use datafusion::common::ScalarValue;

use super::parse::{self, IntervalQualifier};
use super::{DataType, TypeKind};
use crate::error::{Error, Result};

/// A constant with its type.
pub type Literal = (ScalarValue, DataType);

/// A number as written, perhaps with the minus sign before it: `7` is INT, else BIGINT; `1.50` is
/// DECIMAL(3, 2), one digit of precision a digit written; `1e0` is DOUBLE.
///
/// # Errors
/// When the number does not fit.
pub fn numeric(text: &str) -> Result<Literal> {
    let out_of_range = || Error::plan(format!("Numeric literal '{text}' out of range"));
    if text.contains(['e', 'E']) {
        let value: f64 = text.parse().map_err(|_| out_of_range())?;
        if value.is_infinite() {
            return Err(out_of_range());
        }
        return Ok((
            ScalarValue::Float64(Some(value)),
            TypeKind::Double.not_null(),
        ));
    }
    let digits = text.strip_suffix('.').unwrap_or(text);
    if let Some((whole, fraction)) = digits.split_once('.') {
        let unsigned = whole.trim_start_matches(['-', '+']);
        let scale = u8::try_from(fraction.len()).ok().filter(|s| *s <= 38);
        let scale = scale.ok_or_else(|| {
            Error::plan(format!(
                "Decimal scale must be between 0 and the precision 38 (both inclusive): '{text}'"
            ))
        })?;
        let precision = (unsigned.len() + fraction.len()).min(38);
        let unscaled = format!("{whole}{fraction}")
            .parse::<i64>()
            .map_err(|_| out_of_range())?;
        let precision = u8::try_from(precision).map_err(|_| out_of_range())?;
        return Ok((
            ScalarValue::Decimal128(Some(unscaled.into()), precision, scale.cast_signed()),
            TypeKind::Decimal(precision, scale).not_null(),
        ));
    }
    let value: i64 = digits.parse().map_err(|_| out_of_range())?;
    Ok(match i32::try_from(value) {
        Ok(value) => (ScalarValue::Int32(Some(value)), TypeKind::Int.not_null()),
        Err(_) => (ScalarValue::Int64(Some(value)), TypeKind::BigInt.not_null()),
    })
}

/// A character string: CHAR(n).
#[must_use]
pub fn string(text: &str) -> Literal {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    (
        ScalarValue::Utf8(Some(text.to_string())),
        TypeKind::Char(length).not_null(),
    )
}

/// The hexadecimal digits of `X'4142'`: BINARY(n).
///
/// # Errors
/// When they are not pairs of hexadecimal digits.
pub fn binary(hex: &str) -> Result<Literal> {
    let bytes = parse::hex(hex).ok_or_else(|| {
        Error::plan(format!(
            "Binary literal '{hex}' must consist of an even number of hexadecimal digits"
        ))
    })?;
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    Ok((
        ScalarValue::Binary(Some(bytes)),
        TypeKind::Binary(length).not_null(),
    ))
}

/// `DATE '2024-01-31'`.
///
/// # Errors
/// When the text is no such date.
pub fn date(text: &str) -> Result<Literal> {
    let days = parse::literal_date(text).ok_or_else(|| illegal("DATE", text, "yyyy-MM-dd"))?;
    Ok((ScalarValue::Date32(Some(days)), TypeKind::Date.not_null()))
}

/// `TIME '12:30:00.5'`; the precision is the number of digits of the
/// fraction, at most 3.
///
/// # Errors
/// When the text is no such time.
pub fn time(text: &str) -> Result<Literal> {
    let (nanos, digits) =
        parse::literal_time(text).ok_or_else(|| illegal("TIME", text, "HH:mm:ss"))?;
    let precision = digits.min(3);
    let unit = 10i64.pow(9 - u32::from(precision));
    let millis = i32::try_from(nanos / unit * unit / 1_000_000).unwrap_or(0);
    Ok((
        ScalarValue::Time32Millisecond(Some(millis)),
        TypeKind::Time(precision).not_null(),
    ))
}

/// `TIMESTAMP '2024-01-31 12:30:00.5'`, with or without the time; the precision is the number of digits of the fraction.
///
/// # Errors
/// When the text is no such timestamp.
pub fn timestamp(text: &str) -> Result<Literal> {
    let (value, digits) = moment("TIMESTAMP", text)?;
    Ok((
        ticks(value, digits, None),
        TypeKind::Timestamp(digits).not_null(),
    ))
}

/// `TIMESTAMP WITH LOCAL TIME ZONE '2024-01-31 12:30:00.5'`: an instant, whose text is in UTC whatever
/// the session's zone.
///
/// # Errors
/// When the text is no such timestamp.
pub fn instant(text: &str) -> Result<Literal> {
    let (value, digits) = moment("TIMESTAMP WITH LOCAL TIME ZONE", text)?;
    let value = ticks(value, digits, Some(super::UTC.into()));
    Ok((value, TypeKind::TimestampLtz(digits).not_null()))
}

/// A point in time in the unit of its precision, and that precision: the digits of the fraction.
fn moment(what: &str, text: &str) -> Result<(i64, u8)> {
    let illegal = || illegal(what, text, "yyyy-MM-dd HH:mm:ss");
    let (date, time) = match text.trim_start().split_once(' ') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let days = parse::literal_date(date).ok_or_else(illegal)?;
    let (nanos, digits) = match time {
        Some(time) => parse::literal_time(time).ok_or_else(illegal)?,
        None => (0, 0),
    };
    let value = parse::timestamp_value(i64::from(days) * 86_400, nanos, digits);
    let value = value.ok_or_else(|| {
        Error::plan(format!(
            "{what} literal '{text}' is out of range for nanoseconds"
        ))
    })?;
    Ok((value, digits))
}

fn ticks(value: i64, digits: u8, zone: Option<Arc<str>>) -> ScalarValue {
    match digits {
        0..=3 => ScalarValue::TimestampMillisecond(Some(value), zone),
        4..=6 => ScalarValue::TimestampMicrosecond(Some(value), zone),
        _ => ScalarValue::TimestampNanosecond(Some(value), zone),
    }
}

fn illegal(what: &str, text: &str, format: &str) -> Error {
    Error::plan(format!(
        "Illegal {what} literal '{text}': not in format '{format}'"
    ))
}

/// `INTERVAL '1-2' YEAR TO MONTH`, `INTERVAL -'90' MINUTE` (`negative`).
///
/// # Errors
/// When the text does not fit the qualifier.
pub fn interval(text: &str, negative: bool, qualifier: &IntervalQualifier) -> Result<Literal> {
    let value = parse::interval(text, qualifier)?;
    let value = if negative { -value } else { value };
    if qualifier.is_year_month() {
        let months = i32::try_from(value)
            .map_err(|_| Error::plan(format!("Interval literal '{text}' is out of range")))?;
        return Ok((
            ScalarValue::IntervalYearMonth(Some(months)),
            TypeKind::IntervalYearMonth.not_null(),
        ));
    }
    Ok((
        ScalarValue::DurationMillisecond(Some(value)),
        TypeKind::IntervalDayTime.not_null(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_type_of_their_digits() {
        let kind = |text| numeric(text).ok().map(|l| l.1.kind);
        for (text, expected) in [
            ("2147483647", TypeKind::Int),
            ("-2147483648", TypeKind::Int),
            ("2147483648", TypeKind::BigInt),
            ("5.", TypeKind::Int),
            ("1.0", TypeKind::Decimal(2, 1)),
            ("0.10", TypeKind::Decimal(3, 2)),
            (".5", TypeKind::Decimal(1, 1)),
            ("-000.5", TypeKind::Decimal(4, 1)),
            ("1.5E-3", TypeKind::Double),
        ] {
            assert_eq!(kind(text), Some(expected), "{text}");
        }
        assert_eq!(
            numeric("-000.5").ok().map(|l| l.0),
            Some(ScalarValue::Decimal128(Some(-5), 4, 1))
        );
        for bad in ["9223372036854775808", "1e400", "123456789012345678901.5"] {
            assert_eq!(kind(bad), None);
        }
    }

    #[test]
    fn temporal_literals_have_the_precision_of_their_fraction() {
        let kind = |l: Result<Literal>| l.ok().map(|l| l.1.kind);
        assert_eq!(kind(time("12:30:00.5")), Some(TypeKind::Time(1)));
        assert_eq!(kind(time("12:30:00.1234")), Some(TypeKind::Time(3)));
        assert_eq!(kind(time("12:30")), None);
        assert_eq!(kind(timestamp("2024-01-01")), Some(TypeKind::Timestamp(0)));
        assert_eq!(
            kind(timestamp("2024-1-1 1:2:3.120")),
            Some(TypeKind::Timestamp(3))
        );
        assert_eq!(kind(timestamp("2024-01-01 24:00:00")), None);
        assert_eq!(kind(timestamp("2024-01-01T10:00:00")), None);
        assert_eq!(kind(date("2023-02-29")), None);
        let value = date(" 2024-2-29").ok().map(|l| l.0);
        assert_eq!(value, Some(ScalarValue::Date32(Some(19_782))));
        assert!(timestamp("9999-01-01 00:00:00.123456789").is_err());
    }
}
