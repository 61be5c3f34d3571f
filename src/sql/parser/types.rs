//! Data types as Flink writes them.

use sqlparser::ast::{DataType as AstType, ObjectName};

use super::super::ast::SqlType;
use super::FlinkParser;
use crate::error::{Error, Result, Span};
use crate::types::{DataType, RowField, TypeKind};

impl FlinkParser<'_> {
    /// A type with its place.
    pub(super) fn sql_type(&mut self) -> Result<SqlType> {
        let start = self.here();
        let data_type = self.data_type()?;
        Ok(SqlType {
            data_type,
            span: self.since(start),
        })
    }

    /// A type inside an expression, in the form that [`super::super::types::parse_type`] reads.
    pub(super) fn ast_type(&mut self) -> Result<AstType> {
        let start = self.here();
        let data_type = self.data_type()?;
        let mut name = sqlparser::ast::Ident::new(data_type.to_string());
        name.span = super::super::span::to_ast(self.since(start));
        Ok(AstType::Custom(ObjectName::from(vec![name]), Vec::new()))
    }

    /// `type [ARRAY | MULTISET].. [NULL | NOT NULL]`
    pub(super) fn data_type(&mut self) -> Result<DataType> {
        self.nested(Self::data_type_unchecked)
    }

    fn data_type_unchecked(&mut self) -> Result<DataType> {
        let mut kind = self.type_kind()?;
        loop {
            if self.take_word("ARRAY") {
                kind = TypeKind::Array(Box::new(kind.nullable()));
            } else if self.take_word("MULTISET") {
                kind = TypeKind::Multiset(Box::new(kind.nullable()));
            } else {
                break;
            }
        }
        if self.take_words(&["NOT", "NULL"]) {
            return Ok(kind.not_null());
        }
        self.take_word("NULL");
        Ok(kind.nullable())
    }

    fn type_kind(&mut self) -> Result<TypeKind> {
        let start = self.here();
        if self.peek().kind != super::TokenKind::Word {
            return Err(self.unexpected("a data type"));
        }
        let name = self.peek().text.to_ascii_uppercase();
        self.skip(1);
        Ok(match name.as_str() {
            "BOOLEAN" => TypeKind::Boolean,
            "TINYINT" => TypeKind::TinyInt,
            "SMALLINT" => TypeKind::SmallInt,
            "INT" | "INTEGER" => TypeKind::Int,
            "BIGINT" => TypeKind::BigInt,
            "FLOAT" | "REAL" => TypeKind::Float,
            "DOUBLE" => {
                self.take_word("PRECISION");
                TypeKind::Double
            }
            "DECIMAL" | "DEC" | "NUMERIC" => self.decimal(start)?,
            "CHAR" | "CHARACTER" => {
                if self.take_word("VARYING") {
                    TypeKind::VarChar(self.length(start, crate::types::data_type::MAX_LENGTH)?)
                } else {
                    TypeKind::Char(self.length(start, 1)?)
                }
            }
            "VARCHAR" => {
                TypeKind::VarChar(self.length(start, crate::types::data_type::MAX_LENGTH)?)
            }
            "STRING" => TypeKind::STRING,
            "BINARY" => {
                if self.take_word("VARYING") {
                    TypeKind::VarBinary(self.length(start, crate::types::data_type::MAX_LENGTH)?)
                } else {
                    TypeKind::Binary(self.length(start, 1)?)
                }
            }
            "VARBINARY" => {
                TypeKind::VarBinary(self.length(start, crate::types::data_type::MAX_LENGTH)?)
            }
            "BYTES" => TypeKind::BYTES,
            "DATE" => TypeKind::Date,
            "TIME" => {
                let precision = self.precision(start, 0)?;
                self.take_words(&["WITHOUT", "TIME", "ZONE"]);
                TypeKind::Time(precision)
            }
            "TIMESTAMP" => self.timestamp(start)?,
            "TIMESTAMP_LTZ" => TypeKind::TimestampLtz(self.precision(start, 6)?),
            "INTERVAL" => self.interval_type()?,
            "ARRAY" => TypeKind::Array(Box::new(self.type_argument()?)),
            "MULTISET" => TypeKind::Multiset(Box::new(self.type_argument()?)),
            "MAP" => {
                self.expect_symbol("<")?;
                let key = self.data_type()?;
                self.expect_symbol(",")?;
                let value = self.data_type()?;
                self.expect_symbol(">")?;
                TypeKind::Map(Box::new(key), Box::new(value))
            }
            "ROW" => self.row_type()?,
            "VARIANT" => TypeKind::Variant,
            "RAW" | "BITMAP" | "STRUCTURED" => {
                return Err(Error::plan(format!("The type {name} is not supported")).at(start));
            }
            _ => {
                self.position -= 1;
                return Err(self.unexpected_of("a data type", TYPE_NAMES));
            }
        })
    }

    fn decimal(&mut self, start: Span) -> Result<TypeKind> {
        let (mut precision, mut scale) = (10u32, 0u32);
        if self.take_symbol("(") {
            precision = self.integer("the precision of DECIMAL")?;
            if self.take_symbol(",") {
                scale = self.integer("the scale of DECIMAL")?;
            }
            self.expect_symbol(")")?;
        }
        if !(1..=38).contains(&precision) {
            let reason = "Decimal precision must be between 1 and 38 (both inclusive).";
            return Err(self.error(reason, self.since(start)));
        }
        if scale > precision {
            let reason = format!(
                "Decimal scale must be between 0 and the precision {precision} (both inclusive)."
            );
            return Err(self.error(reason, self.since(start)));
        }
        let byte = |n: u32| u8::try_from(n).unwrap_or(38);
        Ok(TypeKind::Decimal(byte(precision), byte(scale)))
    }

    fn length(&mut self, start: Span, default: u32) -> Result<u32> {
        if !self.take_symbol("(") {
            return Ok(default);
        }
        let length: u32 = self.integer("a length")?;
        self.expect_symbol(")")?;
        if length == 0 || length > crate::types::data_type::MAX_LENGTH {
            let reason = "A length must be between 1 and 2147483647 (both inclusive).";
            return Err(self.error(reason, self.since(start)));
        }
        Ok(length)
    }

    fn precision(&mut self, start: Span, default: u8) -> Result<u8> {
        if !self.take_symbol("(") {
            return Ok(default);
        }
        let precision: u8 = self.integer("a precision")?;
        self.expect_symbol(")")?;
        if precision > 9 {
            let reason = "The precision of a time must be between 0 and 9 (both inclusive).";
            return Err(self.error(reason, self.since(start)));
        }
        Ok(precision)
    }

    fn timestamp(&mut self, start: Span) -> Result<TypeKind> {
        let precision = self.precision(start, 6)?;
        if self.take_words(&["WITH", "LOCAL", "TIME", "ZONE"]) {
            return Ok(TypeKind::TimestampLtz(precision));
        }
        if self.take_words(&["WITH", "TIME", "ZONE"]) {
            let reason = "TIMESTAMP WITH TIME ZONE is not supported";
            return Err(Error::plan(reason)
                .at(self.since(start))
                .hint("use TIMESTAMP_LTZ, an instant that is shown in the session's time zone"));
        }
        self.take_words(&["WITHOUT", "TIME", "ZONE"]);
        Ok(TypeKind::Timestamp(precision))
    }

    fn interval_type(&mut self) -> Result<TypeKind> {
        let start = self.here();
        let qualifier = self.interval_qualifier()?;
        if qualifier.leading.is_none() {
            return Err(self.unexpected("an interval's unit"));
        }
        if qualifier.is_year_month() {
            Ok(TypeKind::IntervalYearMonth)
        } else if qualifier.is_day_time() {
            Ok(TypeKind::IntervalDayTime)
        } else {
            Err(self.error("This unit makes no interval type", self.since(start)))
        }
    }

    fn type_argument(&mut self) -> Result<DataType> {
        self.expect_symbol("<")?;
        let argument = self.data_type()?;
        self.expect_symbol(">")?;
        Ok(argument)
    }

    /// `ROW<name type ['comment'], ..>` or the same in parentheses.
    fn row_type(&mut self) -> Result<TypeKind> {
        if self.take_symbol("<>") {
            return Ok(TypeKind::Row(Vec::new()));
        }
        let close = if self.take_symbol("<") {
            ">"
        } else {
            self.expect_symbol("(")?;
            ")"
        };
        let mut fields = Vec::new();
        if !self.peek_symbol(close) {
            fields = self.comma_separated(|p| {
                let name = p.ident()?.value;
                let data_type = p.data_type()?;
                if p.peek().kind == super::TokenKind::String {
                    p.skip(1);
                }
                Ok(RowField { name, data_type })
            })?;
        }
        self.expect_symbol(close)?;
        Ok(TypeKind::Row(fields))
    }
}

/// What a misspelt type may have been.
const TYPE_NAMES: &[&str] = &[
    "ARRAY",
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "BYTES",
    "CHAR",
    "DATE",
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "INT",
    "INTEGER",
    "INTERVAL",
    "MAP",
    "MULTISET",
    "NUMERIC",
    "ROW",
    "SMALLINT",
    "STRING",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_LTZ",
    "TINYINT",
    "VARBINARY",
    "VARCHAR",
    "VARIANT",
];
