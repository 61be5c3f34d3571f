//! The scalar that a path leads to, taken from the text while it is checked, without any value on the way.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{Key, Known, starts_nested};
use crate::functions::json_path::{Path, Token};

/// What a path leads to.
#[derive(Debug, PartialEq)]
pub(in crate::functions) enum Leaf<'t> {
    /// A text; a part of the document if nothing in it is escaped.
    Text(Cow<'t, str>),
    /// Any other value, `null` too.
    Other(Value),
}

impl Path {
    /// What the path leads to in a valid text. `None` says nothing but that [`read`](Self::read) has to look: there
    /// may be no such value, or the text may be no JSON.
    pub(in crate::functions) fn leaf<'t>(&self, text: &'t str) -> Option<Leaf<'t>> {
        if self.tokens.is_empty() || !self.is_plain() || !starts_nested(text) {
            return None;
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        Way(&self.tokens).deserialize(&mut deserializer).ok()?
    }
}

/// The tokens that lead on from a value.
#[derive(Clone, Copy)]
struct Way<'p>(&'p [Token]);

impl<'de> DeserializeSeed<'de> for Way<'_> {
    type Value = Option<Leaf<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.0 {
            [] => deserializer.deserialize_any(End).map(Some),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Way<'_> {
    type Value = Option<Leaf<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (name, rest) = match self.0 {
            [Token::Property(names), rest @ ..] => (names.first(), rest),
            _ => (None, self.0),
        };
        let mut found = None;
        while let Some(key) = map.next_key_seed(Key(name))? {
            match key {
                // the last of equal keys counts
                Known::Wanted => found = map.next_value_seed(Way(rest))?,
                Known::Number | Known::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let (wanted, rest) = match self.0 {
            [Token::Index(indices), rest @ ..] => (indices.first().copied(), rest),
            _ => (None, self.0),
        };
        let mut found = None;
        let mut at = 0;
        loop {
            if Some(at) == wanted {
                match items.next_element_seed(Way(rest))? {
                    Some(item) => found = item,
                    None => return Ok(found),
                }
            } else if items.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            at += 1;
        }
    }
}

/// The value at the end of the way.
struct End;

impl<'de> Visitor<'de> for End {
    type Value = Leaf<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Text(Cow::Owned(text.to_string())))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Other(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Other(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Other(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Other(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Other(Value::Null))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Leaf<'de>, A::Error> {
        // a number too, as serde_json hands it out
        Value::deserialize(MapAccessDeserializer::new(map)).map(Leaf::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Leaf<'de>, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(items)).map(Leaf::Other)
    }
}
