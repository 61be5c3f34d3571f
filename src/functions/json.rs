//! The JSON functions of SQL. Paths are those of [`super::json_path`], strict unless they start with
//! `lax`.

mod construct;
mod paths;

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int32Array};
use datafusion::common::ScalarValue;
use serde_json::Value;

use self::construct::{prepare_array, prepare_object, resolve_array, resolve_object};
use self::paths::{JsonPath, Paths};
use super::builtin::{
    Builtin,
    Resolve::{Custom, Forms},
};
use super::json_path::Leaf;
use super::json_tree::{is_scalar, parse, write, write_unquoted};
use super::json_write::JsonForm;
use super::kernel::{
    Bool, Call, Text, Texts, arrays, collect, collect_text, collect_texts, columns,
};
use super::signature::{Param, Returns};
use super::{Arg, Kernel, Signature};
use crate::error::{Error, Result};
use crate::types::{DataType, TypeKind};

pub(super) static FUNCTIONS: &[Builtin] = &[
    IS_JSON,
    Builtin::new(
        "JSON_EXISTS",
        "JSON_EXISTS(json STRING, path STRING [{TRUE | FALSE | UNKNOWN | ERROR} ON ERROR])",
        "Whether the path leads to a value that is not null.",
        Custom(|builtin, args| {
            texts(builtin, args, 3)?;
            if matches!(args[1].data_type.kind, TypeKind::VarChar(_)) {
                let (json, path) = (&args[0].data_type, &args[1].data_type);
                return Err(
                    Error::plan(format!("Unsupported call: JSON_EXISTS({json}, {path})"))
                        .hint("the path is a constant, or of type CHAR(n)"),
                );
            }
            Ok(Signature {
                args: types(args),
                returns: TypeKind::Boolean.nullable(),
            })
        }),
        prepare_exists,
    )
    .may_fail()
    .example("JSON_EXISTS('{\"a\": true}', '$.a')", "true"),
    Builtin::new(
        "JSON_VALUE",
        "JSON_VALUE(json STRING, path STRING [RETURNING type] [{NULL | ERROR | DEFAULT x} ON EMPTY] [{NULL | ERROR | DEFAULT x} ON ERROR])",
        "The scalar at the path, a STRING by default.",
        Custom(resolve_value),
        prepare_value,
    )
    // The defaults that the clauses give.
    .null_from(2)
    .may_fail()
    .example("JSON_VALUE('{\"a\": 7}', '$.a' RETURNING INTEGER)", "7"),
    Builtin::new(
        "JSON_QUERY",
        "JSON_QUERY(json STRING, path STRING [RETURNING ARRAY<STRING>] [{WITHOUT | WITH [CONDITIONAL | UNCONDITIONAL]} WRAPPER] [{NULL | EMPTY ARRAY | EMPTY OBJECT | ERROR} ON {EMPTY | ERROR}])",
        "The object or array at the path, as JSON or as an array of texts.",
        Custom(resolve_query),
        prepare_query,
    )
    .may_fail()
    .example("JSON_QUERY('{\"a\": [1, 2]}', '$.a')", "[1,2]"),
    Builtin::new(
        "JSON_OBJECT",
        "JSON_OBJECT([[KEY] key VALUE x [, ...]] [{NULL | ABSENT} ON NULL])",
        "A JSON object of the pairs.",
        Custom(resolve_object),
        prepare_object,
    )
    .null_from(0)
    .example("JSON_OBJECT('a' VALUE 1)", "{\"a\":1}"),
    Builtin::new(
        "JSON_ARRAY",
        "JSON_ARRAY([x [, ...]] [{NULL | ABSENT} ON NULL])",
        "A JSON array of the values; NULLs are left out by default.",
        Custom(resolve_array),
        prepare_array,
    )
    .null_from(0)
    .example("JSON_ARRAY(1, 'a')", "[1,\"a\"]"),
    Builtin::new(
        "JSON_STRING",
        "JSON_STRING(x)",
        "The value as JSON.",
        Custom(|builtin, args| {
            let [arg] = args else {
                return Err(builtin.refuse_count(args));
            };
            JsonForm::new(&arg.data_type.kind)?;
            Ok(Signature {
                args: types(args),
                returns: TypeKind::STRING.with_nullable(arg.data_type.nullable),
            })
        }),
        |call| {
            let form = JsonForm::new(call.kind(0))?;
            Ok(arrays(move |c, _| {
                let array = c.array(0)?;
                collect_text(c.rows, array.logical_nulls().as_ref(), |i, out| {
                    form.write(array.as_ref(), i, out);
                    Ok(Some(()))
                })
            }))
        },
    )
    .null_from(0)
    .example("JSON_STRING(ARRAY[1, 2])", "[1,2]"),
    Builtin::new(
        "JSON",
        "JSON(s STRING)",
        "In JSON_OBJECT and JSON_ARRAY: the text is JSON and goes in as it is.",
        Forms(&[&[Param::Text]], Returns::Nullable(TypeKind::Variant)),
        |call| {
            Ok(call.text1::<Text, Result<Option<()>>>(|s, out| {
                if s.trim().is_empty() {
                    return Ok(None);
                }
                let value = parse(s).ok_or_else(|| {
                    Error::execution(format!("Invalid JSON string in JSON(value) function: \"{s}\""))
                })?;
                write(&value, out);
                Ok(Some(()))
            }))
        },
    )
    .may_fail(),
    Builtin::new(
        "JSON_QUOTE",
        "JSON_QUOTE(s STRING)",
        "The text in quotes, as in JSON; characters beyond ASCII are escaped.",
        Forms(&[&[Param::Text]], Returns::Strict(TypeKind::STRING)),
        |call| Ok(call.text1::<Text, _>(quote)),
    )
    .null_from(0)
    .example("JSON_QUOTE('a\"b')", "\"a\\\"b\""),
    Builtin::new(
        "JSON_UNQUOTE",
        "JSON_UNQUOTE(s STRING)",
        "The text of a JSON string in quotes; anything else as it is.",
        Forms(&[&[Param::Text]], Returns::Strict(TypeKind::STRING)),
        |call| {
            Ok(call.text1::<Text, _>(|s, out| {
                let quoted = s.len() > 1 && s.starts_with('"') && s.ends_with('"');
                match serde_json::from_str::<String>(s) {
                    Ok(text) if quoted => out.push_str(&text),
                    _ => out.push_str(s),
                }
            }))
        },
    )
    .null_from(0)
    .example("JSON_UNQUOTE('\"a\\\"b\"')", "a\"b"),
];

const IS_JSON: Builtin = Builtin::new(
    "IS JSON",
    "s IS JSON [VALUE | OBJECT | ARRAY | SCALAR]",
    "Whether the text is JSON of that kind.",
    Custom(|builtin, args| {
        texts(builtin, args, 2)?;
        Ok(Signature {
            args: types(args),
            returns: TypeKind::Boolean.not_null(),
        })
    }),
    |call| {
        let test: fn(&Value) -> bool = match marker(call.args, 1)? {
            "OBJECT" => Value::is_object,
            "ARRAY" => Value::is_array,
            "SCALAR" => is_scalar,
            _ => |_| true,
        };
        let to = call.returns.to_arrow();
        Ok(columns(move |c, _| {
            let s = c.column::<Text>(0)?;
            collect::<Bool>(c.rows, None, &to, |i| {
                Ok(Some(s.get(i).and_then(parse).is_some_and(|v| test(&v))))
            })
        }))
    },
)
.example("'[1]' IS JSON ARRAY", "true");

fn types(args: &[Arg]) -> Vec<DataType> {
    args.iter().map(|a| a.data_type.clone()).collect()
}

/// Checks that all arguments are texts, and at least so many.
fn texts(builtin: &Builtin, args: &[Arg], least: usize) -> Result<()> {
    if args.len() < least {
        return Err(builtin.refuse_count(args));
    }
    let text = |arg: &Arg| arg.data_type.kind.is_string() || arg.data_type.kind == TypeKind::Null;
    if args.iter().all(text) {
        Ok(())
    } else {
        Err(builtin.refuse_types(args))
    }
}

/// The clause that argument `i` stands for.
fn marker(args: &[Arg], i: usize) -> Result<&str> {
    match args.get(i).and_then(|arg| arg.literal.as_ref()) {
        Some(ScalarValue::Utf8(Some(text))) => Ok(text),
        _ => Err(Error::internal(format!(
            "argument {i} of a JSON function is no clause"
        ))),
    }
}

fn prepare_exists(call: &Call<'_>) -> Result<Kernel> {
    let paths = Paths::of(call);
    let on_error = marker(call.args, 2)?.to_string();
    let to = call.returns.to_arrow();
    Ok(columns(move |c, _| {
        let (json, path) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
        collect::<Bool>(c.rows, c.nulls_of([0, 1]).as_ref(), &to, |i| {
            let path = paths.get(path.value(i));
            let root = path.parse(json.value(i));
            match path.find(root.as_ref()) {
                Ok(found) => Ok(Some(found.is_some())),
                Err(reason) => match on_error.as_str() {
                    "TRUE" => Ok(Some(true)),
                    "UNKNOWN" => Ok(None),
                    "ERROR" => Err(Error::execution(reason)),
                    _ => Ok(Some(false)),
                },
            }
        })
    }))
}

/// What a value is turned into.
fn returning(builtin: &Builtin, args: &[Arg]) -> Result<TypeKind> {
    Ok(match marker(args, 2)? {
        "STRING" => TypeKind::STRING,
        text if text.starts_with("VARCHAR") || text.starts_with("CHAR") => TypeKind::STRING,
        "BOOLEAN" => TypeKind::Boolean,
        "INTEGER" => TypeKind::Int,
        "DOUBLE" => TypeKind::Double,
        other => {
            return Err(Error::plan(format!(
                "Unsupported type '{other}' for RETURNING in {}().",
                builtin.name
            ))
            .hint("JSON_VALUE returns STRING, BOOLEAN, INTEGER or DOUBLE"));
        }
    })
}

fn resolve_value(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    if args.len() != 7 {
        return Err(builtin.refuse_count(args));
    }
    texts(builtin, &args[..2], 2)?;
    let kind = returning(builtin, args)?;
    let mut types = types(args);
    for i in [4, 6] {
        types[i] = kind.clone().with_nullable(types[i].nullable);
    }
    Ok(Signature {
        args: types,
        returns: kind.nullable(),
    })
}

/// What a function gives instead of a value.
enum Instead {
    Null,
    Fail(String),
    Default,
}

fn instead(behavior: &str, reason: impl FnOnce() -> String) -> Instead {
    match behavior {
        "ERROR" => Instead::Fail(reason()),
        "DEFAULT" => Instead::Default,
        _ => Instead::Null,
    }
}

fn prepare_value(call: &Call<'_>) -> Result<Kernel> {
    let paths = Paths::of(call);
    let kind = call.returns.kind.clone();
    let (on_empty, on_error) = (
        marker(call.args, 3)?.to_string(),
        marker(call.args, 5)?.to_string(),
    );
    let fail = |behavior: &str, reason: String| instead(behavior, || reason);
    // What is found for each row: a scalar, or which default.
    let lookup = move |path: &JsonPath, json: &str| -> Result<Result<Option<Value>, bool>> {
        let root = path.parse(json);
        let outcome = match path.find(root.as_ref()) {
            Ok(Some(value)) if is_scalar(&value) => return Ok(Ok(Some(value.into_owned()))),
            Ok(None) => (
                true,
                "Empty result of JSON_VALUE function is not allowed".into(),
            ),
            Ok(Some(_)) if path.lax => (
                true,
                "Empty result of JSON_VALUE function is not allowed".into(),
            ),
            Ok(Some(value)) => (
                false,
                format!(
                    "Strict jsonpath mode requires scalar value, and the actual value is: '{value}'"
                ),
            ),
            Err(reason) => (false, reason),
        };
        let (empty, reason) = outcome;
        match fail(if empty { &on_empty } else { &on_error }, reason) {
            Instead::Null => Ok(Ok(None)),
            Instead::Fail(reason) => Err(Error::execution(reason)),
            Instead::Default => Ok(Err(empty)),
        }
    };
    let on_error = marker(call.args, 5)?.to_string();
    Ok(columns(move |c, _| {
        let (json, path) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
        let nulls = c.nulls_of([0, 1]);
        let defaults = (c.array(4)?, c.array(6)?);
        if kind.is_string() {
            let (empty, error) = (c.column::<Text>(4)?, c.column::<Text>(6)?);
            let array = collect_text(c.rows, nulls.as_ref(), |i, out| {
                let (json, path) = (json.value(i), paths.get(path.value(i)));
                if let Some(scalar) = path.scalar(json) {
                    match scalar {
                        Leaf::Text(text) => out.push_str(&text),
                        Leaf::Other(value) => write_unquoted(&value, out),
                    }
                    return Ok(Some(()));
                }
                Ok(match lookup(&path, json)? {
                    Ok(value) => value.map(|value| write_unquoted(&value, out)),
                    Err(on_empty) => if on_empty { &empty } else { &error }
                        .get(i)
                        .map(|text| out.push_str(text)),
                })
            })?;
            return Ok(Arc::new(array) as ArrayRef);
        }
        let mut values = Vec::with_capacity(c.rows);
        for i in 0..c.rows {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(i)) {
                values.push(ScalarValue::Null);
                continue;
            }
            let value = match lookup(&paths.get(path.value(i)), json.value(i))? {
                Ok(None) => ScalarValue::Null,
                Ok(Some(value)) => match convert(&value, &kind) {
                    Some(value) => value,
                    None => match on_error.as_str() {
                        "ERROR" => {
                            return Err(Error::execution(format!(
                                "'{value}' of a JSON text is no {kind}"
                            )));
                        }
                        "DEFAULT" => ScalarValue::try_from_array(&defaults.1, i)?,
                        _ => ScalarValue::Null,
                    },
                },
                Err(true) => ScalarValue::try_from_array(&defaults.0, i)?,
                Err(false) => ScalarValue::try_from_array(&defaults.1, i)?,
            };
            values.push(value);
        }
        Ok(typed(&values, &kind))
    }))
}

/// A scalar of a JSON text as a value of the type; `None` if it is none.
fn convert(value: &Value, kind: &TypeKind) -> Option<ScalarValue> {
    Some(match (value, kind) {
        (Value::Bool(value), TypeKind::Boolean) => ScalarValue::from(*value),
        (Value::Number(number), TypeKind::Int) => {
            ScalarValue::from(number.as_str().parse::<i32>().ok()?)
        }
        (Value::Number(number), TypeKind::Double) => ScalarValue::from(number.as_f64()?),
        _ => return None,
    })
}

fn typed(values: &[ScalarValue], kind: &TypeKind) -> ArrayRef {
    match kind {
        TypeKind::Boolean => Arc::new(
            values
                .iter()
                .map(|v| match v {
                    ScalarValue::Boolean(v) => *v,
                    _ => None,
                })
                .collect::<BooleanArray>(),
        ),
        TypeKind::Int => Arc::new(
            values
                .iter()
                .map(|v| match v {
                    ScalarValue::Int32(v) => *v,
                    _ => None,
                })
                .collect::<Int32Array>(),
        ),
        _ => Arc::new(
            values
                .iter()
                .map(|v| match v {
                    ScalarValue::Float64(v) => *v,
                    _ => None,
                })
                .collect::<Float64Array>(),
        ),
    }
}

fn resolve_query(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    texts(builtin, args, 6)?;
    let kind = match marker(args, 2)?.replace(' ', "").as_str() {
        "STRING" => TypeKind::STRING,
        text if text.starts_with("VARCHAR") => TypeKind::STRING,
        "ARRAY<STRING>" => {
            if marker(args, 4)? == "EMPTY OBJECT" || marker(args, 5)? == "EMPTY OBJECT" {
                return Err(Error::plan(
                    "Illegal on empty or on error behavior 'EMPTY OBJECT' for the RETURNING type ARRAY<STRING>",
                ));
            }
            TypeKind::Array(Box::new(TypeKind::STRING.nullable()))
        }
        other => {
            return Err(Error::plan(format!(
                "Unsupported array element type '{other}' for RETURNING ARRAY in JSON_QUERY()."
            ))
            .hint("JSON_QUERY returns STRING or ARRAY<STRING>"));
        }
    };
    Ok(Signature {
        args: types(args),
        returns: kind.nullable(),
    })
}

/// The result of a query for one row.
enum Queried {
    Null,
    /// Objects and arrays.
    Value(Value),
}

struct Query {
    paths: Paths,
    wrapper: String,
    on_empty: String,
    on_error: String,
    as_array: bool,
}

impl Query {
    fn run(&self, json: &str, path: &str) -> Result<Queried> {
        let path = self.paths.get(path);
        let root = path.parse(json);
        let value = match path.find(root.as_ref()) {
            Err(reason) => return self.instead(&self.on_error, reason),
            Ok(None) => None,
            Ok(Some(value)) => Some(value.into_owned()),
        };
        let value = value.map(|value| match self.wrapper.as_str() {
            "UNCONDITIONAL" => Value::Array(vec![value]),
            "CONDITIONAL" if !value.is_array() => Value::Array(vec![value]),
            _ => value,
        });
        match value {
            Some(value) if !is_scalar(&value) => {
                if self.as_array && !value.is_array() {
                    return self.instead(&self.on_error, "the value is no array".to_string());
                }
                Ok(Queried::Value(value))
            }
            Some(value) if !path.lax => self.instead(
                &self.on_error,
                format!("Strict jsonpath mode requires array or object value, and the actual value is: '{value}'"),
            ),
            _ => self.instead(
                &self.on_empty,
                "Empty result of JSON_QUERY function is not allowed".to_string(),
            ),
        }
    }

    fn instead(&self, behavior: &str, reason: String) -> Result<Queried> {
        match behavior {
            "ERROR" => Err(Error::execution(reason)),
            "EMPTY ARRAY" => Ok(Queried::Value(Value::Array(Vec::new()))),
            "EMPTY OBJECT" => Ok(Queried::Value(Value::Object(serde_json::Map::new()))),
            _ => Ok(Queried::Null),
        }
    }
}

fn prepare_query(call: &Call<'_>) -> Result<Kernel> {
    let query = Query {
        paths: Paths::of(call),
        wrapper: marker(call.args, 3)?.to_string(),
        on_empty: marker(call.args, 4)?.to_string(),
        on_error: marker(call.args, 5)?.to_string(),
        as_array: matches!(call.returns.kind, TypeKind::Array(_)),
    };
    if query.as_array {
        return Ok(arrays(move |c, _| {
            let (json, path) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
            collect_texts(c.rows, c.nulls_of([0, 1]).as_ref(), |i, out: &mut Texts| {
                let Queried::Value(Value::Array(items)) =
                    query.run(json.value(i), path.value(i))?
                else {
                    return Ok(None);
                };
                for item in &items {
                    match item {
                        Value::Null => out.push(None),
                        item => out.push_with(|text| write_unquoted(item, text)),
                    }
                }
                Ok(Some(()))
            })
        }));
    }
    Ok(arrays(move |c, _| {
        let (json, path) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
        collect_text(c.rows, c.nulls_of([0, 1]).as_ref(), |i, out| {
            Ok(match query.run(json.value(i), path.value(i))? {
                Queried::Null => None,
                Queried::Value(value) => {
                    write(&value, out);
                    Some(())
                }
            })
        })
    }))
}

fn quote(s: &str, out: &mut String) {
    use std::fmt::Write as _;
    out.push('"');
    for c in s.chars() {
        match c {
            '"' | '\\' | '/' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{C}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests;
