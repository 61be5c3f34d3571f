//! Which columns lie in a record's key and which in its value.

use crate::connectors::TableDescription;
use crate::connectors::options::Options;
use crate::error::{Error, Result};
use crate::types::{Column, Schema};

/// The physical columns of a table, shared out among key and value.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    /// Columns of the key, as indices into the physical columns; empty without a key format.
    pub(super) key: Vec<usize>,
    /// Columns of the value.
    pub(super) value: Vec<usize>,
    /// In front of the key's columns in the table, not in the record.
    prefix: String,
}

impl Fields {
    /// Reads `key.fields`, `key.fields-prefix` and `value.fields-include`. With `upsert` the key is
    /// the primary key.
    pub(super) fn read(table: &TableDescription, upsert: bool) -> Result<Self> {
        #[derive(Clone, Copy, PartialEq)]
        enum Include {
            All,
            ExceptKey,
        }
        let options = Options::of(table);
        let prefix = options.get("key.fields-prefix").unwrap_or("").to_string();
        let names: Option<Vec<&str>> = if upsert {
            let names = table.primary_key.iter();
            Some(
                names
                    .map(|i| table.physical.columns[*i].name.as_str())
                    .collect(),
            )
        } else {
            options.get("key.fields").map(|text| {
                let names = text.split(';').map(str::trim);
                names.filter(|n| !n.is_empty()).collect()
            })
        };
        let key = match (options.get("key.format"), names) {
            (None, Some(_)) => {
                return Err(Error::options(
                    "The option 'key.fields' can only be declared if a key format is defined using \
                     'key.format'.",
                ));
            }
            (None, None) => Vec::new(),
            (Some(_), names) => {
                let names = names.filter(|n| !n.is_empty()).ok_or_else(|| {
                    Error::options(
                        "A key format 'key.format' requires the declaration of one or more of key \
                         fields using 'key.fields'.",
                    )
                })?;
                names
                    .into_iter()
                    .map(|name| key_column(table, name, &prefix))
                    .collect::<Result<_>>()?
            }
        };
        let include = options.choice(
            "value.fields-include",
            &[("ALL", Include::All), ("EXCEPT_KEY", Include::ExceptKey)],
            Include::All,
        )?;
        if include == Include::All && !prefix.is_empty() {
            return Err(Error::options(
                "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'. Set \
                 it to 'EXCEPT_KEY' instead to avoid field overlaps.",
            ));
        }
        let value = (0..table.physical.len())
            .filter(|i| include == Include::All || !key.contains(i))
            .collect();
        Ok(Self { key, value, prefix })
    }

    /// The key's columns by their names in the record.
    pub(super) fn key_schema(&self, physical: &Schema) -> Schema {
        let mut schema = physical.project(&self.key);
        for column in &mut schema.columns {
            if let Some(name) = column.name.strip_prefix(&self.prefix) {
                *column = Column::new(name, column.data_type.clone());
            }
        }
        schema
    }

    /// The value's columns.
    pub(super) fn value_schema(&self, physical: &Schema) -> Schema {
        physical.project(&self.value)
    }
}

fn key_column(table: &TableDescription, name: &str, prefix: &str) -> Result<usize> {
    let position = table.physical.index_of(name).ok_or_else(|| {
        Error::options(format!(
            "Could not find the field '{name}' in the table schema for usage in the key format. A key \
             field must be a regular, physical column. The following columns can be selected in the \
             'key.fields' option:\n[{}]",
            table.physical.names().join(", ")
        ))
    })?;
    if !name.starts_with(prefix) {
        return Err(Error::options(format!(
            "All fields in 'key.fields' must be prefixed with '{prefix}' when option \
             'key.fields-prefix' is set but field '{name}' is not prefixed."
        )));
    }
    Ok(position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::testing::table;

    fn fields(options: &[(&str, &str)]) -> Result<Fields> {
        Fields::read(&table("k_id INT, v STRING, k_x INT", options), false)
    }

    #[test]
    fn columns_are_shared_out() {
        let all = fields(&[("key.format", "json"), ("key.fields", "k_x;k_id")]).unwrap();
        assert_eq!((all.key, all.value), (vec![2, 0], vec![0, 1, 2]));
        let options = [
            ("key.format", "json"),
            ("key.fields", "k_id"),
            ("key.fields-prefix", "k_"),
            ("value.fields-include", "EXCEPT_KEY"),
        ];
        let some = fields(&options).unwrap();
        assert_eq!((&some.key, &some.value), (&vec![0], &vec![1, 2]));
        let t = table("k_id INT, v STRING, k_x INT", &[]);
        assert_eq!(some.key_schema(&t.physical).names(), ["id"]);
        let plain = fields(&[]).unwrap();
        assert_eq!((plain.key, plain.value), (vec![], vec![0, 1, 2]));
    }

    #[test]
    fn contradictions_are_refused() {
        for (options, expected) in [
            (vec![("key.fields", "v")], "'key.format'"),
            (vec![("key.format", "json")], "requires the declaration"),
            (
                vec![("key.format", "json"), ("key.fields", "nope")],
                "[k_id, v, k_x]",
            ),
            (
                vec![
                    ("key.format", "json"),
                    ("key.fields", "v"),
                    ("key.fields-prefix", "k_"),
                    ("value.fields-include", "EXCEPT_KEY"),
                ],
                "'v' is not prefixed",
            ),
            (vec![("key.fields-prefix", "k_")], "EXCEPT_KEY"),
        ] {
            let error = fields(&options).unwrap_err();
            assert!(error.message().contains(expected), "{error}");
        }
    }
}
