//! `JSON_OBJECT` and `JSON_ARRAY`.

use arrow::array::{Array, ArrayRef};

use super::{marker, types};
use crate::error::{Error, Result};
use crate::functions::builtin::{Builtin, untyped_null};
use crate::functions::json_write::{JsonForm, quoted_key};
use crate::functions::kernel::{Call, Columns, Text, arrays, collect_text};
use crate::functions::{Arg, Kernel, Signature};
use crate::types::TypeKind;

/// The values of a constructor, checked to be fit for JSON.
fn resolve_constructor(args: &[Arg], values: impl Iterator<Item = usize>) -> Result<Signature> {
    for i in values {
        if args[i].data_type.kind == TypeKind::Null {
            return Err(untyped_null());
        }
        JsonForm::new(&args[i].data_type.kind)?;
    }
    Ok(Signature {
        args: types(args),
        returns: TypeKind::STRING.not_null(),
    })
}

pub(super) fn resolve_object(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
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
    if args[1..]
        .iter()
        .step_by(2)
        .any(|key| key.data_type.nullable)
    {
        return Err(Error::plan(
            "Argument to function 'JSON_OBJECT' must not be NULL: a key may be",
        )
        .hint("give the key another value for NULL: COALESCE(key, '')"));
    }
    resolve_constructor(args, (2..args.len()).step_by(2))
}

pub(super) fn resolve_array(builtin: &Builtin, args: &[Arg]) -> Result<Signature> {
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

pub(super) fn prepare_object(call: &Call<'_>) -> Result<Kernel> {
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

pub(super) fn prepare_array(call: &Call<'_>) -> Result<Kernel> {
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
