//! Compares a transcript of ours with one of Flink's, statement by statement.
//!
//! The rules: errors agree with errors whatever their text; EXPLAIN is not compared; the lines of
//! SHOW and DESCRIBE must be equal; of queries the header and the rows are compared by the case's
//! [`Comparison`]. Doubles agree to 12 digits; character types of headers count as one type.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// How the rows of a case are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The same rows in the same order.
    Exact,
    /// The same rows in any order.
    Bag,
    /// The same final table.
    Folded,
}

impl Comparison {
    /// What the first line of a script asks for: `-- compare: bag`; exact without.
    #[must_use]
    pub fn of_script(script: &str) -> Self {
        match header(script, "compare") {
            Some("bag") => Self::Bag,
            Some("folded") => Self::Folded,
            _ => Self::Exact,
        }
    }
}

/// The value of `-- name: value` among the comments at the top of a script.
#[must_use]
pub fn header<'s>(script: &'s str, name: &str) -> Option<&'s str> {
    script
        .lines()
        .take_while(|line| line.starts_with("--"))
        .find_map(|line| {
            let (key, value) = line.trim_start_matches('-').trim().split_once(':')?;
            (key.trim() == name).then(|| value.trim())
        })
}

/// A statement of a transcript with what it gave.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// The statement.
    pub statement: String,
    lines: Vec<String>,
    error: Option<String>,
    header: Option<String>,
    rows: Vec<String>,
    ok: bool,
}

static ROW_START: LazyLock<Regex> = LazyLock::new(|| regex(r"^[+-][IUD]\["));
static COUNT_LINE: LazyLock<Regex> = LazyLock::new(|| regex(r"^# \d+ rows$"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"-?\d+(?:\.\d+(?:E-?\d+)?|E-?\d+)"));
static MODIFIER: LazyLock<Regex> = LazyLock::new(|| regex(r" NOT NULL| \*(?:ROWTIME|PROCTIME)\*"));
static CHARACTER: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(?:VAR)?CHAR\(\d+\)"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

impl Block {
    /// Header and rows of a query, for a diff; empty for other statements.
    #[must_use]
    pub fn result(&self) -> Vec<String> {
        let header = self.header.iter().map(|header| format!("# {header}"));
        header.chain(self.rows.iter().cloned()).collect()
    }
}

/// Cuts a transcript into its statements.
#[must_use]
pub fn parse(transcript: &str) -> Vec<Block> {
    let mut blocks: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for line in transcript.lines() {
        let text = line
            .strip_prefix("> ")
            .or_else(|| (line == ">").then_some(""));
        match (text, blocks.last_mut()) {
            (Some(text), Some((statement, body))) if body.is_empty() => statement.push(text),
            (Some(text), _) => blocks.push((vec![text], Vec::new())),
            (None, Some((_, body))) => body.push(line),
            (None, None) => {}
        }
    }
    blocks
        .into_iter()
        .map(|(statement, body)| block(&statement, &body))
        .collect()
}

fn block(statement: &[&str], body: &[&str]) -> Block {
    let mut rows: Vec<String> = Vec::new();
    // a row whose value holds a line break goes on to its closing bracket
    let mut open: Option<String> = None;
    for line in body {
        open = match open {
            None if ROW_START.is_match(line) => Some((*line).to_string()),
            None => None,
            Some(text) => Some(format!("{text}\n{line}")),
        };
        if open.as_ref().is_some_and(|text| text.ends_with(']')) {
            rows.extend(open.take().map(|row| canonical(&row)));
        }
    }
    let is_header = |line: &&&str| line.starts_with("# ") && !COUNT_LINE.is_match(line);
    let header = body.iter().find(is_header).map(|line| {
        let plain = MODIFIER.replace_all(&line[2..], "");
        CHARACTER.replace_all(&plain, "STRING").into_owned()
    });
    Block {
        statement: statement.join("\n"),
        error: body
            .iter()
            .find(|l| l.starts_with("ERROR"))
            .map(|l| (*l).to_string()),
        ok: body.contains(&"OK"),
        lines: body
            .iter()
            .filter(|l| !l.trim().is_empty())
            .map(|l| (*l).to_string())
            .collect(),
        header,
        rows,
    }
}

/// Numbers with a fraction or exponent, to 12 significant digits.
fn canonical(row: &str) -> String {
    let boundary = |c: Option<char>| {
        c.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '-')))
    };
    NUMBER
        .replace_all(row, |found: &Captures<'_>| {
            let (start, end) = found.get(0).map_or((0, 0), |m| (m.start(), m.end()));
            let free =
                boundary(row[..start].chars().next_back()) && boundary(row[end..].chars().next());
            match found[0].parse::<f64>() {
                Ok(value) if free => twelve_digits(value),
                _ => found[0].to_string(),
            }
        })
        .into_owned()
}

fn twelve_digits(value: f64) -> String {
    format!(
        "{:e}",
        format!("{value:.11e}").parse::<f64>().unwrap_or(value)
    )
}

/// Why the blocks do not agree; `None` when they do.
#[must_use]
pub fn difference(comparison: Comparison, want: &Block, got: &Block) -> Option<String> {
    if want.error.is_some() || got.error.is_some() {
        let shown = |b: &Block| b.error.clone().unwrap_or_else(|| "no error".into());
        let agree = want.error.is_some() == got.error.is_some();
        return (!agree).then(|| format!("want {}, got {}", shown(want), shown(got)));
    }
    let word = want.statement.split_whitespace().next().unwrap_or_default();
    if word.eq_ignore_ascii_case("EXPLAIN") {
        return None;
    }
    if want.header.is_none() && !want.ok {
        return (want.lines != got.lines)
            .then(|| format!("want {:?}, got {:?}", want.lines, got.lines));
    }
    if want.header != got.header {
        let shown = |b: &Block| b.header.clone().unwrap_or_else(|| "none".into());
        return Some(format!("columns: want {}, got {}", shown(want), shown(got)));
    }
    rows_difference(comparison, &want.rows, &got.rows)
}

/// Why the rows do not agree; `None` when they do.
#[must_use]
pub fn rows_difference(comparison: Comparison, want: &[String], got: &[String]) -> Option<String> {
    if comparison == Comparison::Exact {
        let longest = want.len().max(got.len());
        let at = (0..longest).find(|i| want.get(*i) != got.get(*i))?;
        let shown = |rows: &[String]| rows.get(at).map_or("(end)", String::as_str).to_string();
        return Some(format!(
            "row {}: want {}, got {}",
            at + 1,
            shown(want),
            shown(got)
        ));
    }
    let count = |rows: &[String]| {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for row in rows {
            if comparison == Comparison::Bag {
                *counts.entry(row.clone()).or_default() += 1;
            } else {
                let sign = if row.starts_with("+") { 1 } else { -1 };
                *counts.entry(row[2..].to_string()).or_default() += sign;
            }
        }
        counts.retain(|_, n| *n != 0);
        counts
    };
    let (want, got) = (count(want), count(got));
    let missing: Vec<_> = want
        .iter()
        .filter(|(row, n)| got.get(*row) != Some(n))
        .collect();
    let extra: Vec<_> = got
        .iter()
        .filter(|(row, n)| want.get(*row) != Some(n))
        .collect();
    if missing.is_empty() && extra.is_empty() {
        return None;
    }
    let shown = |rows: &[(&String, &i64)]| {
        let some: Vec<_> = rows
            .iter()
            .take(3)
            .map(|(row, n)| format!("{n} x {row}"))
            .collect();
        some.join(", ")
    };
    Some(format!(
        "want [{}], got [{}]",
        shown(&missing),
        shown(&extra)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLINK: &str = "> SELECT 1\n# a INT NOT NULL, b CHAR(1)\n+I[1, x]\n-D[1, x]\n# 2 rows\n";

    #[test]
    fn agrees_with_itself_and_tells_rows_apart() {
        let want = &parse(FLINK)[0];
        assert_eq!(difference(Comparison::Exact, want, want), None);
        let other = &parse(&FLINK.replace("-D[1, x]", "-D[2, x]"))[0];
        assert!(difference(Comparison::Exact, want, other).is_some());
        assert!(difference(Comparison::Folded, want, other).is_some());
    }

    #[test]
    fn character_types_and_nullability_of_headers_do_not_matter() {
        let other = FLINK
            .replace("INT NOT NULL", "INT")
            .replace("CHAR(1)", "STRING");
        assert_eq!(
            difference(Comparison::Exact, &parse(FLINK)[0], &parse(&other)[0]),
            None
        );
    }

    #[test]
    fn doubles_agree_to_twelve_digits() {
        assert_eq!(
            canonical("+I[0.30000000000000004, a1.5]"),
            canonical("+I[0.3, a1.5]")
        );
        assert_ne!(canonical("+I[0.3001]"), canonical("+I[0.3]"));
    }

    #[test]
    fn an_error_agrees_only_with_an_error() {
        let error = &parse("> SELECT 1\nERROR something\n")[0];
        assert!(difference(Comparison::Exact, error, &parse(FLINK)[0]).is_some());
        assert_eq!(difference(Comparison::Exact, error, error), None);
    }
}
