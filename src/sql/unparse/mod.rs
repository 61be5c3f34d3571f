//! AST to text, as Flink writes it: names in backticks, keywords in upper case, no parentheses but
//! those that precedence needs.
//!
//! DESCRIBE shows computed columns and watermarks so, SHOW CREATE whole queries. The text parses back
//! to the same AST.

mod calls;
mod expr;
mod functions;
mod match_recognize;
mod operand;
mod query;

#[cfg(test)]
mod tests;

use sqlparser::ast::{Expr, Ident, ObjectName, Query};

/// The text of an expression.
#[must_use]
pub fn expr(expr: &Expr) -> String {
    let mut writer = Writer::default();
    writer.expr(expr, 0, 0);
    writer.out
}

/// The text of a query, a clause a line.
#[must_use]
pub fn query(query: &Query) -> String {
    let mut writer = Writer::default();
    writer.query(query);
    writer.out
}

/// A name in backticks.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A dotted name, each part in backticks.
#[must_use]
pub fn quoted_name(name: &ObjectName) -> String {
    let parts = name.0.iter().map(|part| match part.as_ident() {
        Some(ident) => quoted(&ident.value),
        None => part.to_string(),
    });
    parts.collect::<Vec<_>>().join(".")
}

/// A string literal; characters beyond ASCII are escaped.
#[must_use]
pub fn string_literal(text: &str) -> String {
    use std::fmt::Write as _;
    if text.is_ascii() {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut literal = "u&'".to_string();
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(c @ (b'\'' | b'\\')) => {
                literal.push(char::from(c));
                literal.push(char::from(c));
            }
            Ok(c @ 32..128) => literal.push(char::from(c)),
            _ => {
                let _ = write!(literal, "\\{unit:04x}");
            }
        }
    }
    literal.push('\'');
    literal
}

/// Collects the text.
#[derive(Default)]
struct Writer {
    out: String,
}

impl Writer {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn ident(&mut self, ident: &Ident) {
        self.push(&quoted(&ident.value));
    }

    /// `write` for each of `items`, with commas between them.
    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            write(self, item);
        }
    }

    fn exprs(&mut self, exprs: &[Expr]) {
        self.list(exprs, |w, e| w.expr(e, 0, 0));
    }
}
