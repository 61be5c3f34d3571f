//! Patterns of `java.text.SimpleDateFormat`, which the older functions use. Parsing is lenient: 30
//! February is 1 March, and what follows the pattern is ignored.

use std::fmt::Write as _;

use super::english::{DAYS, MONTHS, day_of_week, sunday_week, sunday_week_of_month};
use super::zones::{Zone, offset_text};
use crate::error::{Error, Result};
use crate::types::calendar::{civil_from_days, days_from_civil};

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct SimpleDateFormat {
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Literal(String),
    /// A letter and how often.
    Field(char, usize),
}

impl Item {
    /// Whether it takes no more digits than it has letters when it follows another number.
    fn is_number(&self) -> bool {
        match self {
            Self::Literal(_) => false,
            Self::Field('M' | 'L', count) => *count <= 2,
            Self::Field(letter, _) => "yYdHkhKmsSDFwWu".contains(*letter),
        }
    }
}

impl SimpleDateFormat {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// When a letter is unknown or a quote is not closed.
    pub(super) fn new(pattern: &str) -> Result<Self> {
        let mut items: Vec<Item> = Vec::new();
        let mut chars = pattern.chars().peekable();
        let literal = |items: &mut Vec<Item>, c: char| match items.last_mut() {
            Some(Item::Literal(text)) => text.push(c),
            _ => items.push(Item::Literal(c.to_string())),
        };
        while let Some(c) = chars.next() {
            match c {
                '\'' if chars.next_if_eq(&'\'').is_some() => literal(&mut items, '\''),
                '\'' => loop {
                    match chars.next() {
                        Some('\'') if chars.next_if_eq(&'\'').is_some() => {
                            literal(&mut items, '\'');
                        }
                        Some('\'') => break,
                        Some(c) => literal(&mut items, c),
                        None => return Err(bad("Unterminated quote".to_string())),
                    }
                },
                c if c.is_ascii_alphabetic() => {
                    if !"GyYMLwWDdFEuaHkKhmsSzZX".contains(c) {
                        return Err(bad(format!("Illegal pattern character '{c}'")));
                    }
                    let mut count = 1;
                    while chars.next_if_eq(&c).is_some() {
                        count += 1;
                    }
                    if c == 'X' && count > 3 {
                        return Err(bad("invalid ISO 8601 format: length=4".to_string()));
                    }
                    items.push(Item::Field(c, count));
                }
                c => literal(&mut items, c),
            }
        }
        Ok(Self { items })
    }

    /// Appends the instant (ms since the epoch) as a clock in `zone` shows it.
    pub(super) fn format(&self, millis: i64, zone: Zone, out: &mut String) {
        let instant = millis.div_euclid(1000);
        let offset = zone.offset(instant);
        let local = instant + offset;
        let days = local.div_euclid(86_400);
        let second = local.rem_euclid(86_400);
        let (year, month, day) = civil_from_days(days);
        let hour = second / 3600;
        for item in &self.items {
            let (letter, count) = match item {
                Item::Literal(text) => {
                    out.push_str(text);
                    continue;
                }
                Item::Field(letter, count) => (*letter, *count),
            };
            let value = match letter {
                'y' | 'Y' => {
                    let year = if letter == 'Y' {
                        sunday_week(days).0
                    } else if year > 0 {
                        year
                    } else {
                        1 - year
                    };
                    if count == 2 { year % 100 } else { year }
                }
                'M' | 'L' if count >= 3 => {
                    let full = MONTHS[month as usize - 1];
                    out.push_str(if count > 3 { full } else { &full[..3] });
                    continue;
                }
                'E' => {
                    let full = DAYS[day_of_week(days)];
                    out.push_str(if count > 3 { full } else { &full[..3] });
                    continue;
                }
                'G' => {
                    out.push_str(if year > 0 { "AD" } else { "BC" });
                    continue;
                }
                'a' => {
                    out.push_str(if hour < 12 { "AM" } else { "PM" });
                    continue;
                }
                'z' => {
                    out.push_str(&zone.short_name(instant));
                    continue;
                }
                'Z' => {
                    out.push_str(&offset_text("", offset, ""));
                    continue;
                }
                'X' => {
                    let text = offset_text("", offset, if count == 3 { ":" } else { "" });
                    out.push_str(match (offset, count) {
                        (0, _) => "Z",
                        (_, 1) => &text[..3],
                        _ => &text,
                    });
                    continue;
                }
                'M' | 'L' => i64::from(month),
                'd' => i64::from(day),
                'D' => days - days_from_civil(year, 1, 1) + 1,
                'w' => sunday_week(days).1,
                'W' => sunday_week_of_month(days),
                'F' => i64::from((day - 1) / 7 + 1),
                'u' => (days + 3).rem_euclid(7) + 1,
                'H' => hour,
                'k' => (hour + 23) % 24 + 1,
                'K' => hour % 12,
                'h' => (hour + 11) % 12 + 1,
                'm' => second / 60 % 60,
                's' => second % 60,
                _ => millis.rem_euclid(1000),
            };
            let _ = write!(out, "{value:0count$}");
        }
    }

    /// The instant (ms since the epoch) of the text on a clock in `zone`; `None` if it does not follow
    /// the pattern.
    pub(super) fn parse(&self, text: &str, zone: Zone) -> Option<i64> {
        let mut parsed = Parsed::default();
        let mut rest = text;
        for (i, item) in self.items.iter().enumerate() {
            rest = match item {
                Item::Literal(literal) => rest.strip_prefix(literal.as_str())?,
                Item::Field(letter, count) => {
                    let obey = self.items.get(i + 1).is_some_and(Item::is_number);
                    let rest = rest.trim_start_matches([' ', '\t']);
                    parsed.read(*letter, *count, obey, rest)?
                }
            };
        }
        parsed.resolve(zone)
    }
}

fn bad(reason: String) -> Error {
    Error::execution(reason).hint("patterns are those of Java's SimpleDateFormat")
}

/// The fields that a text gave.
#[derive(Debug, Default)]
struct Parsed {
    before_christ: bool,
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: i64,
    half_day: Option<i64>,
    afternoon: bool,
    minute: i64,
    second: i64,
    millis: i64,
    offset: Option<Zone>,
}

impl Parsed {
    fn read<'a>(
        &mut self,
        letter: char,
        count: usize,
        obey: bool,
        text: &'a str,
    ) -> Option<&'a str> {
        if text.is_empty() {
            return None;
        }
        match letter {
            'M' | 'L' if count >= 3 => {
                let (month, rest) = read_name(&MONTHS, text)?;
                self.month = Some(month + 1);
                return Some(rest);
            }
            'E' => return read_name(&DAYS, text).map(|(_, rest)| rest),
            'a' => {
                let (half, rest) = read_word(&["AM", "PM"], text)?;
                self.afternoon = half == 1;
                return Some(rest);
            }
            'G' => {
                let (era, rest) = read_word(&["AD", "BC"], text)?;
                self.before_christ = era == 1;
                return Some(rest);
            }
            'z' | 'Z' | 'X' => {
                let (zone, rest) = read_zone(text)?;
                self.offset = Some(zone);
                return Some(rest);
            }
            _ => {}
        }
        let (value, rest) = read_integer(text, obey.then_some(count))?;
        match letter {
            'y' | 'Y' => {
                let digits = &text[..text.len() - rest.len()];
                let two = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
                self.year = Some(if count <= 2 && two {
                    full_year(value)
                } else {
                    value
                });
            }
            'M' | 'L' => self.month = Some(value),
            'd' => self.day = Some(value),
            'D' => self.day_of_year = Some(value),
            'H' => self.hour = value,
            'k' => self.hour = if value == 24 { 0 } else { value },
            'K' => self.half_day = Some(value),
            'h' => self.half_day = Some(if value == 12 { 0 } else { value }),
            'm' => self.minute = value,
            's' => self.second = value,
            'S' => self.millis = value,
            _ => {}
        }
        Some(rest)
    }

    fn resolve(&self, zone: Zone) -> Option<i64> {
        let year = self.year.unwrap_or(1970);
        let year = if self.before_christ { 1 - year } else { year };
        let days = match self.day_of_year {
            Some(n) if self.month.is_none() && self.day.is_none() => {
                days_from_civil(year, 1, 1).checked_add(n - 1)?
            }
            _ => {
                let months = year
                    .checked_mul(12)?
                    .checked_add(self.month.unwrap_or(1) - 1)?;
                let month = u32::try_from(months.rem_euclid(12)).ok()? + 1;
                days_from_civil(months.div_euclid(12), month, 1)
                    .checked_add(self.day.unwrap_or(1) - 1)?
            }
        };
        let hour = match self.half_day {
            Some(hour) => hour + if self.afternoon { 12 } else { 0 },
            None => self.hour,
        };
        let local = days.checked_mul(86_400)? + hour * 3600 + self.minute * 60 + self.second;
        let instant = match self.offset {
            Some(offset) => offset.instant(local),
            None => zone.last_instant(local),
        };
        instant.checked_mul(1000)?.checked_add(self.millis)
    }
}

/// The year of two digits: 1946 to 2045. Java's hundred years move with the clock; a function that does not
/// read the clock gives the same today and tomorrow.
fn full_year(value: i64) -> i64 {
    if value < 46 {
        2000 + value
    } else {
        1900 + value
    }
}

fn read_integer(text: &str, width: Option<usize>) -> Option<(i64, &str)> {
    let text = match width {
        Some(width) => (text.is_char_boundary(width) && text.len() >= width)
            .then(|| text.split_at(width))
            .map(|(number, _)| number)
            .map_or((None, text), |number| (Some(number), text)),
        None => (Some(text), text),
    };
    let (number, all) = (text.0?, text.1);
    let sign = usize::from(number.starts_with('-'));
    let digits = number[sign..]
        .bytes()
        .take_while(u8::is_ascii_digit)
        .count();
    if digits == 0 {
        return None;
    }
    let end = sign + digits;
    // Longer numbers don't fit an int.
    let value = number[..end].parse::<i32>().ok()?;
    Some((i64::from(value), &all[end..]))
}

/// One of the full names or their first three letters, the longest that fits, in any case.
fn read_name<'a>(names: &[&str], text: &'a str) -> Option<(i64, &'a str)> {
    let fits = |name: &str| {
        text.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    let mut found = None;
    for (i, name) in (0..).zip(names) {
        if fits(name) {
            return Some((i, &text[name.len()..]));
        }
        if fits(&name[..3]) {
            found = Some((i, &text[3..]));
        }
    }
    found
}

fn read_word<'a>(words: &[&str], text: &'a str) -> Option<(i64, &'a str)> {
    (0..).zip(words).find_map(|(i, word)| {
        let start = text.get(..word.len())?;
        start
            .eq_ignore_ascii_case(word)
            .then(|| (i, &text[word.len()..]))
    })
}

/// `Z`, `+0200`, `+02:00`, `GMT+2` or the name of a zone.
fn read_zone(text: &str) -> Option<(Zone, &str)> {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || "/_+-:".contains(c)))
        .unwrap_or(text.len());
    let (id, rest) = text.split_at(end);
    let zone = match id {
        "" => return None,
        "GMT" | "UTC" | "UT" => Zone::Fixed(0),
        _ => match Zone::lenient(id) {
            Zone::Fixed(0) => Zone::strict(id)?,
            zone => zone,
        },
    };
    Some((zone, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000;
    const UTC: Zone = Zone::Fixed(0);

    fn seconds(pattern: &str, text: &str) -> Option<i64> {
        let format = SimpleDateFormat::new(pattern).expect("a valid pattern");
        format.parse(text, UTC).map(|ms| ms / 1000)
    }

    #[test]
    fn every_letter_prints_as_in_java() {
        let pattern = "y yy yyy yyyyy M MM MMM MMMM d dd D DDD E EEEE u a H k K h m s S SSS z Z X G w W F L YYYY";
        let format = SimpleDateFormat::new(pattern).expect("a valid pattern");
        let mut out = String::new();
        format.format(NOW, Zone::Region(chrono_tz::UTC), &mut out);
        assert_eq!(
            out,
            "2023 23 2023 02023 11 11 Nov November 14 14 318 318 Tue Tuesday 2 PM 22 22 10 10 13 20 0 000 UTC +0000 Z AD 46 3 2 11 2023"
        );
        assert!(SimpleDateFormat::new("yyyy bb").is_err());
        assert!(SimpleDateFormat::new("'open").is_err());
    }

    #[test]
    fn texts_are_read_leniently() {
        let full = "yyyy-MM-dd HH:mm:ss";
        for (pattern, text, expected) in [
            (full, "2024-02-03 04:05:06", Some(1_706_933_106)),
            (full, "2024-13-45 25:61:61", Some(1_739_584_921)),
            (full, " 2024-02-03 04:05:06", Some(1_706_933_106)),
            (full, "2024-02-03 04:05:06 trailing", Some(1_706_933_106)),
            (full, "2024-4-1 6:7:8", Some(1_711_951_628)),
            (full, "2024-02-03", None),
            (full, "bad", None),
            ("yyyyMMdd", "20240203", Some(1_706_918_400)),
            ("d MMM yyyy", "3 Feb 2024", Some(1_706_918_400)),
            ("d MMM yyyy", "3 february 2024", Some(1_706_918_400)),
            ("yy-M-d", "99-1-1", Some(915_148_800)),
            ("yy-M-d", "30-1-1", Some(1_893_456_000)),
            ("yyyy-MM-dd a h", "2024-02-03 PM 3", Some(1_706_972_400)),
            (
                "yyyy-MM-dd HH:mm z",
                "2024-02-03 04:05 PST",
                Some(1_706_961_900),
            ),
            (
                "yyyy-MM-dd HH:mm:ss Z",
                "2024-02-03 04:05:06 +0200",
                Some(1_706_925_906),
            ),
            ("dd/MM/yyyy", "30/02/2024", Some(1_709_251_200)),
        ] {
            assert_eq!(seconds(pattern, text), expected, "{text} by {pattern}");
        }
    }
}
