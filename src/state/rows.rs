//! Rows as bytes: the codec between columns and bytes, and a store of rows by id.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, StructArray, make_array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};

use super::arena::{ByteArena, Offset, VACANT};
use crate::error::{Error, Result};
use crate::types::DataType;

/// Translates between columns and row bytes.
///
/// Equal rows have equal bytes (all NaN are one value, 0.0 and -0.0 are two), and bytes compare as
/// the rows do by the sort options. The form of the bytes is that of the running Arrow version: it
/// MUST not be written to disk.
#[derive(Debug)]
pub struct RowCodec {
    /// `None` when there are no columns.
    converter: Option<RowConverter>,
    /// Columns that hold floating-point numbers somewhere.
    floats: Vec<bool>,
    types: Vec<ArrowType>,
}

/// The rows of one batch as bytes. A buffer to be reused from batch to batch.
#[derive(Debug, Default)]
pub struct EncodedRows {
    rows: Option<Rows>,
    len: usize,
}

impl RowCodec {
    /// A codec of columns of these types.
    ///
    /// # Errors
    /// When a type has no row form.
    pub fn new(types: &[DataType]) -> Result<Self> {
        Self::sorted(types.iter().map(|t| (t, SortOptions::default())))
    }

    /// A codec whose bytes compare by these sort options, column after column.
    ///
    /// # Errors
    /// When a type has no row form.
    pub fn sorted<'a>(
        columns: impl IntoIterator<Item = (&'a DataType, SortOptions)>,
    ) -> Result<Self> {
        let columns = columns.into_iter();
        Self::of_arrow(columns.map(|(t, options)| (t.to_arrow(), options)))
    }

    /// As [`sorted`](Self::sorted), by Arrow types.
    pub(super) fn of_arrow(
        columns: impl IntoIterator<Item = (ArrowType, SortOptions)>,
    ) -> Result<Self> {
        let fields: Vec<(ArrowType, SortOptions)> = columns.into_iter().collect();
        let floats = fields.iter().map(|(t, _)| has_floats(t)).collect();
        let types = fields.iter().map(|(t, _)| t.clone()).collect();
        let fields: Vec<_> = fields
            .into_iter()
            .map(|(t, options)| SortField::new_with_options(t, options))
            .collect();
        let converter = if fields.is_empty() {
            None
        } else {
            Some(RowConverter::new(fields)?)
        };
        Ok(Self {
            converter,
            floats,
            types,
        })
    }

    /// The Arrow types of the columns.
    #[must_use]
    pub fn arrow_types(&self) -> &[ArrowType] {
        &self.types
    }

    /// Encodes `len` rows into `out`, replacing what is there.
    ///
    /// # Errors
    /// When the columns are not of the codec's types.
    pub fn encode(&self, columns: &[ArrayRef], len: usize, out: &mut EncodedRows) -> Result<()> {
        out.len = len;
        let Some(converter) = &self.converter else {
            out.rows = None;
            return Ok(());
        };
        let rows = out.rows.get_or_insert_with(|| converter.empty_rows(len, 0));
        rows.clear();
        if self.floats.contains(&true) {
            let columns: Vec<_> = columns
                .iter()
                .zip(&self.floats)
                .map(|(column, floats)| match floats {
                    true => canonical_nan(column),
                    false => Arc::clone(column),
                })
                .collect();
            converter.append(rows, &columns)?;
        } else {
            converter.append(rows, columns)?;
        }
        Ok(())
    }

    /// The columns of rows that this codec encoded; none if the codec has none.
    ///
    /// # Errors
    /// When the bytes are not of this codec.
    pub fn decode<'a>(&self, rows: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        let Some(converter) = &self.converter else {
            return Ok(Vec::new());
        };
        let parser = converter.parser();
        // The parser borrows bytes for the time of the call only.
        let rows: Vec<_> = rows.into_iter().map(|bytes| parser.parse(bytes)).collect();
        Ok(converter.convert_rows(rows)?)
    }
}

impl EncodedRows {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of row `i`.
    #[must_use]
    pub fn bytes(&self, i: usize) -> &[u8] {
        self.rows.as_ref().map_or(&[], |rows| rows.row(i).data())
    }
}

fn has_floats(t: &ArrowType) -> bool {
    match t {
        ArrowType::Float32 | ArrowType::Float64 => true,
        ArrowType::List(f) | ArrowType::Map(f, _) => has_floats(f.data_type()),
        ArrowType::Struct(fields) => fields.iter().any(|f| has_floats(f.data_type())),
        _ => false,
    }
}

/// The same column with one bit pattern for all NaN, also inside of collections and rows.
#[must_use]
pub fn canonical_nan(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        ArrowType::Float32 => {
            let values = column.as_primitive::<Float32Type>();
            if !values.values().iter().any(|v| v.is_nan()) {
                return Arc::clone(column);
            }
            let values: Float32Array = values.unary(|v| if v.is_nan() { f32::NAN } else { v });
            Arc::new(values)
        }
        ArrowType::Float64 => {
            let values = column.as_primitive::<Float64Type>();
            if !values.values().iter().any(|v| v.is_nan()) {
                return Arc::clone(column);
            }
            let values: Float64Array = values.unary(|v| if v.is_nan() { f64::NAN } else { v });
            Arc::new(values)
        }
        ArrowType::Struct(fields) if has_floats(column.data_type()) => {
            let rows = column.as_struct();
            let columns = rows.columns().iter().map(canonical_nan).collect();
            match StructArray::try_new(fields.clone(), columns, rows.nulls().cloned()) {
                Ok(rows) => Arc::new(rows),
                Err(_) => Arc::clone(column),
            }
        }
        ArrowType::List(_) | ArrowType::Map(..) if has_floats(column.data_type()) => {
            let data = column.to_data();
            let child = make_array(data.child_data()[0].clone());
            let child = canonical_nan(&child).to_data();
            match data.into_builder().child_data(vec![child]).build() {
                Ok(data) => make_array(data),
                Err(_) => Arc::clone(column),
            }
        }
        _ => Arc::clone(column),
    }
}

/// Names a row of a [`RowStore`] until it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(pub u32);

/// Rows as bytes, by id. Ids of removed rows are given out again.
#[derive(Debug, Default)]
pub struct RowStore {
    arena: ByteArena,
    offsets: Vec<Offset>,
    free: Vec<u32>,
}

impl RowStore {
    /// Stores a copy of a row.
    ///
    /// # Panics
    /// With 2^32 rows: more than memory holds.
    pub fn insert(&mut self, bytes: &[u8]) -> RowId {
        let offset = self.arena.push(bytes);
        if let Some(id) = self.free.pop() {
            self.offsets[id as usize] = offset;
            return RowId(id);
        }
        let id = u32::try_from(self.offsets.len()).expect("fewer than 2^32 rows in memory");
        self.offsets.push(offset);
        RowId(id)
    }

    /// The bytes of a row that is there.
    #[must_use]
    pub fn get(&self, id: RowId) -> &[u8] {
        self.arena.get(self.offsets[id.0 as usize])
    }

    /// Replaces the bytes of a row that is there.
    pub fn replace(&mut self, id: RowId, bytes: &[u8]) {
        let old = self.offsets[id.0 as usize];
        self.arena.release(old);
        self.offsets[id.0 as usize] = self.arena.push(bytes);
        self.tidy();
    }

    /// Removes a row that is there.
    pub fn remove(&mut self, id: RowId) {
        let offset = std::mem::replace(&mut self.offsets[id.0 as usize], VACANT);
        self.arena.release(offset);
        self.free.push(id.0);
        self.tidy();
    }

    fn tidy(&mut self) {
        if self.arena.wants_compaction() {
            self.arena.compact(&mut self.offsets);
        }
    }

    /// The columns of the rows `ids`, in that order.
    ///
    /// # Errors
    /// When a row is not of this codec.
    pub fn decode(
        &self,
        codec: &RowCodec,
        ids: impl IntoIterator<Item = RowId>,
    ) -> Result<Vec<ArrayRef>> {
        codec.decode(ids.into_iter().map(|id| self.get(id)))
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - self.free.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.arena.memory_size()
            + self.offsets.capacity() * size_of::<Offset>()
            + self.free.capacity() * size_of::<u32>()
    }
}

/// Fails unless the columns of a snapshot have the number and types that the codec was made for.
///
/// # Errors
/// When they have not.
pub fn check_columns(columns: &[ArrayRef], types: &[DataType]) -> Result<()> {
    let fits = columns.len() == types.len()
        && columns
            .iter()
            .zip(types)
            .all(|(c, t)| c.data_type().equals_datatype(&t.to_arrow()));
    if fits {
        return Ok(());
    }
    Err(Error::checkpoint(
        "saved columns have other types than the operator expects",
    ))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, StringArray};

    use super::*;
    use crate::types::TypeKind;

    #[test]
    fn rows_come_back_and_equal_rows_have_equal_bytes() {
        let types = [TypeKind::STRING.nullable(), TypeKind::Double.nullable()];
        let codec = RowCodec::new(&types).unwrap();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![
                Some("a"),
                None,
                Some("a"),
                Some(""),
            ])),
            Arc::new(Float64Array::from(vec![f64::NAN, 0.0, -f64::NAN, -0.0])),
        ];
        let mut rows = EncodedRows::default();
        for _ in 0..2 {
            codec.encode(&columns, 4, &mut rows).unwrap();
        }
        assert_eq!(rows.len(), 4);
        assert_eq!(rows.bytes(0), rows.bytes(2));
        assert_ne!(rows.bytes(1), rows.bytes(3));

        let mut store = RowStore::default();
        let ids: Vec<_> = (0..4).map(|i| store.insert(rows.bytes(i))).collect();
        store.remove(ids[0]);
        assert_eq!(store.insert(rows.bytes(1)), ids[0], "ids are reused");
        let back = store.decode(&codec, [ids[0], ids[3]]).unwrap();
        assert!(back[0].is_null(0));
        assert_eq!(back[0].as_string::<i32>().value(1), "");
        assert_eq!(store.len(), 4);
    }

    #[test]
    fn a_store_gives_back_memory_of_removed_rows() {
        let mut store = RowStore::default();
        let ids: Vec<_> = (0..10_000).map(|_| store.insert(&[7; 100])).collect();
        let full = store.memory_size();
        for id in &ids[..9_000] {
            store.remove(*id);
        }
        assert!(store.memory_size() < full / 2);
        assert_eq!(store.get(ids[9_999]), [7; 100]);
    }

    #[test]
    fn no_columns_make_empty_rows() {
        let codec = RowCodec::new(&[]).unwrap();
        let mut rows = EncodedRows::default();
        codec.encode(&[], 3, &mut rows).unwrap();
        assert_eq!((rows.len(), rows.bytes(2)), (3, &[][..]));
        assert!(codec.decode([rows.bytes(0)]).unwrap().is_empty());
    }
}
