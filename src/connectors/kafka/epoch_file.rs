//! The records of an epoch as bytes of a checkpoint.
//!
//! ```text
//! zstd( record* )      record = topic, key, value, timestamp, headers
//! text = length + 1 (LEB128), bytes; 0: there is none
//! timestamp = flag, 8 bytes if 1; headers = number (LEB128), then a key and a value each
//! ```

use super::encode::OutRecord;
use crate::error::{Error, Result};

/// zstd's quickest level that still halves JSON.
const LEVEL: i32 = 1;

/// Collects records.
#[derive(Debug, Default)]
pub(super) struct EpochWriter {
    data: Vec<u8>,
}

impl EpochWriter {
    pub(super) fn put(&mut self, record: &OutRecord<'_>) -> Result<()> {
        let data = &mut self.data;
        text(data, Some(record.topic.as_bytes()));
        text(data, record.key);
        text(data, record.value);
        match record.timestamp {
            Some(ms) => {
                data.push(1);
                data.extend_from_slice(&ms.to_le_bytes());
            }
            None => data.push(0),
        }
        number(data, record.headers.len() as u64);
        for (key, value) in record.headers {
            text(data, Some(key.as_bytes()));
            text(data, Some(value));
        }
        Ok(())
    }

    /// All records since the last call.
    pub(super) fn finish(&mut self) -> Result<Vec<u8>> {
        let data = std::mem::take(&mut self.data);
        if data.is_empty() {
            return Ok(data);
        }
        zstd::encode_all(data.as_slice(), LEVEL)
            .map_err(|e| Error::internal(format!("records cannot be compressed: {e}")))
    }
}

fn number(data: &mut Vec<u8>, mut n: u64) {
    loop {
        let low = u8::try_from(n & 0x7f).unwrap_or(0);
        n >>= 7;
        if n == 0 {
            data.push(low);
            return;
        }
        data.push(low | 0x80);
    }
}

fn text(data: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            number(data, bytes.len() as u64 + 1);
            data.extend_from_slice(bytes);
        }
        None => data.push(0),
    }
}

/// The records of a checkpoint.
#[derive(Debug)]
pub(super) struct EpochRecords {
    data: Vec<u8>,
}

impl EpochRecords {
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Ok(Self { data: Vec::new() });
        }
        let data = zstd::decode_all(bytes);
        let data =
            data.map_err(|e| Error::checkpoint(format!("damaged records of a sink: {e}")))?;
        Ok(Self { data })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Hands every record to `out`.
    pub(super) fn for_each(&self, out: &mut dyn FnMut(&OutRecord<'_>) -> Result<()>) -> Result<()> {
        let mut rest = self.data.as_slice();
        let mut headers = Vec::new();
        while !rest.is_empty() {
            let record = next(&mut rest, &mut headers);
            let (topic, key, value, timestamp) =
                record.ok_or_else(|| Error::checkpoint("damaged records of a sink"))?;
            out(&OutRecord {
                topic,
                key,
                value,
                timestamp,
                headers: &headers,
            })?;
        }
        Ok(())
    }
}

type Parts<'a> = (&'a str, Option<&'a [u8]>, Option<&'a [u8]>, Option<i64>);

fn next<'a>(rest: &mut &'a [u8], headers: &mut Vec<(String, Vec<u8>)>) -> Option<Parts<'a>> {
    let topic = std::str::from_utf8(take_text(rest)??).ok()?;
    let key = take_text(rest)?;
    let value = take_text(rest)?;
    let timestamp = match take(rest, 1)? {
        [0] => None,
        _ => Some(i64::from_le_bytes(take(rest, 8)?.try_into().ok()?)),
    };
    headers.clear();
    for _ in 0..take_number(rest)? {
        let key = std::str::from_utf8(take_text(rest)??).ok()?;
        headers.push((key.to_string(), take_text(rest)??.to_vec()));
    }
    Some((topic, key, value, timestamp))
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(taken)
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut n = 0_u64;
    for shift in (0..63).step_by(7) {
        let byte = *take(rest, 1)?.first()?;
        n |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

/// `Some(None)` for a text that is not there, `None` when the bytes end.
#[allow(clippy::option_option)]
fn take_text<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    match take_number(rest)? {
        0 => Some(None),
        n => take(rest, usize::try_from(n - 1).ok()?).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(records: &EpochRecords) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        records.for_each(&mut |r| {
            lines.push(format!("{r:?}"));
            Ok(())
        })?;
        Ok(lines)
    }

    #[test]
    fn records_are_read_back() {
        let headers = [("h".to_string(), vec![0, 255])];
        let long = vec![7; 300];
        let records = [
            OutRecord {
                topic: "t",
                key: Some(b""),
                value: None,
                timestamp: Some(-5),
                headers: &headers,
            },
            OutRecord {
                topic: "other",
                key: None,
                value: Some(&long),
                timestamp: None,
                headers: &[],
            },
        ];
        let mut writer = EpochWriter::default();
        for record in &records {
            writer.put(record).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let again = EpochRecords::read(&bytes).unwrap();
        let expected: Vec<String> = records.iter().map(|r| format!("{r:?}")).collect();
        assert_eq!(lines(&again).unwrap(), expected);
        assert!(writer.finish().unwrap().is_empty());
    }

    #[test]
    fn damage_is_an_error() {
        assert!(EpochRecords::read(b"nonsense").is_err());
        for data in [vec![5, 1], vec![2, b't', 0, 0, 1, 9], vec![0x80; 40]] {
            assert!(lines(&EpochRecords { data }).is_err());
        }
    }
}
