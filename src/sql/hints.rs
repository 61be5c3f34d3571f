//! Hints: `/*+ OPTIONS('k' = 'v'), STATE_TTL('a' = '1d') */`.

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Select,
    Value,
};

use super::lexer::{Token, TokenKind, tokenize};
use super::parser::expr_call;
use crate::error::{Error, Result};

/// One hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// Name, in upper case.
    pub name: String,
    /// Its `'k' = 'v'` arguments.
    pub options: Vec<(String, String)>,
    /// Its other arguments: names or strings.
    pub list: Vec<String>,
}

impl Hint {
    /// The hint as a call, whose arguments are string literals and equations of two of them.
    pub(super) fn to_expr(&self) -> Expr {
        let literal =
            |s: &String| Expr::Value(Value::SingleQuotedString(s.clone()).with_empty_span());
        let equation = |(key, value): &(String, String)| Expr::BinaryOp {
            left: Box::new(literal(key)),
            op: BinaryOperator::Eq,
            right: Box::new(literal(value)),
        };
        let options = self.options.iter().map(equation);
        let args = options.chain(self.list.iter().map(literal)).collect();
        expr_call(Ident::new(&self.name), args)
    }

    fn of_expr(expr: &Expr) -> Option<Self> {
        let Expr::Function(Function { name, args, .. }) = expr else {
            return None;
        };
        let FunctionArguments::List(args) = args else {
            return None;
        };
        let text = |expr: &Expr| match expr {
            Expr::Value(v) => v.value.clone().into_string(),
            _ => None,
        };
        let mut hint = Self {
            name: name.to_string(),
            options: Vec::new(),
            list: Vec::new(),
        };
        for arg in &args.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
                    left, right, ..
                })) => hint.options.push((text(left)?, text(right)?)),
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => hint.list.push(text(expr)?),
                _ => return None,
            }
        }
        Some(hint)
    }
}

/// The hints behind a table: `with_hints` of a `TableFactor::Table`.
#[must_use]
pub fn of_table(with_hints: &[Expr]) -> Vec<Hint> {
    with_hints.iter().filter_map(Hint::of_expr).collect()
}

/// The hints behind `SELECT`.
pub fn of_select(select: &Select) -> Result<Vec<Hint>> {
    let mut hints = Vec::new();
    for text in select.optimizer_hints.iter().map(|h| &h.text) {
        let token = Token {
            kind: TokenKind::Hint,
            text: text.clone(),
            span: crate::error::Span::default(),
        };
        hints.extend(parse(&token)?);
    }
    Ok(hints)
}

/// The hints inside a hint token.
pub(super) fn parse(token: &Token) -> Result<Vec<Hint>> {
    let inside = token.span.start + 3;
    let malformed = |at: &Token| {
        Error::parse("A hint is written NAME or NAME('key' = 'value', ..)")
            .at(at.span)
            .shifted(inside)
    };
    let tokens = tokenize(&token.text).map_err(|e| e.shifted(inside))?;
    let mut rest = tokens.iter().peekable();
    let mut hints = Vec::new();
    while let Some(name) = rest.next() {
        if name.kind == TokenKind::End {
            break;
        }
        if !matches!(name.kind, TokenKind::Word | TokenKind::Quoted) {
            return Err(malformed(name));
        }
        let mut hint = Hint {
            name: name.text.to_ascii_uppercase(),
            options: Vec::new(),
            list: Vec::new(),
        };
        if rest.next_if(|t| t.is_symbol("(")).is_some() {
            while let Some(first) = rest.next() {
                if first.is_symbol(")") && hint.options.is_empty() && hint.list.is_empty() {
                    break;
                }
                if !is_hint_argument(first) {
                    return Err(malformed(first));
                }
                if rest.next_if(|t| t.is_symbol("=")).is_some() {
                    match rest.next() {
                        Some(value) if is_hint_argument(value) => {
                            hint.options.push((first.text.clone(), value.text.clone()));
                        }
                        other => return Err(malformed(other.unwrap_or(first))),
                    }
                } else {
                    hint.list.push(first.text.clone());
                }
                match rest.next() {
                    Some(t) if t.is_symbol(",") => {}
                    Some(t) if t.is_symbol(")") => break,
                    other => return Err(malformed(other.unwrap_or(first))),
                }
            }
        }
        hints.push(hint);
        match rest.next() {
            Some(t) if t.is_symbol(",") => {}
            Some(t) if t.kind == TokenKind::End => break,
            other => return Err(malformed(other.unwrap_or(name))),
        }
    }
    Ok(hints)
}

fn is_hint_argument(token: &Token) -> bool {
    matches!(
        token.kind,
        TokenKind::String | TokenKind::Word | TokenKind::Quoted | TokenKind::Number
    )
}
