//! `BITMAP` values: sets of 32-bit integers as bytes in the portable form of RoaringBitmap, which
//! Java, C and Go read too.
//!
//! The same set is always the same bytes (no run containers), so that equal bitmaps compare, group
//! and hash as equal columns of bytes do.

use std::fmt::Write;

use roaring::RoaringBitmap;

use crate::error::{Error, Result};

/// The text of a bitmap ends with `...` beyond this many bytes, as Java's does.
const MAX_TEXT: usize = 0x8_0000;

/// The set that a value of `BITMAP` holds.
///
/// # Errors
/// When the bytes are no bitmap: a fault of whoever made the column.
pub fn read(value: &[u8]) -> Result<RoaringBitmap> {
    RoaringBitmap::deserialize_from(value)
        .map_err(|e| Error::internal(format!("a BITMAP column holds no bitmap: {e}")))
}

/// The set in bytes from outside, which may have run containers.
///
/// # Errors
/// When the bytes are no bitmap in the portable form.
pub fn parse(bytes: &[u8]) -> Result<RoaringBitmap> {
    RoaringBitmap::deserialize_from(bytes).map_err(|e| {
        Error::execution(format!(
            "{} bytes are no bitmap in RoaringBitmap's portable form: {e}",
            bytes.len()
        ))
        .hint("BITMAP_TO_BYTES makes them, as does serialize() in Java, C and Go")
    })
}

/// Appends the value of `BITMAP` for a set.
///
/// # Errors
/// Never: memory takes all bytes.
pub fn append(mut set: RoaringBitmap, out: &mut Vec<u8>) -> Result<()> {
    set.remove_run_compression();
    set.serialize_into(out)
        .map_err(|e| Error::internal(format!("a bitmap cannot be written: {e}")))
}

/// The value of `BITMAP` for a set.
///
/// # Errors
/// Never, as [`append`].
pub fn to_bytes(set: RoaringBitmap) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(set.serialized_size());
    append(set, &mut bytes)?;
    Ok(bytes)
}

/// Appends `{1,2,4294967295}`: the integers without sign, ascending.
pub fn write(value: &[u8], out: &mut String) {
    let start = out.len();
    out.push('{');
    for (i, member) in RoaringBitmap::deserialize_from(value)
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        if i > 0 {
            out.push(',');
            if out.len() - start > MAX_TEXT {
                out.push_str("...");
                break;
            }
        }
        // a String takes all text
        let _ = write!(out, "{member}");
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten members from 0 on as one run.
    const RUN: [u8; 15] = [0x3B, 0x30, 0, 0, 1, 0, 0, 9, 0, 1, 0, 0, 0, 9, 0];

    #[test]
    fn the_same_set_is_the_same_bytes() {
        let run = parse(&RUN).expect("a bitmap of Java's");
        let plain: RoaringBitmap = (0..10).collect();
        let (run, plain) = (
            to_bytes(run).expect("bytes"),
            to_bytes(plain).expect("bytes"),
        );
        assert_eq!(run, plain);
        assert_eq!(run[0], 0x3A);
    }

    #[test]
    fn members_print_without_sign() {
        let set: RoaringBitmap = [7, u32::MAX, 0].into_iter().collect();
        let mut text = String::new();
        write(&to_bytes(set).expect("bytes"), &mut text);
        assert_eq!(text, "{0,7,4294967295}");
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in [&[][..], &[0], b"abcdefgh", &RUN[..12]] {
            assert!(parse(bytes).is_err(), "{bytes:?}");
        }
    }
}
