//! SQL text to statements.
//!
//! - [`outline`]: what a statement is, by its first words alone,
//! - [`script`]: cuts a script or a terminal's buffer into statements,
//! - [`parser`]: one statement's text to its [`ast`],
//! - [`types`]: data types inside expressions,
//! - [`hints`]: `/*+ .. */`,
//! - [`span`]: where a piece of the AST lies in the text,
//! - [`unparse`]: AST to Flink's canonical text.
//!
//! Queries and expressions are `sqlparser`'s AST, made by our own grammar. A form that the AST has
//! is used as documented there, with these conventions:
//!
//! | Flink | AST |
//! |---|---|
//! | `TABLE(TUMBLE(..))` and `TUMBLE(..)` in `FROM` | `TableFactor::TableFunction { expr: Function }` |
//! | `LATERAL TABLE(f(x))` | `TableFactor::Function { lateral: true, .. }` whose only argument is the call |
//! | `LATERAL (query)` | `TableFactor::Derived { lateral: true, .. }` |
//! | `UNNEST(a) [WITH ORDINALITY]` | `TableFactor::UNNEST` |
//! | `TABLE t` as a query | `SELECT * FROM t` |
//! | `TABLE t [PARTITION BY k] [ORDER BY o]` as an argument | `Function` named `TABLE` whose arguments are `Subquery(SELECT * FROM t)` and whose `over` is a `WindowSpec` of the two clauses; see [`table_argument`] |
//! | `name => value` | `FunctionArg::Named` |
//! | `DEFAULT` as an argument | `Function` named `DEFAULT` without arguments |
//! | `t FOR SYSTEM_TIME AS OF e` | `TableVersion::ForSystemTimeAsOf` |
//! | `t /*+ OPTIONS(..) */` | `with_hints`; see [`hints::of_table`] |
//! | `SELECT /*+ STATE_TTL(..) */` | `optimizer_hints`; see [`hints::of_select`] |
//! | `MATCH_RECOGNIZE .. WITHIN i` | a first definition with an empty name; see [`within`] |
//! | reluctant `A+?` | a `Repetition(AtMostOne)` around the repetition; see [`quantified`] |
//! | `SKIP TO v` | `AfterMatchSkip::ToLast` |
//! | `GROUP BY ()` | an empty `Expr::Tuple` |
//! | `ROLLUP (a, (b, c))`, nested sets | a set is a list; a nested `ROLLUP` is its only element |
//! | `LIMIT`, `OFFSET`, `FETCH FIRST n ROWS ONLY` | `LimitClause::LimitOffset`; `fetch` stays empty |
//! | `SELECT ALL`, `LIMIT ALL` | nothing |
//! | `VALUES 1, ROW(2)` | rows of one column |
//! | `CURRENT_DATE` and its like | `Function` with `FunctionArguments::None` |
//! | `ROW(..)`, `ARRAY[..]`, `MAP[..]`, `MULTISET[..]` | calls of `ROW`, `ARRAY`, `MAP`, `MULTISET`; `(a, b)` is `Expr::Tuple` |
//! | `ARRAY(query)` | call with `FunctionArguments::Subquery` |
//! | `a[i]` | call of `ITEM` |
//! | `f(x).y`, `a[1].y` | `CompoundFieldAccess` with `Dot(Identifier)` |
//! | `CAST`, `TRY_CAST` | `Expr::Cast`; its type is for [`types::parse_type`] |
//! | `DATE '..'`, `TIME '..'`, `TIMESTAMP '..'` | `Expr::TypedString` of `Date`, `Time`, `Timestamp`; `TIMESTAMP WITH LOCAL TIME ZONE '..'` has `TimezoneInfo::Tz` |
//! | `INTERVAL -'1' DAY`, `INTERVAL 5 DAY` | `Expr::Interval` of a string, the sign inside |
//! | `INTERVAL (e) DAY` | `e * INTERVAL '1' DAY` |
//! | `UNKNOWN` | `CAST(NULL AS BOOLEAN)` |
//! | strings of every form | `Value::SingleQuotedString`, decoded and joined |
//! | `CASE x WHEN 1, 2 THEN` | a condition that is a `Tuple` |
//! | `BETWEEN SYMMETRIC` | `OR` of two `BETWEEN` |
//! | `NOT LIKE`, `IS NOT JSON` and so on | `UnaryOp(Not)` around the call |
//! | `RUNNING f(x)`, `FINAL f(x)` | calls of `RUNNING`, `FINAL` |
//!
//! Call forms with keywords are calls whose keywords are string literals: `EXTRACT('DAY', x)`,
//! `CEIL(x, 'DAY')`, `FLOOR(x, 'DAY')`, `TIMESTAMPADD('DAY', n, t)`, `TIMESTAMPDIFF('DAY', a, b)`,
//! `TRIM('BOTH', chars, s)`, `POSITION(part, s)`, `OVERLAY(s, r, start, length)`,
//! `SUBSTRING(s, from, length)`, `LIKE(s, pattern, escape)` (`ILIKE`, `RLIKE`), `SIMILAR TO(..)`, `IS JSON(s, 'VALUE')`,
//! `OVERLAPS(a, b, c, d)`, `JSON_EXISTS(json, path, 'FALSE')`,
//! `JSON_VALUE(json, path, returning, on_empty, empty_default, on_error, error_default)`,
//! `JSON_QUERY(json, path, returning, wrapper, on_empty, on_error)`, `JSON_OBJECT('NULL', k, v, ..)`,
//! `MINUS_DATE(a, b, 'DAY TO SECOND')` for
//! `(a - b) DAY TO SECOND`, `JSON_OBJECTAGG('NULL', k, v)`, `JSON_ARRAY('ABSENT', v, ..)`, `JSON_ARRAYAGG('ABSENT', v)`.

pub mod ast;
mod escapes;
pub mod hints;
pub(crate) mod keywords;
mod lexer;
pub mod outline;
pub mod parser;
pub mod script;
pub mod span;
pub mod types;
pub mod unparse;

use sqlparser::ast::{Expr, FunctionArguments, OrderByExpr, Query, WindowType};

pub use ast::Statement;
pub use keywords::is_reserved;
pub use parser::{FlinkParser, Quantifier, quantified, within};
pub use span::{span_of, span_of_ident, span_of_name};
pub use types::parse_type;

/// A table given to a function.
#[derive(Debug, Clone, Copy)]
pub struct TableArgument<'a> {
    /// Its rows.
    pub query: &'a Query,
    /// `PARTITION BY`.
    pub partition_by: &'a [Expr],
    /// `ORDER BY`.
    pub order_by: &'a [OrderByExpr],
}

/// The table that a function's argument is: `TABLE t` or `(query)`.
#[must_use]
pub fn table_argument(arg: &Expr) -> Option<TableArgument<'_>> {
    let query = match arg {
        Expr::Subquery(query) => query,
        Expr::Function(f) if f.name.to_string() == "TABLE" => match &f.args {
            FunctionArguments::Subquery(query) => query,
            _ => return None,
        },
        _ => return None,
    };
    let (partition_by, order_by) = match arg {
        Expr::Function(f) => match &f.over {
            Some(WindowType::WindowSpec(spec)) => (&spec.partition_by[..], &spec.order_by[..]),
            _ => (&[][..], &[][..]),
        },
        _ => (&[][..], &[][..]),
    };
    Some(TableArgument {
        query,
        partition_by,
        order_by,
    })
}
