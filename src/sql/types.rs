//! The types inside `CAST`.
//!
//! The AST carries such a type as `DataType::Custom`: its name is the type's printed form, its modifier
//! the form that Flink writes back.

use sqlparser::ast::{DataType as AstType, TimezoneInfo};

use super::parser::FlinkParser;
use super::span::span_of_name;
use crate::error::{Error, Result};
use crate::types::{DataType, TypeKind};

/// The Flink type of a type in an expression.
pub fn parse_type(ast: &AstType) -> Result<DataType> {
    match ast {
        AstType::Custom(name, _) => {
            let text = match name.0.as_slice() {
                [part] => part.as_ident().map(|i| i.value.clone()),
                _ => None,
            };
            let text = text.unwrap_or_else(|| name.to_string());
            FlinkParser::parse_type(&text).map_err(|error| match span_of_name(name) {
                Some(at) => Error::parse(error.message()).at(at),
                None => error,
            })
        }
        AstType::Date => Ok(TypeKind::Date.nullable()),
        AstType::Time(_, _) => Ok(TypeKind::Time(0).nullable()),
        AstType::Timestamp(_, TimezoneInfo::Tz) => Ok(TypeKind::TimestampLtz(6).nullable()),
        AstType::Timestamp(_, _) => Ok(TypeKind::Timestamp(6).nullable()),
        other => FlinkParser::parse_type(&other.to_string()),
    }
}
