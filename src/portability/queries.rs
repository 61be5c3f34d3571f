//! Extensions of queries that only a plan shows.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Query, TableFactor, TableVersion, Visit as _, Visitor, WindowFrameUnits, WindowType,
};

use crate::error::Span;
use crate::operators::over_aggregate::OverFrame;
use crate::plan::physical::{StreamNode, StreamPlan};
use crate::sql::ast::Insert;
use crate::sql::{Statement, span_of_name};

/// What goes beyond Flink.
#[derive(Debug)]
pub(super) struct Extension {
    pub(super) what: String,
    pub(super) why: &'static str,
    pub(super) span: Option<Span>,
}

/// The extensions that the plans of a statement show, with their places in its text.
pub(super) fn extensions(
    plans: &[StreamPlan],
    statement: &Statement,
    provided: &BTreeSet<String>,
) -> Vec<Extension> {
    let mut shown = Shown {
        provided,
        frames: false,
        lookups: BTreeSet::new(),
    };
    plans.iter().for_each(|plan| shown.look(plan));
    let places = Places::of(statement);
    let mut found = Vec::new();
    if shown.frames {
        found.push(Extension {
            what: "OVER with a frame of rows over a table that is updated".into(),
            why: "there such a frame takes rows that are only added",
            span: places.frame,
        });
    }
    for (table, connector) in shown.lookups {
        let place = places.versions.iter().find(|(name, _)| *name == table);
        found.push(Extension {
            what: format!("a lookup join with a table of the connector '{connector}'"),
            why: "there a table that is looked up is one of a database (JDBC, HBase and others); a \
                  temporal join by event time takes any table with a key and a watermark",
            span: place
                .or(places.versions.first())
                .and_then(|(_, span)| *span),
        });
    }
    found
}

/// What the nodes of plans show.
struct Shown<'a> {
    provided: &'a BTreeSet<String>,
    /// A frame of rows over updates.
    frames: bool,
    /// Tables that are looked up: name and connector.
    lookups: BTreeSet<(String, String)>,
}

impl Shown<'_> {
    fn look(&mut self, plan: &StreamPlan) {
        match &plan.node {
            StreamNode::OverAggregate {
                frame: OverFrame::Rows(Some(_)),
                ..
            } => {
                let updated = |input: &StreamPlan| !input.mode.is_append();
                self.frames |= plan.inputs.iter().any(updated);
            }
            StreamNode::LookupJoin(node) => {
                let connector = node.table.options.get("connector");
                let connector = connector.map_or(String::new(), |c| c.to_lowercase());
                if !self.provided.contains(&connector) {
                    self.lookups
                        .insert((node.table.path.name.clone(), connector));
                }
            }
            _ => {}
        }
        plan.inputs.iter().for_each(|input| self.look(input));
    }
}

/// Where a statement has what may be an extension.
#[derive(Debug, Default)]
struct Places {
    /// The first call with a frame of rows.
    frame: Option<Span>,
    /// Tables with `FOR SYSTEM_TIME AS OF`.
    versions: Vec<(String, Option<Span>)>,
}

impl Places {
    fn of(statement: &Statement) -> Self {
        let mut places = Self::default();
        let queries: Vec<&Query> = match statement {
            Statement::Query(query) => vec![&query.query],
            Statement::Insert(insert) => vec![&insert.source.query],
            Statement::StatementSet(inserts) => {
                inserts.iter().map(|i: &Insert| &*i.source.query).collect()
            }
            Statement::CreateTable(create) => create.as_query.iter().map(|q| &*q.query).collect(),
            _ => Vec::new(),
        };
        for query in queries {
            // it never breaks
            let _ = query.visit(&mut places);
        }
        places
    }
}

impl Visitor for Places {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && let Some(WindowType::WindowSpec(window)) = &function.over
            && let Some(frame) = &window.window_frame
            && frame.units == WindowFrameUnits::Rows
        {
            self.frame = self.frame.or_else(|| span_of_name(&function.name));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table {
            name,
            version: Some(TableVersion::ForSystemTimeAsOf(_)),
            ..
        } = factor
        {
            let last = name.0.last().and_then(|part| part.as_ident());
            let last = last.map_or(String::new(), |ident| ident.value.clone());
            self.versions.push((last, span_of_name(name)));
        }
        ControlFlow::Continue(())
    }
}
