//! Hashes, Base64, character sets.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use datafusion::common::ScalarValue;
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::Kernel;
use super::builtin::{Builtin, Resolve::Forms};
use super::kernel::{Bytes, Call, Int, Text, arrays, collect_bytes};
use super::signature::{Param, Returns};
use crate::error::{Error, Result};
use crate::types::TypeKind;

/// Text or bytes, as bytes.
const TEXT_OR_BYTES: &[&[Param]] = &[&[Param::Text], &[Param::Binary]];

/// A hash function.
macro_rules! hash {
    ($name:literal, $hash:ty, $length:literal, $example:literal) => {
        Builtin::new(
            $name,
            concat!($name, "(s STRING | BYTES)"),
            concat!("The ", $name, " hash in hexadecimal digits."),
            Forms(TEXT_OR_BYTES, Returns::Strict(TypeKind::Char($length))),
            |call| {
                Ok(bytes_to_text(call, |bytes, out| {
                    digest::<$hash>(bytes, out)
                }))
            },
        )
        .example(concat!($name, "('abc')"), $example)
    };
}

pub(super) static FUNCTIONS: &[Builtin] = &[
    hash!("MD5", Md5, 32, "900150983cd24fb0d6963f7d28e17f72"),
    hash!("SHA1", Sha1, 40, "a9993e364706816aba3e25717850c26c9cd0d89d"),
    hash!(
        "SHA224",
        Sha224,
        56,
        "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"
    ),
    hash!(
        "SHA256",
        Sha256,
        64,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    ),
    hash!(
        "SHA384",
        Sha384,
        96,
        "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
    ),
    hash!(
        "SHA512",
        Sha512,
        128,
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
    ),
    Builtin::new(
        "SHA2",
        "SHA2(s STRING | BYTES, bits INT)",
        "The SHA-2 hash of 224, 256, 384 or 512 bits in hexadecimal digits.",
        Forms(
            &[&[Param::Text, Param::Int], &[Param::Binary, Param::Int]],
            Returns::Strict(TypeKind::VarChar(128)),
        ),
        prepare_sha2,
    )
    .may_fail()
    .example(
        "SHA2('abc', 224)",
        "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7",
    ),
    Builtin::new(
        "TO_BASE64",
        "TO_BASE64(s STRING | BYTES)",
        "The bytes in Base64.",
        Forms(TEXT_OR_BYTES, Returns::Strict(TypeKind::STRING)),
        |call| Ok(bytes_to_text(call, |bytes, out| STANDARD.encode_string(bytes, out))),
    )
    .example("TO_BASE64('abc')", "YWJj"),
    Builtin::new(
        "FROM_BASE64",
        "FROM_BASE64(s STRING)",
        "The text that the Base64 stands for; fails on anything else.",
        Forms(TEXT_OR_BYTES, Returns::Strict(TypeKind::STRING)),
        |call| {
            Ok(bytes_to_fallible_text(call, |bytes, out| {
                let decoded = LENIENT.decode(bytes).map_err(|e| not_base64(bytes, &e))?;
                out.push_str(&String::from_utf8_lossy(&decoded));
                Ok(())
            }))
        },
    )
    .may_fail()
    .example("FROM_BASE64('YWJj')", "abc"),
    Builtin::new(
        "ENCODE",
        "ENCODE(s STRING, charset STRING)",
        "The bytes of the text in a character set: US-ASCII, ISO-8859-1, UTF-8, UTF-16, UTF-16BE, UTF-16LE.",
        Forms(&[&[Param::Text, Param::Text]], Returns::Strict(TypeKind::BYTES)),
        |call| {
            let charsets = Charsets::of(call, 1)?;
            Ok(arrays(move |c, _| {
                let (s, name) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
                collect_bytes(c.rows, c.nulls().as_ref(), |i, out| {
                    charsets.get(name.value(i))?.encode(s.value(i), out);
                    Ok(Some(()))
                })
            }))
        },
    )
    .may_fail()
    .example("DECODE(ENCODE('é', 'UTF-16'), 'UTF-16')", "é"),
    Builtin::new(
        "DECODE",
        "DECODE(b BYTES, charset STRING)",
        "The text of bytes in a character set: US-ASCII, ISO-8859-1, UTF-8, UTF-16, UTF-16BE, UTF-16LE.",
        Forms(&[&[Param::Binary, Param::Text]], Returns::Strict(TypeKind::STRING)),
        |call| {
            let charsets = Charsets::of(call, 1)?;
            Ok(call.text2::<Bytes, Text, _>(move |bytes, name, out| -> Result<()> {
                charsets.get(name)?.decode(bytes, out);
                Ok(())
            }))
        },
    )
    .may_fail()
    .example("DECODE(x'61', 'UTF-8')", "a"),
];

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn not_base64(bytes: &[u8], error: &base64::DecodeError) -> Error {
    Error::execution(match error {
        base64::DecodeError::InvalidByte(_, byte) => format!("Illegal base64 character {byte:x}"),
        other => format!(
            "'{}' is not Base64: {other}",
            String::from_utf8_lossy(bytes)
        ),
    })
}

/// A kernel of the bytes of a text or binary argument.
fn bytes_to_text(call: &Call<'_>, f: fn(&[u8], &mut String)) -> Kernel {
    if call.kind(0).is_string() {
        return call.text1::<Text, _>(move |s, out| f(s.as_bytes(), out));
    }
    call.text1::<Bytes, _>(f)
}

fn bytes_to_fallible_text(call: &Call<'_>, f: fn(&[u8], &mut String) -> Result<()>) -> Kernel {
    if call.kind(0).is_string() {
        return call.text1::<Text, Result<()>>(move |s, out| f(s.as_bytes(), out));
    }
    call.text1::<Bytes, Result<()>>(f)
}

fn digest<H: Digest>(bytes: &[u8], out: &mut String) {
    for byte in H::digest(bytes) {
        let _ = write!(out, "{byte:02x}");
    }
}

fn sha2(bits: i32) -> Result<fn(&[u8], &mut String)> {
    Ok(match bits {
        224 => digest::<Sha224>,
        256 => digest::<Sha256>,
        384 => digest::<Sha384>,
        512 => digest::<Sha512>,
        _ => {
            return Err(Error::execution("Unsupported algorithm.")
                .hint("SHA2 computes hashes of 224, 256, 384 or 512 bits"));
        }
    })
}

fn prepare_sha2(call: &Call<'_>) -> Result<Kernel> {
    if let Some(ScalarValue::Int32(Some(bits))) = call.args[1].literal {
        sha2(bits)?;
    }
    Ok(if call.kind(0).is_string() {
        call.text2::<Text, Int, Result<()>>(|s, bits, out| {
            sha2(bits)?(s.as_bytes(), out);
            Ok(())
        })
    } else {
        call.text2::<Bytes, Int, Result<()>>(|bytes, bits, out| {
            sha2(bits)?(bytes, out);
            Ok(())
        })
    })
}

/// A character set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    /// One byte a character, of the first so many; others become `?`.
    Bytes(u32),
    Utf8,
    /// Two bytes a unit, the high one first.
    Utf16Be,
    Utf16Le,
    /// As `Utf16Be` with a byte order mark.
    Utf16,
}

impl Charset {
    fn from_name(name: &str) -> Result<Self> {
        Ok(match name.to_ascii_uppercase().as_str() {
            "US-ASCII" | "ASCII" | "ASCII7" | "ISO646-US" | "646" => Self::Bytes(0x80),
            "ISO-8859-1" | "ISO8859-1" | "ISO8859_1" | "ISO_8859-1" | "ISO_8859_1" | "LATIN1"
            | "L1" => Self::Bytes(0x100),
            "UTF-8" | "UTF8" => Self::Utf8,
            "UTF-16" | "UTF16" | "UTF_16" => Self::Utf16,
            "UTF-16BE" | "UTF_16BE" => Self::Utf16Be,
            "UTF-16LE" | "UTF_16LE" => Self::Utf16Le,
            _ => {
                return Err(
                    Error::execution(format!("Unsupported encoding: {name}")).hint(
                        "supported are US-ASCII, ISO-8859-1, UTF-8, UTF-16, UTF-16BE and UTF-16LE",
                    ),
                );
            }
        })
    }

    fn encode(self, s: &str, out: &mut Vec<u8>) {
        match self {
            Self::Utf8 => out.extend_from_slice(s.as_bytes()),
            Self::Bytes(limit) => out.extend(s.chars().map(|c| match u32::from(c) {
                code if code < limit => code as u8,
                _ => b'?',
            })),
            Self::Utf16Be => out.extend(s.encode_utf16().flat_map(u16::to_be_bytes)),
            Self::Utf16Le => out.extend(s.encode_utf16().flat_map(u16::to_le_bytes)),
            Self::Utf16 if s.is_empty() => {}
            Self::Utf16 => {
                out.extend([0xFE, 0xFF]);
                Self::Utf16Be.encode(s, out);
            }
        }
    }

    fn decode(self, bytes: &[u8], out: &mut String) {
        let units = |bytes: &[u8], unit: fn([u8; 2]) -> u16, out: &mut String| {
            let pairs = bytes.chunks_exact(2);
            let odd = !pairs.remainder().is_empty();
            let units = pairs.map(|pair| unit([pair[0], pair[1]]));
            out.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
            if odd {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        };
        match self {
            Self::Utf8 => out.push_str(&String::from_utf8_lossy(bytes)),
            Self::Bytes(limit) => out.extend(bytes.iter().map(|b| {
                if u32::from(*b) < limit {
                    char::from(*b)
                } else {
                    char::REPLACEMENT_CHARACTER
                }
            })),
            Self::Utf16Be => units(bytes, u16::from_be_bytes, out),
            Self::Utf16Le => units(bytes, u16::from_le_bytes, out),
            Self::Utf16 => match bytes {
                [0xFE, 0xFF, rest @ ..] => units(rest, u16::from_be_bytes, out),
                [0xFF, 0xFE, rest @ ..] => units(rest, u16::from_le_bytes, out),
                bytes => units(bytes, u16::from_be_bytes, out),
            },
        }
    }
}

/// The character sets of an argument.
struct Charsets(Option<Charset>);

impl Charsets {
    fn of(call: &Call<'_>, arg: usize) -> Result<Self> {
        Ok(Self(
            call.text_literal(arg).map(Charset::from_name).transpose()?,
        ))
    }

    fn get(&self, name: &str) -> Result<Charset> {
        self.0.map_or_else(|| Charset::from_name(name), Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::{args, call, check, check_type};

    #[test]
    fn hashes_are_of_the_bytes() {
        check("MD5", args!["abc"], "900150983cd24fb0d6963f7d28e17f72");
        check_type("MD5", args!["abc"], "CHAR(32) NOT NULL");
        check(
            "SHA1",
            args![""],
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        );
        check_type("SHA2", args!["a", 256], "VARCHAR(128) NOT NULL");
        assert!(call("SHA2", args!["a", 100]).is_err());
    }

    #[test]
    fn base64_may_lack_padding_but_not_more() {
        check("FROM_BASE64", args!["YWI"], "ab");
        check("TO_BASE64", args!["ü x&y=1/2"], "w7wgeCZ5PTEvMg==");
        let error = call("FROM_BASE64", args!["!!!"]).expect_err("no Base64");
        assert_eq!(error.message(), "Illegal base64 character 21");
    }

    #[test]
    fn character_sets_round_trip() {
        for name in ["UTF-8", "utf-16", "UTF-16BE", "UTF-16LE"] {
            let charset = Charset::from_name(name).expect("a character set");
            let (mut bytes, mut text) = (Vec::new(), String::new());
            charset.encode("é😀", &mut bytes);
            charset.decode(&bytes, &mut text);
            assert_eq!(text, "é😀", "{name}");
        }
        check("ENCODE", args!["é", "US-ASCII"], "3f");
        check("ENCODE", args!["é😀", "UTF-16"], "feff00e9d83dde00");
        assert!(call("ENCODE", args!["a", "NOPE"]).is_err());
    }
}
