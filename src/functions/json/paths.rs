//! Paths as arguments: compiled once if constant, else remembered.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use serde_json::Value;

use crate::functions::json_path::{Leaf, Path};
use crate::functions::json_tree::parse;
use crate::functions::kernel::Call;

/// A path with its mode.
pub(super) struct JsonPath {
    pub(super) lax: bool,
    path: Result<Path, String>,
}

/// What is at a path: nothing, or a value, or the reason why that is an error.
pub(super) type Found<'a> = Result<Option<Cow<'a, Value>>, String>;

impl JsonPath {
    pub(super) fn new(text: &str) -> Self {
        let trimmed = text.trim_start();
        let mode = |name: &str| {
            let start = trimmed.get(..name.len())?;
            let rest = &trimmed[name.len()..];
            let fits = start.eq_ignore_ascii_case(name)
                && rest.starts_with(char::is_whitespace)
                && !rest.trim().is_empty();
            fits.then(|| rest.trim_start())
        };
        let (lax, path) = match (mode("lax"), mode("strict")) {
            (Some(path), _) => (true, path),
            (None, Some(path)) => (false, path),
            (None, None) => (false, text),
        };
        Self {
            lax,
            path: Path::new(path),
        }
    }

    /// As much of a text as [`find`](Self::find) looks at; `None` if it is no JSON.
    pub(super) fn parse(&self, text: &str) -> Option<Value> {
        match &self.path {
            Ok(path) => path.parse(text),
            Err(_) => parse(text),
        }
    }

    /// The scalar at the path of a text, if that can be had without keeping anything else. `None` says nothing.
    pub(super) fn scalar<'t>(&self, text: &'t str) -> Option<Leaf<'t>> {
        match self.path.as_ref().ok()?.leaf(text)? {
            Leaf::Other(Value::Null | Value::Array(_) | Value::Object(_)) => None,
            leaf => Some(leaf),
        }
    }

    pub(super) fn find<'a>(&self, root: Option<&'a Value>) -> Found<'a> {
        let Some(root) = root else {
            return if self.lax {
                Ok(None)
            } else {
                Err("the text is not JSON".to_string())
            };
        };
        if root.is_null() {
            return Err("json can not be null".to_string());
        }
        let path = self
            .path
            .as_ref()
            .map_err(|reason| format!("Illegal jsonpath spec: {reason}"))?;
        match path.read(root) {
            Ok(value) if !value.is_null() => Ok(Some(value)),
            Ok(_) if self.lax => Ok(None),
            Ok(_) => {
                Err("Strict jsonpath mode requires a non empty returned value, but is null".into())
            }
            Err(_) if self.lax && path.is_definite() => Ok(None),
            Err(_) if self.lax => Ok(Some(Cow::Owned(Value::Array(Vec::new())))),
            Err(reason) => Err(reason),
        }
    }
}

/// The compiled paths of argument 1.
pub(super) enum Paths {
    Constant(Arc<JsonPath>),
    Varying(Mutex<HashMap<String, Arc<JsonPath>>>),
}

impl Paths {
    pub(super) fn of(call: &Call<'_>) -> Self {
        match call.text_literal(1) {
            Some(path) => Self::Constant(Arc::new(JsonPath::new(path))),
            None => Self::Varying(Mutex::default()),
        }
    }

    pub(super) fn get(&self, path: &str) -> Arc<JsonPath> {
        match self {
            Self::Constant(path) => Arc::clone(path),
            Self::Varying(known) => {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                if known.len() > 256 {
                    known.clear();
                }
                Arc::clone(
                    known
                        .entry_ref(path)
                        .or_insert_with(|| Arc::new(JsonPath::new(path))),
                )
            }
        }
    }
}
