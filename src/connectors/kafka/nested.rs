//! Single fields of rows: a row of which only some fields are read is declared with these alone, so
//! that the format passes the others.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{is_null, nullif};

use crate::error::{Error, Result};
use crate::types::{DataType, RowField, TypeKind};

/// `data_type` with only the fields to which `paths` lead. An empty path is all of it.
pub(super) fn prune(data_type: &DataType, paths: &[&[usize]]) -> DataType {
    let TypeKind::Row(fields) = &data_type.kind else {
        return data_type.clone();
    };
    if paths.iter().any(|path| path.is_empty()) {
        return data_type.clone();
    }
    let kept = kept(paths).into_iter().filter_map(|index| {
        let field = fields.get(index)?;
        let inside: Vec<&[usize]> = paths
            .iter()
            .filter_map(|path| path.strip_prefix(&[index]))
            .collect();
        Some(RowField {
            name: field.name.clone(),
            data_type: prune(&field.data_type, &inside),
        })
    });
    TypeKind::Row(kept.collect()).with_nullable(data_type.nullable)
}

/// Where the field of `path` is in what [`prune`] has left.
pub(super) fn moved(path: &[usize], paths: &[&[usize]]) -> Vec<usize> {
    let Some((index, rest)) = path.split_first() else {
        return Vec::new();
    };
    if paths.iter().any(|path| path.is_empty()) {
        return path.to_vec();
    }
    let place = kept(paths).iter().position(|i| i == index);
    let inside: Vec<&[usize]> = paths
        .iter()
        .filter_map(|path| path.strip_prefix(&[*index]))
        .collect();
    let mut new = vec![place.unwrap_or(*index)];
    new.extend(moved(rest, &inside));
    new
}

/// The first steps of `paths`, in the order of the fields.
fn kept(paths: &[&[usize]]) -> Vec<usize> {
    let mut kept: Vec<usize> = paths.iter().filter_map(|p| p.first().copied()).collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// The field of `row` to which `path` leads; NULL where a row around it is.
pub(super) fn field(row: &ArrayRef, path: &[usize]) -> Result<ArrayRef> {
    let Some((index, rest)) = path.split_first() else {
        return Ok(ArrayRef::clone(row));
    };
    let fields = row.as_struct_opt().filter(|r| *index < r.num_columns());
    let fields = fields.ok_or_else(|| Error::internal("a field of what is no row"))?;
    let inner = fields.column(*index);
    if row.null_count() == 0 {
        return field(inner, rest);
    }
    field(&nullif(inner, &is_null(row)?)?, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::testing::schema;

    #[test]
    fn only_what_is_asked_for_stays() {
        let schema = schema("r ROW<a INT, b ROW<c INT, d STRING, e INT>, f STRING>");
        let row = &schema.columns[0].data_type;
        let paths: [&[usize]; 3] = [&[2], &[1, 2], &[1, 0]];
        let pruned = prune(row, &paths);
        assert_eq!(
            pruned.to_string(),
            "ROW<`b` ROW<`c` INT, `e` INT>, `f` STRING>"
        );
        assert_eq!(moved(&[2], &paths), [1]);
        assert_eq!(moved(&[1, 2], &paths), [0, 1]);
        assert_eq!(moved(&[1, 0], &paths), [0, 0]);
        let whole: [&[usize]; 2] = [&[1], &[1, 2]];
        assert_eq!(
            prune(row, &whole).to_string(),
            "ROW<`b` ROW<`c` INT, `d` STRING, `e` INT>>"
        );
        assert_eq!(moved(&[1, 2], &whole), [0, 2]);
        let all: [&[usize]; 2] = [&[], &[1, 2]];
        assert_eq!(prune(row, &all), *row);
        assert_eq!(moved(&[1, 2], &all), [1, 2]);
    }
}
