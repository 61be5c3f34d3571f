//! Functions with regular expressions, in Java's syntax.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use hashbrown::HashMap;

use super::builtin::{Builtin, Resolve::Forms};
use super::java_regex::{JavaRegex, Refusal, after};
use super::kernel::{BigInt, Bool, Call, Int, Text, arrays, collect_text, collect_texts};
use super::signature::{Param, Returns};
use crate::error::{Error, Result};
use crate::types::TypeKind;

/// Patterns that are not constant are kept up to this many.
const CACHE: usize = 256;

type Compiled = Result<Arc<JavaRegex>, Refusal>;

/// The compiled patterns of an argument.
pub(super) enum Regexes {
    /// One for all rows.
    Constant(Compiled),
    /// One a row, each compiled once.
    Varying(Mutex<HashMap<String, Compiled>>),
}

impl Regexes {
    /// For argument `arg` of a call.
    pub(super) fn of(call: &Call<'_>, arg: usize) -> Self {
        match call.text_literal(arg) {
            Some(pattern) => Self::constant(pattern),
            None => Self::Varying(Mutex::default()),
        }
    }

    /// Of one pattern.
    pub(super) fn constant(pattern: &str) -> Self {
        Self::Constant(JavaRegex::new(pattern).map(Arc::new))
    }

    fn compiled(&self, pattern: &str) -> Result<Cow<'_, Arc<JavaRegex>>, Refusal> {
        match self {
            Self::Constant(compiled) => match compiled {
                Ok(regex) => Ok(Cow::Borrowed(regex)),
                Err(refusal) => Err(refusal.clone()),
            },
            Self::Varying(cache) => {
                let mut cache = cache
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner());
                if let Some(compiled) = cache.get(pattern) {
                    return compiled.clone().map(Cow::Owned);
                }
                if cache.len() >= CACHE {
                    cache.clear();
                }
                let compiled = JavaRegex::new(pattern).map(Arc::new);
                cache.insert(pattern.to_string(), compiled.clone());
                compiled.map(Cow::Owned)
            }
        }
    }

    /// Whether all rows have the same pattern.
    fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }

    /// The pattern, or `None` if it is malformed: for functions that give NULL then.
    pub(super) fn get(&self, pattern: &str) -> Result<Option<Cow<'_, Arc<JavaRegex>>>> {
        match self.compiled(pattern) {
            Ok(regex) => Ok(Some(regex)),
            Err(Refusal::Invalid(_)) => Ok(None),
            Err(refusal) => Err(refused(pattern, &refusal)),
        }
    }

    /// The pattern; a malformed one is an error.
    pub(super) fn strict(&self, pattern: &str) -> Result<Cow<'_, Arc<JavaRegex>>> {
        self.compiled(pattern)
            .map_err(|refusal| refused(pattern, &refusal))
    }
}

fn refused(pattern: &str, refusal: &Refusal) -> Error {
    match refusal {
        Refusal::Invalid(reason) => {
            Error::execution(format!("'{pattern}' is not a regular expression: {reason}"))
        }
        Refusal::Unsupported(reason) => Error::execution(format!(
            "the regular expression '{pattern}' is not supported: {reason}"
        )),
    }
}

const TWO: &[&[Param]] = &[&[Param::Text, Param::Text]];
const TWO_AND_GROUP: &[&[Param]] = &[
    &[Param::Text, Param::Text],
    &[Param::Text, Param::Text, Param::BigInt],
];

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "REGEXP",
        "REGEXP(s STRING, regex STRING)",
        "Whether the regular expression occurs in the text; false if it is empty or malformed.",
        Forms(TWO, Returns::Strict(TypeKind::Boolean)),
        |call| {
            let regexes = Regexes::of(call, 1);
            Ok(call.map2::<Text, Text, Bool, _>(move |s, pattern| {
                match regexes.get(pattern)? {
                    Some(regex) if !pattern.is_empty() => regex.is_match(s),
                    _ => Ok(false),
                }
            }))
        },
    )
    .may_fail()
    .example("REGEXP('flink', 'l.*k')", "true"),
    Builtin::new(
        "REGEXP_REPLACE",
        "REGEXP_REPLACE(s STRING, regex STRING, replacement STRING)",
        "The text with every match replaced; the replacement is taken literally.",
        Forms(
            &[&[Param::Text, Param::Text, Param::Text]],
            Returns::Strict(TypeKind::STRING),
        ),
        |call| {
            let regexes = Regexes::of(call, 1);
            Ok(call.text3::<Text, Text, Text, _>(move |s, pattern, with, out| {
                let Some(regex) = regexes.get(pattern)? else {
                    return Ok(None);
                };
                let mut rest = 0;
                regex.for_each(s, |start, end| {
                    out.push_str(&s[rest..start]);
                    out.push_str(with);
                    rest = end;
                    Ok(())
                })?;
                out.push_str(&s[rest..]);
                Ok(Some(()))
            }))
        },
    )
    .may_fail()
    .example("REGEXP_REPLACE('a1b22', '[0-9]+', '-')", "a-b-"),
    Builtin::new(
        "REGEXP_EXTRACT",
        "REGEXP_EXTRACT(s STRING, regex STRING [, group INT])",
        "The group (0, the whole match, by default) of the first match; NULL if there is none.",
        Forms(TWO_AND_GROUP, Returns::Nullable(TypeKind::STRING)),
        |call| {
            let regexes = Regexes::of(call, 1);
            let has_group = call.args.len() == 3;
            Ok(arrays(move |c, _| {
                let (s, pattern) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
                let groups = has_group.then(|| c.column::<BigInt>(2)).transpose()?;
                let mut places = None;
                collect_text(c.rows, c.nulls().as_ref(), |i, out| {
                    let group = groups.as_ref().map_or(0, |groups| groups.value(i));
                    let group = usize::try_from(group).ok();
                    let (Some(regex), Some(group)) = (regexes.get(pattern.value(i))?, group)
                    else {
                        return Ok(None);
                    };
                    if !regexes.is_constant() {
                        places = None;
                    }
                    let s = s.value(i);
                    let found = regex.group(s, group, &mut places)?;
                    Ok(found.map(|(start, end)| out.push_str(&s[start..end])))
                })
            }))
        },
    )
    .may_fail()
    .example("REGEXP_EXTRACT('k=v', '(.)=(.)', 2)", "v"),
    Builtin::new(
        "REGEXP_EXTRACT_ALL",
        "REGEXP_EXTRACT_ALL(s STRING, regex STRING [, group INT])",
        "The group (1 by default) of every match; NULL if there is no such group.",
        Forms(
            TWO_AND_GROUP,
            Returns::By(|_| {
                TypeKind::Array(Box::new(TypeKind::STRING.nullable())).nullable()
            }),
        ),
        |call| {
            let regexes = Regexes::of(call, 1);
            let given = call.args.len() == 3;
            Ok(arrays(move |c, _| {
                let (s, pattern) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
                let group = given
                    .then(|| c.column::<BigInt>(2))
                    .transpose()?;
                collect_texts(c.rows, c.nulls().as_ref(), |i, out| {
                    let s = s.value(i);
                    let group = group.as_ref().map_or(1, |group| group.value(i));
                    let group = usize::try_from(group).ok();
                    let (Some(regex), Some(group)) = (regexes.get(pattern.value(i))?, group)
                    else {
                        return Ok(None);
                    };
                    if group > regex.groups() {
                        return Ok(None);
                    }
                    let mut from = Some(0);
                    while let Some(start) = from
                        && let Some(groups) = regex.groups_at(s, start)?
                    {
                        out.push(groups[group].map(|(start, end)| &s[start..end]));
                        let (start, end) = groups[0].unwrap_or((s.len(), s.len()));
                        from = after(s, start, end);
                    }
                    Ok(Some(()))
                })
            }))
        },
    )
    .null_from(0)
    .may_fail()
    .example("REGEXP_EXTRACT_ALL('a1b2', '[a-z]([0-9])')", "[1, 2]"),
    Builtin::new(
        "REGEXP_COUNT",
        "REGEXP_COUNT(s STRING, regex STRING)",
        "The number of matches; NULL if the regular expression is malformed.",
        Forms(TWO, Returns::Nullable(TypeKind::Int)),
        |call| {
            let regexes = Regexes::of(call, 1);
            Ok(call.map2::<Text, Text, Int, Result<Option<i32>>>(move |s, pattern| {
                let Some(regex) = regexes.get(pattern)? else {
                    return Ok(None);
                };
                let mut count = 0;
                regex.for_each(s, |_, _| {
                    count += 1;
                    Ok(())
                })?;
                Ok(Some(count))
            }))
        },
    )
    .null_from(0)
    .may_fail()
    .example("REGEXP_COUNT('banana', 'an')", "2"),
    Builtin::new(
        "REGEXP_INSTR",
        "REGEXP_INSTR(s STRING, regex STRING)",
        "Where the first match starts, from 1; 0 if there is none, NULL if the regular expression is malformed.",
        Forms(TWO, Returns::Nullable(TypeKind::Int)),
        |call| {
            let regexes = Regexes::of(call, 1);
            Ok(call.map2::<Text, Text, Int, Result<Option<i32>>>(move |s, pattern| {
                let Some(regex) = regexes.get(pattern)? else {
                    return Ok(None);
                };
                let at = regex
                    .find_at(s, 0)?
                    .map_or(0, |(start, _)| super::utf16::len(&s[..start]) + 1);
                Ok(Some(i32::try_from(at).unwrap_or(i32::MAX)))
            }))
        },
    )
    .null_from(0)
    .may_fail()
    .example("REGEXP_INSTR('banana', 'n')", "3"),
    Builtin::new(
        "REGEXP_SUBSTR",
        "REGEXP_SUBSTR(s STRING, regex STRING)",
        "The first match; NULL if there is none.",
        Forms(TWO, Returns::Nullable(TypeKind::STRING)),
        |call| {
            let regexes = Regexes::of(call, 1);
            Ok(call.text2::<Text, Text, Result<Option<()>>>(move |s, pattern, out| {
                let Some(regex) = regexes.get(pattern)? else {
                    return Ok(None);
                };
                let found = regex.find_at(s, 0)?;
                Ok(found.map(|(start, end)| out.push_str(&s[start..end])))
            }))
        },
    )
    .null_from(0)
    .may_fail()
    .example("REGEXP_SUBSTR('a12b', '[0-9]+')", "12"),
];
