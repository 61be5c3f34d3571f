//! Reads texts by a pattern.

use super::{DateTimeFormatter, Item, Number, Sign};
use crate::functions::english::{DAYS, MONTHS, day_of_week, name};
use crate::functions::time_form::{Local, NANOS_PER_SECOND};
use crate::types::calendar::{days_from_civil, days_in_month, is_leap_year};

/// The values that a text gave, by pattern letter.
#[derive(Debug, Clone, Default)]
struct Parsed {
    values: Vec<(char, i64)>,
}

impl Parsed {
    fn get(&self, letter: char) -> Option<i64> {
        self.values
            .iter()
            .find(|(l, _)| *l == letter)
            .map(|(_, value)| *value)
    }

    /// `None` if it was given with another value.
    fn set(&mut self, letter: char, value: i64) -> Option<()> {
        let letter = match letter {
            'L' => 'M',
            'q' => 'Q',
            'S' => 'n',
            'c' => 'e',
            other => other,
        };
        match self.get(letter) {
            Some(before) if before != value => None,
            Some(_) => Some(()),
            None => {
                self.values.push((letter, value));
                Some(())
            }
        }
    }
}

impl DateTimeFormatter {
    /// The moment that the text stands for, what it lacks taken from 1970-01-01 00:00; `None` if the text
    /// does not follow the pattern.
    pub(in crate::functions) fn parse(&self, text: &str) -> Option<Local> {
        let mut parsed = Parsed::default();
        let rest = read_all(&self.items, text, &mut parsed)?;
        if !rest.is_empty() {
            return None;
        }
        resolve(&parsed)
    }
}

fn read_all<'a>(items: &[Item], mut text: &'a str, parsed: &mut Parsed) -> Option<&'a str> {
    for item in items {
        text = read(item, text, parsed)?;
    }
    Some(text)
}

fn read<'a>(item: &Item, text: &'a str, parsed: &mut Parsed) -> Option<&'a str> {
    match item {
        Item::Literal(literal) => text.strip_prefix(literal.as_str()),
        Item::Number(number) => read_number(number, text, parsed),
        Item::Text(letter, count) => {
            let (value, rest) = read_text(*letter, *count, text)?;
            parsed.set(*letter, value)?;
            Some(rest)
        }
        Item::Offset(..) => read_offset(text),
        Item::Zone => {
            let end = text
                .find(|c: char| !(c.is_ascii_alphanumeric() || "/_+-:".contains(c)))
                .unwrap_or(text.len());
            (end > 0).then(|| &text[end..])
        }
        Item::Optional(items) => {
            let mut inner = parsed.clone();
            match read_all(items, text, &mut inner) {
                Some(rest) => {
                    *parsed = inner;
                    Some(rest)
                }
                None => Some(text),
            }
        }
        Item::Pad(width, item) => {
            let end = text
                .char_indices()
                .nth(*width)
                .map_or(text.len(), |(at, _)| at);
            let padded = &text[..end];
            if padded.chars().count() < *width {
                return None;
            }
            let rest = read(item, padded.trim_start_matches(' '), parsed)?;
            rest.is_empty().then(|| &text[end..])
        }
    }
}

fn read_number<'a>(number: &Number, text: &'a str, parsed: &mut Parsed) -> Option<&'a str> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'+' if number.sign == Sign::ExceedsPad => (Some('+'), &text[1..]),
        b'-' if number.sign != Sign::NotNegative => (Some('-'), &text[1..]),
        _ => (None, text),
    };
    let digits = unsigned
        .bytes()
        .take(number.max + number.reserved)
        .take_while(u8::is_ascii_digit)
        .count();
    let len = if number.reserved > 0 {
        digits.saturating_sub(number.reserved).max(number.min)
    } else {
        digits
    };
    if len < number.min || len > digits || len > number.max {
        return None;
    }
    let (digits, rest) = unsigned.split_at(len);
    let mut value: i64 = digits.parse().ok()?;
    match sign {
        Some('-') if value == 0 => return None,
        Some('-') => value = -value,
        Some(_) if len <= number.min => return None,
        None if number.sign == Sign::ExceedsPad && len > number.min => return None,
        _ => {}
    }
    if number.reduced {
        value += 2000;
    }
    if number.fraction {
        value *= 10i64.pow(9 - u32::try_from(len).ok()?);
    }
    parsed.set(number.letter, value)?;
    Some(rest)
}

/// The longest of the names that the text starts with.
fn longest<'a, 'b>(
    names: impl Iterator<Item = (i64, &'b str)>,
    text: &'a str,
) -> Option<(i64, &'a str)> {
    names
        .filter_map(|(value, name)| text.strip_prefix(name).map(|rest| (value, rest)))
        .min_by_key(|(_, rest)| rest.len())
}

fn read_text(letter: char, count: usize, text: &str) -> Option<(i64, &str)> {
    let months = || (1..).zip(MONTHS).map(|(n, full)| (n, name(full, count)));
    let days = || (0..).zip(DAYS).map(|(n, full)| (n, name(full, count)));
    match letter {
        'M' | 'L' => longest(months(), text),
        'E' => longest(days(), text),
        'a' => longest([(0, "AM"), (1, "PM")].into_iter(), text),
        'G' if count == 4 => longest([(1, "Anno Domini"), (0, "Before Christ")].into_iter(), text),
        'G' if count == 5 => longest([(1, "A"), (0, "B")].into_iter(), text),
        'G' => longest([(1, "AD"), (0, "BC")].into_iter(), text),
        'Q' | 'q' if count == 3 => longest(
            [(1, "Q1"), (2, "Q2"), (3, "Q3"), (4, "Q4")].into_iter(),
            text,
        ),
        _ => None,
    }
}

/// `Z`, `+02`, `+0200`, `+02:00`; the offset is not looked at.
fn read_offset(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Some(rest);
    }
    let text = text.strip_prefix("GMT").unwrap_or(text);
    let mut rest = text.strip_prefix(['+', '-'])?;
    let two = |text: &str| {
        let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
        digits == 2
    };
    if !two(rest) {
        return None;
    }
    rest = &rest[2..];
    for _ in 0..2 {
        let minutes = rest.strip_prefix(':').unwrap_or(rest);
        if two(minutes) {
            rest = &minutes[2..];
        }
    }
    Some(rest)
}

fn in_range(value: Option<i64>, min: i64, max: i64) -> Option<Option<i64>> {
    match value {
        Some(v) if !(min..=max).contains(&v) => None,
        other => Some(other),
    }
}

fn resolve(parsed: &Parsed) -> Option<Local> {
    let (nanos, next_day) = resolve_time(parsed)?;
    let days = resolve_date(parsed)?;
    Some(Local {
        days: days + i64::from(next_day),
        nanos,
    })
}

/// Nanoseconds of the day, and whether it is that of the next day.
fn resolve_time(parsed: &Parsed) -> Option<(i64, bool)> {
    let get = |letter, min, max| in_range(parsed.get(letter), min, max);
    if let Some(nanos) = get('N', 0, 86_400 * NANOS_PER_SECOND - 1)? {
        return Some((nanos, false));
    }
    if let Some(millis) = get('A', 0, 86_399_999)? {
        return Some((millis * 1_000_000, false));
    }
    let half = parsed.get('a');
    let within_half = match (get('h', 1, 12)?, get('K', 0, 11)?) {
        (Some(hour), _) => Some(hour % 12),
        (None, hour) => hour,
    };
    let hour = match (get('H', 0, 24)?, get('k', 1, 24)?) {
        (Some(hour), _) => hour,
        (None, Some(hour)) => hour % 24,
        // Without AM or PM the hour says nothing.
        (None, None) => match (half, within_half) {
            (Some(half), Some(hour)) => half * 12 + hour,
            _ => 0,
        },
    };
    let minute = get('m', 0, 59)?.unwrap_or(0);
    let second = get('s', 0, 59)?.unwrap_or(0);
    let nano = get('n', 0, NANOS_PER_SECOND - 1)?.unwrap_or(0);
    if hour == 24 {
        return (minute == 0 && second == 0 && nano == 0).then_some((0, true));
    }
    Some((
        (hour * 3600 + minute * 60 + second) * NANOS_PER_SECOND + nano,
        false,
    ))
}

fn resolve_date(parsed: &Parsed) -> Option<i64> {
    let get = |letter, min, max| in_range(parsed.get(letter), min, max);
    const LAST_YEAR: i64 = 999_999_999;
    let era = parsed.get('G');
    let year = match get('y', 1, LAST_YEAR)? {
        Some(year) if era == Some(0) => Some(1 - year),
        Some(year) => Some(year),
        None => get('u', -LAST_YEAR, LAST_YEAR)?,
    };
    let month = get('M', 1, 12)?;
    let day = get('d', 1, 31)?;
    let day_of_year = get('D', 1, 366)?;
    let weekday = parsed.get('E');
    let known_year = year.unwrap_or(1970);
    let days = match (year, month, day, day_of_year) {
        (Some(year), None, None, Some(n)) => {
            if n == 366 && !is_leap_year(year) {
                return None;
            }
            days_from_civil(year, 1, 1) + n - 1
        }
        _ => {
            let month = u32::try_from(month.unwrap_or(1)).ok()?;
            let day = u32::try_from(day.unwrap_or(1)).ok()?;
            days_from_civil(known_year, month, day.min(days_in_month(known_year, month)))
        }
    };
    let complete = year.is_some() && (day_of_year.is_some() || (month.is_some() && day.is_some()));
    match weekday {
        Some(weekday) if complete && day_of_week(days) as i64 != weekday => None,
        _ => Some(days),
    }
}
