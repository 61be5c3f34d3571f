//! Patterns of `java.time.format.DateTimeFormatter`: `yyyy-MM-dd HH:mm:ss.SSS`.
//!
//! A pattern is compiled to fields once. Parsing is strict about widths and case, and smart about values,
//! as in Java: 30 February is the month's last day, 24:00 the next midnight.

mod parse;

use super::english::{DAYS, MONTHS, day_of_week, name, sunday_week, sunday_week_of_month};
use super::time_form::{Local, NANOS_PER_SECOND};
use crate::error::{Error, Result};
use crate::types::calendar::{civil_from_days, days_from_civil};

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct DateTimeFormatter {
    items: Vec<Item>,
}

/// A pattern that reads times outside of expressions: those of partitions.
#[derive(Debug, Clone)]
pub(crate) struct TimePattern(DateTimeFormatter);

impl TimePattern {
    /// # Errors
    /// When it is no pattern.
    pub(crate) fn new(pattern: &str) -> Result<Self> {
        DateTimeFormatter::new(pattern).map(Self)
    }

    /// Seconds since 1970-01-01 00:00; `None` if the text does not follow the pattern.
    pub(crate) fn seconds(&self, text: &str) -> Option<i64> {
        let local = self.0.parse(text)?;
        Some(local.days * 86_400 + local.nanos.div_euclid(NANOS_PER_SECOND))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Literal(String),
    /// A number.
    Number(Number),
    /// A name: its letter and the number of letters.
    Text(char, usize),
    /// An offset from UTC: its letter and the number of letters.
    Offset(char, usize),
    /// A time zone.
    Zone,
    /// What may be missing.
    Optional(Vec<Item>),
    /// An item padded with blanks to a width.
    Pad(usize, Box<Item>),
}

/// When a number carries a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// If it is negative.
    Normal,
    /// Never.
    NotNegative,
    /// Also if it is longer than its width.
    ExceedsPad,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Number {
    letter: char,
    min: usize,
    max: usize,
    sign: Sign,
    /// Only the last two digits, of 2000 to 2099.
    reduced: bool,
    /// Digits that belong to the numbers right behind it.
    reserved: usize,
    /// Digits of a fraction, if it is one.
    fraction: bool,
}

impl Number {
    fn new(letter: char, min: usize, max: usize, sign: Sign) -> Self {
        Self {
            letter,
            min,
            max,
            sign,
            reduced: false,
            reserved: 0,
            fraction: false,
        }
    }

    fn is_fixed(&self) -> bool {
        self.min == self.max && self.sign == Sign::NotNegative
    }
}

/// Optional sections nest at most so deep.
const MAX_DEPTH: usize = 100;

fn bad(reason: String) -> Error {
    Error::execution(reason).hint("patterns are those of Java's DateTimeFormatter")
}

impl DateTimeFormatter {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// When a letter is unknown or repeated too often.
    pub(super) fn new(pattern: &str) -> Result<Self> {
        let chars: Vec<char> = pattern.chars().collect();
        let mut open: Vec<Vec<Item>> = vec![Vec::new()];
        // The number whose width is not fixed and those right behind it.
        let mut active: Option<usize> = None;
        let mut pad = None;
        let mut i = 0;
        while i < chars.len() {
            let c = chars[i];
            if c.is_ascii_alphabetic() {
                let count = chars[i..].iter().take_while(|x| **x == c).count();
                i += count;
                if c == 'p' {
                    if !chars.get(i).is_some_and(char::is_ascii_alphabetic) {
                        return Err(bad(
                            "Pad letter 'p' must be followed by valid pad pattern".into()
                        ));
                    }
                    pad = Some(count);
                    continue;
                }
                let item = field(c, count)?;
                let items = last(&mut open);
                if let Some(width) = pad.take() {
                    items.push(Item::Pad(width, Box::new(item)));
                    active = None;
                } else {
                    push_field(items, item, &mut active);
                }
                continue;
            }
            active = None;
            match c {
                '\'' => {
                    let mut text = String::new();
                    i += 1;
                    loop {
                        match (chars.get(i), chars.get(i + 1)) {
                            (Some('\''), Some('\'')) => {
                                text.push('\'');
                                i += 2;
                            }
                            (Some('\''), _) => {
                                i += 1;
                                break;
                            }
                            (Some(c), _) => {
                                text.push(*c);
                                i += 1;
                            }
                            (None, _) => {
                                return Err(bad(format!(
                                    "Pattern ends with an incomplete string literal: {pattern}"
                                )));
                            }
                        }
                    }
                    if text.is_empty() {
                        text.push('\'');
                    }
                    last(&mut open).push(Item::Literal(text));
                    continue;
                }
                '[' if open.len() > MAX_DEPTH => {
                    return Err(bad("Pattern nests optional sections too deep".into()));
                }
                '[' => open.push(Vec::new()),
                ']' => {
                    if open.len() < 2 {
                        return Err(bad(
                            "Pattern invalid as it contains ] without previous [".into()
                        ));
                    }
                    let items = open.pop().unwrap_or_default();
                    last(&mut open).push(Item::Optional(items));
                }
                '{' | '}' | '#' => {
                    return Err(bad(format!("Pattern includes reserved character: '{c}'")));
                }
                c => last(&mut open).push(Item::Literal(c.to_string())),
            }
            i += 1;
        }
        while open.len() > 1 {
            let items = open.pop().unwrap_or_default();
            last(&mut open).push(Item::Optional(items));
        }
        Ok(Self {
            items: open.pop().unwrap_or_default(),
        })
    }

    /// Appends the moment.
    ///
    /// # Errors
    /// When the pattern asks for a zone.
    pub(super) fn format(&self, t: Local, out: &mut String) -> Result<()> {
        let fields = Fields::new(t);
        self.items
            .iter()
            .try_for_each(|item| fields.write(item, out))
    }
}

fn last(open: &mut [Vec<Item>]) -> &mut Vec<Item> {
    let at = open.len() - 1;
    &mut open[at]
}

/// Adds a field; numbers side by side share their digits.
fn push_field(items: &mut Vec<Item>, item: Item, active: &mut Option<usize>) {
    let Item::Number(number) = item else {
        *active = None;
        items.push(item);
        return;
    };
    let at = items.len();
    match *active {
        Some(base) if number.is_fixed() => {
            if let Item::Number(base) = &mut items[base] {
                base.reserved += number.max;
            }
        }
        _ => *active = Some(at),
    }
    items.push(Item::Number(number));
}

/// The item of `count` times a letter.
fn field(letter: char, count: usize) -> Result<Item> {
    let too_many = || Err(bad(format!("Too many pattern letters: {letter}")));
    let fixed = |max: usize| match count {
        1 => Ok(Item::Number(Number::new(letter, 1, 19, Sign::Normal))),
        n if n <= max => Ok(Item::Number(Number::new(letter, n, n, Sign::NotNegative))),
        _ => too_many(),
    };
    match letter {
        'y' | 'u' | 'Y' => Ok(Item::Number(match count {
            2 => Number {
                reduced: true,
                ..Number::new(letter, 2, 2, Sign::NotNegative)
            },
            1 | 3 => Number::new(letter, count, 19, Sign::Normal),
            n if n <= 19 => Number::new(letter, n, 19, Sign::ExceedsPad),
            _ => return too_many(),
        })),
        'M' | 'L' | 'Q' | 'q' => match count {
            1 | 2 => fixed(2),
            3..=5 => Ok(Item::Text(letter, count)),
            _ => too_many(),
        },
        'e' if count <= 2 => fixed(2),
        'c' if count == 1 => fixed(1),
        'c' if count == 2 => Err(bad("Invalid pattern \"cc\"".into())),
        'E' | 'e' | 'c' => match count {
            1..=5 => Ok(Item::Text('E', count.max(3))),
            _ => too_many(),
        },
        'G' => match count {
            1..=5 => Ok(Item::Text('G', count.max(3))),
            _ => too_many(),
        },
        'a' if count == 1 => Ok(Item::Text('a', 1)),
        'B' if matches!(count, 1 | 4 | 5) => Ok(Item::Text('B', count)),
        'd' | 'h' | 'H' | 'k' | 'K' | 'm' | 's' | 'w' => fixed(2),
        'W' | 'F' => fixed(1),
        'D' => match count {
            2 => Ok(Item::Number(Number::new('D', 2, 3, Sign::NotNegative))),
            _ => fixed(3),
        },
        'S' if count <= 9 => Ok(Item::Number(Number {
            fraction: true,
            ..Number::new('S', count, count, Sign::NotNegative)
        })),
        'n' | 'A' | 'N' if count <= 19 => Ok(Item::Number(Number::new(
            letter,
            count,
            19,
            Sign::NotNegative,
        ))),
        'X' | 'x' | 'Z' if count <= 5 => Ok(Item::Offset(letter, count)),
        'O' if matches!(count, 1 | 4) => Ok(Item::Offset(letter, count)),
        'V' if count == 2 => Ok(Item::Zone),
        'V' => Err(bad(format!("Pattern letter count must be 2: {letter}"))),
        'z' if count <= 4 => Ok(Item::Zone),
        'v' if matches!(count, 1 | 4) => Ok(Item::Zone),
        'a' | 'B' | 'S' | 'n' | 'A' | 'N' | 'X' | 'x' | 'Z' | 'O' | 'z' | 'v' => too_many(),
        _ => Err(bad(format!("Unknown pattern letter: {letter}"))),
    }
}

/// A moment in parts.
struct Fields {
    t: Local,
    year: i64,
    month: u32,
    day: u32,
    second: i64,
}

impl Fields {
    fn new(t: Local) -> Self {
        let (year, month, day) = civil_from_days(t.days);
        Self {
            t,
            year,
            month,
            day,
            second: t.nanos / NANOS_PER_SECOND,
        }
    }

    fn value(&self, letter: char) -> i64 {
        let hour = self.second / 3600;
        match letter {
            'y' if self.year > 0 => self.year,
            'y' => 1 - self.year,
            'u' => self.year,
            'Y' => sunday_week(self.t.days).0,
            'M' | 'L' => i64::from(self.month),
            'Q' | 'q' => i64::from(self.month + 2) / 3,
            'w' => sunday_week(self.t.days).1,
            'W' => sunday_week_of_month(self.t.days),
            'd' => i64::from(self.day),
            'D' => self.t.days - days_from_civil(self.year, 1, 1) + 1,
            'F' => i64::from((self.day - 1) % 7 + 1),
            'e' | 'c' => day_of_week(self.t.days) as i64 + 1,
            'H' => hour,
            'k' => (hour + 23) % 24 + 1,
            'K' => hour % 12,
            'h' => (hour + 11) % 12 + 1,
            'm' => self.second / 60 % 60,
            's' => self.second % 60,
            'n' => self.t.nanos_of_second(),
            'A' => self.t.nanos / 1_000_000,
            _ => self.t.nanos,
        }
    }

    fn text(&self, letter: char, count: usize) -> String {
        let month = || MONTHS[self.month as usize - 1];
        let quarter = (self.month - 1) / 3;
        match letter {
            'M' | 'L' => name(month(), count).to_string(),
            'Q' | 'q' => match count {
                3 => format!("Q{}", quarter + 1),
                4 => format!("{} quarter", ["1st", "2nd", "3rd", "4th"][quarter as usize]),
                _ => (quarter + 1).to_string(),
            },
            'E' => name(DAYS[day_of_week(self.t.days)], count).to_string(),
            'G' => {
                let (full, short) = if self.year > 0 {
                    ("Anno Domini", "AD")
                } else {
                    ("Before Christ", "BC")
                };
                match count {
                    4 => full.to_string(),
                    5 => short[..1].to_string(),
                    _ => short.to_string(),
                }
            }
            'a' => half_of_day(self.second).to_string(),
            _ => period_of_day(self.second, count).to_string(),
        }
    }

    fn write(&self, item: &Item, out: &mut String) -> Result<()> {
        match item {
            Item::Literal(text) => out.push_str(text),
            Item::Text(letter, count) => out.push_str(&self.text(*letter, *count)),
            Item::Number(number) if number.fraction => {
                let mut rest = self.t.nanos_of_second();
                let mut digits = [b'0'; 9];
                for digit in digits.iter_mut().rev() {
                    *digit = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
                let digits = digits.iter().take(number.max);
                out.extend(digits.map(|digit| char::from(*digit)));
            }
            Item::Number(number) => self.write_number(number, out)?,
            Item::Offset(..) => {
                return Err(Error::execution("Unsupported field: OffsetSeconds")
                    .hint("a timestamp has no offset from UTC"));
            }
            Item::Zone => {
                return Err(Error::execution("Unable to extract ZoneId from temporal")
                    .hint("a timestamp has no time zone"));
            }
            Item::Optional(items) => {
                let start = out.len();
                for item in items {
                    if self.write(item, out).is_err() {
                        out.truncate(start);
                        break;
                    }
                }
            }
            Item::Pad(width, item) => {
                let mut text = String::new();
                self.write(item, &mut text)?;
                let len = text.chars().count();
                if len > *width {
                    return Err(Error::execution(format!(
                        "Cannot print as output of {len} characters exceeds pad width of {width}"
                    )));
                }
                out.extend(std::iter::repeat_n(' ', width - len));
                out.push_str(&text);
            }
        }
        Ok(())
    }

    fn write_number(&self, number: &Number, out: &mut String) -> Result<()> {
        let mut value = self.value(number.letter);
        if number.reduced {
            value = value.abs() % 100;
        }
        if number.min == 2
            && let Ok(small @ 0..100) = u8::try_from(value)
        {
            out.push(char::from(b'0' + small / 10));
            out.push(char::from(b'0' + small % 10));
            return Ok(());
        }
        let mut buffer = [0; 20];
        let digits = digits(value.unsigned_abs(), &mut buffer);
        if digits.len() > number.max {
            return Err(Error::execution(format!(
                "Field {} cannot be printed as the value {value} exceeds the maximum print width of {}",
                number.letter, number.max
            )));
        }
        match number.sign {
            _ if value < 0 => out.push('-'),
            Sign::ExceedsPad if digits.len() > number.min => out.push('+'),
            _ => {}
        }
        out.extend(std::iter::repeat_n(
            '0',
            number.min.saturating_sub(digits.len()),
        ));
        out.extend(digits.iter().map(|digit| char::from(*digit)));
        Ok(())
    }
}

/// The decimal digits of a number, at least one.
fn digits(mut number: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &buffer[start..];
        }
    }
}

fn half_of_day(second: i64) -> &'static str {
    if second < 43_200 { "AM" } else { "PM" }
}

fn period_of_day(second: i64, count: usize) -> &'static str {
    let narrow = count == 5;
    match second / 60 {
        0 if narrow => "mi",
        0 => "midnight",
        720 if narrow => "n",
        720 => "noon",
        minute => match minute / 60 {
            0..=5 | 21..=23 => "at night",
            6..=11 => "in the morning",
            12..=17 => "in the afternoon",
            _ => "in the evening",
        },
    }
}

#[cfg(test)]
mod tests;
