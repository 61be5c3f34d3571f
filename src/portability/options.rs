//! The options of a table: its connector, its formats, and what each of them takes.

use indexmap::IndexMap;

use super::facts::{self, Kind};
use super::{Checker, jars};
use crate::connectors::options::{is_common_in_flink, spec_of};
use crate::connectors::{OptionSpec, Origin};
use crate::error::Span;
use crate::formats;
use crate::sql::ast::SqlOption;

/// The options that name a format.
const FORMAT_KEYS: [&str; 3] = ["format", "key.format", "value.format"];

/// A part of a table that takes options.
struct Part<'a> {
    kind: Kind,
    name: &'a str,
    /// In front of its options.
    prefix: String,
    specs: Vec<OptionSpec>,
}

impl Part<'_> {
    /// How a message calls it.
    fn noun(&self) -> String {
        match self.kind {
            Kind::Connector => format!("the connector '{}'", self.name),
            Kind::Format => format!("the format '{}'", self.name),
        }
    }
}

impl Checker {
    /// Checks the options that are written, of a table that has `all` of them.
    pub(super) fn options(&mut self, written: &[SqlOption], all: &IndexMap<String, String>) {
        let place = |key: &str| written.iter().find(|o| o.key == key).map(|o| o.span);
        let Some(name) = all.get("connector") else {
            // Flink's own old form, or a table of a catalog that needs none
            return;
        };
        if self.provided.contains(&name.to_lowercase()) {
            return;
        }
        let connector = self
            .session
            .connectors
            .iter()
            .find(|c| c.identifier() == name);
        let connector = connector.map(|c| (c.origin(), c.options()));
        let Some((origin, specs)) = connector else {
            self.unknown(Kind::Connector, name, place("connector"));
            return;
        };
        if !self.has(Kind::Connector, name, origin, place("connector")) {
            return;
        }
        let mut parts = vec![Part {
            kind: Kind::Connector,
            name,
            prefix: String::new(),
            specs,
        }];
        for key in FORMAT_KEYS {
            let Some(name) = all.get(key) else { continue };
            if self.provided.contains(&name.to_lowercase()) {
                return;
            }
            let Some(format) = formats::formats().find(|f| f.identifier() == name) else {
                self.unknown(Kind::Format, name, place(key));
                return;
            };
            if !self.has(Kind::Format, name, format.origin(), place(key)) {
                return;
            }
            parts.push(Part {
                kind: Kind::Format,
                name,
                prefix: format!("{}{name}.", key.trim_end_matches("format")),
                specs: format.options(),
            });
        }
        for option in written {
            self.option(option, &parts);
        }
    }

    fn option(&mut self, option: &SqlOption, parts: &[Part<'_>]) {
        let key = option.key.as_str();
        if is_common_in_flink(key) {
            return;
        }
        let mut owner = None;
        for part in parts {
            let Some(rest) = key.strip_prefix(&part.prefix) else {
                continue;
            };
            match spec_of(&part.specs, rest) {
                Some(spec) if spec.flink => return,
                Some(_) => owner = Some(part),
                None if facts::takes(part.kind, part.name, rest) => return,
                None => {}
            }
        }
        let noun = owner.or(parts.first()).map_or(String::new(), Part::noun);
        let hint = match owner {
            Some(_) => "leave it out for Flink, or set it in a hint of the query that runs here",
            None => "neither Flink's has it nor ours",
        };
        self.missing(
            format!("the option '{key}' of {noun}"),
            Some(option.span),
            hint,
        );
    }

    /// Whether Flink has a connector or format of ours; says so if not.
    fn has(&mut self, kind: Kind, name: &str, origin: Origin, place: Option<Span>) -> bool {
        let noun = match kind {
            Kind::Connector => "connector",
            Kind::Format => "format",
        };
        match origin {
            Origin::Flink => true,
            Origin::Jar(artifact) => {
                self.note(
                    &format!("the {noun} '{name}' is in Flink's artifact {artifact}"),
                    place,
                    "its jar has to lie in the cluster's lib folder, or ADD JAR names it",
                );
                true
            }
            Origin::Ebbflow => {
                self.missing(
                    format!("the {noun} '{name}'"),
                    place,
                    &format!(
                        "declare the table with a connector of Flink, or say with --with {name} that \
                         the cluster has one of this name"
                    ),
                );
                false
            }
        }
    }

    /// A connector or format that we do not have.
    fn unknown(&mut self, kind: Kind, name: &str, place: Option<Span>) {
        let noun = match kind {
            Kind::Connector => "connector",
            Kind::Format => "format",
        };
        if facts::has(kind, name) {
            return;
        }
        self.note(
            &format!(
                "the {noun} '{name}' is not in Flink's download, and its options are not known here"
            ),
            place,
            &format!("--with {name} says that the cluster has its jar"),
        );
    }

    /// A jar that the script adds.
    pub(super) fn provided_by(&mut self, path: &str) {
        for name in jars::built_in(path) {
            // no note that its jar is needed
            let (connector, format) = (
                self.session
                    .connectors
                    .iter()
                    .find(|c| c.identifier() == name),
                formats::formats().find(|f| f.identifier() == name),
            );
            let origins = [
                connector.map(|c| ("connector", c.origin())),
                format.map(|f| ("format", f.origin())),
            ];
            for (noun, origin) in origins.into_iter().flatten() {
                if let Origin::Jar(artifact) = origin {
                    self.noted.insert(format!(
                        "the {noun} '{name}' is in Flink's artifact {artifact}"
                    ));
                }
            }
        }
    }
}
