//! CREATE VIEW: a query checked and kept under a name.

use std::sync::Arc;

use super::{Session, StatementResult};
use crate::catalog::{CatalogEntry, ViewDefinition};
use crate::error::{Error, Result};
use crate::plan::binder::object_parts;
use crate::sql::ast::CreateView;

impl Session {
    pub(super) fn create_view(&mut self, create: &CreateView) -> Result<StatementResult> {
        let path = self.catalogs.resolve(&object_parts(&create.name)?)?;
        let exists = if create.temporary {
            self.catalogs.get_temporary(&path).is_some()
        } else {
            self.catalogs.get_permanent(&path).is_some()
        };
        if exists && create.if_not_exists {
            return Ok(StatementResult::Done);
        }
        let mut schema = self.binder().bind(&create.query.query)?.schema;
        if !create.columns.is_empty() {
            if create.columns.len() != schema.len() {
                return Err(Error::plan(format!(
                    "VIEW definition and input fields not match:\n\tDef fields: {}.\n\tInput fields: \
                     {}.",
                    create.columns.len(),
                    schema.len()
                )));
            }
            for (column, name) in schema.columns.iter_mut().zip(&create.columns) {
                column.name.clone_from(&name.value);
            }
        }
        let (catalog, database) = self.catalogs.current();
        let view = ViewDefinition {
            path: path.clone(),
            query: Arc::new((*create.query.query).clone()),
            expanded_text: create.query.text.clone(),
            schema,
            home: (catalog.into(), database.into()),
            comment: create.comment.clone(),
            temporary: create.temporary,
        };
        self.catalogs
            .add(&path, CatalogEntry::View(Arc::new(view)), false)?;
        Ok(StatementResult::Done)
    }
}
