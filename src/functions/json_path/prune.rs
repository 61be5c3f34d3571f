//! Reads of a JSON text only what a path leads to. The whole text is checked all the same; the rest of it
//! is skipped without being kept.

mod leaf;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

pub(in crate::functions) use self::leaf::Leaf;
use super::{Path, Token};
use crate::functions::json_tree::parse;

/// How serde_json hands out numbers of any precision: as an object with this key.
const NUMBER: &str = "$serde_json::private::Number";

impl Path {
    /// The first value of a text as far as [`read`](Self::read) looks at it; `None` if it is no JSON.
    pub(in crate::functions) fn parse(&self, text: &str) -> Option<Value> {
        if !self.is_plain() || !starts_nested(text) {
            return parse(text);
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        Pruned(&self.tokens).deserialize(&mut deserializer).ok()
    }

    /// Whether it is made of single properties and elements counted from the start.
    fn is_plain(&self) -> bool {
        self.function.is_none()
            && self.tokens.iter().all(|token| match token {
                Token::Property(names) => names.len() == 1,
                Token::Index(indices) => matches!(indices.as_slice(), [index] if *index >= 0),
                _ => false,
            })
    }
}

/// Whether a text seems to be an object or array. A scalar ends where something that parts values stands, which
/// only the stream of values knows.
fn starts_nested(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// A value of which only what the tokens lead to is kept. What is not on the way is left out of objects,
/// stands as NULL in arrays, and a scalar on the way is any scalar.
#[derive(Clone, Copy)]
struct Pruned<'t>(&'t [Token]);

impl<'de> DeserializeSeed<'de> for Pruned<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.0 {
            [] => serde::Deserialize::deserialize(deserializer),
            _ => deserializer.deserialize_any(self),
        }
    }
}

const SCALAR: Value = Value::Bool(false);

impl<'de> Visitor<'de> for Pruned<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(SCALAR)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(SCALAR)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(SCALAR)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(SCALAR)
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(SCALAR)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let (name, rest) = match self.0 {
            [Token::Property(names), rest @ ..] => (names.first(), rest),
            _ => (None, self.0),
        };
        let mut fields = serde_json::Map::new();
        while let Some(key) = map.next_key_seed(Key(name))? {
            match (key, name) {
                // the last of equal keys counts
                (Known::Wanted, Some(name)) => {
                    let value = map.next_value_seed(Pruned(rest))?;
                    fields.insert(name.clone(), value);
                }
                (Known::Number, _) => {
                    map.next_value::<IgnoredAny>()?;
                    return Ok(SCALAR);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let (wanted, rest) = match self.0 {
            [Token::Index(indices), rest @ ..] => (indices.first().copied(), rest),
            _ => (None, self.0),
        };
        let mut kept = Vec::new();
        let mut at = 0;
        loop {
            if Some(at) == wanted {
                let Some(value) = items.next_element_seed(Pruned(rest))? else {
                    break;
                };
                kept.push(value);
            } else {
                if items.next_element::<IgnoredAny>()?.is_none() {
                    break;
                }
                if wanted.is_some_and(|wanted| at < wanted) {
                    kept.push(Value::Null);
                }
            }
            at += 1;
        }
        Ok(Value::Array(kept))
    }
}

/// What a key is to a path.
enum Known {
    Wanted,
    Number,
    Other,
}

/// Compares a key without keeping it.
struct Key<'t>(Option<&'t String>);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Known;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Known, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Known;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Known, E> {
        Ok(match self.0 {
            Some(name) if name == key => Known::Wanted,
            _ if key == NUMBER => Known::Number,
            _ => Known::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pruned_value_reads_as_the_whole() {
        let documents = [
            r#"{"a": {"b": [10, {"c": "x"}, null]}, "a2": 1, "b": 1.50}"#,
            r#"{"a": 1, "a": {"b": [7, {"c": 2}]}}"#,
            r#"{"a": {"b": 12.5}}"#,
            r#"{"a": {"b": "text"}}"#,
            r#"{"a": {"b": []}}"#,
            r#"{"a": null}"#,
            r#"[{"b": true}, 2, [3]] trailing"#,
            r#"{"a": {"b": [1, 2}}"#,
            r#"{"a": 1} {"#,
            r#"{"a": "\u00e9\n", "b": "\q"}"#,
            "null",
            "12",
            "1e400",
            "\"a\"",
            "",
            "[",
            "nul",
            "12abc",
            "\"a\"b",
        ];
        let paths = [
            "$",
            "$.a",
            "$.a.b",
            "$.a.b[0]",
            "$.a.b[1].c",
            "$.a.b[9]",
            "$[0].b",
            "$[2][0]",
            "$.b",
        ];
        let mut leaves = 0;
        for document in documents {
            for text in paths {
                let path = Path::new(text).expect("a path");
                let whole = parse(document).map(|v| path.read(&v).map(|v| v.into_owned()));
                let pruned = path
                    .parse(document)
                    .map(|v| path.read(&v).map(|v| v.into_owned()));
                assert_eq!(pruned, whole, "{text} of {document}");
                if let Some(leaf) = path.leaf(document) {
                    leaves += 1;
                    let leaf = match leaf {
                        Leaf::Text(text) => Value::from(text),
                        Leaf::Other(value) => value,
                    };
                    assert_eq!(Some(Ok(leaf)), whole, "{text} of {document}");
                }
            }
        }
        assert!(leaves > 10, "{leaves}");
    }
}
