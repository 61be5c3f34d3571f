//! Functions that make a text of a text. Positions and lengths count Unicode code points, from 1;
//! those of `LPAD` and `RPAD` count UTF-16 units, as in Flink.

use super::builtin::{
    Builtin,
    Resolve::{Custom, Forms},
};
use super::kernel::{BigInt, Bytes, Call, Int, Text, arrays, collect_bytes, collect_text};
use super::signature::{Param, Returns, any_nullable, match_forms, varying};
use super::utf16;
use super::{Arg, Kernel, Signature};
use crate::error::{Error, Result};
use crate::types::data_type::MAX_LENGTH;
use crate::types::{DataType, TypeKind};

/// The longest text that a function makes.
const MAX_BYTES: usize = 1 << 28;

/// `VARCHAR` of the first argument's length, NULL or not.
fn maybe_shorter(args: &[DataType]) -> DataType {
    super::signature::varying(&args[0].kind).nullable()
}

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "UPPER",
        "UPPER(s STRING)",
        "The text in upper case.",
        Forms(&[&[Param::Text]], Returns::First),
        |call| Ok(call.text1::<Text, _>(|s, out| recase(s, out, str::to_uppercase, |b| b.make_ascii_uppercase()))),
    )
    .example("UPPER('flink')", "FLINK"),
    Builtin::new(
        "LOWER",
        "LOWER(s STRING)",
        "The text in lower case.",
        Forms(&[&[Param::Text]], Returns::First),
        |call| Ok(call.text1::<Text, _>(|s, out| recase(s, out, str::to_lowercase, |b| b.make_ascii_lowercase()))),
    )
    .example("LOWER('FLINK')", "flink"),
    Builtin::new(
        "INITCAP",
        "INITCAP(s STRING)",
        "The text with the first letter of each word in upper case, the others in lower case. Words are made of ASCII letters and digits.",
        Forms(&[&[Param::Text]], Returns::First),
        |call| Ok(call.text1::<Text, _>(initcap)),
    )
    .example("INITCAP('two words')", "Two Words"),
    Builtin::new(
        "REVERSE",
        "REVERSE(s STRING)",
        "The characters in reverse order.",
        Forms(&[&[Param::Text]], Returns::Nullable(TypeKind::STRING)),
        |call| Ok(call.text1::<Text, _>(|s, out| out.extend(s.chars().rev()))),
    )
    .example("REVERSE('abc')", "cba"),
    Builtin::new(
        "TRIM",
        "TRIM([BOTH | LEADING | TRAILING] [chars] FROM s)\nTRIM(s STRING)",
        "The text without the given characters (blanks by default) at its ends.",
        Custom(resolve_trim),
        prepare_trim,
    )
    .example("TRIM(BOTH 'x' FROM 'xxaxx')", "a"),
    Builtin::new(
        "LTRIM",
        "LTRIM(s STRING [, chars STRING])",
        "The text without the given characters (blanks by default) at its start.",
        Forms(&[&[Param::Text], &[Param::Text, Param::Text]], Returns::FirstVarying),
        |call| Ok(trim(call, true, false)),
    )
    .example("LTRIM('  a ')", "a "),
    Builtin::new(
        "RTRIM",
        "RTRIM(s STRING [, chars STRING])",
        "The text without the given characters (blanks by default) at its end.",
        Forms(&[&[Param::Text], &[Param::Text, Param::Text]], Returns::FirstVarying),
        |call| Ok(trim(call, false, true)),
    )
    .example("RTRIM('  a ')", "  a"),
    Builtin::new(
        "BTRIM",
        "BTRIM(s STRING [, chars STRING])",
        "The text without the given characters (blanks by default) at both ends.",
        Forms(
            &[&[Param::Text], &[Param::Text, Param::Text]],
            Returns::Strict(TypeKind::STRING),
        ),
        |call| Ok(trim(call, true, true)),
    )
    .null_from(0)
    .example("BTRIM('  a ')", "a"),
    SUBSTRING,
    SUBSTRING.alias("SUBSTR", "SUBSTR(s STRING, from INT [, length INT])"),
    Builtin::new(
        "LEFT",
        "LEFT(s STRING, n INT)",
        "The first n characters.",
        Forms(&[&[Param::Text, Param::Int]], Returns::By(maybe_shorter)),
        |call| {
            Ok(call.text2::<Text, Int, _>(|s, n, out| {
                out.push_str(&s[..char_offset(s, usize::try_from(n).unwrap_or(0))]);
            }))
        },
    )
    .example("`LEFT`('abcd', 2)", "ab"),
    Builtin::new(
        "RIGHT",
        "RIGHT(s STRING, n INT)",
        "The last n characters.",
        Forms(&[&[Param::Text, Param::Int]], Returns::By(maybe_shorter)),
        |call| {
            Ok(call.text2::<Text, Int, _>(|s, n, out| {
                let skip = s.chars().count().saturating_sub(usize::try_from(n).unwrap_or(0));
                out.push_str(&s[char_offset(s, skip)..]);
            }))
        },
    )
    .example("`RIGHT`('abcd', 2)", "cd"),
    Builtin::new(
        "OVERLAY",
        "OVERLAY(s PLACING r FROM start [FOR length])",
        "The text with length characters from start on replaced by r; by default as many as r has.",
        Custom(resolve_overlay),
        |call| {
            Ok(if call.args.len() == 4 {
                overlay::<true>()
            } else {
                overlay::<false>()
            })
        },
    )
    .example("OVERLAY('abcdef' PLACING 'XX' FROM 2 FOR 3)", "aXXef"),
    Builtin::new(
        "LPAD",
        "LPAD(s STRING, length INT, pad STRING)",
        "The text filled up on the left to the length, or cut to it; NULL if the length is negative or the padding empty.",
        Forms(
            &[&[Param::Text, Param::Int, Param::Text]],
            Returns::Strict(TypeKind::STRING),
        ),
        |call| Ok(call.text3::<Text, Int, Text, _>(|s, n, pad, out| pad_to(s, n, pad, true, out))),
    )
    .example("LPAD('7', 3, '0')", "007"),
    Builtin::new(
        "RPAD",
        "RPAD(s STRING, length INT, pad STRING)",
        "The text filled up on the right to the length, or cut to it; NULL if the length is negative or the padding empty.",
        Forms(
            &[&[Param::Text, Param::Int, Param::Text]],
            Returns::Strict(TypeKind::STRING),
        ),
        |call| Ok(call.text3::<Text, Int, Text, _>(|s, n, pad, out| pad_to(s, n, pad, false, out))),
    )
    .example("RPAD('7', 3, '-')", "7--"),
    Builtin::new(
        "REPEAT",
        "REPEAT(s STRING, n INT)",
        "The text n times.",
        Forms(&[&[Param::Text, Param::Int]], Returns::Strict(TypeKind::STRING)),
        |call| {
            Ok(call.text2::<Text, Int, _>(|s, n, out| -> Result<()> {
                let n = usize::try_from(n).unwrap_or(0);
                too_long(s.len().saturating_mul(n))?;
                (0..n).for_each(|_| out.push_str(s));
                Ok(())
            }))
        },
    )
    .example("REPEAT('ab', 3)", "ababab"),
    Builtin::new(
        "REPLACE",
        "REPLACE(s STRING, search STRING, replacement STRING)",
        "The text with every occurrence of search replaced.",
        Forms(
            &[&[Param::Text, Param::Text, Param::Text]],
            Returns::Strict(TypeKind::STRING),
        ),
        |call| {
            Ok(call.text3::<Text, Text, Text, _>(|s, search, with, out| {
                let mut start = 0;
                for (at, found) in s.match_indices(search) {
                    out.push_str(&s[start..at]);
                    out.push_str(with);
                    start = at + found.len();
                }
                out.push_str(&s[start..]);
            }))
        },
    )
    .example("REPLACE('banana', 'an', 'x')", "bxxa"),
    TRANSLATE,
    TRANSLATE.alias("TRANSLATE3", "TRANSLATE3(s STRING, from STRING, to STRING)"),
    Builtin::new(
        "CONCAT",
        "CONCAT(s STRING [, ...])",
        "The texts one after the other; NULL if one is NULL.",
        Forms(
            &[&[Param::Text, Param::Rest(&Param::Text)]],
            Returns::Strict(TypeKind::STRING),
        ),
        |call| {
            let count = call.args.len();
            Ok(arrays(move |c, _| {
                let parts = c.each::<Text>(0..count)?;
                collect_text(c.rows, c.nulls().as_ref(), |i, out| {
                    parts.iter().for_each(|part| out.push_str(part.value(i)));
                    Ok(Some(()))
                })
            }))
        },
    )
    .example("CONCAT('a', 'b', 'c')", "abc"),
    Builtin::new(
        "CONCAT_WS",
        "CONCAT_WS(separator STRING, s STRING [, ...])",
        "The texts that are not NULL with the separator between them.",
        Forms(
            &[&[Param::Text, Param::Rest(&Param::Text)]],
            Returns::Strict(TypeKind::STRING),
        ),
        |call| {
            let count = call.args.len();
            Ok(arrays(move |c, _| {
                let parts = c.each::<Text>(0..count)?;
                collect_text(c.rows, c.nulls_of([0]).as_ref(), |i, out| {
                    let separator = parts[0].value(i);
                    let texts = parts[1..].iter().filter_map(|part| part.get(i));
                    for (n, text) in texts.enumerate() {
                        if n > 0 {
                            out.push_str(separator);
                        }
                        out.push_str(text);
                    }
                    Ok(Some(()))
                })
            }))
        },
    )
    .example("CONCAT_WS('-', 'a', CAST(NULL AS STRING), 'b')", "a-b"),
    Builtin::new(
        "CHR",
        "CHR(code INT)",
        "The character of a code modulo 256; '' if it is negative.",
        Forms(&[&[Param::BigInt]], Returns::Nullable(TypeKind::STRING)),
        |call| {
            Ok(call.text1::<BigInt, _>(|code, out| {
                if code >= 0 {
                    out.push(char::from((code & 0xFF) as u8));
                }
            }))
        },
    )
    .example("CHR(97)", "a"),
    Builtin::new(
        "ELT",
        "ELT(n INT, x STRING | BYTES [, ...])",
        "The n-th of the further arguments, from 1; NULL if there is none.",
        Custom(resolve_elt),
        prepare_elt,
    )
    .null_from(1)
    .example("ELT(2, 'a', 'b')", "b"),
];

const SUBSTRING: Builtin = Builtin::new(
    "SUBSTRING",
    "SUBSTRING(s FROM from [FOR length])\nSUBSTRING(s STRING, from INT [, length INT])",
    "The characters from a position on, at most length; a negative position counts from the end. NULL if the length is negative.",
    Forms(
        &[
            &[Param::Text, Param::BigInt],
            &[Param::Text, Param::BigInt, Param::BigInt],
        ],
        Returns::By(|args| varying(&args[0].kind).nullable()),
    ),
    |call| {
        Ok(if call.args.len() == 2 {
            call.text2::<Text, BigInt, _>(|s, from, out| {
                out.push_str(substring(s, from, usize::MAX));
            })
        } else {
            call.text3::<Text, BigInt, BigInt, _>(|s, from, len, out| {
                let len = usize::try_from(len).ok()?;
                out.push_str(substring(s, from, len));
                Some(())
            })
        })
    },
)
.example("SUBSTRING('abcdef' FROM 2 FOR 3)", "bcd");

const TRANSLATE: Builtin = Builtin::new(
    "TRANSLATE",
    "TRANSLATE(s STRING, from STRING, to STRING)",
    "The text with each character of from replaced by the one at the same place of to, or dropped if there is none.",
    Forms(
        &[&[Param::Text, Param::Text, Param::Text]],
        Returns::By(|args| TypeKind::STRING.with_nullable(args[0].nullable)),
    ),
    |_| {
        Ok(arrays(|c, _| {
            let (s, from, to) = (c.column::<Text>(0)?, c.column::<Text>(1)?, c.column::<Text>(2)?);
            collect_text(c.rows, c.nulls_of([0]).as_ref(), |i, out| {
                // Without `from` nothing is replaced, without `to` all of it is dropped.
                let (from, to) = (from.get(i).unwrap_or(""), to.get(i).unwrap_or(""));
                for c in s.value(i).chars() {
                    match from.chars().position(|f| f == c) {
                        None => out.push(c),
                        Some(at) => out.extend(to.chars().nth(at)),
                    }
                }
                Ok(Some(()))
            })
        }))
    },
)
.example("TRANSLATE('abcba', 'ab', 'x')", "xcx");

/// Refuses to make a text of so many bytes.
fn too_long(bytes: usize) -> Result<()> {
    if bytes > MAX_BYTES {
        return Err(Error::execution(format!(
            "a function would make a text of {bytes} bytes"
        )));
    }
    Ok(())
}

/// The offset of character `n`, or the end.
pub(super) fn char_offset(s: &str, n: usize) -> usize {
    if s.is_ascii() {
        return n.min(s.len());
    }
    s.char_indices().nth(n).map_or(s.len(), |(at, _)| at)
}

fn recase(s: &str, out: &mut String, full: fn(&str) -> String, ascii: fn(&mut str)) {
    if s.is_ascii() {
        let start = out.len();
        out.push_str(s);
        ascii(&mut out[start..]);
    } else {
        out.push_str(&full(s));
    }
}

fn initcap(s: &str, out: &mut String) {
    let mut in_word = false;
    for c in s.chars() {
        out.push(if in_word {
            c.to_ascii_lowercase()
        } else {
            c.to_ascii_uppercase()
        });
        in_word = c.is_ascii_alphanumeric();
    }
}

fn substring(s: &str, from: i64, len: usize) -> &str {
    let skip = match from {
        1.. => usize::try_from(from - 1).unwrap_or(usize::MAX),
        0 => 0,
        _ => {
            let back = usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX);
            match s.chars().count().checked_sub(back) {
                Some(skip) => skip,
                None => return "",
            }
        }
    };
    let rest = &s[char_offset(s, skip)..];
    &rest[..char_offset(rest, len)]
}

fn overlay<const LENGTH: bool>() -> Kernel {
    arrays(move |c, _| {
        let (s, r) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
        let start = c.column::<BigInt>(2)?;
        let length = if LENGTH {
            Some(c.column::<BigInt>(3)?)
        } else {
            None
        };
        collect_text(c.rows, c.nulls().as_ref(), |i, out| {
            let (s, r, start) = (s.value(i), r.value(i), start.value(i));
            let chars = s.chars().count();
            let Some(skip) = usize::try_from(start.saturating_sub(1))
                .ok()
                .filter(|at| *at < chars)
            else {
                out.push_str(s);
                return Ok(Some(()));
            };
            let length = match &length {
                Some(length) => length.value(i),
                None => r.chars().count() as i64,
            };
            out.push_str(&s[..char_offset(s, skip)]);
            out.push_str(r);
            // A length of 0 or less drops the rest, as Flink does.
            if let Some(length) = usize::try_from(length).ok().filter(|n| *n > 0) {
                out.push_str(&s[char_offset(s, skip.saturating_add(length))..]);
            }
            Ok(Some(()))
        })
    })
}

fn resolve_overlay(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    const FORMS: &[&[Param]] = &[
        &[Param::Text, Param::Text, Param::BigInt],
        &[Param::Text, Param::Text, Param::BigInt, Param::BigInt],
    ];
    let length = |args: &[DataType]| {
        let n = |i: usize| args[i].kind.length().unwrap_or(MAX_LENGTH);
        let length = n(0).saturating_add(n(1)).min(MAX_LENGTH);
        TypeKind::VarChar(length).with_nullable(any_nullable(args))
    };
    match_forms(builtin, FORMS, &Returns::By(length), args)
}

/// Fills up or cuts to `n` UTF-16 units.
fn pad_to(s: &str, n: i32, pad: &str, left: bool, out: &mut String) -> Result<Option<()>> {
    let Ok(n) = usize::try_from(n) else {
        return Ok(None);
    };
    if pad.is_empty() {
        return Ok(None);
    }
    too_long(n)?;
    let fill = n.saturating_sub(utf16::len(s));
    let padding = |out: &mut String| {
        let mut rest = fill;
        while rest > 0 {
            rest -= utf16::push_prefix(pad, rest, out);
        }
    };
    if left {
        padding(out);
    }
    utf16::push_prefix(s, n, out);
    if !left {
        padding(out);
    }
    Ok(Some(()))
}

fn trim(call: &Call<'_>, leading: bool, trailing: bool) -> Kernel {
    if call.args.len() == 1 {
        return call.text1::<Text, _>(move |s, out| {
            out.push_str(trimmed(s, " ", leading, trailing));
        });
    }
    call.text2::<Text, Text, _>(move |s, chars, out| {
        out.push_str(trimmed(s, chars, leading, trailing));
    })
}

fn trimmed<'a>(mut s: &'a str, chars: &str, leading: bool, trailing: bool) -> &'a str {
    if leading {
        s = s.trim_start_matches(|c| chars.contains(c));
    }
    if trailing {
        s = s.trim_end_matches(|c| chars.contains(c));
    }
    s
}

fn resolve_trim(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    const FORMS: &[&[Param]] = &[&[Param::Text], &[Param::Text, Param::Text, Param::Text]];
    let returns = Returns::By(|args| match args.last() {
        Some(last) => varying(&last.kind).with_nullable(any_nullable(args)),
        None => TypeKind::STRING.nullable(),
    });
    match_forms(builtin, FORMS, &returns, args)
}

fn prepare_trim(call: &Call<'_>) -> Result<Kernel> {
    if call.args.len() == 1 {
        return Ok(trim(call, true, true));
    }
    let (leading, trailing) = match call.text_literal(0) {
        Some("LEADING") => (true, false),
        Some("TRAILING") => (false, true),
        Some("BOTH") => (true, true),
        other => return Err(Error::internal(format!("TRIM of the sides {other:?}"))),
    };
    Ok(call.text3::<Text, Text, Text, _>(move |_, chars, s, out| {
        out.push_str(trimmed(s, chars, leading, trailing));
    }))
}

fn resolve_elt(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    const FORMS: &[&[Param]] = &[
        &[Param::BigInt, Param::Text, Param::Rest(&Param::Text)],
        &[Param::BigInt, Param::Binary, Param::Rest(&Param::Binary)],
    ];
    let longest = |args: &[DataType]| {
        let first = &args[1].kind;
        if args[1..].iter().all(|t| t.kind == *first) {
            return first.clone().nullable();
        }
        let length = args[1..].iter().filter_map(|t| t.kind.length()).max();
        let length = length.unwrap_or(MAX_LENGTH);
        let kind = if first.is_string() {
            TypeKind::VarChar(length)
        } else {
            TypeKind::VarBinary(length)
        };
        kind.nullable()
    };
    match_forms(builtin, FORMS, &Returns::By(longest), args)
}

fn prepare_elt(call: &Call<'_>) -> Result<Kernel> {
    let count = call.args.len();
    let pick = move |n: i64| usize::try_from(n).ok().filter(|n| (1..count).contains(n));
    if call.kind(1).is_string() {
        return Ok(arrays(move |c, _| {
            let (n, texts) = (c.column::<BigInt>(0)?, c.each::<Text>(1..count)?);
            collect_text(c.rows, c.nulls_of([0]).as_ref(), |i, out| {
                let text = pick(n.value(i)).and_then(|n| texts[n - 1].get(i));
                Ok(text.map(|text| out.push_str(text)))
            })
        }));
    }
    Ok(arrays(move |c, _| {
        let (n, values) = (c.column::<BigInt>(0)?, c.each::<Bytes>(1..count)?);
        collect_bytes(c.rows, c.nulls_of([0]).as_ref(), |i, out| {
            let value = pick(n.value(i)).and_then(|n| values[n - 1].get(i));
            Ok(value.map(|value| out.extend_from_slice(value)))
        })
    }))
}

#[cfg(test)]
mod tests;
