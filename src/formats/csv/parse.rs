//! Finds the records of a CSV file, and the fields of a record.

use std::ops::Range;

use crate::formats::{Cut, Splitter};

/// The characters that mean something. Each is the UTF-8 of one character.
#[derive(Debug, Clone)]
pub(super) struct Dialect {
    pub(super) delimiter: Vec<u8>,
    pub(super) quote: Option<Vec<u8>>,
    pub(super) escape: Option<Vec<u8>>,
    /// Lines that begin with `#` are skipped, and empty lines and blanks before a record too.
    pub(super) comments: bool,
    /// Blanks around fields are skipped.
    pub(super) trim: bool,
}

impl Dialect {
    fn is_quote(&self, rest: &[u8]) -> bool {
        self.quote.as_ref().is_some_and(|q| rest.starts_with(q))
    }

    fn is_escape(&self, rest: &[u8]) -> bool {
        self.escape.as_ref().is_some_and(|e| rest.starts_with(e))
    }

    /// Where a field begins behind blanks that do not count.
    fn skip_blanks(&self, data: &[u8], mut at: usize) -> usize {
        while self.trim && at < data.len() && self.is_blank(&data[at..]) {
            at += 1;
        }
        at
    }

    fn is_blank(&self, rest: &[u8]) -> bool {
        rest[0] <= b' ' && !is_line_end(rest[0]) && !rest.starts_with(&self.delimiter)
    }

    /// Where the record begins behind comments, if they are allowed; `None` when a comment does not
    /// end in `data`.
    pub(super) fn skip_comments(&self, data: &[u8], at_end: bool) -> Option<usize> {
        if !self.comments {
            return Some(0);
        }
        let mut at = 0;
        loop {
            match data.get(at) {
                Some(b' ' | b'\r' | b'\n') => at += 1,
                Some(b'#') => match data[at..].iter().position(|b| is_line_end(*b)) {
                    Some(end) => at += end,
                    None if at_end => return Some(data.len()),
                    None => return None,
                },
                _ => return Some(at),
            }
        }
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Tells records apart: a line feed between quotes does not end one.
#[derive(Debug)]
pub(super) struct CsvSplitter {
    dialect: Dialect,
}

impl CsvSplitter {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect }
    }

    /// Where the record that begins at `start` ends; `None` when `data` ends before it.
    fn end(&self, data: &[u8], start: usize) -> Option<usize> {
        let dialect = &self.dialect;
        let special = |byte: u8| {
            byte == b'\r'
                || dialect.quote.as_ref().is_some_and(|q| q[0] == byte)
                || dialect.escape.as_ref().is_some_and(|e| e[0] == byte)
        };
        let line = memchr::memchr(b'\n', &data[start..]).map(|i| start + i);
        let plain_end = line.unwrap_or(data.len());
        if !data[start..plain_end].iter().any(|b| special(*b)) {
            return line;
        }
        let mut at = dialect.skip_blanks(data, start);
        loop {
            if dialect.is_quote(data.get(at..)?) {
                at = self.end_of_quoted(data, at)?;
            }
            loop {
                let rest = data.get(at..).filter(|r| !r.is_empty())?;
                if is_line_end(rest[0]) {
                    return Some(at);
                } else if dialect.is_escape(rest) {
                    at += dialect.escape.as_ref().map_or(1, Vec::len) + 1;
                } else if rest.starts_with(&dialect.delimiter) {
                    at += dialect.delimiter.len();
                    break;
                } else {
                    at += 1;
                }
            }
            at = dialect.skip_blanks(data, at);
        }
    }

    /// Where a field that begins with a quote at `at` ends, behind its closing quote.
    fn end_of_quoted(&self, data: &[u8], at: usize) -> Option<usize> {
        let dialect = &self.dialect;
        let width = dialect.quote.as_ref().map_or(1, Vec::len);
        let mut at = at + width;
        loop {
            let rest = data.get(at..).filter(|r| !r.is_empty())?;
            if dialect.is_escape(rest) {
                at += dialect.escape.as_ref().map_or(1, Vec::len) + 1;
            } else if dialect.is_quote(rest) {
                at += width;
                if !dialect.is_quote(data.get(at..)?) {
                    return Some(at);
                }
                at += width;
            } else {
                at += 1;
            }
        }
    }
}

impl Splitter for CsvSplitter {
    fn next(&mut self, data: &[u8], at_end: bool) -> Option<Cut> {
        let start = self.dialect.skip_comments(data, at_end)?;
        if start >= data.len() {
            return None;
        }
        let Some(end) = self.end(data, start) else {
            return at_end.then_some(Cut {
                record: start..data.len(),
                next: data.len(),
            });
        };
        let mut next = end + 1;
        if data[end] == b'\r' {
            match data.get(next) {
                Some(b'\n') => next += 1,
                None if !at_end => return None,
                _ => {}
            }
        }
        Some(Cut {
            record: start..end,
            next,
        })
    }
}

/// The fields of one record. Memory is used again for the next.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// The text of fields that are not as they stand in the record.
    text: Vec<u8>,
    spans: Vec<Span>,
}

#[derive(Debug, Clone)]
struct Span {
    range: Range<usize>,
    /// Whether the range is one of `text`, not of the record.
    is_copy: bool,
}

impl Fields {
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The text of field `i` of `record`, which was [`parse`](Self::parse)d last.
    pub(super) fn get<'a>(&'a self, record: &'a [u8], i: usize) -> Option<&'a [u8]> {
        let span = self.spans.get(i)?;
        let source = if span.is_copy { &self.text } else { record };
        source.get(span.range.clone())
    }

    /// Finds the fields of `record`. An empty record has one empty field.
    ///
    /// # Errors
    /// With the reason, when a quote is not closed or text follows a closing quote.
    pub(super) fn parse(&mut self, record: &[u8], dialect: &Dialect) -> Result<(), String> {
        self.text.clear();
        self.spans.clear();
        let mut at = 0;
        loop {
            at = dialect.skip_blanks(record, at);
            at = if dialect.is_quote(&record[at..]) {
                self.quoted(record, at, dialect)?
            } else {
                self.plain(record, at, dialect)
            };
            if at >= record.len() {
                return Ok(());
            }
            // A delimiter stands here.
            at += dialect.delimiter.len();
            if at >= record.len() {
                let end = record.len();
                self.push(end..end, false);
                return Ok(());
            }
        }
    }

    fn push(&mut self, range: Range<usize>, is_copy: bool) {
        self.spans.push(Span { range, is_copy });
    }

    /// Takes a field without quotes; the answer is where its delimiter stands.
    fn plain(&mut self, record: &[u8], start: usize, dialect: &Dialect) -> usize {
        let mut at = start;
        let copy_from = self.text.len();
        let mut copied = start;
        let mut is_copy = false;
        while at < record.len() {
            let rest = &record[at..];
            if rest.starts_with(&dialect.delimiter) {
                break;
            }
            if dialect.is_escape(rest) {
                is_copy = true;
                self.text.extend_from_slice(&record[copied..at]);
                at = self.escaped(record, at, dialect);
                copied = at;
            } else {
                at += 1;
            }
        }
        if is_copy {
            self.text.extend_from_slice(&record[copied..at]);
        }
        let source = if is_copy { &self.text[..] } else { record };
        let first = if is_copy { copy_from } else { start };
        let mut end = if is_copy { self.text.len() } else { at };
        while dialect.trim && end > first && source[end - 1] <= b' ' {
            end -= 1;
        }
        self.push(first..end, is_copy);
        at
    }

    /// Takes a field in quotes; the answer is where its delimiter stands.
    fn quoted(&mut self, record: &[u8], start: usize, dialect: &Dialect) -> Result<usize, String> {
        let width = dialect.quote.as_ref().map_or(1, Vec::len);
        let copy_from = self.text.len();
        let mut at = start + width;
        let mut copied = at;
        let end = loop {
            let rest = &record[at..];
            if rest.is_empty() {
                return Err("missing closing quote for value".into());
            }
            if dialect.is_escape(rest) {
                self.text.extend_from_slice(&record[copied..at]);
                at = self.escaped(record, at, dialect);
                copied = at;
            } else if dialect.is_quote(rest) {
                let behind = at + width;
                if !dialect.is_quote(&record[behind..]) {
                    break at;
                }
                self.text.extend_from_slice(&record[copied..behind]);
                at = behind + width;
                copied = at;
            } else {
                at += 1;
            }
        };
        if copied == start + width {
            self.push(copied..end, false);
        } else {
            self.text.extend_from_slice(&record[copied..end]);
            self.push(copy_from..self.text.len(), true);
        }
        at = end + width;
        while at < record.len() && !record[at..].starts_with(&dialect.delimiter) {
            if record[at] > b' ' {
                let rest = String::from_utf8_lossy(&record[at..]);
                let found = rest.chars().next().unwrap_or(' ');
                return Err(format!(
                    "unexpected character '{found}' after a closing quote: a column separator is expected"
                ));
            }
            at += 1;
        }
        Ok(at)
    }

    /// Takes what the escape character at `at` makes of the next one.
    fn escaped(&mut self, record: &[u8], at: usize, dialect: &Dialect) -> usize {
        let at = at + dialect.escape.as_ref().map_or(1, Vec::len);
        let Some(byte) = record.get(at) else {
            return at;
        };
        self.text.push(match byte {
            b'0' => 0,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            other => *other,
        });
        at + 1
    }
}
