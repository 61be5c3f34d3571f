//! Checks and reads the options of `WITH (...)`: unknown keys are refused by name, missing ones are
//! listed, malformed values say what is allowed.

use std::str::FromStr;
use std::time::Duration;

use indexmap::IndexMap;

use super::{OptionSpec, TableDescription};
use crate::error::{Error, Result, did_you_mean};

/// Options that every source or sink takes, whatever its connector.
const COMMON: [&str; 5] = [
    "connector",
    "property-version",
    "scan.parallelism",
    "sink.parallelism",
    "scan.watermark.*",
];

/// An option of Flink that need not be given.
#[must_use]
pub fn optional(key: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec {
        key,
        required: false,
        help,
        flink: true,
        secret: false,
    }
}

/// An option of Flink that must be given.
#[must_use]
pub fn required(key: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec {
        required: true,
        ..optional(key, help)
    }
}

/// `scan.parallelism`, for connectors of which Flink's have it.
#[must_use]
pub fn scan_parallelism() -> OptionSpec {
    optional("scan.parallelism", "without effect: as parallelism.default")
}

/// `sink.parallelism`, for connectors of which Flink's have it.
#[must_use]
pub fn sink_parallelism() -> OptionSpec {
    optional("sink.parallelism", "without effect: as parallelism.default")
}

/// Options that every table of Flink takes.
const OF_EVERY_TABLE: [&str; 3] = ["connector", "property-version", "scan.watermark.*"];

/// Whether Flink's tables take an option whatever their connector.
#[must_use]
pub fn is_common_in_flink(key: &str) -> bool {
    OF_EVERY_TABLE.iter().any(|spec| allows(spec, key))
}

/// The spec that allows `key`: itself, or one with a prefix or a column's name in it.
#[must_use]
pub fn spec_of<'a>(specs: &'a [OptionSpec], key: &str) -> Option<&'a OptionSpec> {
    let same = |spec: &&OptionSpec| spec.key == key;
    let wide = |spec: &&OptionSpec| match spec.key.split_once('#') {
        Some((before, after)) => key
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|column| !column.is_empty()),
        None => allows(spec.key, key),
    };
    specs.iter().find(same).or_else(|| specs.iter().find(wide))
}

/// Whether `key` is what `spec` allows: itself, or any key under `prefix.*`.
fn allows(spec: &str, key: &str) -> bool {
    match spec.strip_suffix('*') {
        Some(prefix) => key.len() > prefix.len() && key.starts_with(prefix),
        None => spec == key,
    }
}

/// Refuses options that none of `specs` allows and names required ones that are missing.
///
/// # Errors
/// When an option is unknown or missing.
pub fn validate(identifier: &str, table: &TableDescription, specs: &[OptionSpec]) -> Result<()> {
    let missing: Vec<&str> = specs
        .iter()
        .filter(|s| s.required && !table.options.contains_key(s.key))
        .map(|s| s.key)
        .collect();
    if !missing.is_empty() {
        return Err(missing_required(&missing));
    }
    let supported = specs.iter().map(|s| s.key.to_string()).collect();
    refuse_unknown(identifier, table, supported)
}

/// Refuses options that are neither common to all tables nor among `supported`: keys, or prefixes
/// that end in `.*`.
///
/// # Errors
/// When an option is unknown.
pub fn refuse_unknown(
    identifier: &str,
    table: &TableDescription,
    mut supported: Vec<String>,
) -> Result<()> {
    let allowed = |key: &str| {
        COMMON
            .iter()
            .copied()
            .chain(supported.iter().map(String::as_str))
            .any(|spec| allows(spec, key))
    };
    let unknown: Vec<&str> = table
        .options
        .keys()
        .map(String::as_str)
        .filter(|key| !allowed(key))
        .collect();
    let Some(first) = unknown.first() else {
        return Ok(());
    };
    supported.push("connector".into());
    supported.sort();
    supported.dedup();
    let error = Error::options(format!(
        "Unsupported options found for '{identifier}'.\n\nUnsupported options:\n\n{}\n\n\
         Supported options:\n\n{}",
        unknown.join("\n"),
        supported.join("\n")
    ));
    Err(
        match did_you_mean(first, supported.iter().map(String::as_str)) {
            Some(close) => error.hint(format!("did you mean '{close}'?")),
            None => error,
        },
    )
}

/// The error for options that must be given and are not.
pub(crate) fn missing_required(keys: &[&str]) -> Error {
    Error::options(format!(
        "One or more required options are missing.\n\nMissing required options are:\n\n{}",
        keys.join("\n")
    ))
}

/// Reads typed values out of a table's options.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    map: &'a IndexMap<String, String>,
}

impl<'a> Options<'a> {
    /// The options of `table`.
    #[must_use]
    pub fn of(table: &'a TableDescription) -> Self {
        Self {
            map: &table.options,
        }
    }

    /// The text of an option, if it is given.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.map.get(key).map(String::as_str)
    }

    /// The text of an option that must be given.
    ///
    /// # Errors
    /// When it is not.
    pub fn required(&self, key: &str) -> Result<&'a str> {
        self.get(key).ok_or_else(|| missing_required(&[key]))
    }

    /// A value that is parsed by its type, if it is given.
    ///
    /// # Errors
    /// When the text is not of the type.
    pub fn parsed<T: FromStr>(&self, key: &str, what: &str) -> Result<Option<T>> {
        self.get(key)
            .map(|text| {
                text.trim()
                    .parse()
                    .map_err(|_| wrong_value(key, text, &format!("{what} is expected")))
            })
            .transpose()
    }

    /// `true` or `false` in any case, or `default`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn boolean(&self, key: &str, default: bool) -> Result<bool> {
        match self.get(key) {
            None => Ok(default),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(wrong_value(key, text, "'true' or 'false' is expected")),
        }
    }

    /// A duration (`5 s`, `1 min`, `200ms`), if it is given.
    ///
    /// # Errors
    /// When the text is not a duration.
    pub fn duration(&self, key: &str) -> Result<Option<Duration>> {
        self.get(key)
            .map(|text| {
                parse_duration(text).ok_or_else(|| {
                    wrong_value(key, text, "a number with a unit is expected, as in '5 s'")
                })
            })
            .transpose()
    }

    /// A number of bytes (`128 mb`), if it is given.
    ///
    /// # Errors
    /// When the text is not a size.
    pub fn memory_size(&self, key: &str) -> Result<Option<u64>> {
        self.get(key)
            .map(|text| {
                parse_memory_size(text).ok_or_else(|| {
                    wrong_value(key, text, "a size with a unit is expected, as in '128 mb'")
                })
            })
            .transpose()
    }

    /// One of a few words, compared without regard to case, or the first of them when it is not given.
    ///
    /// # Errors
    /// When it is none of them.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)], default: T) -> Result<T> {
        let Some(text) = self.get(key) else {
            return Ok(default);
        };
        choices
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                let names: Vec<_> = choices.iter().map(|(n, _)| *n).collect();
                Error::options(format!(
                    "Unsupported value '{text}' for {key}. Supported values are [{}].",
                    names.join(", ")
                ))
            })
    }
}

/// The error for a value that an option does not take.
pub(crate) fn wrong_value(key: &str, text: &str, expected: &str) -> Error {
    Error::options(format!(
        "Invalid value for option '{key}': {expected}, but was: '{text}'"
    ))
}

fn number_and_unit(text: &str) -> Option<(u64, String)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim().to_lowercase()))
}

/// Reads Flink's durations: `1 d`, `2 h`, `3 min`, `4 s`, `5 ms`; without a unit milliseconds.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let nanos: u64 = match unit.as_str() {
        "d" | "day" | "days" => 86_400_000_000_000,
        "h" | "hour" | "hours" => 3_600_000_000_000,
        "m" | "min" | "minute" | "minutes" => 60_000_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "" | "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1_000_000,
        "us" | "µs" | "micro" | "micros" | "microsecond" | "microseconds" => 1_000,
        "ns" | "nano" | "nanos" | "nanosecond" | "nanoseconds" => 1,
        _ => return None,
    };
    number.checked_mul(nanos).map(Duration::from_nanos)
}

/// Reads Flink's sizes: `128 mb`, `1g`; without a unit bytes.
#[must_use]
pub fn parse_memory_size(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let bytes: u64 = match unit.as_str() {
        "" | "b" | "bytes" => 1,
        "k" | "kb" | "kibibytes" => 1 << 10,
        "m" | "mb" | "mebibytes" => 1 << 20,
        "g" | "gb" | "gibibytes" => 1 << 30,
        "t" | "tb" | "tebibytes" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::testing::table;

    #[test]
    fn unknown_option_is_named_with_the_closest_known_one() {
        let t = table("a INT", &[("connector", "x"), ("number-of-row", "1")]);
        let specs = [optional("number-of-rows", ""), optional("p.*", "")];
        let error = validate("x", &t, &specs).unwrap_err();
        assert_eq!(
            error.message(),
            "Unsupported options found for 'x'.\n\nUnsupported options:\n\nnumber-of-row\n\nSupported options:\n\nconnector\nnumber-of-rows\np.*"
        );
        assert_eq!(error.hint_text(), Some("did you mean 'number-of-rows'?"));
    }

    #[test]
    fn common_options_and_prefixes_are_allowed() {
        let t = table(
            "a INT",
            &[
                ("connector", "x"),
                ("scan.parallelism", "2"),
                ("scan.watermark.emit.strategy", "on-event"),
                ("properties.z", ""),
            ],
        );
        validate("x", &t, &[optional("properties.*", "")]).unwrap();
        assert!(validate("x", &t, &[]).is_err());
    }

    #[test]
    fn a_spec_is_found_by_name_prefix_or_column() {
        let specs = [
            optional("properties.*", ""),
            optional("properties.group.id", "own"),
            optional("fields.#.min", ""),
        ];
        let help = |key| spec_of(&specs, key).map(|s| (s.key, s.help));
        assert_eq!(
            help("properties.group.id"),
            Some(("properties.group.id", "own"))
        );
        assert_eq!(help("properties.x"), Some(("properties.*", "")));
        assert_eq!(help("fields.a.b.min"), Some(("fields.#.min", "")));
        assert_eq!(help("fields.min"), None);
        assert!(is_common_in_flink("scan.watermark.emit.strategy"));
        assert!(!is_common_in_flink("scan.parallelism"));
    }

    #[test]
    fn missing_required_option_is_named() {
        let t = table("a INT", &[("connector", "x")]);
        let error = validate("x", &t, &[required("path", "")]).unwrap_err();
        assert!(error.message().ends_with("are:\n\npath"), "{error}");
    }

    #[test]
    fn durations_and_sizes_as_in_flink() {
        assert_eq!(parse_duration("5 s"), Some(Duration::from_secs(5)));
        assert_eq!(parse_duration("1min"), Some(Duration::from_mins(1)));
        assert_eq!(parse_duration("12"), Some(Duration::from_millis(12)));
        assert_eq!(parse_duration("s"), None);
        assert_eq!(parse_duration("1 parsec"), None);
        assert_eq!(parse_memory_size("128 mb"), Some(128 << 20));
        assert_eq!(parse_memory_size("99999999999999999999"), None);
    }
}
