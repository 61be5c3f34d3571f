//! The connectors and formats of Flink 2.3 and their options, as its own factories told them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("flink-2.3.txt");

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Connector,
    Format,
}

/// The options of everything, by kind and name.
static FACTS: LazyLock<BTreeMap<(Kind, &'static str), Vec<&'static str>>> = LazyLock::new(|| {
    let line = |line: &'static str| {
        let mut words = line.split(' ');
        let kind = match words.next()? {
            "connector" => Kind::Connector,
            "format" => Kind::Format,
            _ => return None,
        };
        Some(((kind, words.next()?), words.collect()))
    };
    TEXT.lines().filter_map(line).collect()
});

/// Whether Flink has a connector or format of this name.
pub(super) fn has(kind: Kind, name: &str) -> bool {
    FACTS.contains_key(&(kind, name))
}

/// Whether Flink's connector or format of this name takes the option.
pub(super) fn takes(kind: Kind, name: &str, option: &str) -> bool {
    let options = FACTS.get(&(kind, name));
    options.into_iter().flatten().any(|known| {
        if let Some(prefix) = known.strip_suffix('*') {
            return option.len() > prefix.len() && option.starts_with(prefix);
        }
        match known.split_once('#') {
            Some((before, after)) => option
                .strip_prefix(before)
                .is_some_and(|rest| rest.len() > after.len() && rest.ends_with(after)),
            None => *known == option,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::registry::{ConnectorContext, ConnectorRegistry};
    use crate::connectors::{OptionSpec, Origin};
    use crate::formats;

    /// What the catalog of options says and Flink does not.
    fn differences(kind: Kind, name: &str, origin: Origin, specs: &[OptionSpec]) -> Vec<String> {
        let theirs = origin != Origin::Ebbflow;
        let mut found = Vec::new();
        if theirs != has(kind, name) {
            found.push(format!("{kind:?} {name}: {origin:?}"));
        }
        for spec in specs {
            // a key for a column's name, or one under a prefix
            let key = spec.key.replace('#', "column").replace('*', "any");
            if spec.flink != takes(kind, name, &key) {
                found.push(format!(
                    "{kind:?} {name}: {} is marked {}",
                    spec.key, spec.flink
                ));
            }
        }
        found
    }

    #[test]
    fn the_catalog_of_options_says_what_flink_says() {
        let registry = ConnectorRegistry::standard(&ConnectorContext::default());
        let mut found = Vec::new();
        for connector in registry.iter() {
            let (name, specs) = (connector.identifier(), connector.options());
            found.extend(differences(
                Kind::Connector,
                name,
                connector.origin(),
                &specs,
            ));
        }
        for format in formats::formats() {
            let (name, specs) = (format.identifier(), format.options());
            found.extend(differences(Kind::Format, name, format.origin(), &specs));
        }
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn keys_with_columns_and_prefixes_are_known() {
        assert!(takes(Kind::Connector, "datagen", "fields.f0.min"));
        assert!(takes(Kind::Connector, "kafka", "properties.acks"));
        assert!(!takes(Kind::Connector, "kafka", "properties."));
        assert!(!takes(Kind::Connector, "datagen", "seed"));
        assert!(!has(Kind::Format, "datagen"));
    }
}
