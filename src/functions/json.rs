//! The JSON functions of SQL. Paths are those of [`super::json_path`], strict unless they start with
//! `lax`.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, BooleanArray, Float64Array, Int32Array};
use datafusion::common::ScalarValue;
use hashbrown::HashMap;
use serde_json::Value;

use super::builtin::{
    Builtin,
    Resolve::{Custom, Forms},
};
use super::json_path::Path;
use super::json_tree::{is_scalar, parse, write, write_unquoted};
use super::json_write::{JsonForm, quoted_key};
use super::kernel::{
    Bool, Call, Columns, Text, Texts, arrays, collect, collect_text, collect_texts, columns,
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
    .example("JSON_OBJECT('a' VALUE 1)", "{\"a\":1}"),
    Builtin::new(
        "JSON_ARRAY",
        "JSON_ARRAY([x [, ...]] [{NULL | ABSENT} ON NULL])",
        "A JSON array of the values; NULLs are left out by default.",
        Custom(resolve_array),
        prepare_array,
    )
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

/// A path with its mode.
struct JsonPath {
    lax: bool,
    path: Result<Path, String>,
}

/// What is at a path: nothing, or a value, or the reason why that is an error.
type Found<'a> = Result<Option<Cow<'a, Value>>, String>;

impl JsonPath {
    fn new(text: &str) -> Self {
        let trimmed = text.trim_start();
        let mode = |name: &str| {
            let start = trimmed.get(..name.len())?;
            let rest = &trimmed[name.len()..];
            let fits = start.eq_ignore_ascii_case(name)
                && rest.starts_with(char::is_whitespace)
                && !rest.trim().is_empty();
            fits.then(|| rest.trim_start())
        };
        let (lax, path) = match (mode("lax"), mode("strict")) {
            (Some(path), _) => (true, path),
            (None, Some(path)) => (false, path),
            (None, None) => (false, text),
        };
        Self {
            lax,
            path: Path::new(path),
        }
    }

    fn find<'a>(&self, root: Option<&'a Value>) -> Found<'a> {
        let Some(root) = root else {
            return if self.lax {
                Ok(None)
            } else {
                Err("the text is not JSON".to_string())
            };
        };
        if root.is_null() {
            return Err("json can not be null".to_string());
        }
        let path = self
            .path
            .as_ref()
            .map_err(|reason| format!("Illegal jsonpath spec: {reason}"))?;
        match path.read(root) {
            Ok(value) if !value.is_null() => Ok(Some(value)),
            Ok(_) if self.lax => Ok(None),
            Ok(_) => {
                Err("Strict jsonpath mode requires a non empty returned value, but is null".into())
            }
            Err(_) if self.lax && path.is_definite() => Ok(None),
            Err(_) if self.lax => Ok(Some(Cow::Owned(Value::Array(Vec::new())))),
            Err(reason) => Err(reason),
        }
    }
}

/// The compiled paths of argument 1.
enum Paths {
    Constant(Arc<JsonPath>),
    Varying(Mutex<HashMap<String, Arc<JsonPath>>>),
}

impl Paths {
    fn of(call: &Call<'_>) -> Self {
        match call.text_literal(1) {
            Some(path) => Self::Constant(Arc::new(JsonPath::new(path))),
            None => Self::Varying(Mutex::default()),
        }
    }

    fn get(&self, path: &str) -> Arc<JsonPath> {
        match self {
            Self::Constant(path) => Arc::clone(path),
            Self::Varying(known) => {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                if known.len() > 256 {
                    known.clear();
                }
                Arc::clone(
                    known
                        .entry_ref(path)
                        .or_insert_with(|| Arc::new(JsonPath::new(path))),
                )
            }
        }
    }
}

fn prepare_exists(call: &Call<'_>) -> Result<Kernel> {
    let paths = Paths::of(call);
    let on_error = marker(call.args, 2)?.to_string();
    let to = call.returns.to_arrow();
    Ok(columns(move |c, _| {
        let (json, path) = (c.column::<Text>(0)?, c.column::<Text>(1)?);
        collect::<Bool>(c.rows, c.nulls_of([0, 1]).as_ref(), &to, |i| {
            let root = parse(json.value(i));
            match paths.get(path.value(i)).find(root.as_ref()) {
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
    let lookup = move |json: &str, path: &str| -> Result<Result<Option<Value>, bool>> {
        let root = parse(json);
        let path = paths.get(path);
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
                Ok(match lookup(json.value(i), path.value(i))? {
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
            let value = match lookup(json.value(i), path.value(i))? {
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
        let root = parse(json);
        let path = self.paths.get(path);
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

/// The values of a constructor, checked to be fit for JSON.
fn resolve_constructor(args: &[Arg], values: impl Iterator<Item = usize>) -> Result<Signature> {
    for i in values {
        JsonForm::new(&args[i].data_type.kind)?;
    }
    Ok(Signature {
        args: types(args),
        returns: TypeKind::STRING.not_null(),
    })
}

fn resolve_object(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    if args.len().is_multiple_of(2) {
        return Err(builtin.refuse_count(args));
    }
    if args[1..]
        .iter()
        .step_by(2)
        .any(|key| !key.data_type.kind.is_string())
    {
        return Err(builtin.refuse_types(args));
    }
    resolve_constructor(args, (2..args.len()).step_by(2))
}

fn resolve_array(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
    if args.is_empty() {
        return Err(builtin.refuse_count(args));
    }
    resolve_constructor(args, 1..args.len())
}

/// Values of a constructor that are written for each row.
struct Values {
    arrays: Vec<ArrayRef>,
}

impl Values {
    fn new(c: &Columns, args: impl Iterator<Item = usize>) -> Result<Self> {
        Ok(Self {
            arrays: args.map(|i| c.array(i)).collect::<Result<_>>()?,
        })
    }

    fn is_null(&self, value: usize, row: usize) -> bool {
        let array = &self.arrays[value];
        array.data_type().is_null() || array.is_null(row)
    }
}

fn forms(call: &Call<'_>, values: impl Iterator<Item = usize>) -> Result<Vec<JsonForm>> {
    values.map(|i| JsonForm::new(call.kind(i))).collect()
}

fn prepare_object(call: &Call<'_>) -> Result<Kernel> {
    let pairs = call.args.len() / 2;
    let forms = forms(call, (2..call.args.len()).step_by(2))?;
    let absent = marker(call.args, 0)? == "ABSENT";
    let constant: Option<Vec<&str>> = (0..pairs).map(|i| call.text_literal(1 + 2 * i)).collect();
    let constant: Option<Vec<(String, usize)>> =
        constant.map(|keys| in_order(keys.into_iter().map(quoted_key).zip(0..).collect()));
    Ok(arrays(move |c, _| {
        let values = Values::new(c, (2..c.count()).step_by(2))?;
        let keys = (0..pairs)
            .map(|i| c.column::<Text>(1 + 2 * i))
            .collect::<Result<Vec<_>>>()?;
        collect_text(c.rows, None, |row, out| {
            let varying;
            let pairs = match &constant {
                Some(pairs) => pairs,
                None => {
                    let pairs = keys
                        .iter()
                        .zip(0..)
                        .map(|(key, i)| match key.get(row) {
                            Some(key) => Ok((quoted_key(key), i)),
                            None => Err(Error::execution("the key of a JSON object is NULL")),
                        })
                        .collect::<Result<_>>()?;
                    varying = in_order(pairs);
                    &varying
                }
            };
            out.push('{');
            let mut first = true;
            for (key, i) in pairs {
                if absent && values.is_null(*i, row) {
                    continue;
                }
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                out.push_str(key);
                forms[*i].write(values.arrays[*i].as_ref(), row, out);
            }
            out.push('}');
            Ok(Some(()))
        })
    }))
}

/// Pairs by key; of equal keys the last counts.
fn in_order(mut pairs: Vec<(String, usize)>) -> Vec<(String, usize)> {
    pairs.sort();
    pairs.reverse();
    pairs.dedup_by(|a, b| a.0 == b.0);
    pairs.reverse();
    pairs
}

fn prepare_array(call: &Call<'_>) -> Result<Kernel> {
    let forms = forms(call, 1..call.args.len())?;
    let absent = marker(call.args, 0)? == "ABSENT";
    Ok(arrays(move |c, _| {
        let values = Values::new(c, 1..c.count())?;
        collect_text(c.rows, None, |row, out| {
            out.push('[');
            let mut first = true;
            for (i, form) in forms.iter().enumerate() {
                if absent && values.is_null(i, row) {
                    continue;
                }
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                form.write(values.arrays[i].as_ref(), row, out);
            }
            out.push(']');
            Ok(Some(()))
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
mod tests {
    use super::*;
    use crate::functions::testing::{args, call, check, null};

    const DOC: &str =
        r#"{"a": 1, "b": "x", "c": [10, 20], "d": {"e": true}, "n": null, "f": 1.50}"#;

    fn value(path: &str, on_empty: &str, on_error: &str) -> String {
        let arguments = args![DOC, path, "STRING", on_empty, "empty", on_error, "error"];
        match call("JSON_VALUE", arguments) {
            Ok((_, value)) => value,
            Err(_) => "!".to_string(),
        }
    }

    #[test]
    fn a_value_is_a_scalar_or_something_instead() {
        for (path, expected) in [
            ("$.a", "1"),
            ("$.b", "x"),
            ("$.c[1]", "20"),
            ("$.d.e", "true"),
            ("$.f", "1.50"),
            ("$.n", "error"),
            ("$.c", "error"),
            ("$.zz", "error"),
            ("lax $.n", "empty"),
            ("lax $.c", "empty"),
            ("lax $.zz", "empty"),
            ("strict $.a", "1"),
            ("bad path[", "error"),
        ] {
            assert_eq!(value(path, "DEFAULT", "DEFAULT"), expected, "{path}");
            let other = if matches!(expected, "error" | "empty") {
                "NULL"
            } else {
                expected
            };
            assert_eq!(value(path, "NULL", "NULL"), other, "{path}");
        }
        assert_eq!(value("$.zz", "NULL", "ERROR"), "!");
        assert_eq!(value("$.zz", "ERROR", "NULL"), "NULL");
        assert_eq!(value("lax $.zz", "ERROR", "NULL"), "!");
    }

    #[test]
    fn typed_values_are_those_of_the_type() {
        let typed = |path: &str, returning: &str| {
            let none = null(TypeKind::Null);
            let arguments = args![DOC, path, returning, "NULL", &none, "NULL", &none];
            call("JSON_VALUE", arguments).map(|(_, value)| value).ok()
        };
        assert_eq!(typed("$.a", "INTEGER").as_deref(), Some("1"));
        assert_eq!(typed("$.f", "DOUBLE").as_deref(), Some("1.5"));
        assert_eq!(typed("$.d.e", "BOOLEAN").as_deref(), Some("true"));
        assert_eq!(typed("$.b", "INTEGER").as_deref(), Some("NULL"));
        assert_eq!(typed("$.a", "BIGINT"), None);
    }

    #[test]
    fn a_query_is_an_object_or_array() {
        let query = |path: &str, wrapper: &str| {
            let arguments = args![DOC, path, "STRING", wrapper, "NULL", "NULL"];
            call("JSON_QUERY", arguments).map(|(_, v)| v).ok()
        };
        for (path, wrapper, expected) in [
            ("$.c", "WITHOUT", "[10,20]"),
            ("$.d", "WITHOUT", r#"{"e":true}"#),
            ("$.a", "WITHOUT", "NULL"),
            ("$.c", "CONDITIONAL", "[10,20]"),
            ("$.d", "CONDITIONAL", r#"[{"e":true}]"#),
            ("$.c", "UNCONDITIONAL", "[[10,20]]"),
            ("$.b", "CONDITIONAL", r#"["x"]"#),
            ("$.zz", "CONDITIONAL", "NULL"),
        ] {
            assert_eq!(
                query(path, wrapper).as_deref(),
                Some(expected),
                "{path} {wrapper}"
            );
        }
    }

    #[test]
    fn existence_and_kinds() {
        check("JSON_EXISTS", args![DOC, "$.a", "FALSE"], "true");
        check("JSON_EXISTS", args![DOC, "$.n", "FALSE"], "false");
        check("JSON_EXISTS", args![DOC, "$.zz", "UNKNOWN"], "NULL");
        check("JSON_EXISTS", args!["null", "lax $.a", "TRUE"], "true");
        check("IS JSON", args!["[1]", "ARRAY"], "true");
        check("IS JSON", args!["{} x", "OBJECT"], "true");
        check("IS JSON", args!["oops", "VALUE"], "false");
        check("IS JSON", args![null(TypeKind::STRING), "VALUE"], "false");
    }

    #[test]
    fn constructors_order_keys_and_take_the_last() {
        check(
            "JSON_OBJECT",
            args!["NULL", "b", 1, "a", 2, "b", 3],
            r#"{"a":2,"b":3}"#,
        );
        let none = null(TypeKind::Int);
        check("JSON_OBJECT", args!["ABSENT", "n", &none], "{}");
        check("JSON_OBJECT", args!["NULL", "n", &none], r#"{"n":null}"#);
        check(
            "JSON_ARRAY",
            args!["ABSENT", "q\"x", &none, 1e10],
            r#"["q\"x",1.0E+10]"#,
        );
        check("JSON_STRING", args!["é"], "\"é\"");
    }

    #[test]
    fn quotes_go_on_and_off() {
        check(
            "JSON_QUOTE",
            args!["a\"b\\c/é😀"],
            "\"a\\\"b\\\\c\\/\\u00e9\\ud83d\\ude00\"",
        );
        check("JSON_UNQUOTE", args![r#""a\"b\u00e9""#], "a\"bé");
        check("JSON_UNQUOTE", args!["[1, 2]"], "[1, 2]");
        check("JSON_UNQUOTE", args![r#""\q""#], r#""\q""#);
    }
}
