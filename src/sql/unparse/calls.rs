//! Function calls, with the forms that have keywords inside.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    NullTreatment, Value, WindowType,
};

use super::super::span;
use super::expr::{COMPARISON, SUM};
use super::{Writer, functions, quoted_name};

impl Writer {
    pub(super) fn call(&mut self, function: &Function) {
        if !self.special_call(function) {
            self.plain_call(function);
        }
        if function.null_treatment.is_some() {
            self.push(match function.null_treatment {
                Some(NullTreatment::IgnoreNulls) => " IGNORE NULLS",
                _ => " RESPECT NULLS",
            });
        }
        if !function.within_group.is_empty() {
            self.push(" WITHIN GROUP (ORDER BY ");
            self.order_keys(&function.within_group);
            self.push(")");
        }
        if let Some(filter) = &function.filter {
            self.push(" FILTER (WHERE ");
            self.expr(filter, 0, 0);
            self.push(")");
        }
    }

    fn plain_call(&mut self, function: &Function) {
        let name = function.name.to_string().to_ascii_uppercase();
        let bare = functions::is_bare(&name);
        match &function.args {
            FunctionArguments::None => return self.push(&name),
            _ if bare => self.push(&name),
            _ => self.push(&quoted_name(&function.name)),
        }
        self.push("(");
        match &function.args {
            FunctionArguments::List(list) => {
                if let Some(treatment) = list.duplicate_treatment {
                    self.push(&format!("{treatment} "));
                }
                let more = match (name.as_str(), list.args.len()) {
                    ("PREV" | "NEXT", 1) => ", 1",
                    ("FIRST" | "LAST", 1) => ", 0",
                    _ => "",
                };
                self.list(&list.args, Self::argument);
                self.push(more);
                for clause in &list.clauses {
                    match clause {
                        FunctionArgumentClause::OrderBy(keys) => {
                            self.push(" ORDER BY ");
                            self.order_keys(keys);
                        }
                        other => self.push(&format!(" {other}")),
                    }
                }
            }
            FunctionArguments::Subquery(query) => {
                self.push("(");
                self.query(query);
                self.push(")");
            }
            FunctionArguments::None => {}
        }
        self.push(")");
    }

    fn argument(&mut self, arg: &FunctionArg) {
        let value = match arg {
            FunctionArg::Named { name, arg, .. } => {
                self.ident(name);
                self.push(" => ");
                arg
            }
            FunctionArg::Unnamed(arg) => arg,
            FunctionArg::ExprNamed { .. } => return self.push(&arg.to_string()),
        };
        match value {
            FunctionArgExpr::Expr(Expr::Function(f)) if is_table(f) => self.table_argument(f),
            FunctionArgExpr::Expr(expr) => self.expr(expr, 0, 0),
            FunctionArgExpr::Wildcard => self.push("*"),
            other => self.push(&other.to_string()),
        }
    }

    /// `(query) PARTITION BY a, b ORDER BY c`
    fn table_argument(&mut self, function: &Function) {
        if let FunctionArguments::Subquery(query) = &function.args {
            match super::query::table_of(query) {
                Some(name) => self.push(&format!("TABLE {}", quoted_name(name))),
                None => {
                    self.push("(");
                    self.query(query);
                    self.push(")");
                }
            }
        }
        let Some(WindowType::WindowSpec(spec)) = &function.over else {
            return;
        };
        let parentheses = |many: bool| if many { ("(", ")") } else { ("", "") };
        if !spec.partition_by.is_empty() {
            let (open, close) = parentheses(spec.partition_by.len() > 1);
            self.push(&format!(" PARTITION BY {open}"));
            self.exprs(&spec.partition_by);
            self.push(close);
        }
        if !spec.order_by.is_empty() {
            let (open, close) = parentheses(spec.order_by.len() > 1);
            self.push(&format!(" ORDER BY {open}"));
            self.order_keys(&spec.order_by);
            self.push(close);
        }
    }

    /// Writes a call that has a form of its own; false if it has none.
    fn special_call(&mut self, function: &Function) -> bool {
        let name = function.name.to_string().to_ascii_uppercase();
        let args = plain_args(function);
        match (name.as_str(), args.as_slice()) {
            ("ARRAY" | "MAP" | "MULTISET", elements)
                if matches!(function.args, FunctionArguments::List(_)) =>
            {
                self.push(&name);
                self.push("[");
                self.list(elements, |w, e| w.expr(e, 0, 0));
                self.push("]");
            }
            ("ITEM", [collection, index]) => {
                self.expr(collection, 0, 100);
                self.push("[");
                self.expr(index, 0, 0);
                self.push("]");
            }
            ("NULLIF", [value, other]) => {
                self.push("CASE WHEN ");
                self.infix(value, "=", other, COMPARISON, (0, 0));
                self.push(" THEN NULL ELSE ");
                self.expr(value, 0, 0);
                self.push(" END");
            }
            (_, [value]) if extracted_unit(&name).is_some() => {
                let unit = extracted_unit(&name).unwrap_or_default();
                self.words("EXTRACT", &[Key(unit), Key("FROM"), Of(value)]);
            }
            ("EXTRACT", [unit, value]) => self.words(&name, &[Word(unit), Key("FROM"), Of(value)]),
            ("CEIL" | "FLOOR" | "CEILING", [value, unit]) if is_marker(unit) => {
                self.words(&name, &[Of(value), Key("TO"), Word(unit)]);
            }
            ("TIMESTAMPADD" | "TIMESTAMPDIFF", [unit, a, b]) => {
                self.push(&format!("{name}({}, ", marker(unit)));
                self.list(&[a, b], |w, e| w.expr(e, 0, 0));
                self.push(")");
            }
            ("MINUS_DATE", [a, b, unit]) => {
                self.push("(");
                self.infix(a, "-", b, SUM, (0, 0));
                self.push(&format!(") {}", marker(unit)));
            }
            ("TRIM", [which, chars, value]) => {
                self.words(&name, &[Word(which), Of(chars), Key("FROM"), Of(value)]);
            }
            ("POSITION", [part, value]) => {
                self.words(&name, &[Of(part), Key("IN"), Of(value)]);
            }
            ("POSITION", [part, value, from]) => {
                let words = [Of(part), Key("IN"), Of(value), Key("FROM"), Of(from)];
                self.words(&name, &words);
            }
            ("OVERLAY", [value, with, from, rest @ ..]) => {
                let mut words = vec![Of(value), Key("PLACING"), Of(with), Key("FROM"), Of(from)];
                words.extend(rest.iter().flat_map(|length| [Key("FOR"), Of(length)]));
                self.words(&name, &words);
            }
            _ => return self.json_call(&name, &args),
        }
        true
    }

    /// `NAME(a KEYWORD b ..)`
    fn words(&mut self, name: &str, pieces: &[Piece<'_>]) {
        self.push(name);
        self.push("(");
        for (i, piece) in pieces.iter().enumerate() {
            self.push(if i > 0 { " " } else { "" });
            match piece {
                Key(keyword) => self.push(keyword),
                Word(expr) => self.push(&marker(expr)),
                Of(expr) => self.expr(expr, 0, 0),
            }
        }
        self.push(")");
    }

    fn json_call(&mut self, name: &str, args: &[&Expr]) -> bool {
        match (name, args) {
            ("JSON_EXISTS", [json, path, on_error]) => {
                self.json_head(name, json, path);
                self.behavior(on_error, None, "ERROR");
                self.push(")");
            }
            ("JSON_VALUE", [json, path, returning, on_empty, empty, on_error, error]) => {
                self.json_head(name, json, path);
                self.returning(returning);
                self.behavior(on_empty, Some(empty), "EMPTY");
                self.behavior(on_error, Some(error), "ERROR");
                self.push(")");
            }
            ("JSON_QUERY", [json, path, returning, wrapper, on_empty, on_error]) => {
                self.json_head(name, json, path);
                self.returning(returning);
                self.push(match marker(wrapper).as_str() {
                    "CONDITIONAL" => " WITH CONDITIONAL ARRAY WRAPPER",
                    "UNCONDITIONAL" => " WITH UNCONDITIONAL ARRAY WRAPPER",
                    _ => " WITHOUT ARRAY WRAPPER",
                });
                let (empty, error) = (marker(on_empty), marker(on_error));
                self.push(&format!(" {empty} ON EMPTY {error} ON ERROR)"));
            }
            ("JSON_OBJECT" | "JSON_OBJECTAGG", [nulls, pairs @ ..]) => {
                self.push(&format!("{name}("));
                self.list(&pairs.chunks_exact(2).collect::<Vec<_>>(), |w, pair| {
                    w.push("KEY ");
                    w.expr(pair[0], 0, 0);
                    w.push(" VALUE ");
                    w.expr(pair[1], 0, 0);
                });
                let space = if pairs.is_empty() { "" } else { " " };
                self.push(&format!("{space}{} ON NULL)", marker(nulls)));
            }
            ("JSON_ARRAY" | "JSON_ARRAYAGG", [nulls, values @ ..]) => {
                self.push(&format!("{name}("));
                self.list(values, |w, e| w.expr(e, 0, 0));
                if !values.is_empty() {
                    self.push(&format!(" {} ON NULL", marker(nulls)));
                }
                self.push(")");
            }
            _ => return false,
        }
        true
    }

    fn json_head(&mut self, name: &str, json: &Expr, path: &Expr) {
        self.push(&format!("{name}("));
        self.expr(json, 0, 0);
        self.push(", ");
        self.expr(path, 0, 0);
    }

    fn returning(&mut self, data_type: &Expr) {
        if was_written(data_type) {
            self.push(&format!(" RETURNING {}", marker(data_type)));
        }
    }

    /// ` ERROR ON EMPTY`, ` DEFAULT 1 ON ERROR`; nothing if the user wrote nothing.
    fn behavior(&mut self, behavior: &Expr, default: Option<&Expr>, on: &str) {
        if !was_written(behavior) {
            return;
        }
        let word = marker(behavior);
        self.push(&format!(" {word}"));
        if let Some(default) = default
            && word == "DEFAULT"
        {
            self.push(" ");
            self.expr(default, 0, 0);
        }
        self.push(&format!(" ON {on}"));
    }
}

/// What a function like `YEAR` extracts: Flink reads it as `EXTRACT`.
fn extracted_unit(function: &str) -> Option<&'static str> {
    Some(match function {
        "YEAR" => "YEAR",
        "QUARTER" => "QUARTER",
        "MONTH" => "MONTH",
        "WEEK" => "WEEK",
        "DAYOFYEAR" => "DOY",
        "DAYOFMONTH" => "DAY",
        "DAYOFWEEK" => "DOW",
        "HOUR" => "HOUR",
        "MINUTE" => "MINUTE",
        "SECOND" => "SECOND",
        _ => return None,
    })
}

/// A piece of a call with keywords.
enum Piece<'a> {
    Key(&'static str),
    Word(&'a Expr),
    Of(&'a Expr),
}

use Piece::{Key, Of, Word};

pub(super) fn is_table(function: &Function) -> bool {
    function.name.to_string() == "TABLE" && matches!(function.args, FunctionArguments::Subquery(_))
}

/// The arguments that are plain expressions, if all are.
pub(super) fn plain_args(function: &Function) -> Vec<&Expr> {
    let FunctionArguments::List(list) = &function.args else {
        return Vec::new();
    };
    if list.duplicate_treatment.is_some() {
        return Vec::new();
    }
    let args: Option<Vec<_>> = list
        .args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e),
            _ => None,
        })
        .collect();
    args.unwrap_or_default()
}

/// The text of a keyword that is a string literal in the AST.
pub(super) fn marker(expr: &Expr) -> String {
    match expr {
        Expr::Value(v) => match &v.value {
            Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}

fn is_marker(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(v) if matches!(v.value, Value::SingleQuotedString(_)))
}

/// Markers of what the user left out have no place.
fn was_written(marker: &Expr) -> bool {
    span::span_of(marker).is_some()
}
