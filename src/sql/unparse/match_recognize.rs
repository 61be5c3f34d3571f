//! `MATCH_RECOGNIZE`.

use sqlparser::ast::{
    AfterMatchSkip, MatchRecognizePattern, MatchRecognizeSymbol, RepetitionQuantifier,
    RowsPerMatch, TableFactor,
};

use super::super::parser::within;
use super::Writer;

impl Writer {
    pub(super) fn match_recognize(&mut self, factor: &TableFactor) {
        let TableFactor::MatchRecognize {
            table,
            partition_by,
            order_by,
            measures,
            rows_per_match,
            after_match_skip,
            pattern,
            symbols,
            ..
        } = factor
        else {
            return;
        };
        self.table_factor(table);
        self.push(" MATCH_RECOGNIZE(");
        if !partition_by.is_empty() {
            self.push("\nPARTITION BY ");
            self.exprs(partition_by);
        }
        if !order_by.is_empty() {
            self.push("\nORDER BY ");
            self.order_keys(order_by);
        }
        if !measures.is_empty() {
            self.push("\nMEASURES ");
            self.list(measures, |w, measure| {
                w.expr(&measure.expr, 0, 20);
                w.push(" AS ");
                w.ident(&measure.alias);
            });
        }
        match rows_per_match {
            Some(RowsPerMatch::OneRow) => self.push("\nONE ROW PER MATCH"),
            Some(RowsPerMatch::AllRows(_)) => self.push("\nALL ROWS PER MATCH"),
            None => {}
        }
        if let Some(skip) = after_match_skip {
            self.push("\nAFTER MATCH SKIP ");
            match skip {
                AfterMatchSkip::PastLastRow => self.push("PAST LAST ROW"),
                AfterMatchSkip::ToNextRow => self.push("TO NEXT ROW"),
                AfterMatchSkip::ToFirst(name) => {
                    self.push("TO FIRST ");
                    self.ident(name);
                }
                AfterMatchSkip::ToLast(name) => {
                    self.push("TO LAST ");
                    self.ident(name);
                }
            }
        }
        self.push("\nPATTERN (");
        self.pattern(pattern);
        self.push(")");
        let (limit, definitions) = within(symbols);
        if let Some(limit) = limit {
            self.push(" WITHIN ");
            self.expr(limit, 0, 0);
        }
        self.push("\nDEFINE ");
        self.list(definitions, |w, definition| {
            w.ident(&definition.symbol);
            w.push(" AS ");
            w.expr(&definition.definition, 0, 0);
        });
        self.push(")");
    }

    fn pattern(&mut self, pattern: &MatchRecognizePattern) {
        match pattern {
            MatchRecognizePattern::Symbol(MatchRecognizeSymbol::Named(name)) => self.ident(name),
            MatchRecognizePattern::Concat(all) => {
                for (i, part) in all.iter().enumerate() {
                    self.push(if i > 0 { " " } else { "" });
                    self.pattern(part);
                }
            }
            MatchRecognizePattern::Alternation(all) => {
                for (i, part) in all.iter().enumerate() {
                    self.push(if i > 0 { " | " } else { "" });
                    self.pattern(part);
                }
            }
            MatchRecognizePattern::Group(inner) => {
                self.push("(");
                self.pattern(inner);
                self.push(")");
            }
            MatchRecognizePattern::Repetition(inner, quantifier) => {
                self.pattern(inner);
                self.push(&match quantifier {
                    RepetitionQuantifier::ZeroOrMore => " *".to_string(),
                    RepetitionQuantifier::OneOrMore => " +".to_string(),
                    RepetitionQuantifier::AtMostOne => " ?".to_string(),
                    RepetitionQuantifier::Exactly(n) => format!(" {{ {n} }}"),
                    RepetitionQuantifier::AtLeast(n) => format!(" {{ {n}, }}"),
                    RepetitionQuantifier::AtMost(n) => format!(" {{ , {n} }}"),
                    RepetitionQuantifier::Range(n, m) => format!(" {{ {n}, {m} }}"),
                });
            }
            other => self.push(&other.to_string()),
        }
    }
}
