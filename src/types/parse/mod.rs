//! Text to values: numbers, booleans, bytes, dates, times and intervals, by the rules of Flink's
//! casts; literals of SQL have stricter ones (`literal_*`).

mod interval;
mod number;
mod temporal;

pub use interval::{IntervalField, IntervalQualifier, interval};
pub use number::{decimal, double, float, integer};
pub use temporal::{
    cast_date, cast_time, cast_timestamp, literal_date, literal_time, timestamp_value,
    usual_timestamp,
};

/// `true`, `t`, `yes`, `y`, `1` and their opposites, in any case.
#[must_use]
pub fn boolean(text: &str) -> Option<bool> {
    let is = |words: [&str; 5]| words.iter().any(|w| text.eq_ignore_ascii_case(w));
    if is(["true", "t", "yes", "y", "1"]) {
        Some(true)
    } else if is(["false", "f", "no", "n", "0"]) {
        Some(false)
    } else {
        None
    }
}

/// The bytes that pairs of hexadecimal digits stand for.
#[must_use]
pub fn hex(text: &str) -> Option<Vec<u8>> {
    let nibble = |c: u8| {
        char::from(c)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let pairs = text.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs
        .map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?))
        .collect()
}
