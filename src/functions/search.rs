//! Functions that look for something in a text, and those that take it to pieces.

use std::sync::Arc;

use arrow::array::{MapArray, StringArray, StructArray};
use arrow::datatypes::{DataType as ArrowType, Field, Fields};
use indexmap::IndexMap;

use super::builtin::{
    Builtin,
    Resolve::{Custom, Forms},
};
use super::kernel::{
    Bool, Bytes, Call, Int, Text, Texts, arrays, collect, collect_texts, columns, offsets,
};
use super::regex::Regexes;
use super::signature::{Param, Returns, any_nullable, match_forms};
use super::string::char_offset;
use super::{Arg, Kernel, Signature};
use crate::error::{Error, Result};
use crate::types::{DataType, TypeKind};

pub(super) static FUNCTIONS: &[Builtin] = &[
    CHAR_LENGTH,
    CHAR_LENGTH.alias("CHARACTER_LENGTH", "CHARACTER_LENGTH(s STRING)"),
    Builtin::new(
        "ASCII",
        "ASCII(s STRING)",
        "The first byte of the text, -128 to 127; 0 if it is empty.",
        Forms(&[&[Param::Text]], Returns::Strict(TypeKind::Int)),
        |call| {
            Ok(call.map1::<Text, Int, _>(|s| {
                s.as_bytes().first().map_or(0, |b| i32::from(b.cast_signed()))
            }))
        },
    )
    .example("ASCII('abc')", "97"),
    Builtin::new(
        "POSITION",
        "POSITION(search IN s)",
        "Where the text first occurs, from 1; 0 if it doesn't.",
        Forms(
            &[
                &[Param::Text, Param::Text],
                &[Param::Text, Param::Text, Param::Int],
            ],
            Returns::Strict(TypeKind::Int),
        ),
        locate,
    )
    .example("POSITION('na' IN 'banana')", "3"),
    Builtin::new(
        "LOCATE",
        "LOCATE(search STRING, s STRING [, from INT])",
        "Where the text first occurs at a position or later, from 1; 0 if it doesn't.",
        Forms(
            &[
                &[Param::Text, Param::Text],
                &[Param::Text, Param::Text, Param::Int],
            ],
            Returns::Strict(TypeKind::Int),
        ),
        locate,
    )
    .example("LOCATE('na', 'banana', 4)", "5"),
    Builtin::new(
        "INSTR",
        "INSTR(s STRING, search STRING [, from INT [, n INT]])",
        "Where the text occurs for the n-th time, from 1; 0 if it doesn't. A negative position searches backwards from there.",
        Forms(
            &[
                &[Param::Text, Param::Text],
                &[Param::Text, Param::Text, Param::Int],
                &[Param::Text, Param::Text, Param::Int, Param::Int],
            ],
            Returns::Strict(TypeKind::Int),
        ),
        prepare_instr,
    )
    .may_fail()
    .example("INSTR('banana', 'a', -1)", "6"),
    Builtin::new(
        "STARTSWITH",
        "STARTSWITH(s STRING | BYTES, start STRING | BYTES)",
        "Whether it starts so.",
        Forms(
            &[
                &[Param::Text, Param::Text],
                &[Param::Binary, Param::Binary],
            ],
            Returns::Strict(TypeKind::Boolean),
        ),
        |call| {
            Ok(if call.kind(0).is_binary() {
                call.map2::<Bytes, Bytes, Bool, _>(|s, start| s.starts_with(start))
            } else {
                call.map2::<Text, Text, Bool, _>(|s, start| s.starts_with(start))
            })
        },
    )
    .null_from(0)
    .example("STARTSWITH('flink', 'fl')", "true"),
    Builtin::new(
        "ENDSWITH",
        "ENDSWITH(s STRING | BYTES, end STRING | BYTES)",
        "Whether it ends so.",
        Forms(
            &[
                &[Param::Text, Param::Text],
                &[Param::Binary, Param::Binary],
            ],
            Returns::Strict(TypeKind::Boolean),
        ),
        |call| {
            Ok(if call.kind(0).is_binary() {
                call.map2::<Bytes, Bytes, Bool, _>(|s, end| s.ends_with(end))
            } else {
                call.map2::<Text, Text, Bool, _>(|s, end| s.ends_with(end))
            })
        },
    )
    .null_from(0)
    .example("ENDSWITH('flink', 'nk')", "true"),
    Builtin::new(
        "SPLIT_INDEX",
        "SPLIT_INDEX(s STRING, separator STRING | INT, i INT)",
        "Piece i, from 0, of the text split at a separator or the character of that code; NULL if there is none.",
        Forms(
            &[
                &[Param::Text, Param::Text, Param::Int],
                &[Param::Text, Param::Int, Param::Int],
            ],
            Returns::Nullable(TypeKind::STRING),
        ),
        prepare_split_index,
    )
    .example("SPLIT_INDEX('a,b,c', ',', 1)", "b"),
    Builtin::new(
        "SPLIT",
        "SPLIT(s STRING, separator STRING)",
        "The pieces of the text between the separators; its characters, if the separator is empty.",
        Forms(
            &[&[Param::Text, Param::Text]],
            Returns::By(|args| {
                TypeKind::Array(Box::new(TypeKind::STRING.nullable()))
                    .with_nullable(any_nullable(args))
            }),
        ),
        |_| {
            Ok(arrays(|c, _| {
                let (s, separator) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
                collect_texts(c.rows, c.nulls().as_ref(), |i, out| {
                    split(s.value(i), separator.value(i), out);
                    Ok(Some(()))
                })
            }))
        },
    )
    .null_from(0)
    .example("SPLIT('a,b,c', ',')", "[a, b, c]"),
    Builtin::new(
        "STR_TO_MAP",
        "STR_TO_MAP(s STRING [, pairs STRING, keys STRING])",
        "The pairs that the text lists; ',' between pairs and '=' after keys by default. The separators are regular expressions.",
        Custom(resolve_str_to_map),
        prepare_str_to_map,
    )
    .may_fail()
    .example("STR_TO_MAP('a=1,b=2')", "{a=1, b=2}"),
];

const CHAR_LENGTH: Builtin = Builtin::new(
    "CHAR_LENGTH",
    "CHAR_LENGTH(s STRING)",
    "The number of characters.",
    Forms(&[&[Param::Text]], Returns::Strict(TypeKind::Int)),
    |call| {
        Ok(call.map1::<Text, Int, _>(|s| {
            if s.is_ascii() {
                to_int(s.len())
            } else {
                to_int(s.chars().count())
            }
        }))
    },
)
.example("CHAR_LENGTH('größe')", "5");

fn to_int(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// The position, from 1, of `search` in `s` at `from` or later; an empty text is always at 1.
fn position(s: &str, search: &str, from: i64) -> Option<usize> {
    if search.is_empty() {
        return Some(1);
    }
    let skip = usize::try_from(from - 1).unwrap_or(0);
    let start = char_offset(s, skip);
    let at = start + s[start..].find(search)?;
    Some(s[..at].chars().count() + 1)
}

fn locate(call: &Call<'_>) -> Result<Kernel> {
    Ok(if call.args.len() == 2 {
        call.map2::<Text, Text, Int, _>(|search, s| to_int(position(s, search, 1).unwrap_or(0)))
    } else {
        call.map3::<Text, Text, Int, Int, _>(|search, s, from| {
            to_int(position(s, search, i64::from(from)).unwrap_or(0))
        })
    })
}

fn prepare_instr(call: &Call<'_>) -> Result<Kernel> {
    let count = call.args.len();
    let to = call.returns.to_arrow();
    Ok(columns(move |c, _| {
        let (s, search) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
        let from = (count > 2).then(|| c.column::<Int>(2)).transpose()?;
        let nth = (count > 3).then(|| c.column::<Int>(3)).transpose()?;
        collect::<Int>(c.rows, c.nulls().as_ref(), &to, |i| {
            let from = from.as_ref().map_or(1, |from| from.value(i));
            let nth = nth.as_ref().map_or(1, |nth| nth.value(i));
            instr(s.value(i), search.value(i), from, nth).map(Some)
        })
    }))
}

fn instr(s: &str, search: &str, from: i32, nth: i32) -> Result<i32> {
    if nth <= 0 {
        return Err(Error::execution("nthAppearance must be positive!"));
    }
    let forwards = |s: &str, search: &str, from: i64| {
        let mut from = from;
        let mut found = 0;
        for _ in 0..nth {
            match position(s, search, from) {
                Some(at) => found = at,
                None => return 0,
            }
            if search.is_empty() {
                break;
            }
            from = found as i64 + 1;
        }
        found
    };
    Ok(match from {
        0 => 0,
        1.. => to_int(forwards(s, search, i64::from(from))),
        _ => {
            let reversed = |s: &str| s.chars().rev().collect::<String>();
            let at = forwards(&reversed(s), &reversed(search), -i64::from(from));
            if at == 0 {
                0
            } else {
                to_int(s.chars().count() + 2 - at - search.chars().count())
            }
        }
    })
}

fn prepare_split_index(call: &Call<'_>) -> Result<Kernel> {
    if call.kind(1).is_string() {
        return Ok(call.text3::<Text, Text, Int, _>(|s, separator, i, out| {
            let i = usize::try_from(i).ok()?;
            if s.is_empty() {
                return None;
            }
            let piece = match separator.as_bytes() {
                [] => s.split(is_java_whitespace).nth(i),
                [byte] => piece(s, *byte, i),
                _ => s.split(separator).nth(i),
            };
            piece.map(|piece| out.push_str(piece))
        }));
    }
    Ok(call.text3::<Text, Int, Int, _>(|s, code, i, out| {
        let i = usize::try_from(i).ok()?;
        let code = u8::try_from(code).ok().filter(|code| *code > 0)?;
        if s.is_empty() {
            return None;
        }
        s.split(char::from(code))
            .nth(i)
            .map(|piece| out.push_str(piece))
    }))
}

/// Piece `i` of the text split at an ASCII character.
fn piece(s: &str, separator: u8, i: usize) -> Option<&str> {
    let mut rest = s;
    for _ in 0..i {
        rest = &rest[memchr::memchr(separator, rest.as_bytes())? + 1..];
    }
    let end = memchr::memchr(separator, rest.as_bytes());
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// `Character.isWhitespace`.
pub(super) fn is_java_whitespace(c: char) -> bool {
    match c {
        '\t'..='\r' | '\u{1C}'..='\u{1F}' => true,
        '\u{A0}' | '\u{2007}' | '\u{202F}' | '\u{85}' => false,
        c => c.is_whitespace(),
    }
}

fn split(s: &str, separator: &str, out: &mut Texts) {
    if s.is_empty() {
        return;
    }
    if separator.is_empty() {
        for (at, c) in s.char_indices() {
            out.push(Some(&s[at..at + c.len_utf8()]));
        }
        return;
    }
    for piece in s.split(separator) {
        out.push(Some(piece));
    }
}

fn resolve_str_to_map(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    const FORMS: &[&[Param]] = &[&[Param::Text], &[Param::Text, Param::Text, Param::Text]];
    let map = |_: &[DataType]| {
        let text = || Box::new(TypeKind::STRING.nullable());
        TypeKind::Map(text(), text()).nullable()
    };
    match_forms(builtin, FORMS, &Returns::By(map), args)
}

fn prepare_str_to_map(call: &Call<'_>) -> Result<Kernel> {
    let given = call.args.len() == 3;
    let regexes = |arg: usize, default: &str| match given {
        true => Regexes::of(call, arg),
        false => Regexes::constant(default),
    };
    let (pairs, keys) = (regexes(1, ","), regexes(2, "="));
    Ok(arrays(move |c, _| {
        let s = c.column::<Text>(0)?;
        let separators = given
            .then(|| Ok::<_, Error>((c.column::<Text>(1)?, c.column::<Text>(2)?)))
            .transpose()?;
        let (mut names, mut values) = (Texts::default(), Texts::default());
        let mut count = 0;
        let (offsets, nulls) = offsets(c.rows, c.nulls().as_ref(), |i| {
            let (pair, key) = match &separators {
                Some((pair, key)) => (pair.value(i), key.value(i)),
                None => (",", "="),
            };
            let (pair, key) = (pairs.strict(pair)?, keys.strict(key)?);
            let mut map: IndexMap<&str, Option<&str>> = IndexMap::new();
            let s = s.value(i);
            if !s.is_empty() {
                for entry in pair.split(s)? {
                    match key.split_once(entry)? {
                        Some((name, value)) => map.insert(name, Some(value)),
                        None => map.insert(entry, None),
                    };
                }
            }
            for (name, value) in &map {
                names.push(Some(name));
                values.push(*value);
            }
            count += map.len();
            Ok((true, count))
        })?;
        let strip = |texts: Texts| -> Result<StringArray> { texts.finish() };
        let fields = Fields::from(vec![
            Field::new("keys", ArrowType::Utf8, false),
            Field::new("values", ArrowType::Utf8, true),
        ]);
        let entries = StructArray::try_new(
            fields.clone(),
            vec![Arc::new(strip(names)?), Arc::new(strip(values)?)],
            None,
        )?;
        let field = Arc::new(Field::new("entries", ArrowType::Struct(fields), false));
        Ok(MapArray::try_new(field, offsets, entries, nulls, false)?)
    }))
}
