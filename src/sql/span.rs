//! Positions inside `sqlparser`'s AST.
//!
//! `sqlparser` speaks of lines and columns. Ours hold one line whose columns are byte offsets plus
//! one, so that a position needs no text to become a [`Span`].

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Spanned};
use sqlparser::tokenizer::{Location, Span as AstSpan};

use crate::error::Span;

/// A position as the AST holds it.
pub(super) fn to_ast(span: Span) -> AstSpan {
    let at = |offset: usize| Location::new(1, offset as u64 + 1);
    AstSpan::new(at(span.start), at(span.end))
}

/// The position that an AST span holds, if it holds one.
#[must_use]
pub fn from_ast(span: AstSpan) -> Option<Span> {
    let at = |location: Location| match location {
        Location { line: 1, column } if column > 0 => usize::try_from(column - 1).ok(),
        _ => None,
    };
    Some(Span::new(at(span.start)?, at(span.end)?))
}

/// Where `node` lies in the text that was parsed: from its first name or literal to its last.
pub fn span_of(node: &impl Spanned) -> Option<Span> {
    from_ast(node.span())
}

/// Where a name of one part lies.
#[must_use]
pub fn span_of_ident(ident: &Ident) -> Option<Span> {
    from_ast(ident.span)
}

/// Where a name lies: all its parts.
#[must_use]
pub fn span_of_name(name: &ObjectName) -> Option<Span> {
    let part = |p: &ObjectNamePart| p.as_ident().and_then(|i| from_ast(i.span));
    let first = part(name.0.first()?)?;
    let last = part(name.0.last()?)?;
    Some(Span::new(first.start, last.end))
}
