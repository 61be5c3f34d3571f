//! Expressions. Precedences and the rule for parentheses are Calcite's.

use sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, DataType as AstType, DateTimeField, Expr,
    Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Interval,
    OrderByExpr, TimezoneInfo, UnaryOperator, Value, WindowFrame, WindowFrameBound,
    WindowFrameUnits, WindowSpec, WindowType,
};

use super::super::span;
use super::{Writer, functions, quoted_name, string_literal};

/// How tight an operator binds to its left and right.
type Precedence = (u8, u8);

const OR: Precedence = (22, 23);
const AND: Precedence = (24, 25);
const NOT: Precedence = (26, 27);
const IS: Precedence = (28, 29);
const COMPARISON: Precedence = (30, 31);
const RANGE: Precedence = (32, 33);
const LIKE: Precedence = (33, 32);
const SUM: Precedence = (40, 41);
const PRODUCT: Precedence = (60, 61);
const SIGN: Precedence = (80, 81);
const OVER: Precedence = (20, 21);

impl Writer {
    /// Writes `expr` where operators of precedence `left` and `right` stand beside it.
    pub(super) fn expr(&mut self, expr: &Expr, left: u8, right: u8) {
        let Some(own) = precedence(expr) else {
            self.bare(expr);
            return;
        };
        if left > own.0 || (own.1 <= right && right != 0) {
            self.push("(");
            self.operator(expr, own, 0, 0);
            self.push(")");
        } else {
            self.operator(expr, own, left, right);
        }
    }

    /// An expression that is an operator, without parentheses around it.
    fn operator(&mut self, expr: &Expr, own: Precedence, left: u8, right: u8) {
        match expr {
            Expr::BinaryOp {
                left: a,
                op,
                right: b,
            } => self.infix(a, &binary_symbol(op), b, own, (left, right)),
            Expr::IsDistinctFrom(a, b) => {
                self.infix(a, "IS DISTINCT FROM", b, own, (left, right));
            }
            Expr::IsNotDistinctFrom(a, b) => {
                self.infix(a, "IS NOT DISTINCT FROM", b, own, (left, right));
            }
            Expr::AnyOp {
                left: a,
                compare_op,
                right: b,
                ..
            } => self.quantified(a, compare_op, "SOME", b, own),
            Expr::AllOp {
                left: a,
                compare_op,
                right: b,
            } => self.quantified(a, compare_op, "ALL", b, own),
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr: inner,
            } => match negatable(inner) {
                Some(call) => self.call_operator(call, true, left, right),
                None => {
                    self.push("NOT ");
                    self.expr(inner, own.1, right);
                }
            },
            Expr::UnaryOp { op, expr: inner } => {
                let number =
                    matches!(&**inner, Expr::Value(v) if matches!(v.value, Value::Number(..)));
                self.push(if *op == UnaryOperator::Minus {
                    "-"
                } else {
                    "+"
                });
                if !number {
                    self.push(" ");
                }
                self.expr(inner, own.1, right);
            }
            Expr::Between {
                expr: a,
                negated,
                low,
                high,
            } => {
                self.expr(a, own.0, 0);
                self.push(if *negated { " NOT" } else { "" });
                self.push(" BETWEEN ASYMMETRIC ");
                let bound = if contains_and(low) { 100 } else { 0 };
                self.expr(low, bound, bound);
                self.push(" AND ");
                self.expr(high, 0, own.1);
            }
            Expr::InList {
                expr: a,
                list,
                negated,
            } => {
                self.expr(a, left, own.0);
                self.push(if *negated { " NOT IN (" } else { " IN (" });
                self.exprs(list);
                self.push(")");
            }
            Expr::InSubquery {
                expr: a,
                subquery,
                negated,
            } => {
                self.expr(a, left, own.0);
                self.push(if *negated { " NOT IN (" } else { " IN (" });
                self.query(subquery);
                self.push(")");
            }
            Expr::Function(f) if f.over.is_some() => self.over(f),
            Expr::Function(f) => self.call_operator(f, false, left, right),
            _ => {
                if let Some((inner, suffix)) = postfix(expr) {
                    self.expr(inner, left, own.1);
                    self.push(suffix);
                } else {
                    self.bare(expr);
                }
            }
        }
    }

    fn infix(&mut self, a: &Expr, symbol: &str, b: &Expr, own: Precedence, around: Precedence) {
        self.expr(a, around.0, own.0);
        self.push(" ");
        self.push(symbol);
        self.push(" ");
        self.expr(b, own.1, around.1);
    }

    fn quantified(
        &mut self,
        a: &Expr,
        op: &BinaryOperator,
        quantifier: &str,
        b: &Expr,
        own: Precedence,
    ) {
        self.expr(a, 0, own.0);
        self.push(&format!(" {} {quantifier} ", binary_symbol(op)));
        match b {
            Expr::Tuple(exprs) => {
                self.push("(");
                self.exprs(exprs);
                self.push(")");
            }
            Expr::Nested(inner) => {
                self.push("(");
                self.expr(inner, 0, 0);
                self.push(")");
            }
            other => self.expr(other, 0, 0),
        }
    }

    /// A call that is written as an operator: `LIKE`, `IS JSON`, `OVERLAPS`, `RUNNING`.
    fn call_operator(&mut self, function: &Function, negated: bool, left: u8, right: u8) {
        let name = function.name.to_string();
        let args = plain_args(function);
        let not = if negated { " NOT" } else { "" };
        match (name.as_str(), args.as_slice()) {
            ("LIKE" | "ILIKE" | "RLIKE" | "SIMILAR TO", [a, pattern, escape @ ..]) => {
                self.expr(a, LIKE.0, LIKE.1);
                self.push(&format!("{not} {name} "));
                self.expr(pattern, LIKE.0, LIKE.1);
                for escape in escape {
                    self.push(" ESCAPE ");
                    self.expr(escape, LIKE.0, LIKE.1);
                }
            }
            ("IS JSON", [a, kind]) => {
                self.expr(a, left, IS.1);
                self.push(&format!(" IS{not} JSON {}", marker(kind)));
            }
            ("OVERLAPS", [a, b, c, d]) => {
                for (i, (from, to)) in [(a, b), (c, d)].into_iter().enumerate() {
                    self.push(if i == 0 { "(" } else { " OVERLAPS (" });
                    self.exprs(&[(*from).clone(), (*to).clone()]);
                    self.push(")");
                }
            }
            ("RUNNING" | "FINAL", [a]) => {
                self.push(&format!("{name} "));
                self.expr(a, SIGN.1, right);
            }
            _ => self.call(function),
        }
    }

    fn over(&mut self, function: &Function) {
        self.call(function);
        self.push(" OVER ");
        match &function.over {
            Some(WindowType::WindowSpec(spec)) => self.window_spec(spec),
            Some(WindowType::NamedWindow(name)) => self.ident(name),
            None => {}
        }
    }

    pub(super) fn window_spec(&mut self, spec: &WindowSpec) {
        let mut separator = "";
        self.push("(");
        if let Some(name) = &spec.window_name {
            self.ident(name);
            separator = " ";
        }
        if !spec.partition_by.is_empty() {
            self.push(separator);
            self.push("PARTITION BY ");
            self.exprs(&spec.partition_by);
            separator = " ";
        }
        if !spec.order_by.is_empty() {
            self.push(separator);
            self.push("ORDER BY ");
            self.order_keys(&spec.order_by);
            separator = " ";
        }
        if let Some(frame) = &spec.window_frame {
            self.push(separator);
            self.frame(frame);
        }
        self.push(")");
    }

    fn frame(&mut self, frame: &WindowFrame) {
        self.push(match frame.units {
            WindowFrameUnits::Rows => "ROWS ",
            _ => "RANGE ",
        });
        match &frame.end_bound {
            Some(end) => {
                self.push("BETWEEN ");
                self.frame_bound(&frame.start_bound);
                self.push(" AND ");
                self.frame_bound(end);
            }
            None => self.frame_bound(&frame.start_bound),
        }
    }

    fn frame_bound(&mut self, bound: &WindowFrameBound) {
        let (distance, side) = match bound {
            WindowFrameBound::CurrentRow => return self.push("CURRENT ROW"),
            WindowFrameBound::Preceding(distance) => (distance, " PRECEDING"),
            WindowFrameBound::Following(distance) => (distance, " FOLLOWING"),
        };
        match distance {
            Some(distance) => self.expr(distance, 0, 0),
            None => self.push("UNBOUNDED"),
        }
        self.push(side);
    }

    pub(super) fn order_keys(&mut self, keys: &[OrderByExpr]) {
        self.list(keys, |w, key| {
            w.expr(&key.expr, 0, 0);
            if key.options.asc == Some(false) {
                w.push(" DESC");
            }
            match key.options.nulls_first {
                Some(true) => w.push(" NULLS FIRST"),
                Some(false) => w.push(" NULLS LAST"),
                None => {}
            }
        });
    }

    /// An expression that never needs parentheses.
    fn bare(&mut self, expr: &Expr) {
        match expr {
            Expr::Identifier(ident) => self.ident(ident),
            Expr::CompoundIdentifier(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    self.push(if i > 0 { "." } else { "" });
                    self.ident(part);
                }
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.expr(root, 0, 100);
                for access in access_chain {
                    match access {
                        AccessExpr::Dot(Expr::Identifier(field)) => {
                            self.push(".");
                            self.ident(field);
                        }
                        other => self.push(&other.to_string()),
                    }
                }
            }
            Expr::Nested(inner) => self.expr(inner, 0, 0),
            Expr::Value(v) => self.literal(&v.value),
            Expr::TypedString(typed) => {
                self.push(match &typed.data_type {
                    AstType::Date => "DATE ",
                    AstType::Time(..) => "TIME ",
                    AstType::Timestamp(_, TimezoneInfo::Tz) => "TIMESTAMP WITH LOCAL TIME ZONE ",
                    _ => "TIMESTAMP ",
                });
                self.literal(&typed.value.value);
            }
            Expr::Interval(interval) => self.interval(interval),
            Expr::Cast {
                kind,
                expr,
                data_type,
                ..
            } => self.cast(kind, expr, data_type),
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => self.case(operand.as_deref(), conditions, else_result.as_deref()),
            Expr::Exists { subquery, negated } => {
                self.push(if *negated { "NOT EXISTS (" } else { "EXISTS (" });
                self.query(subquery);
                self.push(")");
            }
            Expr::Subquery(query) => {
                self.push("(");
                self.query(query);
                self.push(")");
            }
            Expr::Tuple(exprs) => {
                self.push("ROW(");
                self.exprs(exprs);
                self.push(")");
            }
            Expr::Function(function) => self.call(function),
            other => self.push(&other.to_string()),
        }
    }

    fn literal(&mut self, value: &Value) {
        match value {
            Value::Number(text, _) => self.push(&number(text)),
            Value::SingleQuotedString(text) => self.push(&string_literal(text)),
            Value::HexStringLiteral(digits) => {
                self.push(&format!("X'{}'", digits.to_ascii_uppercase()));
            }
            Value::Boolean(true) => self.push("TRUE"),
            Value::Boolean(false) => self.push("FALSE"),
            Value::Null => self.push("NULL"),
            other => self.push(&other.to_string()),
        }
    }

    fn interval(&mut self, interval: &Interval) {
        self.push("INTERVAL ");
        self.expr(&interval.value, 0, 0);
        if let Some(unit) = &interval.leading_field {
            self.push(&format!(" {}", unit_name(unit)));
        }
        match (
            interval.leading_precision,
            interval.fractional_seconds_precision,
        ) {
            (Some(p), Some(f)) if interval.last_field.is_none() => {
                self.push(&format!("({p}, {f})"));
            }
            (Some(p), _) => self.push(&format!("({p})")),
            _ => {}
        }
        if let Some(last) = &interval.last_field {
            self.push(&format!(" TO {}", unit_name(last)));
            if let Some(fraction) = interval.fractional_seconds_precision {
                self.push(&format!("({fraction})"));
            }
        }
    }

    fn cast(&mut self, kind: &CastKind, expr: &Expr, data_type: &AstType) {
        if let (Expr::Value(v), AstType::Custom(name, modifiers)) = (expr, data_type)
            && v.value == Value::Null
            && modifiers.is_empty()
            && name.to_string() == "BOOLEAN"
        {
            return self.push("UNKNOWN");
        }
        self.push(match kind {
            CastKind::TryCast => "TRY_CAST(",
            _ => "CAST(",
        });
        self.expr(expr, 0, 0);
        self.push(" AS ");
        match data_type {
            AstType::Custom(_, modifiers) if !modifiers.is_empty() => self.push(&modifiers[0]),
            other => self.push(&other.to_string()),
        }
        self.push(")");
    }

    /// `CASE` with an operand is written with conditions, and `ELSE` always.
    fn case(&mut self, operand: Option<&Expr>, branches: &[CaseWhen], other: Option<&Expr>) {
        self.push("CASE");
        for branch in branches {
            self.push(" WHEN ");
            match (operand, &branch.condition) {
                (None, condition) => self.expr(condition, 0, 0),
                (Some(operand), Expr::Tuple(values)) => {
                    self.expr(operand, 0, RANGE.0);
                    self.push(" IN (");
                    self.exprs(values);
                    self.push(")");
                }
                (Some(operand), value) => {
                    self.expr(operand, 0, COMPARISON.0);
                    self.push(" = ");
                    self.expr(value, COMPARISON.1, 0);
                }
            }
            self.push(" THEN ");
            self.expr(&branch.result, 0, 0);
        }
        self.push(" ELSE ");
        match other {
            Some(other) => self.expr(other, 0, 0),
            None => self.push("NULL"),
        }
        self.push(" END");
    }

    // -- calls -----------------------------------------------------------------------------------

    pub(super) fn call(&mut self, function: &Function) {
        if !self.special_call(function) {
            self.plain_call(function);
        }
        if function.null_treatment.is_some() {
            self.push(match function.null_treatment {
                Some(sqlparser::ast::NullTreatment::IgnoreNulls) => " IGNORE NULLS",
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

/// A piece of a call with keywords.
enum Piece<'a> {
    Key(&'static str),
    Word(&'a Expr),
    Of(&'a Expr),
}

use Piece::{Key, Of, Word};

fn precedence(expr: &Expr) -> Option<Precedence> {
    Some(match expr {
        Expr::BinaryOp { op, .. } => match op {
            BinaryOperator::Or => OR,
            BinaryOperator::And => AND,
            BinaryOperator::Plus | BinaryOperator::Minus => SUM,
            BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
            | BinaryOperator::StringConcat => PRODUCT,
            _ => COMPARISON,
        },
        Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. } => COMPARISON,
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => match negatable(expr) {
            Some(call) => precedence_of_call(call)?,
            None => NOT,
        },
        Expr::UnaryOp { expr, .. } => match &**expr {
            // a negative number is one literal
            Expr::Value(v) if matches!(v.value, Value::Number(..)) => return Some((200, 200)),
            _ => SIGN,
        },
        Expr::Between { .. } | Expr::InList { .. } | Expr::InSubquery { .. } => RANGE,
        Expr::Function(f) if f.over.is_some() && !is_table(f) => OVER,
        Expr::Function(f) => return precedence_of_call(f),
        Expr::Nested(inner) => return precedence(inner),
        _ => return postfix(expr).map(|_| IS),
    })
}

fn precedence_of_call(function: &Function) -> Option<Precedence> {
    match function.name.to_string().as_str() {
        "LIKE" | "ILIKE" | "RLIKE" | "SIMILAR TO" => Some(LIKE),
        "IS JSON" => Some(IS),
        "OVERLAPS" => Some(COMPARISON),
        "RUNNING" | "FINAL" => Some(SIGN),
        _ => None,
    }
}

/// The call inside `NOT` that is written with its own `NOT`: `a NOT LIKE b`.
fn negatable(expr: &Expr) -> Option<&Function> {
    match expr {
        Expr::Function(f)
            if matches!(
                f.name.to_string().as_str(),
                "LIKE" | "ILIKE" | "RLIKE" | "SIMILAR TO" | "IS JSON"
            ) =>
        {
            Some(f)
        }
        _ => None,
    }
}

fn postfix(expr: &Expr) -> Option<(&Expr, &'static str)> {
    Some(match expr {
        Expr::IsNull(e) => (e, " IS NULL"),
        Expr::IsNotNull(e) => (e, " IS NOT NULL"),
        Expr::IsTrue(e) => (e, " IS TRUE"),
        Expr::IsNotTrue(e) => (e, " IS NOT TRUE"),
        Expr::IsFalse(e) => (e, " IS FALSE"),
        Expr::IsNotFalse(e) => (e, " IS NOT FALSE"),
        Expr::IsUnknown(e) => (e, " IS UNKNOWN"),
        Expr::IsNotUnknown(e) => (e, " IS NOT UNKNOWN"),
        _ => return None,
    })
}

fn binary_symbol(op: &BinaryOperator) -> String {
    op.to_string()
}

fn contains_and(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            *op == BinaryOperator::And || contains_and(left) || contains_and(right)
        }
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => contains_and(inner),
        _ => false,
    }
}

fn is_table(function: &Function) -> bool {
    function.name.to_string() == "TABLE" && matches!(function.args, FunctionArguments::Subquery(_))
}

/// The arguments that are plain expressions, if all are.
fn plain_args(function: &Function) -> Vec<&Expr> {
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
fn marker(expr: &Expr) -> String {
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

fn unit_name(unit: &DateTimeField) -> String {
    unit.to_string().to_ascii_uppercase()
}

/// `1.50`, `0.5`, `1E3`: numbers as Calcite prints what it read.
fn number(text: &str) -> String {
    let upper = text.to_ascii_uppercase();
    if let Some((mantissa, exponent)) = upper.split_once('E') {
        return scientific(mantissa, exponent).unwrap_or(upper);
    }
    let (whole, fraction) = upper.split_once('.').unwrap_or((&upper, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    if fraction.is_empty() {
        whole.to_string()
    } else {
        format!("{whole}.{fraction}")
    }
}

/// One digit, the others behind a point, and the exponent of the first.
fn scientific(mantissa: &str, exponent: &str) -> Option<String> {
    let exponent: i64 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let mut digits = if digits.is_empty() { "0" } else { digits }.to_string();
    let scale = i64::try_from(fraction.len()).ok()? - exponent;
    let first = i64::try_from(digits.len()).ok()? - scale - 1;
    if scale == 0 {
        let kept = digits.trim_end_matches('0').len().max(1);
        digits.truncate(kept);
    }
    let rest = &digits[1..];
    let point = if rest.is_empty() { "" } else { "." };
    Some(format!("{}{point}{rest}E{first}", &digits[..1]))
}
