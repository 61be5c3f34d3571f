//! The functions that a query calls and the options that its hints set, with their places.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, ObjectName, Query, TableFactor, Visit as _, Visitor};

use crate::error::Span;
use crate::functions::refused;
use crate::sql::ast::SqlOption;
use crate::sql::{hints, is_reserved, span_of_name};

/// The names under which Flink lists the functions of its core module.
const CORE_FUNCTIONS: &str = include_str!("../session/core_functions.txt");

/// Forms of the grammar that look like calls.
const FORMS: &[&str] = &[
    "CLASSIFIER",
    "CUMULATE",
    "DEFAULT",
    "DESCRIPTOR",
    "FINAL",
    "FIRST",
    "GROUP_ID",
    "HOP",
    "HOP_END",
    "HOP_PROCTIME",
    "HOP_ROWTIME",
    "HOP_START",
    "ITEM",
    "LAST",
    "MATCH_PROCTIME",
    "MATCH_ROWTIME",
    "NEXT",
    "PREV",
    "RUNNING",
    "SESSION",
    "SESSION_END",
    "SESSION_PROCTIME",
    "SESSION_ROWTIME",
    "SESSION_START",
    "SOURCE_WATERMARK",
    "TUMBLE",
    "TUMBLE_END",
    "TUMBLE_PROCTIME",
    "TUMBLE_ROWTIME",
    "TUMBLE_START",
];

/// What a query names.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Functions as they are written, with their places.
    pub(super) functions: Vec<(String, Span)>,
    /// Tables with options in a hint.
    pub(super) hints: Vec<(ObjectName, Vec<SqlOption>)>,
}

/// Whether Flink has a function of this name, whatever we have.
pub(super) fn is_known_to_flink(name: &str) -> bool {
    let same = |known: &str| known.eq_ignore_ascii_case(name);
    CORE_FUNCTIONS.lines().any(same)
        || FORMS.iter().any(|form| same(form))
        || refused::refusal(name).is_some()
        // without quotes a reserved word is the grammar's
        || is_reserved(&name.to_ascii_uppercase())
}

/// The names of a query.
pub(super) fn of_query(query: &Query) -> Names {
    let mut names = Names::default();
    // it never breaks
    let _ = query.visit(&mut names);
    names
}

impl Names {
    fn function(&mut self, name: &ObjectName) {
        // what the grammar makes of a form has no place
        if let ([part], Some(span)) = (name.0.as_slice(), span_of_name(name))
            && let Some(ident) = part.as_ident()
        {
            self.functions.push((ident.value.clone(), span));
        }
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr {
            self.function(&function.name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table {
                name, with_hints, ..
            } => {
                let span = span_of_name(name).unwrap_or_default();
                let options: Vec<SqlOption> = hints::of_table(with_hints)
                    .into_iter()
                    .filter(|hint| hint.name == "OPTIONS")
                    .flat_map(|hint| hint.options)
                    .map(|(key, value)| SqlOption { key, value, span })
                    .collect();
                if !options.is_empty() {
                    self.hints.push((name.clone(), options));
                }
            }
            TableFactor::Function { name, .. } => self.function(name),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
