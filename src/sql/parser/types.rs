//! Data types as Flink writes them.

use sqlparser::ast::{DataType as AstType, Ident, ObjectName};

use super::super::ast::SqlType;
use super::super::lexer::TokenKind;
use super::super::span;
use super::super::unparse::quoted;
use super::FlinkParser;
use crate::error::{Error, Result, Span};
use crate::types::data_type::MAX_LENGTH;
use crate::types::{DataType, RowField, TypeKind};

/// A type and how Flink writes it back, which keeps more of the user's spelling than the type does.
struct Spelled<T> {
    of: T,
    text: String,
}

impl<T> Spelled<T> {
    fn new(of: T, text: impl Into<String>) -> Self {
        Self {
            of,
            text: text.into(),
        }
    }
}

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

    /// A type inside an expression, in the form that [`super::super::types::parse_type`] reads; its
    /// modifier is how it is written back.
    pub(super) fn ast_type(&mut self) -> Result<AstType> {
        let start = self.here();
        let spelled = self.nullable_type()?;
        let mut name = Ident::new(spelled.of.to_string());
        name.span = span::to_ast(self.since(start));
        Ok(AstType::Custom(
            ObjectName::from(vec![name]),
            vec![spelled.text],
        ))
    }

    /// `type [ARRAY | MULTISET].. [NULL | NOT NULL]`
    pub(super) fn data_type(&mut self) -> Result<DataType> {
        Ok(self.spelled_type()?.of)
    }

    fn spelled_type(&mut self) -> Result<Spelled<DataType>> {
        let mut spelled = self.nullable_type()?;
        loop {
            let not_null = self.take_words(&["NOT", "NULL"]);
            if not_null {
                spelled.text.push_str(" NOT NULL");
            } else {
                self.take_word("NULL");
            }
            let element = spelled.of.with_nullable(!not_null);
            let suffix = self.take_one_of(&["ARRAY", "MULTISET"]);
            let Some(suffix) = suffix else {
                return Ok(Spelled::new(element, spelled.text));
            };
            spelled.text.push_str(&format!(" {suffix}"));
            spelled.of = match suffix {
                "ARRAY" => TypeKind::Array(Box::new(element)),
                _ => TypeKind::Multiset(Box::new(element)),
            };
        }
    }

    /// A type that stands where `NULL` is not its own.
    pub(super) fn plain_type(&mut self) -> Result<DataType> {
        Ok(self.nullable_type()?.of.nullable())
    }

    fn nullable_type(&mut self) -> Result<Spelled<TypeKind>> {
        self.nested(|p| {
            let mut spelled = p.type_kind()?;
            loop {
                let element = || Box::new(spelled.of.clone().nullable());
                if p.take_word("ARRAY") {
                    spelled.of = TypeKind::Array(element());
                    spelled.text.push_str(" ARRAY");
                } else if p.take_word("MULTISET") {
                    spelled.of = TypeKind::Multiset(element());
                    spelled.text.push_str(" MULTISET");
                } else {
                    return Ok(spelled);
                }
            }
        })
    }

    fn type_kind(&mut self) -> Result<Spelled<TypeKind>> {
        let start = self.here();
        if self.peek().kind != TokenKind::Word {
            return Err(self.unexpected("a data type"));
        }
        let name = self.peek().text.to_ascii_uppercase();
        self.skip(1);
        Ok(match name.as_str() {
            "BOOLEAN" => Spelled::new(TypeKind::Boolean, name),
            "TINYINT" => Spelled::new(TypeKind::TinyInt, name),
            "SMALLINT" => Spelled::new(TypeKind::SmallInt, name),
            "INT" | "INTEGER" => Spelled::new(TypeKind::Int, "INTEGER"),
            "BIGINT" => Spelled::new(TypeKind::BigInt, name),
            "FLOAT" => Spelled::new(TypeKind::Float, name),
            "DOUBLE" => {
                self.take_word("PRECISION");
                Spelled::new(TypeKind::Double, name)
            }
            "DECIMAL" | "DEC" | "NUMERIC" => self.decimal(start)?,
            "CHAR" | "CHARACTER" => {
                if self.take_word("VARYING") {
                    self.with_length(start, "VARCHAR", MAX_LENGTH, TypeKind::VarChar)?
                } else {
                    self.with_length(start, "CHAR", 1, TypeKind::Char)?
                }
            }
            "VARCHAR" => self.with_length(start, "VARCHAR", MAX_LENGTH, TypeKind::VarChar)?,
            "STRING" => Spelled::new(TypeKind::STRING, name),
            "BINARY" => {
                if self.take_word("VARYING") {
                    self.with_length(start, "VARBINARY", MAX_LENGTH, TypeKind::VarBinary)?
                } else {
                    self.with_length(start, "BINARY", 1, TypeKind::Binary)?
                }
            }
            "VARBINARY" => self.with_length(start, "VARBINARY", MAX_LENGTH, TypeKind::VarBinary)?,
            "BYTES" => Spelled::new(TypeKind::BYTES, name),
            "DATE" => Spelled::new(TypeKind::Date, name),
            "TIME" => {
                let precision = self.precision(0)?;
                self.take_words(&["WITHOUT", "TIME", "ZONE"]);
                let text = name + &precision.text;
                // Flink keeps no more than milliseconds.
                Spelled::new(TypeKind::Time(precision.of.min(3)), text)
            }
            "TIMESTAMP" => self.timestamp()?,
            "TIMESTAMP_LTZ" => {
                let precision = self.precision(6)?;
                let text = name + &precision.text;
                Spelled::new(TypeKind::TimestampLtz(precision.of), text)
            }
            "INTERVAL" => self.interval_type()?,
            "ARRAY" => {
                let element = self.type_argument(&name)?;
                Spelled::new(TypeKind::Array(Box::new(element.of)), element.text)
            }
            "MULTISET" => {
                let element = self.type_argument(&name)?;
                Spelled::new(TypeKind::Multiset(Box::new(element.of)), element.text)
            }
            "MAP" => {
                self.expect_symbol("<")?;
                let key = self.spelled_type()?;
                self.expect_symbol(",")?;
                let value = self.spelled_type()?;
                self.expect_symbol(">")?;
                let text = format!("MAP< {}, {} >", key.text, value.text);
                Spelled::new(TypeKind::Map(Box::new(key.of), Box::new(value.of)), text)
            }
            "ROW" => self.row_type()?,
            "VARIANT" => Spelled::new(TypeKind::Variant, name),
            "BITMAP" => Spelled::new(TypeKind::Bitmap, name),
            "STRUCTURED" => self.structured_type()?,
            "RAW" => {
                return Err(Error::plan("Type is not supported: RAW")
                    .at(start)
                    .hint("its values are made by Java serializers; use BYTES or VARIANT"));
            }
            "REAL" => {
                return Err(Error::plan(format!("Type is not supported: {name}")).at(start));
            }
            _ => {
                self.position -= 1;
                return Err(self.unexpected_of("a data type", TYPE_NAMES));
            }
        })
    }

    fn decimal(&mut self, start: Span) -> Result<Spelled<TypeKind>> {
        let (mut precision, mut scale) = (10u32, 0u32);
        let mut text = "DECIMAL".to_string();
        if self.take_symbol("(") {
            precision = self.integer("the precision of DECIMAL")?;
            text.push_str(&format!("({precision}"));
            if self.take_symbol(",") {
                scale = self.integer("the scale of DECIMAL")?;
                text.push_str(&format!(", {scale}"));
            }
            text.push(')');
            self.expect_symbol(")")?;
        }
        if precision == 0 {
            let reason = "Decimal precision must be between 1 and 38 (both inclusive).";
            return Err(Error::plan(reason).at(self.since(start)));
        }
        // more than there is means as much as there is
        precision = precision.min(38);
        if scale > precision {
            let reason = format!(
                "Decimal scale must be between 0 and the precision {precision} (both inclusive)."
            );
            return Err(Error::plan(reason).at(self.since(start)));
        }
        let byte = |n: u32| u8::try_from(n).unwrap_or(38);
        let kind = TypeKind::Decimal(byte(precision), byte(scale));
        Ok(Spelled::new(kind, text))
    }

    fn with_length(
        &mut self,
        start: Span,
        name: &str,
        default: u32,
        make: fn(u32) -> TypeKind,
    ) -> Result<Spelled<TypeKind>> {
        if !self.take_symbol("(") {
            return Ok(Spelled::new(make(default), name));
        }
        let length: u32 = self.integer("a length")?;
        self.expect_symbol(")")?;
        // there is one character set
        if self.take_words(&["CHARACTER", "SET"]) {
            self.ident()?;
        }
        if length > MAX_LENGTH {
            let reason = "A length must be between 1 and 2147483647 (both inclusive).";
            return Err(Error::plan(reason).at(self.since(start)));
        }
        Ok(Spelled::new(make(length), format!("{name}({length})")))
    }

    fn precision(&mut self, default: u8) -> Result<Spelled<u8>> {
        if !self.take_symbol("(") {
            return Ok(Spelled::new(default, ""));
        }
        let precision: u8 = self.integer("a precision")?;
        self.expect_symbol(")")?;
        Ok(Spelled::new(precision.min(9), format!("({precision})")))
    }

    fn timestamp(&mut self) -> Result<Spelled<TypeKind>> {
        let precision = self.precision(6)?;
        let text = format!("TIMESTAMP{}", precision.text);
        if self.take_words(&["WITH", "LOCAL", "TIME", "ZONE"]) {
            let kind = TypeKind::TimestampLtz(precision.of);
            return Ok(Spelled::new(kind, text + " WITH LOCAL TIME ZONE"));
        }
        if self.peek_words(&["WITH", "TIME", "ZONE"]) {
            self.skip(1);
            return Err(self
                .unexpected("LOCAL")
                .hint("use TIMESTAMP_LTZ, an instant that is shown in the session's time zone"));
        }
        self.take_words(&["WITHOUT", "TIME", "ZONE"]);
        Ok(Spelled::new(TypeKind::Timestamp(precision.of), text))
    }

    fn interval_type(&mut self) -> Result<Spelled<TypeKind>> {
        let start = self.here();
        let qualifier = self.interval_qualifier()?;
        let unit = self.text_of(self.since(start)).to_ascii_uppercase();
        let kind = if qualifier.is_year_month() {
            TypeKind::IntervalYearMonth
        } else {
            TypeKind::IntervalDayTime
        };
        Ok(Spelled::new(kind, format!("INTERVAL {unit}")))
    }

    /// `<type>` behind `name`.
    fn type_argument(&mut self, name: &str) -> Result<Spelled<DataType>> {
        self.expect_symbol("<")?;
        let mut argument = self.spelled_type()?;
        self.expect_symbol(">")?;
        argument.text = format!("{name}< {} >", argument.text);
        Ok(argument)
    }

    /// `STRUCTURED<'class', name type, ..>`.
    fn structured_type(&mut self) -> Result<Spelled<TypeKind>> {
        self.expect_symbol("<")?;
        if self.peek().kind != TokenKind::String {
            return Err(self.unexpected_of("the name of a class as a string", &[]));
        }
        let class = self.string_pieces()?;
        let mut fields = Vec::new();
        let mut text = format!("STRUCTURED< '{}'", class.replace('\'', "''"));
        while self.take_symbol(",") {
            let name = self.ident()?.value;
            let spelled = self.spelled_type()?;
            text.push_str(&format!(", {} {}", quoted(&name), spelled.text));
            fields.push(RowField {
                name,
                data_type: spelled.of,
            });
        }
        self.expect_symbol(">")?;
        text.push_str(" >");
        Ok(Spelled::new(TypeKind::Structured(class, fields), text))
    }

    /// `ROW<name type ['comment'], ..>` or the same in parentheses.
    fn row_type(&mut self) -> Result<Spelled<TypeKind>> {
        if self.take_symbol("<>") {
            return Ok(Spelled::new(TypeKind::Row(Vec::new()), "ROW<>"));
        }
        let angle = self.take_symbol("<");
        if !angle {
            self.expect_symbol("(")?;
        }
        let close = if angle { ">" } else { ")" };
        let mut fields = Vec::new();
        let mut texts = Vec::new();
        if !self.peek_symbol(close) {
            let all = self.comma_separated(|p| {
                let name = p.ident()?.value;
                let spelled = p.spelled_type()?;
                let mut text = format!("{} {}", quoted(&name), spelled.text);
                if p.peek().kind == TokenKind::String {
                    let comment = p.string_pieces()?.replace('\'', "''");
                    text.push_str(&format!(" '{comment}'"));
                }
                let data_type = spelled.of;
                Ok((RowField { name, data_type }, text))
            })?;
            (fields, texts) = all.into_iter().unzip();
            for (i, field) in fields.iter().enumerate() {
                if fields[..i].iter().any(|f: &RowField| f.name == field.name) {
                    return Err(Error::plan(format!(
                        "Field names must be unique. Found duplicates: [{}]",
                        field.name
                    ))
                    .at(self.here()));
                }
            }
        }
        self.expect_symbol(close)?;
        let text = if angle {
            format!("ROW< {} >", texts.join(", "))
        } else {
            format!("ROW({})", texts.join(", "))
        };
        Ok(Spelled::new(TypeKind::Row(fields), text))
    }
}

/// What a misspelt type may have been.
#[rustfmt::skip]
const TYPE_NAMES: &[&str] = &[
    "ARRAY", "BIGINT", "BINARY", "BOOLEAN", "BYTES", "CHAR", "DATE", "DECIMAL", "DOUBLE", "FLOAT",
    "INT", "INTEGER", "INTERVAL", "MAP", "MULTISET", "NUMERIC", "ROW", "SMALLINT", "STRING",
    "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TINYINT", "VARBINARY", "VARCHAR", "VARIANT",
];
