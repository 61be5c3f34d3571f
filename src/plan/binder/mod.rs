//! Binding: SQL syntax to typed relational operators.
//!
//! Names resolve in a [`scope::Scope`], expressions in [`expr`], the clauses of a query block in
//! [`select`], tables and joins in [`from`], set operations and ORDER BY in [`query`]. Subqueries
//! become joins right here ([`subquery`]), so that no plan ever holds one.

mod aggregate;
mod calls;
mod compare;
mod conjuncts;
mod decorrelate;
mod expr;
mod from;
mod literal;
mod match_pattern;
mod match_recognize;
mod one_row;
mod over;
mod quantified;
mod query;
mod refusals;
mod scope;
mod select;
mod subquery;
mod table;
mod time_types;
mod window;

use std::collections::BTreeMap;

use sqlparser::ast;

pub(crate) use expr::and;
pub(crate) use from::join_schema;
pub use scope::Scope;

use crate::catalog::{Catalogs, ObjectPath};
use crate::config::Configuration;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::functions::registry::FunctionRegistry;
use crate::plan::logical::LogicalPlan;
use crate::types::cast::Environment;
use crate::types::{DataType, Schema};

/// What names can refer to while a statement is bound.
pub struct Binder<'a> {
    catalogs: &'a Catalogs,
    functions: &'a FunctionRegistry,
    config: &'a Configuration,
    environment: Environment,
    /// Named subqueries (`WITH`), innermost last.
    ctes: Vec<BTreeMap<String, LogicalPlan>>,
    /// Catalog and database of unqualified names: that of the view being expanded, or the current.
    home: (String, String),
    /// Views being expanded, to stop at a cycle.
    expanding: Vec<ObjectPath>,
    /// Whether syntax nodes have positions in the statement; not inside views, whose text is
    /// elsewhere.
    positions: bool,
    /// How many queries the one being bound lies in, itself included.
    nesting: usize,
    /// `STATE_TTL` hints of the query blocks being bound, by table alias, ms.
    ttl_hints: Vec<BTreeMap<String, i64>>,
    /// Join hints of the enclosing blocks, innermost last: their names and tables.
    join_hints: Vec<Vec<(String, Vec<String>)>>,
    /// `LOOKUP` hints of the query blocks being bound, by table alias.
    lookup_hints: Vec<BTreeMap<String, indexmap::IndexMap<String, String>>>,
}

impl<'a> Binder<'a> {
    /// A binder over the session's catalogs, functions and settings.
    #[must_use]
    pub fn new(
        catalogs: &'a Catalogs,
        functions: &'a FunctionRegistry,
        config: &'a Configuration,
    ) -> Self {
        let (catalog, database) = catalogs.current();
        Self {
            catalogs,
            functions,
            config,
            environment: config.environment(),
            ctes: Vec::new(),
            home: (catalog.into(), database.into()),
            expanding: Vec::new(),
            positions: true,
            nesting: 0,
            ttl_hints: Vec::new(),
            join_hints: Vec::new(),
            lookup_hints: Vec::new(),
        }
    }

    /// For syntax whose positions are not in the statement at hand.
    #[must_use]
    pub fn without_positions(mut self) -> Self {
        self.positions = false;
        self
    }

    /// Binds a query.
    ///
    /// # Errors
    /// When a name is unknown, types do not fit, or a form is not supported; with its position.
    pub fn bind(&mut self, query: &ast::Query) -> Result<LogicalPlan> {
        Ok(self.bind_with_names(query)?.0)
    }

    /// Binds a query; also gives the names of its columns before equal ones were told apart.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_with_names(&mut self, query: &ast::Query) -> Result<(LogicalPlan, Vec<String>)> {
        let mut plan = self.bind_query(query, None)?;
        let names = plan.schema.columns.iter().map(|c| c.name.clone()).collect();
        select::uniquify(&mut plan);
        Ok((plan, names))
    }

    /// The columns of a bound query as DESCRIBE shows them: with the time attributes of their types.
    #[must_use]
    pub fn described(plan: &LogicalPlan) -> Schema {
        let mut schema = plan.schema.clone();
        for (i, column) in schema.columns.iter_mut().enumerate() {
            column.time = time_types::typed_time(plan, i);
        }
        schema
    }

    /// Binds an expression over the columns of `schema`: a computed column, a watermark, a
    /// condition of UPDATE or DELETE.
    ///
    /// # Errors
    /// As [`bind`](Self::bind); subqueries and aggregates are refused.
    pub fn bind_scalar(&mut self, ast: &ast::Expr, schema: &Schema) -> Result<Expr> {
        let scope = Scope::of_table(None, schema);
        let mut context = expr::Context::scalar(&scope);
        let bound = self.bind_expr(ast, &mut context)?;
        self.fold(bound)
    }

    fn fold(&self, expr: Expr) -> Result<Expr> {
        Ok(crate::expr::eval::fold(expr, &self.environment))
    }

    /// Puts the position of `node` on an error that has none.
    fn located<T>(&self, node: &impl sqlparser::ast::Spanned, result: Result<T>) -> Result<T> {
        if !self.positions {
            return result;
        }
        result.map_err(|e| match crate::sql::span_of(node) {
            Some(span) => e.at(span),
            None => e,
        })
    }

    fn refuse<T>(
        &self,
        node: &impl sqlparser::ast::Spanned,
        message: impl Into<String>,
    ) -> Result<T> {
        self.located(node, Err(Error::plan(message)))
    }
}

/// The parts of a name.
///
/// # Errors
/// When a part is not an identifier.
pub fn object_parts(name: &ast::ObjectName) -> Result<Vec<String>> {
    name.0
        .iter()
        .map(|part| {
            part.as_ident()
                .map(|ident| ident.value.clone())
                .ok_or_else(|| Error::plan(format!("'{name}' is not a name")))
        })
        .collect()
}

/// Type names for "No match found for function signature": `<NUMERIC>, <CHARACTER>`.
fn family(data_type: &DataType) -> String {
    use crate::types::TypeKind;
    let name = match &data_type.kind {
        kind if kind.is_numeric() => "NUMERIC",
        kind if kind.is_string() => "CHARACTER",
        kind if kind.is_binary() => "BINARY",
        kind if kind.is_timestamp() => "TIMESTAMP",
        kind if kind.is_interval() => return format!("<{kind}>"),
        TypeKind::Boolean => "BOOLEAN",
        kind => return format!("<{kind}>"),
    };
    format!("<{name}>")
}
