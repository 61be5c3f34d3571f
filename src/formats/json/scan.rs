//! The fast way through a record of which only some fields are wanted: the others are passed by their
//! brackets and quotes alone, their values are not looked at.
//!
//! Whatever is unusual (escapes in names, something that does not fit, bad structure) gives `None`:
//! the record is then read again in the thorough way, which also makes the error.

use jiter::Jiter;

use super::value::Reader;
use crate::formats::Rows;

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

/// Reads the object of `record` into the next row of `rows`, which it may leave half done.
pub(super) fn read_object(
    reader: Reader,
    record: &[u8],
    rows: &mut Rows,
    tape: &mut Vec<u8>,
) -> Option<()> {
    let row = rows.len();
    let fields = &mut rows.columns;
    let (mut count, mut likely) = (0, 0);
    let mut at = blanks(record, 0);
    if *record.get(at)? != b'{' {
        return None;
    }
    at = blanks(record, at + 1);
    if *record.get(at)? == b'}' {
        at += 1;
    } else {
        loop {
            if *record.get(at)? != b'"' {
                return None;
            }
            let name = at + 1;
            at = end_of_string(record, name)?;
            let name = &record[name..at - 1];
            if name.contains(&b'\\') {
                return None;
            }
            at = blanks(record, at);
            if *record.get(at)? != b':' {
                return None;
            }
            at = blanks(record, at + 1);
            let is = |field: &(String, _)| field.0.as_bytes() == name;
            let found = match fields.get(likely) {
                Some(field) if is(field) => Some(likely),
                // The last of several fields of one name, as in a Java map.
                _ => fields.iter().rposition(is),
            };
            if let Some(i) = found {
                let column = &mut fields[i].1;
                if column.len() > row {
                    column.truncate(row);
                }
                let mut jiter = Jiter::with_tape(&record[at..], std::mem::take(tape));
                let peek = jiter.peek().ok()?;
                let read = reader.value(&mut jiter, peek, column);
                at += jiter.current_index();
                *tape = jiter.into_tape();
                read.ok()?;
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
    if blanks(record, at) != record.len() {
        return None;
    }
    if count < fields.len() {
        if reader.options.fail_on_missing_field {
            return None;
        }
        for (_, column) in fields {
            if column.len() == row {
                column.push_null();
            }
        }
    }
    Some(())
}
