//! The fast way through a record: fields that are not wanted are passed by their brackets and quotes
//! alone, and usual values of the frequent types are read where they stand.
//!
//! Whatever is unusual (escapes in names, something that does not fit, bad structure) gives `None`:
//! the record is then read again in the thorough way, which also makes the error.

use jiter::Jiter;

use super::value::{Reader, last_named, timestamp};
use crate::formats::Rows;
use crate::formats::builder::ColumnBuilder;

/// Bytes up to the end of the string whose content begins at `at`, its quote included.
fn end_of_string(record: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', record.get(at..)?)?;
        if record[at] == b'"' {
            return Some(at + 1);
        }
        // The escaped byte too.
        at += 2;
    }
}

fn blanks(record: &[u8], mut at: usize) -> usize {
    while matches!(record.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

/// Passes a number, a literal, a string, or an array or object with all that is in it.
fn pass_value(record: &[u8], at: usize) -> Option<usize> {
    match record.get(at)? {
        b'"' => end_of_string(record, at + 1),
        b'{' | b'[' => pass_nested(record, at + 1, 1),
        b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
            let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
            Some(at + record[at..].iter().position(|b| !is_part(b))?)
        }
        _ => None,
    }
}

/// Passes everything up to the bracket that closes the last of `depth` open ones.
fn pass_nested(record: &[u8], mut at: usize, mut depth: usize) -> Option<usize> {
    loop {
        let rest = record.get(at..)?;
        at += rest.iter().position(|b| IS_STRUCTURE[usize::from(*b)])?;
        match record[at] {
            b'"' => at = end_of_string(record, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            _ => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
    }
}

/// Quotes and brackets.
static IS_STRUCTURE: [bool; 256] = {
    let mut table = [false; 256];
    table[b'"' as usize] = true;
    table[b'{' as usize] = true;
    table[b'}' as usize] = true;
    table[b'[' as usize] = true;
    table[b']' as usize] = true;
    table
};

/// Whether records of these fields can be read by [`read_object`]: their names stand in JSON as they are.
pub(super) fn are_plain(fields: &[(String, ColumnBuilder)]) -> bool {
    let is_plain = |c: char| !matches!(c, '"' | '\\') && !c.is_control();
    fields.iter().all(|(name, column)| {
        let nested = match column {
            ColumnBuilder::Row(_, fields) => are_plain(fields),
            _ => true,
        };
        nested && name.chars().all(is_plain)
    })
}

/// Reads the object of `record` into the next row of `rows`, which it may leave half done.
pub(super) fn read_object(
    reader: Reader,
    record: &[u8],
    rows: &mut Rows,
    tape: &mut Vec<u8>,
) -> Option<()> {
    let row = rows.len();
    let mut scan = Scan {
        reader,
        record,
        tape,
    };
    let end = scan.object(blanks(record, 0), &mut rows.columns, row)?;
    (blanks(record, end) == record.len()).then_some(())
}

struct Scan<'a> {
    reader: Reader,
    record: &'a [u8],
    /// Memory for strings with escapes.
    tape: &'a mut Vec<u8>,
}

impl Scan<'_> {
    /// Reads the object that begins at `at` into row `row` of `fields`; gives where it ends.
    fn object(
        &mut self,
        at: usize,
        fields: &mut [(String, ColumnBuilder)],
        row: usize,
    ) -> Option<usize> {
        let record = self.record;
        let (mut count, mut likely) = (0, 0);
        let mut is_repeated = false;
        if *record.get(at)? != b'{' {
            return None;
        }
        let mut at = blanks(record, at + 1);
        if *record.get(at)? == b'}' {
            at += 1;
        } else {
            loop {
                let (found, behind) = name(record, at, fields, likely)?;
                at = blanks(record, behind);
                if *record.get(at)? != b':' {
                    return None;
                }
                at = blanks(record, at + 1);
                if let Some(i) = found {
                    let column = &mut fields[i].1;
                    if column.len() > row {
                        column.truncate(row);
                        is_repeated = true;
                    }
                    at = self.value(at, column)?;
                    count += 1;
                    likely = i + 1;
                    // As Flink: what follows the last field that is missing does not count.
                    if count == fields.len() {
                        at = pass_nested(record, at, 1)?;
                        break;
                    }
                } else {
                    at = pass_value(record, at)?;
                }
                at = blanks(record, at);
                match record.get(at)? {
                    b',' => at = blanks(record, at + 1),
                    b'}' => {
                        at += 1;
                        break;
                    }
                    _ => return None,
                }
            }
        }
        if count < fields.len() && self.reader.options.fail_on_missing_field {
            return None;
        }
        if count < fields.len() || is_repeated {
            for (_, column) in fields {
                if column.len() == row {
                    column.push_null();
                }
            }
        }
        Some(at)
    }

    /// Reads the value that begins at `at`; gives where it ends.
    fn value(&mut self, at: usize, column: &mut ColumnBuilder) -> Option<usize> {
        let record = self.record;
        match column {
            ColumnBuilder::Row(nulls, fields) if *record.get(at)? == b'{' => {
                let end = self.object(at, fields, nulls.len())?;
                nulls.append_non_null();
                return Some(end);
            }
            ColumnBuilder::Int(values) => {
                if let Some((value, end)) = integer(record, at)
                    && let Ok(value) = value.try_into()
                {
                    values.push(value);
                    return Some(end);
                }
            }
            ColumnBuilder::BigInt(values) => {
                if let Some((value, end)) = integer(record, at) {
                    values.push(value);
                    return Some(end);
                }
            }
            ColumnBuilder::String(values) => {
                if let Some((text, end)) = text(record, at) {
                    values.push(text.as_bytes());
                    return Some(end);
                }
            }
            ColumnBuilder::Timestamp(values, unit, is_instant) => {
                let format = self.reader.options.timestamp_format;
                if let Some((text, end)) = text(record, at)
                    && let Some(moment) = timestamp(text, format, *is_instant)
                    && let Some(value) = moment.in_unit(*unit)
                {
                    values.push(value);
                    return Some(end);
                }
            }
            _ => {}
        }
        let mut jiter = Jiter::with_tape(record.get(at..)?, std::mem::take(self.tape));
        let read = match jiter.peek() {
            Ok(peek) => self.reader.value(&mut jiter, peek, column).ok(),
            Err(_) => None,
        };
        let end = at + jiter.current_index();
        *self.tape = jiter.into_tape();
        read.map(|()| end)
    }
}

/// The field whose quoted name stands at `at`, if it is one of `fields`, and where the name ends. It is
/// looked for first where it is likely, in the order of the declaration.
fn name(
    record: &[u8],
    at: usize,
    fields: &[(String, ColumnBuilder)],
    likely: usize,
) -> Option<(Option<usize>, usize)> {
    if *record.get(at)? != b'"' {
        return None;
    }
    let start = at + 1;
    if let Some((name, _)) = fields.get(likely)
        && record[start..].starts_with(name.as_bytes())
        && record.get(start + name.len()) == Some(&b'"')
    {
        return Some((Some(likely), start + name.len() + 1));
    }
    let end = end_of_string(record, start)?;
    let name = &record[start..end - 1];
    if name.contains(&b'\\') {
        return None;
    }
    Some((last_named(fields, name), end))
}

/// The integer of up to 18 digits that stands at `at`, and where it ends.
fn integer(record: &[u8], at: usize) -> Option<(i64, usize)> {
    let negative = *record.get(at)? == b'-';
    let start = at + usize::from(negative);
    let mut value = 0;
    let mut end = start;
    while let Some(digit) = record.get(end).map(|b| b.wrapping_sub(b'0'))
        && digit < 10
    {
        if end - start == 18 {
            return None;
        }
        value = value * 10 + i64::from(digit);
        end += 1;
    }
    let starts_with_zero = record.get(start) == Some(&b'0') && end - start > 1;
    let goes_on = matches!(record.get(end), Some(b'.' | b'e' | b'E'));
    if end == start || starts_with_zero || goes_on {
        return None;
    }
    Some((if negative { -value } else { value }, end))
}

/// The content of the string that stands at `at`, if it has no escapes, and where it ends.
fn text(record: &[u8], at: usize) -> Option<(&str, usize)> {
    if *record.get(at)? != b'"' {
        return None;
    }
    let start = at + 1;
    let end = start + memchr::memchr2(b'"', b'\\', &record[start..])?;
    let content = &record[start..end];
    if record[end] == b'\\' || content.iter().fold(false, |any, b| any | (*b < b' ')) {
        return None;
    }
    Some((std::str::from_utf8(content).ok()?, end + 1))
}
