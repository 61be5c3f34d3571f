//! Conditions on elements: `@.price < 10 && @.name == 'a'`.

use serde_json::Value;

use super::Path;
use crate::functions::java_regex::JavaRegex;

/// A condition on an element.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Not(Box<Condition>),
    /// The path leads somewhere.
    Exists(Operand),
    Compare(Operand, Relation, Operand),
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    /// A path from the element or from the root.
    Path(Path, bool),
    Value(Value),
    /// A regular expression.
    Pattern(String),
}

/// How two sides are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    In,
    NotIn,
    Matches,
}

impl Operand {
    fn value(&self, element: &Value, root: &Value) -> Option<Value> {
        match self {
            Self::Path(path, from_root) => {
                let start = if *from_root { root } else { element };
                path.read(start).ok().map(std::borrow::Cow::into_owned)
            }
            Self::Value(value) => Some(value.clone()),
            Self::Pattern(_) => None,
        }
    }
}

impl Condition {
    /// Whether the element meets it.
    pub(super) fn holds(&self, element: &Value, root: &Value) -> bool {
        match self {
            Self::Any(all) => all.iter().any(|c| c.holds(element, root)),
            Self::All(all) => all.iter().all(|c| c.holds(element, root)),
            Self::Not(inner) => !inner.holds(element, root),
            Self::Exists(operand) => operand.value(element, root).is_some(),
            Self::Compare(left, relation, right) => {
                let left = left.value(element, root);
                if let Operand::Pattern(pattern) = right {
                    return *relation == Relation::Matches && matches(left.as_ref(), pattern);
                }
                compare(
                    left.as_ref(),
                    *relation,
                    right.value(element, root).as_ref(),
                )
            }
        }
    }
}

fn matches(value: Option<&Value>, pattern: &str) -> bool {
    let text = match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => return false,
        Some(other) => other.to_string(),
    };
    // The whole text has to match.
    let regex = JavaRegex::new(&format!(r"\A(?:{pattern})\z"));
    regex.is_ok_and(|regex| regex.is_match(&text).unwrap_or(false))
}

fn compare(left: Option<&Value>, relation: Relation, right: Option<&Value>) -> bool {
    let (Some(left), Some(right)) = (left, right) else {
        return relation == Relation::NotEqual && left.is_some() != right.is_some();
    };
    let order = match (left, right) {
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().and_then(|a| a.partial_cmp(&b.as_f64()?))
        }
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    };
    let equal = order.map_or_else(|| left == right, |order| order.is_eq());
    match relation {
        Relation::Equal => equal,
        Relation::NotEqual => !equal,
        Relation::Less => order.is_some_and(|o| o.is_lt()),
        Relation::AtMost => order.is_some_and(|o| o.is_le()),
        Relation::Greater => order.is_some_and(|o| o.is_gt()),
        Relation::AtLeast => order.is_some_and(|o| o.is_ge()),
        Relation::In | Relation::NotIn => {
            let found = right.as_array().is_some_and(|items| {
                items
                    .iter()
                    .any(|item| compare(Some(left), Relation::Equal, Some(item)))
            });
            found == (relation == Relation::In)
        }
        Relation::Matches => false,
    }
}
