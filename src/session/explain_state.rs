//! The state that the job of a statement keeps: what `ebbflow explain --state` shows.

use super::Session;
use crate::error::{Error, Result};
use crate::graph::VertexKind;
use crate::plan::translate::Translator;
use crate::runtime::collect::collect;
use crate::runtime::control::JobControl;
use crate::sql::Statement;

impl Session {
    /// The state of a query, an INSERT or a statement set: uids, and below each its signature.
    pub(crate) fn explain_state(&self, statement: &Statement) -> Result<Vec<String>> {
        let mut translator = Translator::new(&self.config);
        match statement {
            Statement::Query(query) => {
                let plan = self.bind(&query.query)?;
                let plan = self.planner().plan_query(&plan, true)?;
                let (writers, _) = collect(1, &JobControl::default());
                translator.add_query(plan, writers)?;
            }
            Statement::Insert(insert) => translator.add_inserts(vec![self.plan_insert(insert)?])?,
            Statement::StatementSet(inserts) => {
                let plans = inserts.iter().map(|i| self.plan_insert(i));
                translator.add_inserts(plans.collect::<Result<_>>()?)?;
            }
            _ => return Err(Error::plan("only queries and INSERTs keep state")),
        }
        let mut lines = Vec::new();
        for vertex in translator.finish().vertices() {
            let sink = matches!(vertex.kind, VertexKind::Sink(_));
            if !sink && !vertex.signature.is_empty() {
                lines.push(vertex.uid.replace('\n', " & "));
                lines.extend(vertex.signature.lines().map(|part| format!("  {part}")));
            }
        }
        Ok(lines)
    }
}
