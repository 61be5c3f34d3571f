//! Makes nodes of the AST.

use sqlparser::ast::{
    CastKind, DataType as AstType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, UnaryOperator, Value,
    ValueWithSpan,
};

use super::super::span;
use crate::error::Span;

pub(super) fn unary(op: UnaryOperator, expr: Expr) -> Expr {
    Expr::UnaryOp {
        op,
        expr: Box::new(expr),
    }
}

pub(super) fn negated_if(negated: bool, expr: Expr) -> Expr {
    if negated {
        unary(UnaryOperator::Not, expr)
    } else {
        expr
    }
}

pub(super) fn cast(kind: CastKind, expr: Expr, data_type: AstType) -> Expr {
    Expr::Cast {
        kind,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

pub(super) fn ast_type_named(name: &str) -> AstType {
    AstType::Custom(ObjectName::from(vec![Ident::new(name)]), Vec::new())
}

pub(super) fn value(value: Value, at: Span) -> Expr {
    Expr::Value(ValueWithSpan {
        value,
        span: span::to_ast(at),
    })
}

/// A string literal that is not in the text: a marker of a special call form.
pub(super) fn text(marker: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(marker.into()).with_empty_span())
}

/// A call of the function `name`.
pub(super) fn call(name: &str, args: Vec<Expr>) -> Expr {
    call_of(Ident::new(name), args)
}

pub(super) fn call_of(name: Ident, args: Vec<Expr>) -> Expr {
    Expr::Function(function(ObjectName::from(vec![name]), args))
}

pub(super) fn function(name: ObjectName, args: Vec<Expr>) -> Function {
    Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args
                .into_iter()
                .map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e)))
                .collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

pub(super) fn upper(mut name: Ident) -> Ident {
    name.value.make_ascii_uppercase();
    name
}
