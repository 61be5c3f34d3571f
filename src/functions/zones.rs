//! Time zones by the names that Java knows.

use std::str::FromStr;

use chrono::{Offset, TimeZone};
use chrono_tz::{OffsetName, Tz};

use crate::types::calendar::{local_to_instant, utc_offset};

/// A region's clock or a fixed offset from UTC, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zone {
    Region(Tz),
    Fixed(i64),
}

/// What Java takes for a region, though it is none.
const SHORT: [(&str, &str); 26] = [
    ("ACT", "Australia/Darwin"),
    ("AET", "Australia/Sydney"),
    ("AGT", "America/Argentina/Buenos_Aires"),
    ("ART", "Africa/Cairo"),
    ("AST", "America/Anchorage"),
    ("BET", "America/Sao_Paulo"),
    ("BST", "Asia/Dhaka"),
    ("CAT", "Africa/Harare"),
    ("CNT", "America/St_Johns"),
    ("CST", "America/Chicago"),
    ("CTT", "Asia/Shanghai"),
    ("EAT", "Africa/Addis_Ababa"),
    ("ECT", "Europe/Paris"),
    ("IET", "America/Indiana/Indianapolis"),
    ("IST", "Asia/Kolkata"),
    ("JST", "Asia/Tokyo"),
    ("MIT", "Pacific/Apia"),
    ("NET", "Asia/Yerevan"),
    ("NST", "Pacific/Auckland"),
    ("PLT", "Asia/Karachi"),
    ("PNT", "America/Phoenix"),
    ("PRT", "America/Puerto_Rico"),
    ("PST", "America/Los_Angeles"),
    ("SST", "Pacific/Guadalcanal"),
    ("VST", "Asia/Ho_Chi_Minh"),
    ("PDT", "America/Los_Angeles"),
];

fn region(id: &str) -> Option<Tz> {
    let id = SHORT
        .iter()
        .find(|(short, _)| *short == id)
        .map_or(id, |(_, long)| *long);
    Tz::from_str(id).ok()
}

/// `h`, `hh`, `hmm`, `hhmm`, `h:mm` or `hh:mm` as seconds.
fn hours_and_minutes(text: &str) -> Option<i64> {
    let (hours, minutes) = match text.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        Some(_) => return None,
        None if text.len() <= 2 => (text, "0"),
        None if text.len() <= 4 && text.is_ascii() => text.split_at(text.len() - 2),
        None => return None,
    };
    let number = |text: &str, limit: i64| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let value = digits.then(|| text.parse::<i64>().ok()).flatten();
        value.filter(|n| *n < limit)
    };
    if hours.len() > 2 {
        return None;
    }
    Some(number(hours, 24)? * 3600 + number(minutes, 60)? * 60)
}

/// A sign and hours with or without minutes.
fn signed(text: &str) -> Option<i64> {
    match text.as_bytes().first()? {
        b'+' => hours_and_minutes(&text[1..]),
        b'-' => Some(-hours_and_minutes(&text[1..])?),
        _ => None,
    }
}

impl Zone {
    /// `TimeZone.getTimeZone`: what it doesn't know is GMT.
    pub(super) fn lenient(id: &str) -> Self {
        if let Some(zone) = region(id) {
            return Self::Region(zone);
        }
        Self::Fixed(id.strip_prefix("GMT").and_then(signed).unwrap_or(0))
    }

    /// `ZoneId.of`.
    pub(super) fn strict(id: &str) -> Option<Self> {
        if id == "Z" {
            return Some(Self::Fixed(0));
        }
        if let Ok(zone) = Tz::from_str(id) {
            return Some(Self::Region(zone));
        }
        let offset = ["GMT", "UTC", "UT"]
            .iter()
            .find_map(|prefix| id.strip_prefix(prefix))
            .unwrap_or(id);
        if offset.is_empty() {
            return Some(Self::Fixed(0));
        }
        signed(offset)
            .filter(|s| s.abs() <= 18 * 3600)
            .map(Self::Fixed)
    }

    /// Seconds that its clock is ahead of UTC at an instant.
    pub(super) fn offset(self, instant: i64) -> i64 {
        match self {
            Self::Region(zone) => utc_offset(zone, instant),
            Self::Fixed(offset) => offset,
        }
    }

    /// The first instant at which its clock shows `local`.
    pub(super) fn instant(self, local: i64) -> i64 {
        match self {
            Self::Region(zone) => local_to_instant(zone, local),
            Self::Fixed(offset) => local - offset,
        }
    }

    /// The last instant at which its clock shows `local`: `java.util.Calendar` takes a time that
    /// occurs twice as standard time.
    pub(super) fn last_instant(self, local: i64) -> i64 {
        let first = self.instant(local);
        let last = local - self.offset(first + 4 * 3600);
        if last > first && last + self.offset(last) == local {
            last
        } else {
            first
        }
    }

    /// Its short name at an instant: `CEST`, `UTC`.
    pub(super) fn short_name(self, instant: i64) -> String {
        match self {
            Self::Region(zone) => {
                let time = chrono::DateTime::from_timestamp(instant, 0).unwrap_or_default();
                let offset = zone.offset_from_utc_datetime(&time.naive_utc());
                match offset.abbreviation() {
                    Some(name) => name.to_string(),
                    None => offset_text("GMT", i64::from(offset.fix().local_minus_utc()), ":"),
                }
            }
            Self::Fixed(0) => "GMT".to_string(),
            Self::Fixed(offset) => offset_text("GMT", offset, ":"),
        }
    }
}

/// `+02:00` behind `prefix`.
pub(super) fn offset_text(prefix: &str, offset: i64, colon: &str) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let minutes = offset.abs() / 60;
    format!(
        "{prefix}{sign}{:02}{colon}{:02}",
        minutes / 60,
        minutes % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_javas() {
        assert_eq!(Zone::lenient("PST"), Zone::Region(Tz::America__Los_Angeles));
        assert_eq!(Zone::lenient("GMT+2"), Zone::Fixed(7200));
        assert_eq!(Zone::lenient("GMT+02:30"), Zone::Fixed(9000));
        assert_eq!(Zone::lenient("+03:00"), Zone::Fixed(0));
        assert_eq!(Zone::lenient("Nowhere"), Zone::Fixed(0));
        assert_eq!(Zone::strict("Nowhere/X"), None);
        assert_eq!(Zone::strict("+03:00"), Some(Zone::Fixed(10_800)));
        assert_eq!(Zone::strict("UTC-1"), Some(Zone::Fixed(-3600)));
    }

    #[test]
    fn a_time_that_occurs_twice_has_two_instants() {
        let berlin = Zone::Region(Tz::Europe__Berlin);
        // 2024-10-27 02:30.
        let local = 1_729_996_200;
        assert_eq!(berlin.instant(local), local - 7200);
        assert_eq!(berlin.last_instant(local), local - 3600);
        assert_eq!(berlin.last_instant(0), -3600);
    }
}
