//! The text of interval literals.

use crate::error::{Error, Result};

/// A field of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IntervalField {
    /// `YEAR`
    Year,
    /// `QUARTER`
    Quarter,
    /// `MONTH`
    Month,
    /// `WEEK`
    Week,
    /// `DAY`
    Day,
    /// `HOUR`
    Hour,
    /// `MINUTE`
    Minute,
    /// `SECOND`
    Second,
}

impl IntervalField {
    /// The field called `name`, in the singular or plural and in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        Some(match name.strip_suffix('S').unwrap_or(&name) {
            "YEAR" => Self::Year,
            "QUARTER" => Self::Quarter,
            "MONTH" => Self::Month,
            "WEEK" => Self::Week,
            "DAY" => Self::Day,
            "HOUR" => Self::Hour,
            "MINUTE" => Self::Minute,
            "SECOND" => Self::Second,
            _ => return None,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Year => "YEAR",
            Self::Quarter => "QUARTER",
            Self::Month => "MONTH",
            Self::Week => "WEEK",
            Self::Day => "DAY",
            Self::Hour => "HOUR",
            Self::Minute => "MINUTE",
            Self::Second => "SECOND",
        }
    }

    /// Months for the fields of a year, else milliseconds.
    fn unit(self) -> i64 {
        match self {
            Self::Year => 12,
            Self::Quarter => 3,
            Self::Month => 1,
            Self::Week => 7 * 86_400_000,
            Self::Day => 86_400_000,
            Self::Hour => 3_600_000,
            Self::Minute => 60_000,
            Self::Second => 1000,
        }
    }

    /// One more than the greatest value of the field when it is not the first.
    fn limit(self) -> i64 {
        match self {
            Self::Month => 12,
            Self::Hour => 24,
            Self::Minute | Self::Second => 60,
            Self::Year | Self::Quarter | Self::Week | Self::Day => i64::MAX,
        }
    }
}

/// What follows the text of an interval: `DAY(3) TO SECOND(6)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntervalQualifier {
    /// The first field.
    pub from: IntervalField,
    /// The last field, if it is another one.
    pub to: Option<IntervalField>,
    /// Greatest number of digits of the first field: 2 if not given.
    pub precision: Option<u32>,
    /// Greatest number of digits of the second's fraction: 6 if not given.
    pub fraction: Option<u32>,
}

impl IntervalQualifier {
    /// One field without precisions.
    #[must_use]
    pub fn single(field: IntervalField) -> Self {
        Self {
            from: field,
            to: None,
            precision: None,
            fraction: None,
        }
    }

    /// Whether it counts months, not milliseconds.
    #[must_use]
    pub fn is_year_month(&self) -> bool {
        self.from <= IntervalField::Month
    }

    /// The fields from the first to the last.
    fn fields(&self) -> Vec<IntervalField> {
        use IntervalField::{Day, Hour, Minute, Month, Second, Year};
        let Some(to) = self.to else {
            return vec![self.from];
        };
        [Year, Month, Day, Hour, Minute, Second]
            .into_iter()
            .filter(|f| (self.from..=to).contains(f))
            .collect()
    }
}

/// As written in SQL.
impl std::fmt::Display for IntervalQualifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.from.name())?;
        match (self.precision, self.fraction) {
            (Some(p), Some(s)) if self.to.is_none() => write!(f, "({p}, {s})")?,
            (Some(p), _) => write!(f, "({p})")?,
            _ => {}
        }
        if let Some(to) = self.to {
            write!(f, " TO {}", to.name())?;
            if let Some(fraction) = self.fraction {
                write!(f, "({fraction})")?;
            }
        }
        Ok(())
    }
}

/// Months or milliseconds of an interval literal's text; digits below the millisecond are cut off.
///
/// # Errors
/// When the text does not have the qualifier's fields or a field is too large.
pub fn interval(text: &str, qualifier: &IntervalQualifier) -> Result<i64> {
    let illegal = || {
        Error::plan(format!(
            "Illegal interval literal format '{text}' for INTERVAL {qualifier}"
        ))
    };
    let fields = qualifier.fields();
    let well_formed = qualifier
        .to
        .is_none_or(|to| (qualifier.from <= IntervalField::Month) == (to <= IntervalField::Month))
        && !fields.is_empty();
    if !well_formed {
        return Err(Error::plan(format!(
            "INTERVAL {qualifier} is no valid interval"
        )));
    }
    let body = text.trim();
    let (negative, mut rest) = match body.as_bytes().first() {
        Some(b'-') => (true, &body[1..]),
        Some(b'+') => (false, &body[1..]),
        _ => (false, body),
    };
    let mut total = 0i64;
    for (i, field) in fields.iter().enumerate() {
        let last = i + 1 == fields.len();
        let part = if last {
            std::mem::take(&mut rest)
        } else {
            let separator = match field {
                IntervalField::Year => '-',
                IntervalField::Day => ' ',
                _ => ':',
            };
            let (part, after) = rest.split_once(separator).ok_or_else(illegal)?;
            rest = after;
            part
        };
        let (whole, fraction) = match part.split_once('.') {
            Some((whole, fraction)) if *field == IntervalField::Second => (whole, Some(fraction)),
            _ => (part, None),
        };
        if whole.is_empty() || !whole.bytes().all(|b| b.is_ascii_digit()) {
            return Err(illegal());
        }
        let value: i64 = whole.parse().map_err(|_| illegal())?;
        if i == 0 {
            let precision = qualifier.precision.unwrap_or(2);
            let digits = whole.trim_start_matches('0').len();
            if digits > usize::try_from(precision).unwrap_or(usize::MAX) {
                return Err(Error::plan(format!(
                    "Interval field value {value} exceeds precision of {}({precision}) field",
                    field.name()
                )));
            }
        } else if value >= field.limit() {
            return Err(illegal());
        }
        let scaled = value.checked_mul(field.unit()).ok_or_else(illegal)?;
        total = total.checked_add(scaled).ok_or_else(illegal)?;
        if let Some(fraction) = fraction {
            let most = usize::try_from(qualifier.fraction.unwrap_or(6)).unwrap_or(usize::MAX);
            let valid = !fraction.is_empty() && fraction.len() <= most;
            if !valid || !fraction.bytes().all(|b| b.is_ascii_digit()) {
                return Err(illegal());
            }
            for (digit, weight) in fraction.bytes().zip([100, 10, 1]) {
                total += i64::from(digit - b'0') * weight;
            }
        }
    }
    Ok(if negative { -total } else { total })
}

#[cfg(test)]
mod tests {
    use super::IntervalField::{Day, Hour, Minute, Month, Quarter, Second, Week, Year};
    use super::*;

    fn parse(text: &str, from: IntervalField, to: Option<IntervalField>) -> Option<i64> {
        let qualifier = IntervalQualifier {
            to,
            ..IntervalQualifier::single(from)
        };
        interval(text, &qualifier).ok()
    }

    #[test]
    fn single_fields() {
        assert_eq!(parse("99", Day, None), Some(99 * 86_400_000));
        assert_eq!(parse("100", Day, None), None);
        assert_eq!(parse(" 1 ", Week, None), Some(604_800_000));
        assert_eq!(parse("2", Quarter, None), Some(6));
        assert_eq!(parse("1.123456", Second, None), Some(1123));
        assert_eq!(parse("1.1234567", Second, None), None);
        assert_eq!(parse("-1.5", Second, None), Some(-1500));
        assert_eq!(parse("1.5", Day, None), None);
        assert_eq!(parse("x", Day, None), None);
    }

    #[test]
    fn ranges_of_fields() {
        assert_eq!(parse("1-11", Year, Some(Month)), Some(23));
        assert_eq!(parse("1-12", Year, Some(Month)), None);
        assert_eq!(parse("1 02:03:04.5", Day, Some(Second)), Some(93_784_500));
        assert_eq!(parse("-1 2", Day, Some(Hour)), Some(-26 * 3_600_000));
        assert_eq!(parse("1:2.5", Minute, Some(Second)), Some(62_500));
        assert_eq!(parse("1 25:00:00", Day, Some(Second)), None);
        assert_eq!(parse("3", Hour, Some(Second)), None);
        assert_eq!(parse("1-1", Year, Some(Day)), None);
    }
}
