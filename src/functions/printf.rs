//! `PRINTF` with the formats of Java's `Formatter`. What does not fit the format gives NULL, as in Flink;
//! so do `%h` and `%t`, which are not supported.

mod number;

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType,
};

use hashbrown::HashMap;

use super::Kernel;
use super::builtin::{Builtin, Resolve::Forms};
use super::kernel::{Call, Text, arrays, collect_text};
use super::signature::{Param, Returns};
use crate::error::Result;
use crate::types::TypeKind;
use crate::types::text::number::{write_decimal, write_double, write_float};
use crate::types::text::{Printer, Style};

pub(super) static FUNCTIONS: &[Builtin] = &[Builtin::new(
    "PRINTF",
    "PRINTF(format STRING [, x [, ...]])",
    "The values written by a format of Java's Formatter; NULL if they don't fit it.",
    Forms(
        &[&[Param::Text, Param::Rest(&Param::Any)]],
        Returns::Nullable(TypeKind::STRING),
    ),
    prepare,
)
.null_from(0)
.example("PRINTF('%05d-%s', 42, 'a')", "00042-a")];

/// A piece of a format.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Literal(String),
    Field(Field),
}

/// Which argument a field shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Next,
    Same,
    Number(usize),
}

/// A conversion: `%[index$][flags][width][.precision]conversion`.
#[derive(Debug, Clone, PartialEq)]
struct Field {
    which: Which,
    flags: Flags,
    width: usize,
    precision: Option<usize>,
    conversion: char,
    upper: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Flags {
    left: bool,
    alternate: bool,
    plus: bool,
    space: bool,
    zero: bool,
    group: bool,
    parentheses: bool,
}

/// An argument's value.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Boolean(bool),
    /// With its number of bits.
    Integer(i64, u32),
    /// With its own text.
    Approximate(f64, String),
    Text(String),
}

/// Reads a format; `None` if it is malformed.
fn parse(format: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        if at > 0 {
            pieces.push(Piece::Literal(rest[..at].to_string()));
        }
        let (field, after) = parse_field(&rest[at + 1..])?;
        pieces.push(Piece::Field(field));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.to_string()));
    }
    Some(pieces)
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn parse_field(text: &str) -> Option<(Field, &str)> {
    let mut rest = text;
    let mut which = Which::Next;
    let number = digits(rest);
    if number > 0 && rest[number..].starts_with('$') {
        which = Which::Number(rest[..number].parse().ok().filter(|n| *n > 0)?);
        rest = &rest[number + 1..];
    } else if let Some(after) = rest.strip_prefix('<') {
        which = Which::Same;
        rest = after;
    }
    let mut flags = Flags::default();
    loop {
        let flag = match rest.chars().next()? {
            '-' => &mut flags.left,
            '#' => &mut flags.alternate,
            '+' => &mut flags.plus,
            ' ' => &mut flags.space,
            '0' => &mut flags.zero,
            ',' => &mut flags.group,
            '(' => &mut flags.parentheses,
            _ => break,
        };
        if std::mem::replace(flag, true) {
            return None;
        }
        rest = &rest[1..];
    }
    let number = digits(rest);
    let width = match number {
        0 => 0,
        n => rest[..n].parse().ok().filter(|w| *w < 1 << 20)?,
    };
    rest = &rest[number..];
    let mut precision = None;
    if let Some(after) = rest.strip_prefix('.') {
        let number = digits(after);
        precision = Some(after[..number].parse().ok().filter(|p| *p < 1 << 20)?);
        rest = &after[number..];
    }
    let conversion = rest.chars().next()?;
    let upper = matches!(conversion, 'B' | 'S' | 'C' | 'X' | 'E' | 'G' | 'A');
    let field = Field {
        which,
        flags,
        width,
        precision,
        conversion: conversion.to_ascii_lowercase(),
        upper,
    };
    let known = upper
        || matches!(
            conversion,
            'b' | 's' | 'c' | 'd' | 'o' | 'x' | 'e' | 'f' | 'g' | 'a' | 'n' | '%'
        );
    let valid = known
        && !(flags.plus && flags.space)
        && !(flags.left && flags.zero)
        && !((flags.left || flags.zero) && width == 0);
    valid.then(|| (field, &rest[conversion.len_utf8()..]))
}

/// Appends the values by a format; `None` if they don't fit.
fn format(pieces: &[Piece], args: &[Value], out: &mut String) -> Option<()> {
    let mut next = 0;
    let mut last = None;
    for piece in pieces {
        let field = match piece {
            Piece::Literal(text) => {
                out.push_str(text);
                continue;
            }
            Piece::Field(field) => field,
        };
        match field.conversion {
            'n' => out.push('\n'),
            '%' => field.pad("%", out),
            _ => {
                let at = match field.which {
                    Which::Next => {
                        next += 1;
                        next - 1
                    }
                    Which::Same => last?,
                    Which::Number(n) => n - 1,
                };
                last = Some(at);
                field.write(args.get(at)?, out)?;
            }
        }
    }
    Some(())
}

impl Field {
    /// Appends a text, padded with blanks.
    fn pad(&self, text: &str, out: &mut String) {
        let missing = self.width.saturating_sub(super::utf16::len(text));
        let blanks = std::iter::repeat_n(' ', missing);
        if self.flags.left {
            out.push_str(text);
            out.extend(blanks);
        } else {
            out.extend(blanks);
            out.push_str(text);
        }
    }

    /// Appends a text in the case of the conversion, padded.
    fn cased(&self, text: &str, out: &mut String) {
        if self.upper {
            self.pad(&text.to_uppercase(), out);
        } else {
            self.pad(text, out);
        }
    }

    /// Appends a text cut to the precision.
    fn text(&self, text: &str, out: &mut String) {
        let mut cut = String::new();
        super::utf16::push_prefix(text, self.precision.unwrap_or(usize::MAX), &mut cut);
        self.cased(&cut, out);
    }

    fn write(&self, value: &Value, out: &mut String) -> Option<()> {
        let numeric_flags = self.flags.plus
            || self.flags.space
            || self.flags.zero
            || self.flags.group
            || self.flags.parentheses;
        match (self.conversion, value) {
            ('b' | 's' | 'c', _) if numeric_flags || self.flags.alternate => return None,
            ('b', Value::Boolean(value)) => self.text(&value.to_string(), out),
            ('b', value) => self.text(&(*value != Value::Null).to_string(), out),
            ('c' | 'd' | 'o' | 'x', _) if self.precision.is_some() => return None,
            (_, Value::Null) => self.text("null", out),
            ('s', Value::Boolean(value)) => self.text(&value.to_string(), out),
            ('s', Value::Integer(value, _)) => self.text(&value.to_string(), out),
            ('s', Value::Approximate(_, text) | Value::Text(text)) => self.text(text, out),
            ('c', Value::Integer(code, ..=32)) => {
                let c = char::from_u32(u32::try_from(*code).ok()?)?;
                self.cased(c.encode_utf8(&mut [0; 4]), out);
            }
            ('d' | 'o' | 'x', Value::Integer(value, bits)) => {
                let text = self.integer(*value, *bits)?;
                self.cased(&text, out);
            }
            ('e' | 'f' | 'g' | 'a', Value::Approximate(value, _)) => {
                let text = self.approximate(*value)?;
                self.cased(&text, out);
            }
            _ => return None,
        }
        Some(())
    }
}

/// How the values of an argument are read.
enum Form {
    Null,
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Float,
    Double,
    Decimal(u8),
    Text,
    /// Days.
    Date,
    /// Milliseconds.
    Time,
    /// As the `print` connector shows it.
    Printed(Printer),
}

impl Form {
    fn new(call: &Call<'_>, arg: usize) -> Self {
        match call.kind(arg) {
            TypeKind::Null => Self::Null,
            TypeKind::Boolean => Self::Boolean,
            TypeKind::TinyInt => Self::TinyInt,
            TypeKind::SmallInt => Self::SmallInt,
            TypeKind::Int => Self::Int,
            TypeKind::BigInt => Self::BigInt,
            TypeKind::Float => Self::Float,
            TypeKind::Double => Self::Double,
            TypeKind::Decimal(_, scale) => Self::Decimal(*scale),
            TypeKind::Char(_) | TypeKind::VarChar(_) | TypeKind::Variant => Self::Text,
            TypeKind::Date => Self::Date,
            TypeKind::Time(_) => Self::Time,
            TypeKind::TimestampLtz(p) => {
                let local = TypeKind::Timestamp(*p).nullable();
                Self::Printed(Printer::new(&local, Style::Row, call.env.time_zone))
            }
            _ => {
                let data_type = &call.args[arg].data_type;
                Self::Printed(Printer::new(data_type, Style::Row, call.env.time_zone))
            }
        }
    }

    fn value(&self, array: &ArrayRef, row: usize) -> Value {
        if array.is_null(row) {
            return Value::Null;
        }
        let written = |write: &dyn Fn(&mut String)| {
            let mut text = String::new();
            write(&mut text);
            text
        };
        match self {
            Self::Null => Value::Null,
            Self::Boolean => Value::Boolean(array.as_boolean().value(row)),
            Self::TinyInt => Value::Integer(array.as_primitive::<Int8Type>().value(row).into(), 8),
            Self::SmallInt => {
                Value::Integer(array.as_primitive::<Int16Type>().value(row).into(), 16)
            }
            Self::Int => Value::Integer(array.as_primitive::<Int32Type>().value(row).into(), 32),
            Self::BigInt => Value::Integer(array.as_primitive::<Int64Type>().value(row), 64),
            Self::Float => {
                let value = array.as_primitive::<Float32Type>().value(row);
                Value::Approximate(value.into(), written(&|out| write_float(value, out)))
            }
            Self::Double => {
                let value = array.as_primitive::<Float64Type>().value(row);
                Value::Approximate(value, written(&|out| write_double(value, out)))
            }
            Self::Decimal(scale) => {
                let value = array.as_primitive::<Decimal128Type>().value(row);
                Value::Text(written(&|out| write_decimal(value, *scale, out)))
            }
            Self::Text => Value::Text(array.as_string::<i32>().value(row).to_string()),
            Self::Date => Value::Integer(array.as_primitive::<Date32Type>().value(row).into(), 32),
            Self::Time => {
                let millis = array.as_primitive::<Time32MillisecondType>().value(row);
                Value::Integer(millis.into(), 32)
            }
            Self::Printed(printer) => {
                Value::Text(written(&|out| printer.write(array.as_ref(), row, out)))
            }
        }
    }
}

fn prepare(call: &Call<'_>) -> Result<Kernel> {
    let forms: Vec<_> = (1..call.args.len()).map(|i| Form::new(call, i)).collect();
    let constant = call.text_literal(0).map(parse);
    let known: Mutex<HashMap<String, Option<Arc<Vec<Piece>>>>> = Mutex::default();
    Ok(arrays(move |c, _| {
        let pattern = c.column::<Text>(0)?;
        let arrays = (1..c.count())
            .map(|i| c.array(i))
            .collect::<Result<Vec<_>>>()?;
        let mut values = Vec::with_capacity(forms.len());
        collect_text(c.rows, c.nulls_of([0]).as_ref(), |i, out| {
            values.clear();
            values.extend(
                forms
                    .iter()
                    .zip(&arrays)
                    .map(|(form, array)| form.value(array, i)),
            );
            if let Some(pieces) = &constant {
                return Ok(pieces
                    .as_ref()
                    .and_then(|pieces| format(pieces, &values, out)));
            }
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() > 256 {
                known.clear();
            }
            let pattern = pattern.value(i);
            let pieces = known
                .entry(pattern.to_string())
                .or_insert_with(|| parse(pattern).map(Arc::new));
            Ok(pieces
                .as_ref()
                .and_then(|pieces| format(pieces, &values, out)))
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::{args, check, null};

    #[test]
    fn conversions_are_javas() {
        let s = |text: &str| Value::Text(text.to_string());
        let int = |v: i64| Value::Integer(v, 32);
        let double = |v: f64| Value::Approximate(v, v.to_string());
        for (pattern, values, expected) in [
            (
                "%s|%10s|%-6s|",
                vec![s("a"), s("b"), s("c")],
                "a|         b|c     |",
            ),
            (
                "%d|%x|%X|%o",
                vec![int(10), int(255), int(255), int(8)],
                "10|ff|FF|10",
            ),
            (
                "%,d %+d %(d % d",
                vec![int(1_234_567), int(5), int(-5), int(5)],
                "1,234,567 +5 (5)  5",
            ),
            (
                "%08.3f %,.2f",
                vec![double(3.5), double(1_234_567.891)],
                "0003.500 1,234,567.89",
            ),
            (
                "%5.2f|%e",
                vec![double(3.14141), double(12345.678)],
                " 3.14|1.234568e+04",
            ),
            (
                "%g %.3g",
                vec![double(0.00012), double(123_456.0)],
                "0.000120000 1.23e+05",
            ),
            ("%.0f %.1f", vec![double(2.5), double(0.25)], "3 0.3"),
            (
                "%x %x",
                vec![int(-1), Value::Integer(-1, 64)],
                "ffffffff ffffffffffffffff",
            ),
            (
                "%05d|%-5d|%#x|%#o",
                vec![int(42), int(42), int(255), int(8)],
                "00042|42   |0xff|010",
            ),
            ("%2$s %1$s %<s", vec![s("a"), s("b")], "b a a"),
            ("%.2s|%5.1s|", vec![s("abc"), s("xyz")], "ab|    x|"),
            (
                "%S %B %%%n",
                vec![s("straße"), Value::Boolean(false)],
                "STRASSE FALSE %\n",
            ),
            (
                "%5c|%-3c|%C",
                vec![int(65), int(66), int(97)],
                "    A|B  |A",
            ),
            (
                "%d %05d %b",
                vec![Value::Null, Value::Null, Value::Null],
                "null  null false",
            ),
            (
                "%a %e",
                vec![double(1.0), double(0.0)],
                "0x1.0p0 0.000000e+00",
            ),
            (
                "%f %+f",
                vec![double(f64::NAN), double(f64::INFINITY)],
                "NaN +Infinity",
            ),
            (
                "%06d %e",
                vec![int(-42), double(9.9999999)],
                "-00042 1.000000e+01",
            ),
        ] {
            let mut out = String::new();
            let done = parse(pattern).and_then(|pieces| format(&pieces, &values, &mut out));
            assert_eq!(done.map(|()| out.as_str()), Some(expected), "{pattern}");
        }
    }

    #[test]
    fn what_does_not_fit_is_null() {
        check("PRINTF", args!["%d", "x"], "NULL");
        check("PRINTF", args!["%d %d", 1], "NULL");
        check("PRINTF", args!["%q", 1], "NULL");
        check("PRINTF", args!["100%"], "NULL");
        check("PRINTF", args!["%-d", 1], "NULL");
        check("PRINTF", args![null(TypeKind::STRING), 1], "NULL");
        check("PRINTF", args!["%%"], "%");
    }
}
