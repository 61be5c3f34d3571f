//! Settings from outside of scripts: `-D key=value` and a TOML file.

use std::path::Path;

use toml::Value;

use crate::error::{Error, Result};

/// Parses `key=value`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().into(), value.trim().into()))
        }
        _ => Err(format!("expected key=value, got '{text}'")),
    }
}

/// What a file sets; tables of the file are prefixes: `[table.exec.state] ttl = "1 h"`.
///
/// # Errors
/// When the file cannot be read or is no TOML.
pub(super) fn read(path: &Path) -> Result<Vec<(String, String)>> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Error::options(format!("cannot read '{}': {e}", path.display())))?;
    let in_file = |e: Error| e.context(format!("file '{}'", path.display()));
    let table: toml::Table = text
        .parse()
        .map_err(|e: toml::de::Error| in_file(Error::options(e.to_string())))?;
    let mut pairs = Vec::new();
    flatten(None, &Value::Table(table), &mut pairs).map_err(in_file)?;
    Ok(pairs)
}

fn flatten(key: Option<&str>, value: &Value, pairs: &mut Vec<(String, String)>) -> Result<()> {
    let text = match (value, key) {
        (Value::Table(table), _) => {
            for (name, value) in table {
                let full = key.map_or_else(|| name.clone(), |k| format!("{k}.{name}"));
                flatten(Some(&full), value, pairs)?;
            }
            return Ok(());
        }
        (Value::String(text), _) => text.clone(),
        (Value::Array(_), _) => {
            return Err(Error::options(format!(
                "the value of '{}' is a list; settings are texts, numbers and booleans",
                key.unwrap_or_default()
            )));
        }
        (other, _) => other.to_string(),
    };
    pairs.push((key.unwrap_or_default().into(), text));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_a_file_are_prefixes_of_keys() {
        let table: toml::Table = "'parallelism.default' = 2\n[table.exec]\nstate.ttl = '1 h'\n"
            .parse()
            .expect("TOML");
        let mut pairs = Vec::new();
        flatten(None, &Value::Table(table), &mut pairs).expect("flat");
        pairs.sort();
        let want = [
            ("parallelism.default", "2"),
            ("table.exec.state.ttl", "1 h"),
        ];
        assert_eq!(pairs, want.map(|(k, v)| (k.to_string(), v.to_string())));
    }
}
