//! Base tables and views in FROM, and the hints on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use sqlparser::ast;

use super::Binder;
use super::scope::Scope;
use crate::catalog::{CatalogEntry, ColumnKind, TableDefinition, ViewDefinition};
use crate::error::{Error, Result, did_you_mean};
use crate::expr::Expr;
use crate::plan::logical::{LogicalNode, LogicalPlan, Scan};
use crate::types::{Column, Schema, TypeKind};

/// `OPTIONS` of a table hint.
pub(super) type TableHints = IndexMap<String, String>;

impl Binder<'_> {
    /// The relation called `parts`: a named subquery, a view or a table.
    pub(super) fn bind_table(
        &mut self,
        parts: &[String],
        hints: &TableHints,
    ) -> Result<LogicalPlan> {
        if let [name] = parts
            && let Some(plan) = self.ctes.iter().rev().find_map(|scope| scope.get(name))
        {
            return Ok(plan.clone());
        }
        let path = crate::catalog::resolve_from(parts, &self.home.0, &self.home.1)?;
        let Some(entry) = self.catalogs.get(&path) else {
            let error = Error::plan(format!("Object '{}' not found", parts.join(".")));
            let names = self.catalogs.names(&path.catalog, &path.database);
            return Err(
                match did_you_mean(&path.name, names.iter().map(String::as_str)) {
                    Some(close) => error.hint(format!("did you mean `{close}`?")),
                    None => error.hint("SHOW TABLES lists what there is"),
                },
            );
        };
        match entry.clone() {
            CatalogEntry::Table(table) => self.bind_base_table(table, hints),
            CatalogEntry::View(view) => {
                if !hints.is_empty() {
                    return Err(Error::plan(format!(
                        "View '{path}' cannot be enriched with new options"
                    ))
                    .hint("put the OPTIONS hint on the table inside the view"));
                }
                self.bind_view(&view)
            }
        }
    }

    pub(super) fn bind_table_by_name(&mut self, parts: &[String]) -> Result<LogicalPlan> {
        self.bind_table(parts, &TableHints::new())
    }

    /// The whole path of a table or view; the name itself of a named subquery.
    pub(super) fn full_name(&self, parts: Vec<String>) -> Vec<String> {
        if let [name] = parts.as_slice()
            && self.ctes.iter().any(|scope| scope.get(name).is_some())
        {
            return parts;
        }
        match crate::catalog::resolve_from(&parts, &self.home.0, &self.home.1) {
            Ok(path) => vec![path.catalog, path.database, path.name],
            Err(_) => parts,
        }
    }

    fn bind_view(&mut self, view: &Arc<ViewDefinition>) -> Result<LogicalPlan> {
        if self.expanding.contains(&view.path) {
            return Err(Error::plan(format!(
                "View '{}' refers to itself",
                view.path
            )));
        }
        // the view's names resolve where it was created, and its text is elsewhere
        let home = std::mem::replace(&mut self.home, view.home.clone());
        let positions = std::mem::replace(&mut self.positions, false);
        let ctes = std::mem::take(&mut self.ctes);
        self.expanding.push(view.path.clone());
        let bound = self.bind_query(&view.query, None);
        self.expanding.pop();
        self.ctes = ctes;
        self.positions = positions;
        self.home = home;
        let mut plan = bound.map_err(|e| e.context(format!("view '{}'", view.path)))?;
        for (column, declared) in plan.schema.columns.iter_mut().zip(&view.schema.columns) {
            column.name.clone_from(&declared.name);
        }
        Ok(plan)
    }

    /// Scan, computed columns in the declared order, watermark.
    fn bind_base_table(
        &mut self,
        table: Arc<TableDefinition>,
        hints: &TableHints,
    ) -> Result<LogicalPlan> {
        let mut options = table.options.clone();
        if !hints.is_empty() && !self.config.dynamic_table_options() {
            return Err(Error::plan(
                "The 'OPTIONS' hint is allowed only when the config option \
                 'table.dynamic-table-options.enabled' is set to true.",
            ));
        }
        options.extend(hints.iter().map(|(k, v)| (k.clone(), v.clone())));
        let stored: Vec<_> = table.stored_columns().cloned().collect();
        let source_watermark = table.has_source_watermark();
        let schema = Schema::new(
            stored
                .iter()
                .map(|c| Column {
                    time: c.time.filter(|_| source_watermark),
                    ..Column::new(c.name.clone(), c.data_type.clone())
                })
                .collect(),
        );
        let projection = (0..schema.len()).collect();
        let scan = Scan {
            table: Arc::clone(&table),
            options: options.clone(),
            projection,
            pushed: None,
        };
        let plan = LogicalPlan::new(LogicalNode::Scan(scan), schema);
        let plan = self.with_computed_columns(plan, &table)?;
        let Some(watermark) = table.watermark.as_ref().filter(|_| !source_watermark) else {
            return Ok(plan);
        };
        let column = plan.schema.index_of(&watermark.column).ok_or_else(|| {
            Error::internal(format!(
                "the row-time column '{}' is gone",
                watermark.column
            ))
        })?;
        let positions = std::mem::replace(&mut self.positions, false);
        let expr = self.bind_scalar(&watermark.expr.ast, &plan.schema);
        self.positions = positions;
        let schema = plan.schema.clone();
        Ok(LogicalPlan::new(
            LogicalNode::WatermarkAssigner {
                input: Box::new(plan),
                column,
                watermark: expr?,
                options,
            },
            schema,
        ))
    }

    fn with_computed_columns(
        &mut self,
        plan: LogicalPlan,
        table: &TableDefinition,
    ) -> Result<LogicalPlan> {
        let positions = std::mem::replace(&mut self.positions, false);
        let mut exprs = Vec::new();
        for column in &table.columns {
            let expr = match &column.kind {
                ColumnKind::Computed(declared) => self.bind_scalar(&declared.ast, &plan.schema),
                _ => plan
                    .schema
                    .index_of(&column.name)
                    .map(|i| plan.column(i))
                    .ok_or_else(|| Error::internal(format!("column '{}' is gone", column.name))),
            };
            exprs.push(expr);
        }
        self.positions = positions;
        let exprs = exprs
            .into_iter()
            .collect::<Result<Vec<Expr>>>()
            .map_err(|e| e.context(format!("table '{}'", table.path)))?;
        // a time attribute has milliseconds, whatever was declared; its values lie the same
        let mut schema = table.schema();
        for column in schema.columns.iter_mut().filter(|c| c.is_rowtime()) {
            column.data_type.kind = match column.data_type.kind {
                TypeKind::TimestampLtz(_) => TypeKind::TimestampLtz(3),
                _ => TypeKind::Timestamp(3),
            };
        }
        let identity = schema.len() == plan.schema.len()
            && exprs
                .iter()
                .enumerate()
                .all(|(i, e)| e.as_column() == Some(i));
        if identity {
            return Ok(LogicalPlan { schema, ..plan });
        }
        Ok(plan.project(exprs, schema))
    }

    /// Takes up the hints of a block: `STATE_TTL('t' = '1d')`, `LOOKUP('table' = 't', ..)`.
    pub(super) fn push_hints(&mut self, select: &ast::Select) -> Result<()> {
        let mut ttl = BTreeMap::new();
        let mut lookup = BTreeMap::new();
        let mut joins = Vec::new();
        for hint in crate::sql::hints::of_select(select)? {
            match hint.name.as_str() {
                "STATE_TTL" => {
                    if !hint.list.is_empty() || hint.options.is_empty() {
                        return Err(Error::plan(
                            "Invalid STATE_TTL hint, only support key-value options, at least one",
                        )
                        .hint("write for example STATE_TTL('table' = '1d')"));
                    }
                    for (table, time) in &hint.options {
                        let ms = crate::config::parse_duration(time).ok_or_else(|| {
                            Error::plan(format!("'{time}' is not a time to live"))
                                .hint("write for example '1d', '12 h' or '30 min'")
                        })?;
                        ttl.insert(table.clone(), ms);
                    }
                }
                "LOOKUP" => {
                    let options: IndexMap<_, _> = hint.options.iter().cloned().collect();
                    let Some(table) = options.get("table") else {
                        return Err(Error::plan(
                            "Invalid LOOKUP hint: the option 'table' is missing",
                        ));
                    };
                    lookup.insert(table.clone(), options.clone());
                }
                // ways of executing that have no meaning here, as in Flink's streaming mode
                "BROADCAST" | "SHUFFLE_HASH" | "SHUFFLE_MERGE" | "NEST_LOOP" | "MULTI_JOIN" => {
                    if hint.list.is_empty() {
                        return Err(Error::plan(format!(
                            "Invalid hint: {name}, expecting at least one table or view specified \
                             in hint {name}.",
                            name = hint.name
                        )));
                    }
                    joins.push((hint.name, hint.list));
                }
                // belongs to a table
                "OPTIONS" => {}
                other => {
                    return Err(Error::plan(format!("Hint '{other}' is not known"))
                        .hint("known hints: STATE_TTL, LOOKUP, OPTIONS (after a table)"));
                }
            }
        }
        self.ttl_hints.push(ttl);
        self.lookup_hints.push(lookup);
        self.join_hints.push(joins);
        Ok(())
    }

    /// Refuses a hint for what is no table of the block, where the block has a join or, for STATE_TTL, an
    /// aggregate (`grouped`) that would heed it.
    pub(super) fn check_table_hints(
        &self,
        scope: &Scope<'_>,
        select: &ast::Select,
        grouped: bool,
    ) -> Result<()> {
        let joined = is_join(&select.from);
        let stateful = joined || grouped || select.distinct.is_some();
        let is_table = |name: &str| {
            let mut qualifiers = scope.columns.iter().map(|c| c.qualifier.last());
            qualifiers.any(|last| last.is_some_and(|last| last == name))
        };
        let mut unknown = Vec::new();
        let mut check = |hint: &str, names: &mut dyn Iterator<Item = &String>| {
            let names: Vec<_> = names.filter(|n| !is_table(n)).map(String::as_str).collect();
            if !names.is_empty() {
                unknown.push(format!("`{}` in `{hint}`", names.join(", ")));
            }
        };
        if joined {
            for (hint, names) in self.join_hints.last().into_iter().flatten() {
                check(hint, &mut names.iter());
            }
            if let Some(hints) = self.lookup_hints.last() {
                check("LOOKUP", &mut hints.keys());
            }
        }
        if stateful && let Some(hints) = self.ttl_hints.last() {
            check("STATE_TTL", &mut hints.keys());
        }
        if unknown.is_empty() {
            return Ok(());
        }
        Err(Error::plan(format!(
            "The options of following hints cannot match the name of input tables or views: \n{}",
            unknown.join("\n")
        )))
    }

    /// The TTL hint for the only table of a block.
    pub(super) fn ttl_of(&self, scope: &Scope<'_>) -> Option<i64> {
        self.ttl_of_side(scope, 0..usize::MAX)
    }

    /// The TTL hint for a table whose columns lie in `range`.
    pub(super) fn ttl_of_side(
        &self,
        scope: &Scope<'_>,
        range: std::ops::Range<usize>,
    ) -> Option<i64> {
        let hints = self.ttl_hints.last()?;
        scope
            .columns
            .iter()
            .filter(|c| c.expr.as_column().is_some_and(|i| range.contains(&i)))
            .find_map(|c| hints.get(c.qualifier.last()?).copied())
    }

    /// The LOOKUP hint for the table with this alias.
    pub(super) fn lookup_hint(&self, table: &str) -> Option<IndexMap<String, String>> {
        self.lookup_hints.last()?.get(table).cloned()
    }
}

/// Whether FROM joins; what a lateral subquery gives is joined later.
fn is_join(from: &[ast::TableWithJoins]) -> bool {
    let joined = from
        .iter()
        .flat_map(|t| t.joins.iter().map(|j| &j.relation));
    let sides = from.iter().map(|t| &t.relation).chain(joined);
    let plain =
        sides.filter(|side| !matches!(side, ast::TableFactor::Derived { lateral: true, .. }));
    plain.count() > 1
}
