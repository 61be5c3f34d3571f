//! EXPLAIN.

use std::sync::Arc;

use super::{Session, StatementResult};
use crate::error::{Error, Result};
use crate::plan::explain::{Explained, explain};
use crate::plan::logical::LogicalPlan;
use crate::plan::physical::{SinkTarget, StreamPlan};
use crate::plan::rewrite::rewrite;
use crate::plan::state_growth;
use crate::sql::Statement;
use crate::sql::ast::{Explain, Insert};

impl Session {
    pub(super) fn explain(&self, statement: &Explain) -> Result<StatementResult> {
        let all = self.explained(&statement.statement)?;
        let mut lines = explain(&all, &statement.details);
        let plans = all.iter().map(|one| &one.physical);
        let growth: Vec<_> = plans
            .flat_map(|plan| state_growth::state_growth(plan, &self.config))
            .collect();
        if !growth.is_empty() {
            lines.extend([String::new(), state_growth::HEADING.to_string()]);
            lines.extend(state_growth::lines(&growth));
            lines.push(format!("({})", state_growth::ADVICE));
        }
        Ok(StatementResult::Lines(lines))
    }

    /// The plans of a statement that makes rows.
    fn explained(&self, statement: &Statement) -> Result<Vec<Explained>> {
        Ok(match statement {
            Statement::Query(query) => {
                let logical = self.binder().bind(&query.query)?;
                let rewritten = rewrite(logical.clone());
                vec![Explained {
                    physical: self.planner().plan_query(&rewritten, false)?,
                    sink: None,
                    logical,
                }]
            }
            Statement::Insert(insert) => vec![self.explain_insert(insert)?],
            Statement::StatementSet(inserts) => inserts
                .iter()
                .map(|i| self.explain_insert(i))
                .collect::<Result<Vec<_>>>()?,
            Statement::CreateTable(create) => {
                let Some(query) = &create.as_query else {
                    return Err(not_explained());
                };
                let path = self.path_of(&create.name)?;
                let (table, insert) = self.plan_table_as(&path, create, query)?;
                let bound = match table {
                    Some(table) => self.bind_insert_into(&insert, Arc::new(table))?,
                    None => self.bind_insert(&insert)?,
                };
                vec![self.explain_bound(bound)?]
            }
            _ => return Err(not_explained()),
        })
    }

    /// The physical plans of a query, an INSERT, a statement set or a CREATE TABLE AS.
    pub(crate) fn physical_plans(&self, statement: &Statement) -> Result<Vec<StreamPlan>> {
        let all = self.explained(statement)?;
        Ok(all.into_iter().map(|one| one.physical).collect())
    }

    fn explain_insert(&self, insert: &Insert) -> Result<Explained> {
        self.explain_bound(self.bind_insert(insert)?)
    }

    fn explain_bound(&self, (logical, target): (LogicalPlan, SinkTarget)) -> Result<Explained> {
        let rewritten = rewrite(logical.clone());
        Ok(Explained {
            physical: self.planner().plan_insert(&rewritten, &target)?,
            sink: Some(target.table.path.to_string()),
            logical,
        })
    }
}

fn not_explained() -> Error {
    Error::plan("EXPLAIN takes a query, an INSERT, a STATEMENT SET or a CREATE TABLE AS")
}
