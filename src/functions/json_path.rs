//! JSON paths as Jayway's JsonPath reads them: `$.a.b[0]`, `$['a']`, `$..a`, `$.a[*]`, `$.a[1:3]`,
//! `$.a[?(@.b > 1)]`, `$.a.length()`.

mod filter;
mod parse;
mod prune;

use std::borrow::Cow;

use serde_json::Value;

use self::filter::Condition;
pub(super) use self::prune::Leaf;

/// A compiled path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path {
    tokens: Vec<Token>,
    function: Option<Function>,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// One property, or several.
    Property(Vec<String>),
    /// Elements, from the end if negative.
    Index(Vec<i64>),
    /// Elements from one up to another.
    Slice(Option<i64>, Option<i64>),
    /// All properties or elements.
    All,
    /// The rest is looked for on every level.
    Deep,
    /// The elements that meet a condition.
    Filter(Condition),
}

/// What is computed of the value at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Length,
    Keys,
    Sum,
    Min,
    Max,
    Avg,
}

/// What a path leads to.
pub(super) type Found<'a> = Result<Cow<'a, Value>, String>;

impl Path {
    /// Compiles a path.
    ///
    /// # Errors
    /// The reason why it is none.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        parse::path(text)
    }

    /// Whether it leads to one value at most.
    pub(super) fn is_definite(&self) -> bool {
        let last = self.tokens.len().saturating_sub(1);
        self.tokens
            .iter()
            .enumerate()
            .all(|(i, token)| match token {
                // Several properties at the end make one object.
                Token::Property(names) => names.len() == 1 || i == last,
                Token::Index(indices) => indices.len() == 1,
                Token::Slice(..) | Token::All | Token::Deep | Token::Filter(_) => false,
            })
    }

    /// The value at the path, or the array of all values if it leads to many.
    pub(super) fn read<'a>(&self, root: &'a Value) -> Found<'a> {
        let mut hits = Vec::new();
        walk(&self.tokens, root, root, true, &mut hits)?;
        let value = if self.is_definite() {
            hits.into_iter()
                .next()
                .ok_or_else(|| "No results for path".to_string())?
        } else {
            Cow::Owned(Value::Array(
                hits.into_iter().map(Cow::into_owned).collect(),
            ))
        };
        match self.function {
            Some(function) => function.apply(&value).map(Cow::Owned),
            None => Ok(value),
        }
    }
}

/// Collects what `tokens` lead to from `model`. Only while the way so far leads to one value is it an error
/// when it ends.
fn walk<'a>(
    tokens: &[Token],
    model: &'a Value,
    root: &'a Value,
    definite: bool,
    hits: &mut Vec<Cow<'a, Value>>,
) -> Result<(), String> {
    let Some((token, rest)) = tokens.split_first() else {
        hits.push(Cow::Borrowed(model));
        return Ok(());
    };
    match token {
        Token::Property(names) => {
            let Value::Object(fields) = model else {
                return dead_end(definite, "Expected to find an object");
            };
            if let [name] = names.as_slice() {
                return match fields.get(name) {
                    Some(value) => walk(rest, value, root, definite, hits),
                    None if rest.is_empty() => Ok(()),
                    None => dead_end(definite, "Missing property in path"),
                };
            }
            let present = names.iter().filter_map(|name| fields.get_key_value(name));
            if rest.is_empty() {
                let picked = present.map(|(k, v)| (k.clone(), v.clone())).collect();
                hits.push(Cow::Owned(Value::Object(picked)));
                return Ok(());
            }
            for (_, value) in present {
                walk(rest, value, root, false, hits)?;
            }
            Ok(())
        }
        Token::Index(indices) => {
            let Value::Array(items) = model else {
                return dead_end(definite, "Expected to find an array");
            };
            for index in indices {
                let at = if *index < 0 {
                    items.len() as i64 + index
                } else {
                    *index
                };
                if let Some(item) = usize::try_from(at).ok().and_then(|at| items.get(at)) {
                    walk(rest, item, root, definite && indices.len() == 1, hits)?;
                }
            }
            Ok(())
        }
        Token::Slice(from, to) => {
            let Value::Array(items) = model else {
                return dead_end(definite, "Expected to find an array");
            };
            let len = items.len() as i64;
            let offset = |at: i64| {
                if at < 0 {
                    (len + at).max(0)
                } else {
                    at.min(len)
                }
            };
            let (from, to) = (from.map_or(0, offset), to.map_or(len, offset));
            for item in items.iter().take(to as usize).skip(from as usize) {
                walk(rest, item, root, false, hits)?;
            }
            Ok(())
        }
        Token::All => children(model).try_for_each(|child| walk(rest, child, root, false, hits)),
        Token::Deep => {
            let fits = match rest.first() {
                Some(Token::Property(names)) => match model {
                    Value::Object(fields) => names.iter().all(|name| fields.contains_key(name)),
                    _ => false,
                },
                Some(Token::Index(_) | Token::Slice(..) | Token::Filter(_)) => model.is_array(),
                _ => true,
            };
            if fits {
                walk(rest, model, root, false, hits)?;
            }
            children(model).try_for_each(|child| walk(tokens, child, root, false, hits))
        }
        Token::Filter(condition) => match model {
            Value::Array(items) => {
                for item in items {
                    if condition.holds(item, root) {
                        walk(rest, item, root, false, hits)?;
                    }
                }
                Ok(())
            }
            Value::Object(_) if condition.holds(model, root) => {
                walk(rest, model, root, false, hits)
            }
            Value::Object(_) => Ok(()),
            _ => dead_end(definite, "A filter can not be applied to primitives"),
        },
    }
}

fn dead_end(definite: bool, reason: &str) -> Result<(), String> {
    if definite {
        return Err(reason.to_string());
    }
    Ok(())
}

fn children(model: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match model {
        Value::Object(fields) => Box::new(fields.values()),
        Value::Array(items) => Box::new(items.iter()),
        _ => Box::new(std::iter::empty()),
    }
}

impl Function {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "length" | "size" => Self::Length,
            "keys" => Self::Keys,
            "sum" => Self::Sum,
            "min" => Self::Min,
            "max" => Self::Max,
            "avg" => Self::Avg,
            _ => return None,
        })
    }

    fn apply(self, value: &Value) -> Result<Value, String> {
        match self {
            Self::Length => Ok(match value {
                Value::Array(items) => items.len().into(),
                Value::Object(fields) => fields.len().into(),
                _ => Value::Null,
            }),
            Self::Keys => Ok(match value {
                Value::Object(fields) => fields.keys().map(String::as_str).collect(),
                _ => Value::Null,
            }),
            _ => {
                let numbers: Vec<f64> = match value {
                    Value::Array(items) => items.iter().filter_map(Value::as_f64).collect(),
                    _ => Vec::new(),
                };
                if numbers.is_empty() {
                    return Err(
                        "Aggregation function attempted to calculate value using empty array"
                            .into(),
                    );
                }
                let sum: f64 = numbers.iter().sum();
                let result = match self {
                    Self::Min => numbers.iter().copied().fold(f64::INFINITY, f64::min),
                    Self::Max => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                    Self::Avg => sum / numbers.len() as f64,
                    _ => sum,
                };
                let mut text = String::new();
                crate::types::text::number::write_double(result, &mut text);
                let number: serde_json::Number = text.parse().map_err(|_| "no number")?;
                Ok(Value::Number(number))
            }
        }
    }
}

#[cfg(test)]
mod tests;
