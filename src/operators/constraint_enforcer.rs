//! `ConstraintEnforcer`: what a sink's column types promise and a query does not: NOT NULL and the
//! lengths of CHAR, VARCHAR, BINARY and VARBINARY.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, RecordBatch, StringArray, StructArray,
};
use arrow::datatypes::SchemaRef;

use super::{Operator, OperatorContext};
use crate::changelog::{ChangeBatch, RowKind};
use crate::error::{Error, Result};
use crate::runtime::metrics::OperatorMetrics;
use crate::runtime::output::Output;
use crate::types::{DataType, Schema, TypeKind};

/// `table.exec.sink.not-null-enforcer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NotNullEnforcer {
    /// A NULL ends the job.
    #[default]
    Error,
    /// The row is dropped and counted.
    Drop,
}

/// `table.exec.sink.type-length-enforcer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TypeLengthEnforcer {
    /// Lengths are not looked at.
    #[default]
    Ignore,
    /// Values that are too long are cut, fixed-length values that are too short are padded.
    TrimPad,
    /// A wrong length ends the job.
    Error,
}

/// `table.exec.sink.nested-constraint-enforcer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NestedEnforcer {
    /// Only columns are looked at.
    #[default]
    Ignore,
    /// Fields of rows too.
    Rows,
    /// Elements of collections as well; cannot be combined with [`TypeLengthEnforcer::TrimPad`].
    RowsAndCollections,
}

/// What is enforced.
#[derive(Debug, Clone)]
pub struct ConstraintEnforcerSpec {
    /// The sink's columns.
    pub schema: Schema,
    /// What a NULL in a NOT NULL column does.
    pub not_null: NotNullEnforcer,
    /// What a wrong length does.
    pub length: TypeLengthEnforcer,
    /// How deep it goes.
    pub nested: NestedEnforcer,
    /// When `-D` rows carry nothing but the key: its columns. Others are then not checked.
    pub key_of_deletes: Option<Vec<usize>>,
}

impl ConstraintEnforcerSpec {
    /// Whether there is anything to enforce: if not, the operator can be left out.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        self.schema
            .columns
            .iter()
            .any(|c| self.concerns(&c.data_type))
    }

    fn concerns(&self, t: &DataType) -> bool {
        let length = self.length != TypeLengthEnforcer::Ignore && length_of(&t.kind).is_some();
        let rows = self.nested != NestedEnforcer::Ignore;
        let collections = self.nested == NestedEnforcer::RowsAndCollections;
        !t.nullable
            || length
            || match &t.kind {
                TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                    rows && fields.iter().any(|f| self.concerns(&f.data_type))
                }
                TypeKind::Array(element) => collections && self.concerns(element),
                TypeKind::Map(key, value) => {
                    collections && (self.concerns(key) || self.concerns(value))
                }
                _ => false,
            }
    }
}

/// The declared length, if it is one to enforce, and whether it is fixed.
fn length_of(kind: &TypeKind) -> Option<(usize, bool)> {
    let fixed = matches!(kind, TypeKind::Char(_) | TypeKind::Binary(_));
    let length = kind.length()?;
    (length < crate::types::data_type::MAX_LENGTH).then_some((length as usize, fixed))
}

/// The operator. Stateless.
#[derive(Debug)]
pub struct ConstraintEnforcer {
    spec: ConstraintEnforcerSpec,
    fields: Vec<(String, DataType)>,
    schema: SchemaRef,
    metrics: Arc<OperatorMetrics>,
}

/// A broken constraint.
struct Violation {
    row: usize,
    column: String,
    reason: String,
}

impl Violation {
    fn error(self) -> Error {
        Error::execution(format!("Column '{}' {}", self.column, self.reason))
    }
}

/// The earliest violation so far: by row, then by the order of the checks.
#[derive(Default)]
struct First(Option<Violation>);

impl First {
    fn add(&mut self, violation: Violation) {
        if self.0.as_ref().is_none_or(|v| violation.row < v.row) {
            self.0 = Some(violation);
        }
    }
}

impl ConstraintEnforcer {
    /// The operator for `spec`.
    #[must_use]
    pub fn new(spec: ConstraintEnforcerSpec, context: &OperatorContext) -> Self {
        let columns = spec.schema.columns.iter();
        Self {
            fields: columns
                .map(|c| (c.name.clone(), c.data_type.clone()))
                .collect(),
            schema: spec.schema.to_arrow(),
            metrics: Arc::clone(&context.metrics),
            spec,
        }
    }

    /// Checks and mends rows made of `columns`; `live` are the rows that count, and loses those that
    /// are dropped. `key` restricts the NOT NULL check of the rows `deleted`.
    fn enforce(
        &self,
        columns: &mut [ArrayRef],
        fields: &[(String, DataType)],
        live: &mut [bool],
        keys: Option<(&[usize], &[bool])>,
    ) -> First {
        let mut first = First::default();
        for (i, (name, t)) in fields.iter().enumerate() {
            if let Some(nulls) = columns[i].logical_nulls()
                && !t.nullable
            {
                let relaxed = keys.filter(|(keys, _)| !keys.contains(&i));
                for row in (0..live.len()).filter(|row| nulls.is_null(*row)) {
                    if !live[row] || relaxed.is_some_and(|(_, deleted)| deleted[row]) {
                        continue;
                    }
                    match self.spec.not_null {
                        NotNullEnforcer::Drop => live[row] = false,
                        NotNullEnforcer::Error => {
                            first.add(Violation {
                                row,
                                column: name.clone(),
                                reason: NULL_REASON.to_string(),
                            });
                            break;
                        }
                    }
                }
            }
        }
        if self.spec.length != TypeLengthEnforcer::Ignore {
            for strings in [true, false] {
                for (column, (name, t)) in columns.iter_mut().zip(fields) {
                    if t.kind.is_string() == strings {
                        self.enforce_length(column, name, t, live, &mut first);
                    }
                }
            }
        }
        if self.spec.nested != NestedEnforcer::Ignore {
            for (column, (name, t)) in columns.iter_mut().zip(fields) {
                if self.concerns_inside(t) {
                    self.enforce_nested(column, name, t, live, &mut first);
                }
            }
        }
        first
    }

    fn concerns_inside(&self, t: &DataType) -> bool {
        t.kind.length().is_none() && self.spec.concerns(&t.as_nullable())
    }

    fn enforce_length(
        &self,
        column: &mut ArrayRef,
        name: &str,
        t: &DataType,
        live: &[bool],
        first: &mut First,
    ) {
        let Some((length, fixed)) = length_of(&t.kind) else {
            return;
        };
        let actual = |row: usize| -> Option<usize> {
            let here = live[row] && column.is_valid(row);
            here.then(|| match t.kind.is_string() {
                true => column.as_string::<i32>().value(row).chars().count(),
                false => column.as_binary::<i32>().value(row).len(),
            })
        };
        let wrong = |actual: usize| actual > length || (fixed && actual < length);
        let Some(row) = (0..live.len()).find(|row| actual(*row).is_some_and(wrong)) else {
            return;
        };
        if self.spec.length == TypeLengthEnforcer::Error {
            first.add(Violation {
                row,
                column: name.to_string(),
                reason: format!(
                    "is {}, however, a string of length {} is being written into it. You can set \
                     job configuration 'table.exec.sink.type-length-enforcer' to control this \
                     behaviour.",
                    t.kind,
                    actual(row).unwrap_or_default()
                ),
            });
            return;
        }
        *column = if t.kind.is_string() {
            let pad = if fixed { length } else { 0 };
            let values = column.as_string::<i32>().iter();
            let fit = |s: &str| format!("{:pad$}", s.chars().take(length).collect::<String>());
            Arc::new(values.map(|s| s.map(fit)).collect::<StringArray>())
        } else {
            let fit = |b: &[u8]| {
                let mut b = b[..b.len().min(length)].to_vec();
                b.resize(if fixed { length } else { b.len() }, 0);
                b
            };
            let values = column.as_binary::<i32>().iter();
            Arc::new(values.map(|b| b.map(fit)).collect::<BinaryArray>())
        };
    }

    fn enforce_nested(
        &self,
        column: &mut ArrayRef,
        name: &str,
        t: &DataType,
        live: &mut [bool],
        first: &mut First,
    ) {
        match &t.kind {
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                let rows = column.as_struct();
                let mut inner: Vec<_> = (0..live.len())
                    .map(|row| live[row] && rows.is_valid(row))
                    .collect();
                let checked = inner.clone();
                let mut columns = rows.columns().to_vec();
                let types: Vec<_> = fields
                    .iter()
                    .map(|f| (f.name.clone(), f.data_type.clone()))
                    .collect();
                if let Some(v) = self.enforce(&mut columns, &types, &mut inner, None).0 {
                    first.add(Violation {
                        column: format!("{name}.{}", v.column),
                        ..v
                    });
                }
                for (row, was) in checked.iter().enumerate() {
                    live[row] &= inner[row] || !was;
                }
                if let Ok(rows) =
                    StructArray::try_new(rows.fields().clone(), columns, rows.nulls().cloned())
                {
                    *column = Arc::new(rows);
                }
            }
            TypeKind::Array(element) => {
                let lists = column.as_list::<i32>();
                let types = [(String::new(), DataType::clone(element))];
                let columns = [Arc::clone(lists.values())];
                let place = |entry: usize, inner: &str| format!("{name}[{entry}]{inner}");
                self.enforce_elements(lists.value_offsets(), columns, &types, live, first, place);
            }
            TypeKind::Map(key, value) => {
                let maps = column.as_map();
                let types = [
                    ("key".to_string(), DataType::clone(key)),
                    ("value".to_string(), DataType::clone(value)),
                ];
                let columns = [Arc::clone(maps.keys()), Arc::clone(maps.values())];
                let place = |_, inner: &str| match inner.split_once('.') {
                    Some((part, field)) => format!("{name}[{part}]{field}"),
                    None => format!("{name}[{inner}]"),
                };
                self.enforce_elements(maps.value_offsets(), columns, &types, live, first, place);
            }
            _ => {}
        }
    }

    /// The elements of collections, which lie at `offsets` of `columns`.
    fn enforce_elements<const N: usize>(
        &self,
        offsets: &[i32],
        mut columns: [ArrayRef; N],
        types: &[(String, DataType)],
        live: &mut [bool],
        first: &mut First,
        place: impl Fn(usize, &str) -> String,
    ) {
        if self.spec.nested != NestedEnforcer::RowsAndCollections {
            return;
        }
        let bounds: Vec<usize> = offsets.iter().map(|o| o.cast_unsigned() as usize).collect();
        let mut inner = vec![false; columns[0].len()];
        for (row, is) in live.iter().enumerate() {
            inner[bounds[row]..bounds[row + 1]].fill(*is);
        }
        if let Some(v) = self.enforce(&mut columns, types, &mut inner, None).0 {
            let row = bounds.partition_point(|start| *start <= v.row) - 1;
            first.add(Violation {
                row,
                column: place(v.row - bounds[row], &v.column),
                reason: v.reason,
            });
        }
        for (row, is) in live.iter_mut().enumerate() {
            *is &= !inner[bounds[row]..bounds[row + 1]].contains(&false);
        }
    }
}

const NULL_REASON: &str = "is NOT NULL, however, a null value is being written into it. You can \
    set job configuration 'table.exec.sink.not-null-enforcer'='DROP' to suppress this exception \
    and drop such records silently.";

impl Operator for ConstraintEnforcer {
    fn process(&mut self, _port: usize, batch: ChangeBatch, out: &mut Output<'_>) -> Result<()> {
        let mut columns = batch.rows().columns().to_vec();
        let mut live = vec![true; batch.len()];
        let deleted: Vec<_> = batch.kinds().map(|k| k == RowKind::Delete).collect();
        let keys = self
            .spec
            .key_of_deletes
            .as_ref()
            .map(|keys| (keys.as_slice(), deleted.as_slice()));
        let violation = self.enforce(&mut columns, &self.fields, &mut live, keys).0;
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        let mut batch = batch.with_rows(rows)?;
        if let Some(violation) = &violation {
            batch = batch.slice(0, violation.row);
            live.truncate(violation.row);
        }
        let kept = BooleanArray::from(live);
        let dropped = kept.len() - kept.true_count();
        self.metrics.invalid_dropped.add(dropped as u64);
        out.emit(batch.filter(&kept)?)?;
        violation.map_or(Ok(()), |v| Err(v.error()))
    }
}

#[cfg(test)]
mod tests;
