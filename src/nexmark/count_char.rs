//! `count_char(text, character)`: how often a character is in a text.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;
use memchr::memchr_iter;

use crate::error::{Error, Result};
use crate::functions::{
    Arg, Environment, FunctionDoc, FunctionKind, FunctionRegistry, Kernel, ScalarFunction,
    Signature,
};
use crate::types::{DataType, TypeKind};

#[derive(Debug)]
struct CountChar;

pub(super) fn register(functions: &mut FunctionRegistry) {
    let doc = FunctionDoc::new(
        FunctionKind::Scalar,
        "nexmark",
        "count_char(text, character)",
        "how often a character is in a text",
    );
    functions.register(Arc::new(CountChar), doc);
}

impl ScalarFunction for CountChar {
    fn name(&self) -> &str {
        "COUNT_CHAR"
    }

    fn resolve(&self, args: &[Arg]) -> Result<Signature> {
        if args.len() != 2 {
            return Err(Error::plan(format!(
                "count_char takes a text and a character, not {} arguments",
                args.len()
            )));
        }
        Ok(Signature {
            args: vec![TypeKind::STRING.nullable(); 2],
            returns: TypeKind::BigInt.not_null(),
        })
    }

    fn prepare(&self, _args: &[Arg], _returns: &DataType, _env: &Environment) -> Result<Kernel> {
        Ok(Box::new(|args, context| {
            let [texts, characters] = args else {
                return Err(Error::internal("count_char has two arguments"));
            };
            let texts = texts.to_array(context.rows)?;
            let texts = texts.as_string::<i32>();
            let counts: Int64Array = match characters {
                ColumnarValue::Scalar(ScalarValue::Utf8(Some(character))) => texts
                    .iter()
                    .map(|t| Some(count(t, Some(character))))
                    .collect(),
                other => {
                    let characters: ArrayRef = other.to_array(context.rows)?;
                    let characters = characters.as_string::<i32>().iter();
                    let pairs = texts.iter().zip(characters);
                    pairs.map(|(t, c)| Some(count(t, c))).collect()
                }
            };
            debug_assert_eq!(counts.len(), context.rows);
            Ok(ColumnarValue::Array(Arc::new(counts)))
        }))
    }
}

fn count(text: Option<&str>, character: Option<&str>) -> i64 {
    let (Some(text), Some(first)) = (text, character.and_then(|c| c.chars().next())) else {
        return 0;
    };
    let found = match u8::try_from(first) {
        Ok(byte) if byte.is_ascii() => memchr_iter(byte, text.as_bytes()).count(),
        _ => text.chars().filter(|c| *c == first).count(),
    };
    i64::try_from(found).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn the_first_character_is_counted() {
        assert_eq!(count(Some("abcabc"), Some("c")), 2);
        assert_eq!(count(Some("abcabc"), Some("bz")), 2);
        assert_eq!(count(Some("äöä"), Some("ä")), 2);
        assert_eq!(count(None, Some("c")), 0);
        assert_eq!(count(Some("abc"), Some("")), 0);
    }
}
