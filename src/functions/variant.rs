//! `VARIANT` values: JSON text with its keys in order.

use serde_json::Value;

use super::Kernel;
use super::builtin::{Builtin, Resolve::Forms};
use super::json_tree::{parse, write};
use super::kernel::{Bool, Call, Text, arrays, collect_text};
use super::signature::{Param, Returns};
use crate::error::{Error, Result};
use crate::types::TypeKind;

const PARAMS: &[&[Param]] = &[&[Param::Text], &[Param::Text, Param::Boolean]];

pub(super) static FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "PARSE_JSON",
        "PARSE_JSON(s STRING [, allow_duplicate_keys BOOLEAN])",
        "The VARIANT that the JSON text stands for; fails on anything else.",
        Forms(PARAMS, Returns::Strict(TypeKind::Variant)),
        |call| Ok(prepare(call, true)),
    )
    .null_from(0)
    .may_fail()
    .example("PARSE_JSON('{\"a\": 1}')['a']", "1"),
    Builtin::new(
        "TRY_PARSE_JSON",
        "TRY_PARSE_JSON(s STRING [, allow_duplicate_keys BOOLEAN])",
        "The VARIANT that the JSON text stands for; NULL if it is none.",
        Forms(PARAMS, Returns::Nullable(TypeKind::Variant)),
        |call| Ok(prepare(call, false)),
    )
    .example("TRY_PARSE_JSON('bad')", "null"),
];

fn prepare(call: &Call<'_>, strict: bool) -> Kernel {
    let given = call.args.len() == 2;
    arrays(move |c, _| {
        let s = c.column::<Text>(0)?;
        let allow = given.then(|| c.column::<Bool>(1)).transpose()?;
        collect_text(c.rows, c.nulls().as_ref(), |i, out| {
            let allow = allow.as_ref().is_some_and(|allow| allow.value(i));
            match parse_variant(s.value(i), allow, out) {
                Ok(()) => Ok(Some(())),
                Err(error) if strict => Err(error),
                Err(_) => Ok(None),
            }
        })
    })
}

fn parse_variant(text: &str, allow_duplicates: bool, out: &mut String) -> Result<()> {
    let value = parse(text).ok_or_else(|| Error::execution(format!("'{text}' is not JSON")))?;
    if !allow_duplicates && has_duplicates(text) {
        return Err(
            Error::execution("VARIANT_DUPLICATE_KEY: an object has a key twice")
                .hint("PARSE_JSON(s, TRUE) takes the last"),
        );
    }
    write(&plain(value), out);
    Ok(())
}

/// Fractions without zeros at their end.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let text = number.as_str();
            let fraction = text.contains('.') && !text.contains(['e', 'E']);
            let short = text.trim_end_matches('0').trim_end_matches('.');
            match short.parse() {
                Ok(short) if fraction => Value::Number(short),
                _ => Value::Number(number),
            }
        }
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(fields) => fields.into_iter().map(|(k, v)| (k, plain(v))).collect(),
        other => other,
    }
}

/// Whether an object of the text has a key twice.
fn has_duplicates(text: &str) -> bool {
    use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
    use std::fmt;

    /// Whether a key occurred twice.
    struct Twice(bool);
    struct Check;

    impl<'de> Visitor<'de> for Check {
        type Value = Twice;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("JSON")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Twice, A::Error> {
            let mut keys = hashbrown::HashSet::new();
            let mut twice = false;
            while let Some(key) = map.next_key::<String>()? {
                twice |= map.next_value::<Twice>()?.0;
                twice |= !keys.insert(key);
            }
            Ok(Twice(twice))
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Twice, A::Error> {
            let mut twice = false;
            while let Some(item) = items.next_element::<Twice>()? {
                twice |= item.0;
            }
            Ok(Twice(twice))
        }
        fn visit_bool<E>(self, _: bool) -> Result<Twice, E> {
            Ok(Twice(false))
        }
        fn visit_i64<E>(self, _: i64) -> Result<Twice, E> {
            Ok(Twice(false))
        }
        fn visit_u64<E>(self, _: u64) -> Result<Twice, E> {
            Ok(Twice(false))
        }
        fn visit_f64<E>(self, _: f64) -> Result<Twice, E> {
            Ok(Twice(false))
        }
        fn visit_str<E>(self, _: &str) -> Result<Twice, E> {
            Ok(Twice(false))
        }
        fn visit_unit<E>(self) -> Result<Twice, E> {
            Ok(Twice(false))
        }
    }

    impl<'de> Deserialize<'de> for Twice {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Check)
        }
    }

    let first = serde_json::Deserializer::from_str(text)
        .into_iter::<Twice>()
        .next();
    matches!(first, Some(Ok(Twice(true))))
}

/// Appends the field of an object; `None` if there is none.
///
/// # Errors
/// When it is no object.
pub(super) fn field(variant: &str, key: &str, out: &mut String) -> Result<Option<()>> {
    let Some(Value::Object(fields)) = parse(variant) else {
        return Err(Error::execution(
            "String key access on variant requires an object variant, but a non-object variant was \
             provided.",
        ));
    };
    Ok(fields.get(key).map(|value| write(value, out)))
}

/// Appends element `index`, from 1, of an array; `None` if there is none.
///
/// # Errors
/// When it is no array.
pub(super) fn element(variant: &str, index: i64, out: &mut String) -> Result<Option<()>> {
    let Some(Value::Array(items)) = parse(variant) else {
        return Err(Error::execution(
            "Integer index access on variant requires an array variant, but a non-array variant was \
             provided.",
        ));
    };
    let at = index.checked_sub(1).and_then(|at| usize::try_from(at).ok());
    Ok(at
        .and_then(|at| items.get(at))
        .map(|value| write(value, out)))
}

#[cfg(test)]
mod tests {
    use crate::functions::testing::{args, call, check};

    #[test]
    fn variants_are_canonical_json() {
        check(
            "PARSE_JSON",
            args![r#"{"b":1,"a":[1.50,"x"]}"#],
            r#"{"a":[1.5,"x"],"b":1}"#,
        );
        check("TRY_PARSE_JSON", args!["bad"], "NULL");
        check("PARSE_JSON", args![r#"{"a":1,"a":2}"#, true], r#"{"a":2}"#);
        assert!(call("PARSE_JSON", args!["bad"]).is_err());
        assert!(call("PARSE_JSON", args![r#"[{"a":1,"a":2}]"#]).is_err());
    }
}
