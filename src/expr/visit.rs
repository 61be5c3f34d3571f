//! Walking and rewriting expressions, and their text form.

use std::fmt;

use super::{CastMode, Expr, ExprKind};
use crate::functions::Determinism;

impl Expr {
    /// The direct subexpressions.
    #[must_use]
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Column(_) | ExprKind::Outer { .. } | ExprKind::Literal(_) => Vec::new(),
            ExprKind::Call { args, .. } | ExprKind::And(args) | ExprKind::Or(args) => {
                args.iter().collect()
            }
            ExprKind::Cast { input, .. }
            | ExprKind::Not(input)
            | ExprKind::IsNull { input, .. }
            | ExprKind::Field { input, .. } => vec![input],
            ExprKind::Compare { left, right, .. } => vec![left, right],
            ExprKind::Case {
                branches,
                otherwise,
            } => branches
                .iter()
                .flat_map(|(when, then)| [when, then])
                .chain([otherwise.as_ref()])
                .collect(),
        }
    }

    /// The same node over `rewrite`n direct subexpressions.
    #[must_use]
    pub fn map_children(self, rewrite: &mut dyn FnMut(Expr) -> Expr) -> Expr {
        let Expr { kind, data_type } = self;
        let mut boxed = |e: Box<Expr>| Box::new(rewrite(*e));
        let kind = match kind {
            ExprKind::Cast { input, mode } => ExprKind::Cast {
                input: boxed(input),
                mode,
            },
            ExprKind::Not(input) => ExprKind::Not(boxed(input)),
            ExprKind::IsNull { input, negated } => ExprKind::IsNull {
                input: boxed(input),
                negated,
            },
            ExprKind::Field { input, index } => ExprKind::Field {
                input: boxed(input),
                index,
            },
            ExprKind::Compare { op, left, right } => ExprKind::Compare {
                op,
                left: boxed(left),
                right: boxed(right),
            },
            ExprKind::Call { function, args } => ExprKind::Call {
                function,
                args: args.into_iter().map(rewrite).collect(),
            },
            ExprKind::And(args) => ExprKind::And(args.into_iter().map(rewrite).collect()),
            ExprKind::Or(args) => ExprKind::Or(args.into_iter().map(rewrite).collect()),
            ExprKind::Case {
                branches,
                otherwise,
            } => ExprKind::Case {
                branches: branches
                    .into_iter()
                    .map(|(when, then)| {
                        let when = rewrite(when);
                        (when, rewrite(then))
                    })
                    .collect(),
                otherwise: Box::new(rewrite(*otherwise)),
            },
            leaf @ (ExprKind::Column(_) | ExprKind::Outer { .. } | ExprKind::Literal(_)) => leaf,
        };
        Expr { kind, data_type }
    }

    /// Rewrites bottom-up: children first, then the node itself.
    #[must_use]
    pub fn transform(self, rewrite: &mut dyn FnMut(Expr) -> Expr) -> Expr {
        let node = self.map_children(&mut |child| child.transform(rewrite));
        rewrite(node)
    }

    /// Whether `test` holds for the node or one below it.
    pub fn any(&self, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
        test(self) || self.children().into_iter().any(|child| child.any(test))
    }

    /// The input columns that are read, ascending, each once.
    #[must_use]
    pub fn columns(&self) -> Vec<usize> {
        let mut found = Vec::new();
        self.any(&mut |e| {
            found.extend(e.as_column());
            false
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The same expression with column `i` replaced by `with(i, type)`.
    #[must_use]
    pub fn replace_columns(self, with: &dyn Fn(usize, &crate::types::DataType) -> Expr) -> Expr {
        self.transform(&mut |e| match e.kind {
            ExprKind::Column(i) => with(i, &e.data_type),
            _ => e,
        })
    }

    /// The same expression reading column `map(i)` instead of `i`.
    #[must_use]
    pub fn remap_columns(self, map: &dyn Fn(usize) -> usize) -> Expr {
        self.replace_columns(&|i, t| Expr::column(map(i), t.clone()))
    }

    /// Whether two evaluations on the same row give the same value.
    #[must_use]
    pub fn is_deterministic(&self) -> bool {
        !self.any(&mut |e| match &e.kind {
            ExprKind::Call { function, args } => {
                function.determinism(args.len()) != Determinism::Deterministic
            }
            _ => false,
        })
    }

    /// Structural equality: same nodes, functions by name, constants by value.
    #[must_use]
    pub fn same(&self, other: &Expr) -> bool {
        if self.data_type.kind != other.data_type.kind {
            return false;
        }
        let here = match (&self.kind, &other.kind) {
            (ExprKind::Column(a), ExprKind::Column(b)) => a == b,
            (
                ExprKind::Outer {
                    depth: d1,
                    index: i1,
                },
                ExprKind::Outer {
                    depth: d2,
                    index: i2,
                },
            ) => d1 == d2 && i1 == i2,
            (ExprKind::Literal(a), ExprKind::Literal(b)) => a == b,
            (ExprKind::Call { function: a, .. }, ExprKind::Call { function: b, .. }) => {
                a.name() == b.name()
            }
            (ExprKind::Cast { mode: a, .. }, ExprKind::Cast { mode: b, .. }) => a == b,
            (ExprKind::Compare { op: a, .. }, ExprKind::Compare { op: b, .. }) => a == b,
            (ExprKind::IsNull { negated: a, .. }, ExprKind::IsNull { negated: b, .. }) => a == b,
            (ExprKind::Field { index: a, .. }, ExprKind::Field { index: b, .. }) => a == b,
            (ExprKind::And(_), ExprKind::And(_))
            | (ExprKind::Or(_), ExprKind::Or(_))
            | (ExprKind::Not(_), ExprKind::Not(_)) => true,
            (ExprKind::Case { branches: a, .. }, ExprKind::Case { branches: b, .. }) => {
                a.len() == b.len()
            }
            _ => false,
        };
        let (a, b) = (self.children(), other.children());
        here && a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| x.same(y))
    }

    /// SQL text with the input's column names.
    #[must_use]
    pub fn to_sql(&self, names: &[String]) -> String {
        struct Named<'a>(&'a Expr, &'a [String]);
        impl fmt::Display for Named<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let name = |i: usize| self.1.get(i).cloned().unwrap_or_else(|| format!("${i}"));
                write_expr(self.0, &name, f)
            }
        }
        Named(self, names).to_string()
    }
}

/// Writes `expr` as SQL, columns by `name`.
pub(super) fn write_expr(
    expr: &Expr,
    name: &dyn Fn(usize) -> String,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let list = |items: &[Expr], separator: &str, f: &mut fmt::Formatter<'_>| {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                f.write_str(separator)?;
            }
            write_expr(item, name, f)?;
        }
        Ok(())
    };
    match &expr.kind {
        ExprKind::Column(i) => f.write_str(&name(*i)),
        ExprKind::Outer { depth, index } => write!(f, "$outer{depth}.{index}"),
        ExprKind::Literal(value) => write_literal(value, f),
        ExprKind::Call { function, args } => {
            let symbol = function.name();
            if args.len() == 2 && !symbol.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                f.write_str("(")?;
                list(args, &format!(" {symbol} "), f)?;
            } else {
                write!(f, "{symbol}(")?;
                list(args, ", ", f)?;
            }
            f.write_str(")")
        }
        ExprKind::Cast { input, mode } => {
            f.write_str(if *mode == CastMode::Try {
                "TRY_CAST("
            } else {
                "CAST("
            })?;
            write_expr(input, name, f)?;
            write!(f, " AS {})", expr.data_type.kind)
        }
        ExprKind::Compare { op, left, right } => {
            f.write_str("(")?;
            write_expr(left, name, f)?;
            write!(f, " {} ", op.symbol())?;
            write_expr(right, name, f)?;
            f.write_str(")")
        }
        ExprKind::And(args) | ExprKind::Or(args) => {
            let and = matches!(expr.kind, ExprKind::And(_));
            f.write_str("(")?;
            list(args, if and { " AND " } else { " OR " }, f)?;
            f.write_str(")")
        }
        ExprKind::Not(input) => {
            f.write_str("NOT ")?;
            write_expr(input, name, f)
        }
        ExprKind::IsNull { input, negated } => {
            write_expr(input, name, f)?;
            f.write_str(if *negated { " IS NOT NULL" } else { " IS NULL" })
        }
        ExprKind::Field { input, index } => {
            write_expr(input, name, f)?;
            let fields = input.data_type.kind.fields();
            match fields.and_then(|fields| fields.get(*index)) {
                Some(field) => write!(f, ".{}", field.name),
                None => write!(f, ".{index}"),
            }
        }
        ExprKind::Case {
            branches,
            otherwise,
        } => {
            f.write_str("CASE")?;
            for (when, then) in branches {
                f.write_str(" WHEN ")?;
                write_expr(when, name, f)?;
                f.write_str(" THEN ")?;
                write_expr(then, name, f)?;
            }
            f.write_str(" ELSE ")?;
            write_expr(otherwise, name, f)?;
            f.write_str(" END")
        }
    }
}

fn write_literal(
    value: &datafusion::common::ScalarValue,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    use datafusion::common::ScalarValue;
    match value {
        ScalarValue::Utf8(Some(text)) => write!(f, "'{}'", text.replace('\'', "''")),
        value if value.is_null() => f.write_str("null"),
        value => write!(f, "{value}"),
    }
}
