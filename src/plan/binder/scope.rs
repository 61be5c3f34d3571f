//! What a name means inside a query block.

use crate::error::{Error, Result, did_you_mean};
use crate::expr::{Expr, ExprKind};
use crate::types::{DataType, Schema, TimeAttribute};

/// A column that can be named.
#[derive(Debug, Clone)]
pub struct ScopeColumn {
    /// Alias or path of its table, last part last; empty for none.
    pub qualifier: Vec<String>,
    /// Name.
    pub name: String,
    /// What it stands for, over the block's input.
    pub expr: Expr,
    /// Time attribute, if it is one.
    pub time: Option<TimeAttribute>,
    /// Whether `SELECT *` shows it.
    pub in_star: bool,
    /// Whether it can be named without qualifier.
    pub unqualified: bool,
}

impl ScopeColumn {
    /// An outer join can make it NULL.
    pub fn make_nullable(&mut self) {
        self.expr = self.expr.clone().transform(&mut |mut e| {
            e.data_type.nullable = true;
            e
        });
    }
}

/// The columns in reach, and those of the enclosing blocks.
#[derive(Debug, Clone, Default)]
pub struct Scope<'p> {
    /// Columns, in order of `SELECT *`.
    pub columns: Vec<ScopeColumn>,
    /// The enclosing block's scope.
    pub parent: Option<&'p Scope<'p>>,
}

impl<'p> Scope<'p> {
    /// The columns of one table under an alias.
    #[must_use]
    pub fn of_table(qualifier: Option<&[String]>, schema: &Schema) -> Self {
        let columns = schema
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| ScopeColumn {
                qualifier: qualifier.map(<[String]>::to_vec).unwrap_or_default(),
                name: column.name.clone(),
                expr: Expr::column(i, column.data_type.clone()),
                time: column.time,
                in_star: true,
                unqualified: true,
            })
            .collect();
        Self {
            columns,
            parent: None,
        }
    }

    /// The same under an enclosing block.
    #[must_use]
    pub fn within(mut self, parent: Option<&'p Scope<'p>>) -> Self {
        self.parent = parent;
        self
    }

    /// The columns of a join: `self`, then `other`, whose columns lie behind `left_width`.
    pub fn append(&mut self, other: Scope<'_>, left_width: usize) {
        self.columns
            .extend(other.columns.into_iter().map(|mut column| {
                column.expr = column.expr.remap_columns(&|i| i + left_width);
                column
            }));
    }

    /// Marks all columns as nullable: an outer join can make them NULL.
    pub fn make_nullable(&mut self) {
        self.columns.iter_mut().for_each(ScopeColumn::make_nullable);
    }

    /// Resolves a dotted name: a column with its qualifiers, then fields of rows.
    ///
    /// # Errors
    /// When it is unknown or ambiguous.
    pub fn resolve(&self, parts: &[String]) -> Result<Expr> {
        let mut depth = 0;
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some(expr) = here.find(parts)? {
                if depth == 0 {
                    return Ok(expr);
                }
                let outer = expr.transform(&mut |e| match e.kind {
                    ExprKind::Column(index) => {
                        Expr::new(ExprKind::Outer { depth, index }, e.data_type)
                    }
                    _ => e,
                });
                return Ok(outer);
            }
            scope = here.parent;
            depth += 1;
        }
        Err(self.unknown(parts))
    }

    fn find(&self, parts: &[String]) -> Result<Option<Expr>> {
        // the longest qualifier first: a table alias wins over a row column of the same name
        for qualifiers in (0..parts.len().min(4)).rev() {
            let (qualifier, rest) = parts.split_at(qualifiers);
            let Some((name, fields)) = rest.split_first() else {
                continue;
            };
            let mut found = self.columns.iter().filter(|c| {
                c.name == *name
                    && if qualifier.is_empty() {
                        c.unqualified
                    } else {
                        c.qualifier.ends_with(qualifier)
                    }
            });
            let Some(column) = found.next() else { continue };
            if found.next().is_some() {
                return Err(Error::plan(format!("Column '{name}' is ambiguous"))
                    .hint("qualify it with a table name or alias"));
            }
            return Ok(Some(access_fields(column.expr.clone(), fields)?));
        }
        Ok(None)
    }

    fn unknown(&self, parts: &[String]) -> Error {
        let name = parts.last().cloned().unwrap_or_default();
        let message = match parts {
            [table, _, ..] if !self.columns.iter().any(|c| c.qualifier.contains(table)) => {
                format!("Table '{table}' not found")
            }
            [table, column, ..] => format!("Column '{column}' not found in table '{table}'"),
            _ => format!("Column '{name}' not found in any table"),
        };
        let candidates = self.columns.iter().map(|c| c.name.as_str());
        match did_you_mean(&name, candidates) {
            Some(close) if close != name => {
                Error::plan(message).hint(format!("did you mean `{close}`?"))
            }
            _ => Error::plan(message),
        }
    }
}

/// `expr.a.b`: fields of nested rows.
///
/// # Errors
/// When `expr` is no row or has no such field.
pub fn access_fields(expr: Expr, fields: &[String]) -> Result<Expr> {
    let mut expr = expr;
    for field in fields {
        let Some(known) = expr.data_type.kind.fields() else {
            return Err(Error::plan(format!(
                "Column '{field}' not found: {} has no fields",
                expr.data_type.kind
            )));
        };
        let Some(index) = known.iter().position(|f| f.name == *field) else {
            let error = Error::plan(format!("Column '{field}' not found in {}", expr.data_type));
            return Err(
                match did_you_mean(field, known.iter().map(|f| f.name.as_str())) {
                    Some(close) => error.hint(format!("did you mean `{close}`?")),
                    None => error,
                },
            );
        };
        let inner = known[index].data_type.clone();
        expr = field_at(expr, index, inner);
    }
    Ok(expr)
}

/// The field of `row` at `index`, whose type is `inner`: NULL if the row is.
pub(super) fn field_at(row: Expr, index: usize, inner: DataType) -> Expr {
    let nullable = inner.nullable || row.data_type.nullable;
    let input = Box::new(row);
    Expr::new(
        ExprKind::Field { input, index },
        inner.kind.with_nullable(nullable),
    )
}
