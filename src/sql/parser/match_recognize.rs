//! `MATCH_RECOGNIZE`.

use sqlparser::ast::{
    AfterMatchSkip, Expr, Ident, MatchRecognizePattern, MatchRecognizeSymbol, Measure,
    RepetitionQuantifier, RowsPerMatch, SymbolDefinition, TableFactor,
};

use super::FlinkParser;
use crate::error::{Error, Result};

impl FlinkParser<'_> {
    /// What follows the keyword; the alias is read by the caller.
    pub(super) fn match_recognize(&mut self, table: TableFactor) -> Result<TableFactor> {
        self.expect_symbol("(")?;
        let partition_by = if self.take_words(&["PARTITION", "BY"]) {
            self.comma_separated(Self::expr)?
        } else {
            Vec::new()
        };
        let order_by = if self.take_words(&["ORDER", "BY"]) {
            self.comma_separated(Self::order_key)?
        } else {
            Vec::new()
        };
        let measures = if self.take_word("MEASURES") {
            self.comma_separated(|p| {
                let expr = p.expr()?;
                p.expect_word("AS")?;
                let alias = p.ident()?;
                Ok(Measure { expr, alias })
            })?
        } else {
            Vec::new()
        };
        let rows_per_match = self.rows_per_match()?;
        let after_match_skip = self.after_match_skip()?;
        self.expect_word("PATTERN")?;
        self.expect_symbol("(")?;
        // anchors at both ends, that Flink leaves out of account
        self.take_symbol("^");
        let pattern = self.pattern()?;
        self.take_word("$");
        self.expect_symbol(")")?;
        let mut symbols = Vec::new();
        if self.take_word("WITHIN") {
            symbols.push(SymbolDefinition {
                symbol: Ident::new(""),
                definition: self.expr()?,
            });
        }
        if self.peek_word("SUBSET") {
            return Err(self.unsupported("SUBSET"));
        }
        self.expect_word("DEFINE")?;
        symbols.extend(self.comma_separated(|p| {
            let symbol = p.ident()?;
            p.expect_word("AS")?;
            let definition = p.expr()?;
            Ok(SymbolDefinition { symbol, definition })
        })?);
        self.expect_symbol(")")?;
        Ok(TableFactor::MatchRecognize {
            table: Box::new(table),
            partition_by,
            order_by,
            measures,
            rows_per_match,
            after_match_skip,
            pattern,
            symbols,
            alias: None,
        })
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::plan(format!("{what} is not supported in MATCH_RECOGNIZE")).at(self.here())
    }

    fn rows_per_match(&mut self) -> Result<Option<RowsPerMatch>> {
        if self.take_words(&["ONE", "ROW", "PER", "MATCH"]) {
            return Ok(Some(RowsPerMatch::OneRow));
        }
        if self.take_words(&["ALL", "ROWS", "PER", "MATCH"]) {
            return Ok(Some(RowsPerMatch::AllRows(None)));
        }
        Ok(None)
    }

    fn after_match_skip(&mut self) -> Result<Option<AfterMatchSkip>> {
        if !self.take_words(&["AFTER", "MATCH"]) {
            return Ok(None);
        }
        self.expect_word("SKIP")?;
        if self.take_words(&["PAST", "LAST", "ROW"]) {
            return Ok(Some(AfterMatchSkip::PastLastRow));
        }
        self.expect_word("TO")?;
        if self.take_words(&["NEXT", "ROW"]) {
            return Ok(Some(AfterMatchSkip::ToNextRow));
        }
        // without FIRST or LAST a variable means its last row
        if self.peek_word("FIRST") && self.is_name_at(1) {
            self.skip(1);
            return Ok(Some(AfterMatchSkip::ToFirst(self.ident()?)));
        }
        if self.peek_word("LAST") && self.is_name_at(1) {
            self.skip(1);
        }
        Ok(Some(AfterMatchSkip::ToLast(self.ident()?)))
    }

    fn pattern(&mut self) -> Result<MatchRecognizePattern> {
        self.nested(|p| {
            let mut branches = vec![p.pattern_sequence()?];
            while p.take_symbol("|") {
                branches.push(p.pattern_sequence()?);
            }
            Ok(one_or(branches, MatchRecognizePattern::Alternation))
        })
    }

    fn pattern_sequence(&mut self) -> Result<MatchRecognizePattern> {
        let mut factors = vec![self.pattern_factor()?];
        let ends = [")", "|", "-}"];
        while !self.peek_word("$") && !ends.iter().any(|end| self.peek_symbol(end)) {
            factors.push(self.pattern_factor()?);
        }
        Ok(one_or(factors, MatchRecognizePattern::Concat))
    }

    fn pattern_factor(&mut self) -> Result<MatchRecognizePattern> {
        let mut factor = self.pattern_primary()?;
        if let Some(quantifier) = self.quantifier()? {
            factor = MatchRecognizePattern::Repetition(Box::new(factor), quantifier);
            // a question mark behind a quantifier makes it reluctant
            if self.take_symbol("?") {
                factor = MatchRecognizePattern::Repetition(
                    Box::new(factor),
                    RepetitionQuantifier::AtMostOne,
                );
            }
        }
        Ok(factor)
    }

    fn pattern_primary(&mut self) -> Result<MatchRecognizePattern> {
        if self.peek_word("PERMUTE") {
            return Err(self.unsupported("PERMUTE"));
        }
        if self.peek_symbol("{-") {
            return Err(self.unsupported("{- -}"));
        }
        if self.peek_symbol("^") || self.peek_word("$") {
            return Err(self.unsupported("An anchor"));
        }
        if self.take_symbol("(") {
            let inner = self.pattern()?;
            self.expect_symbol(")")?;
            return Ok(MatchRecognizePattern::Group(Box::new(inner)));
        }
        let name = self.ident()?;
        Ok(MatchRecognizePattern::Symbol(MatchRecognizeSymbol::Named(
            name,
        )))
    }

    fn quantifier(&mut self) -> Result<Option<RepetitionQuantifier>> {
        for (symbol, quantifier) in [
            ("*", RepetitionQuantifier::ZeroOrMore),
            ("+", RepetitionQuantifier::OneOrMore),
            ("?", RepetitionQuantifier::AtMostOne),
        ] {
            if self.take_symbol(symbol) {
                return Ok(Some(quantifier));
            }
        }
        if !self.take_symbol("{") {
            return Ok(None);
        }
        let quantifier = if self.take_symbol(",") {
            RepetitionQuantifier::AtMost(self.integer("a number of repetitions")?)
        } else {
            let least = self.integer("a number of repetitions")?;
            if !self.take_symbol(",") {
                RepetitionQuantifier::Exactly(least)
            } else if self.peek_symbol("}") {
                RepetitionQuantifier::AtLeast(least)
            } else {
                RepetitionQuantifier::Range(least, self.integer("a number of repetitions")?)
            }
        };
        self.expect_symbol("}")?;
        Ok(Some(quantifier))
    }
}

fn one_or(
    mut patterns: Vec<MatchRecognizePattern>,
    many: fn(Vec<MatchRecognizePattern>) -> MatchRecognizePattern,
) -> MatchRecognizePattern {
    match patterns.pop() {
        Some(only) if patterns.is_empty() => only,
        Some(last) => {
            patterns.push(last);
            many(patterns)
        }
        None => many(patterns),
    }
}

/// How often a pattern variable repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantifier {
    /// At least.
    pub least: u32,
    /// At most; `None` without bound.
    pub most: Option<u32>,
    /// As many as possible rather than as few.
    pub greedy: bool,
}

/// What is repeated by `pattern`, and how often; anything but a repetition occurs once.
#[must_use]
pub fn quantified(pattern: &MatchRecognizePattern) -> (&MatchRecognizePattern, Quantifier) {
    let bounds = |quantifier: &RepetitionQuantifier| match *quantifier {
        RepetitionQuantifier::ZeroOrMore => (0, None),
        RepetitionQuantifier::OneOrMore => (1, None),
        RepetitionQuantifier::AtMostOne => (0, Some(1)),
        RepetitionQuantifier::Exactly(n) => (n, Some(n)),
        RepetitionQuantifier::AtLeast(n) => (n, None),
        RepetitionQuantifier::AtMost(n) => (0, Some(n)),
        RepetitionQuantifier::Range(n, m) => (n, Some(m)),
    };
    let make = |quantifier, greedy| {
        let (least, most) = bounds(quantifier);
        Quantifier {
            least,
            most,
            greedy,
        }
    };
    match pattern {
        MatchRecognizePattern::Repetition(outer, last) => match outer.as_ref() {
            MatchRecognizePattern::Repetition(inner, quantifier) => {
                (inner, make(quantifier, false))
            }
            _ => (outer, make(last, true)),
        },
        _ => (
            pattern,
            Quantifier {
                least: 1,
                most: Some(1),
                greedy: true,
            },
        ),
    }
}

/// The `WITHIN` interval of a `MATCH_RECOGNIZE`, and its definitions proper.
#[must_use]
pub fn within(symbols: &[SymbolDefinition]) -> (Option<&Expr>, &[SymbolDefinition]) {
    match symbols.split_first() {
        Some((first, rest)) if first.symbol.value.is_empty() => (Some(&first.definition), rest),
        _ => (None, symbols),
    }
}
