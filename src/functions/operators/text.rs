//! `||`, `LIKE` and `SIMILAR TO`.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBuilder, StringArray, StringBuilder,
};
use arrow::buffer::BooleanBuffer;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use super::pattern::{self, Matcher};
use super::refuse;
use crate::error::{Error, Result};
use crate::functions::builtin::untyped_null;
use crate::functions::{Arg, Environment, EvalContext, Kernel, ScalarFunction, Signature};
use crate::types::data_type::MAX_LENGTH;
use crate::types::{DataType, TypeKind};

/// A string argument: a column, or one value (NULL: `None`) for all rows.
enum Text {
    Column(StringArray),
    Constant(Option<String>),
}

impl Text {
    fn new(value: &ColumnarValue) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Array(array) => Self::Column(
                array
                    .as_string_opt::<i32>()
                    .cloned()
                    .ok_or_else(|| Error::internal("a string operator got no strings"))?,
            ),
            ColumnarValue::Scalar(ScalarValue::Utf8(text)) => Self::Constant(text.clone()),
            ColumnarValue::Scalar(value) if value.is_null() => Self::Constant(None),
            ColumnarValue::Scalar(_) => {
                return Err(Error::internal("a string operator got no string"));
            }
        })
    }

    fn get(&self, row: usize) -> Option<&str> {
        match self {
            Self::Column(column) => (!column.is_null(row)).then(|| column.value(row)),
            Self::Constant(text) => text.as_deref(),
        }
    }

    fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }
}

/// `a || b`.
#[derive(Debug)]
pub(super) struct Concat;

impl ScalarFunction for Concat {
    fn name(&self) -> &'static str {
        "||"
    }

    fn resolve(&self, args: &[Arg]) -> Result<Signature> {
        let [left, right] = args else {
            return Err(refuse("||", args, "'<STRING> || <STRING>'"));
        };
        let (l, r) = (&left.data_type, &right.data_type);
        let length = match (l.kind.length(), r.kind.length()) {
            (Some(a), Some(b)) if l.kind.is_string() && r.kind.is_string() => {
                a.saturating_add(b).min(MAX_LENGTH)
            }
            _ if l.kind == TypeKind::Null || r.kind == TypeKind::Null => {
                return Err(untyped_null());
            }
            _ => {
                return Err(refuse("||", args, "'<STRING> || <STRING>'")
                    .hint("cast the other side: CAST(x AS STRING)"));
            }
        };
        let kind = match (&l.kind, &r.kind) {
            (TypeKind::Char(_), TypeKind::Char(_)) => TypeKind::Char(length),
            _ => TypeKind::VarChar(length),
        };
        Ok(Signature {
            args: vec![l.clone(), r.clone()],
            returns: kind.with_nullable(l.nullable || r.nullable),
        })
    }

    fn prepare(&self, _: &[Arg], _: &DataType, _: &Environment) -> Result<Kernel> {
        Ok(Box::new(|args, context| match args {
            [left, right] => concat(&Text::new(left)?, &Text::new(right)?, context),
            _ => Err(Error::internal("'||' got not two arguments")),
        }))
    }
}

fn concat(left: &Text, right: &Text, context: &EvalContext) -> Result<ColumnarValue> {
    let join = |l: &str, r: &str| {
        let mut text = String::with_capacity(l.len() + r.len());
        text.push_str(l);
        text.push_str(r);
        text
    };
    match (left, right) {
        (Text::Constant(None), _) | (_, Text::Constant(None)) => {
            Ok(ColumnarValue::Scalar(ScalarValue::Utf8(None)))
        }
        (Text::Constant(Some(l)), Text::Constant(Some(r))) => {
            Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(join(l, r)))))
        }
        _ => {
            let bytes = |text: &Text| match text {
                Text::Column(column) => column.value_data().len(),
                Text::Constant(text) => context.rows * text.as_ref().map_or(0, String::len),
            };
            let mut builder =
                StringBuilder::with_capacity(context.rows, bytes(left) + bytes(right));
            let mut text = String::new();
            for row in 0..context.rows {
                if let (Some(l), Some(r)) = (left.get(row), right.get(row)) {
                    text.clear();
                    text.push_str(l);
                    text.push_str(r);
                    builder.append_value(&text);
                } else {
                    builder.append_null();
                }
            }
            Ok(ColumnarValue::Array(Arc::new(builder.finish())))
        }
    }
}

/// `s LIKE p [ESCAPE e]` and `s SIMILAR TO p [ESCAPE e]`.
#[derive(Debug)]
pub(super) struct Like {
    pub(super) similar: bool,
}

impl Like {
    fn forms(&self) -> &'static str {
        if self.similar {
            "'SIMILAR TO(<STRING>, <STRING>, <STRING>)'"
        } else {
            "'LIKE(<STRING>, <STRING>, <STRING>)'"
        }
    }

    fn compile(&self, text: &str, escape: Option<char>) -> Result<Matcher> {
        if self.similar {
            pattern::similar(text, escape)
        } else {
            pattern::like(text, escape)
        }
    }
}

/// The only character of an ESCAPE.
fn escape_of(text: &str) -> Result<char> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(escape), None) => Ok(escape),
        _ => Err(Error::execution(format!(
            "Invalid escape character '{text}'"
        ))),
    }
}

/// The value of argument `i`, if it is a constant text.
fn constant(args: &[Arg], i: usize) -> Option<&str> {
    match args.get(i)?.literal.as_ref()? {
        ScalarValue::Utf8(text) => text.as_deref(),
        _ => None,
    }
}

impl ScalarFunction for Like {
    fn name(&self) -> &'static str {
        if self.similar { "SIMILAR TO" } else { "LIKE" }
    }

    fn resolve(&self, args: &[Arg]) -> Result<Signature> {
        let fits =
            (2..=3).contains(&args.len()) && args.iter().all(|a| a.data_type.kind.is_string());
        if !fits {
            return Err(refuse(self.name(), args, self.forms()));
        }
        Ok(Signature {
            args: args.iter().map(|a| a.data_type.clone()).collect(),
            returns: TypeKind::Boolean.with_nullable(args.iter().any(|a| a.data_type.nullable)),
        })
    }

    fn prepare(&self, args: &[Arg], _: &DataType, _: &Environment) -> Result<Kernel> {
        let escape = constant(args, 2).map(escape_of).transpose()?;
        let fixed = match constant(args, 1) {
            Some(pattern) if escape.is_some() == (args.len() > 2) => {
                Some(self.compile(pattern, escape)?)
            }
            _ => None,
        };
        let compiler = Self {
            similar: self.similar,
        };
        Ok(Box::new(move |args, context| {
            let [text, pattern, rest @ ..] = args else {
                return Err(Error::internal("a pattern operator got one argument"));
            };
            let text = Text::new(text)?;
            if let Some(matcher) = &fixed {
                return Ok(match &text {
                    Text::Column(column) => ColumnarValue::Array(match_column(matcher, column)),
                    Text::Constant(text) => {
                        let found = text.as_ref().map(|text| matcher.matches(text));
                        ColumnarValue::Scalar(ScalarValue::Boolean(found))
                    }
                });
            }
            let pattern = Text::new(pattern)?;
            let escapes = rest.first().map(Text::new).transpose()?;
            let one = text.is_constant()
                && pattern.is_constant()
                && escapes.as_ref().is_none_or(Text::is_constant);
            let rows = if one { 1 } else { context.rows };
            // Rows in a row often have one pattern.
            let mut last: Option<(String, Option<char>, Matcher)> = None;
            let mut builder = BooleanBuilder::with_capacity(rows);
            for row in 0..rows {
                let escape = escapes.as_ref().map(|escapes| escapes.get(row));
                let (Some(text), Some(pattern)) = (text.get(row), pattern.get(row)) else {
                    builder.append_null();
                    continue;
                };
                let escape = match escape {
                    Some(None) => {
                        builder.append_null();
                        continue;
                    }
                    Some(Some(escape)) => Some(escape_of(escape)?),
                    None => None,
                };
                let matcher = match &last {
                    Some((known, with, matcher)) if known == pattern && *with == escape => matcher,
                    _ => {
                        let matcher = compiler.compile(pattern, escape)?;
                        &last.insert((pattern.to_string(), escape, matcher)).2
                    }
                };
                builder.append_value(matcher.matches(text));
            }
            let found: ArrayRef = Arc::new(builder.finish());
            Ok(if one {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
            } else {
                ColumnarValue::Array(found)
            })
        }))
    }

    fn may_fail(&self) -> bool {
        true
    }

    fn may_fail_on(&self, args: &[Arg]) -> bool {
        // A pattern that is made row by row may be malformed.
        let constant = args.iter().skip(1).all(|a| a.literal.is_some());
        !constant && (self.similar || args.len() > 2)
    }
}

fn match_column(matcher: &Matcher, column: &StringArray) -> ArrayRef {
    let bits = BooleanBuffer::collect_bool(column.len(), |i| matcher.matches(column.value(i)));
    Arc::new(BooleanArray::new(bits, column.nulls().cloned()))
}
