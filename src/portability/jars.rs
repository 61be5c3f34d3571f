//! The artifacts in which Flink has what is built in here.

use crate::connectors::Origin;
use crate::connectors::registry::{ConnectorContext, ConnectorRegistry};
use crate::formats;

/// Artifacts of Flink's own download, and what of ours is in them.
const DOWNLOADED: &[(&str, &[&str])] = &[
    (
        "flink-json",
        &[
            "json",
            "debezium-json",
            "canal-json",
            "maxwell-json",
            "ogg-json",
        ],
    ),
    ("flink-csv", &["csv"]),
    ("flink-connector-files", &["filesystem"]),
];

/// The connectors and formats that are built in here, of the artifact whose jar lies at `path`.
#[must_use]
pub fn built_in(path: &str) -> Vec<String> {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let mut found = Vec::new();
    for (artifact, names) in DOWNLOADED {
        if is_of(file, artifact) {
            found.extend(names.iter().map(ToString::to_string));
        }
    }
    let mut see = |origin, name: &str| {
        if matches!(origin, Origin::Jar(artifact) if is_of(file, artifact)) {
            found.push(name.to_string());
        }
    };
    for connector in ConnectorRegistry::standard(&ConnectorContext::default()).iter() {
        see(connector.origin(), connector.identifier());
    }
    for format in formats::formats() {
        see(format.origin(), format.identifier());
    }
    found
}

/// Whether a file is a version of an artifact, with or without its dependencies in it (`-sql-`).
fn is_of(file: &str, artifact: &str) -> bool {
    [artifact.to_string(), artifact.replacen("-sql-", "-", 1)]
        .iter()
        .filter_map(|name| file.strip_prefix(name.as_str()))
        .any(|rest| {
            let version = rest.strip_prefix('-').unwrap_or_default();
            rest == ".jar" || version.starts_with(|c: char| c.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jars_are_known_by_their_names() {
        #[cfg(feature = "kafka")]
        assert_eq!(
            built_in("/opt/flink/lib/flink-sql-connector-kafka-5.0.0-2.2.jar"),
            ["kafka", "upsert-kafka"]
        );
        assert_eq!(built_in("flink-parquet-2.3.0.jar"), ["parquet"]);
        assert_eq!(built_in("flink-sql-avro-2.3.0.jar"), ["avro"]);
        assert_eq!(built_in("file:///jars/flink-csv.jar"), ["csv"]);
        assert_eq!(built_in("my-functions-1.0.jar"), Vec::<String>::new());
    }
}
