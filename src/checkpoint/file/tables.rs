//! State tables between memory and segments: what a checkpoint says of a table becomes segments
//! beside those that still count, and segments become a whole table again.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;

use super::files::Files;
use super::manifest::{Segment, Table, Vertex};
use super::segment::{self, Extent, Extents, Writer};
use crate::checkpoint::VertexCheckpoint;
use crate::checkpoint::layers::{Batches, Groups, InMemory, Merged, Piece, merge};
use crate::error::{Error, Result};
use crate::state::key_group::owned;
use crate::state::snapshot::{Part, StateTable};

/// A data file that is begun when there is something to write.
pub(super) struct DataFile<'a> {
    files: &'a dyn Files,
    pub(super) name: String,
    writer: Option<Writer>,
}

impl<'a> DataFile<'a> {
    pub(super) fn new(files: &'a dyn Files, name: String) -> Self {
        Self {
            files,
            name,
            writer: None,
        }
    }

    fn writer(&mut self) -> Result<&mut Writer> {
        if self.writer.is_none() {
            self.writer = Some(Writer::new(self.files.create(&self.name)?));
        }
        self.writer
            .as_mut()
            .ok_or_else(|| Error::internal("a data file that is not open"))
    }

    /// Makes the file durable, if there is one.
    pub(super) fn finish(self) -> Result<()> {
        self.writer
            .map_or(Ok(()), |writer| writer.finish().map(|_| ()))
    }
}

/// Writes the tables of `vertex`. `base` are the tables that its changes go on from.
pub(super) fn save(
    vertex: &VertexCheckpoint,
    epoch: u64,
    max_parallelism: u16,
    base: &[Table],
    file: &mut DataFile<'_>,
) -> Result<Vec<Table>> {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, table) in vertex.subtasks.iter().flat_map(|s| &s.operator.tables) {
        names.insert(name, table.keys);
    }
    let mut tables = Vec::new();
    for (name, keys) in names {
        let old = base.iter().find(|t| t.name == name && t.keys == keys);
        let mut segments = Vec::new();
        let mut superseded: Vec<Groups> = Vec::new();
        for (subtask, saved) in vertex.subtasks.iter().enumerate() {
            let groups = owned(subtask, vertex.subtasks.len(), max_parallelism);
            let table = saved.operator.tables.get(name);
            let whole = table.is_none_or(|t| matches!(t.part, Part::Whole));
            if whole {
                superseded.push(groups);
            }
            let segment = match table {
                Some(table) => save_segment(table, epoch, groups, file)?,
                None => None,
            };
            segments.extend(segment);
        }
        let all = covers(&superseded, (0, max_parallelism));
        if keys == 0 && !all {
            return Err(Error::internal("a table without a key is not copied whole"));
        }
        // Where a subtask speaks of the whole table, what is older does not count.
        if !all && !superseded.is_empty() && old.is_some() {
            segments.push(marker(&file.name, epoch, &superseded));
        }
        let old = old.map_or(&[][..], |t| &t.segments).iter();
        let kept = old.filter(|s| !all && !covers(&superseded, s.groups));
        let mut all_segments: Vec<Segment> = kept.cloned().collect();
        all_segments.append(&mut segments);
        tables.push(Table {
            name: name.to_string(),
            keys,
            segments: all_segments,
        });
    }
    Ok(tables)
}

fn save_segment(
    table: &StateTable,
    epoch: u64,
    groups: Groups,
    file: &mut DataFile<'_>,
) -> Result<Option<Segment>> {
    let mut out = SegmentWriter::default();
    for batch in &table.batches {
        out.add(batch.get()?, Kind::Rows, file)?;
    }
    if let Part::Changes { removed } = &table.part {
        for batch in removed {
            out.add(batch.get()?, Kind::Removed, file)?;
        }
    }
    out.finish(epoch, groups, file)
}

#[derive(Clone, Copy)]
enum Kind {
    Rows,
    Removed,
}

/// Writes one segment. Rows and removed keys may come in any order.
#[derive(Default)]
struct SegmentWriter {
    rows: Extents,
    removed: Extents,
}

impl SegmentWriter {
    fn add(&mut self, batch: RecordBatch, kind: Kind, file: &mut DataFile<'_>) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let extents = match kind {
            Kind::Rows => &mut self.rows,
            Kind::Removed => &mut self.removed,
        };
        extents.add(&batch, file.writer()?)
    }

    fn finish(
        self,
        layer: u64,
        groups: Groups,
        file: &mut DataFile<'_>,
    ) -> Result<Option<Segment>> {
        let finish = |extents: Extents, file: &mut DataFile<'_>| match &mut file.writer {
            Some(writer) => extents.finish(writer),
            None => Ok(Vec::new()),
        };
        let rows = finish(self.rows, file)?;
        let removed = finish(self.removed, file)?;
        if rows.is_empty() && removed.is_empty() {
            return Ok(None);
        }
        Ok(Some(Segment {
            file: file.name.clone(),
            layer,
            groups,
            supersedes: Vec::new(),
            rows,
            removed,
        }))
    }
}

/// A segment that only says where older ones mean nothing.
fn marker(file: &str, layer: u64, supersedes: &[Groups]) -> Segment {
    Segment {
        file: file.to_string(),
        layer,
        groups: hull(supersedes.iter().copied()),
        supersedes: supersedes.to_vec(),
        rows: Vec::new(),
        removed: Vec::new(),
    }
}

/// The range from the first to the last key group.
fn hull(ranges: impl Iterator<Item = Groups> + Clone) -> Groups {
    let ranges = ranges.filter(|(from, to)| from < to);
    let from = ranges.clone().map(|r| r.0).min().unwrap_or(0);
    (from, ranges.map(|r| r.1).max().unwrap_or(0))
}

/// Whether every key group of `groups` is in a range.
pub(super) fn covers(ranges: &[Groups], groups: Groups) -> bool {
    let is_in = |group: u16| {
        ranges
            .iter()
            .any(|(from, to)| (*from..*to).contains(&group))
    };
    (groups.0..groups.1).all(is_in)
}

/// Reads a vertex back; its tables are those of the first subtask.
pub(super) fn restore(
    vertex: &Vertex,
    max_parallelism: u16,
    files: &dyn Files,
) -> Result<VertexCheckpoint> {
    let subtasks = vertex.subtasks.iter().map(|s| s.restore(files));
    let mut restored = VertexCheckpoint {
        uid: vertex.uid.clone(),
        name: vertex.name.clone(),
        signature: vertex.signature.clone(),
        subtasks: subtasks.collect::<Result<_>>()?,
    };
    for table in &vertex.tables {
        let mut merged = InMemory::default();
        merge_segments(
            table,
            &table.segments,
            max_parallelism,
            files,
            false,
            &mut merged,
        )?;
        let batches = merged.0;
        if batches.is_empty() {
            continue;
        }
        let first = restored.subtasks.first_mut();
        let first = first.ok_or_else(|| Error::checkpoint("state of no subtask"))?;
        let state = StateTable {
            keys: table.keys,
            batches,
            part: Part::Whole,
        };
        first.operator.tables.insert(table.name.clone(), state);
    }
    Ok(restored)
}

fn merge_segments(
    table: &Table,
    segments: &[Segment],
    max_parallelism: u16,
    files: &dyn Files,
    report_removed: bool,
    out: &mut dyn Merged,
) -> Result<()> {
    let pieces = segments.iter().map(|segment| Piece {
        layer: segment.layer,
        groups: segment.groups,
        supersedes: segment.supersedes.clone(),
        rows: batches(files, &segment.file, &segment.rows),
        removed: batches(files, &segment.file, &segment.removed),
    });
    let pieces = pieces.collect();
    merge(table.keys, max_parallelism, pieces, report_removed, out)
}

fn batches<'a>(files: &'a dyn Files, name: &'a str, extents: &'a [Extent]) -> Batches<'a> {
    Box::new(
        extents
            .iter()
            .flat_map(move |extent| match segment::read(files, name, extent) {
                Ok(batches) => batches.into_iter().map(Ok).collect(),
                Err(e) => vec![Err(e)],
            }),
    )
}

/// Writes `segments` of `table`, which follow one another, as one segment, or none if nothing is
/// left. Only with the `oldest` of the table among them may removed keys be forgotten.
pub(super) fn compact(
    table: &Table,
    segments: &[Segment],
    oldest: bool,
    max_parallelism: u16,
    files: &dyn Files,
    file: &mut DataFile<'_>,
) -> Result<Option<Segment>> {
    struct Out<'a, 'b> {
        writer: SegmentWriter,
        file: &'a mut DataFile<'b>,
    }
    impl Merged for Out<'_, '_> {
        fn rows(&mut self, batch: RecordBatch) -> Result<()> {
            self.writer.add(batch, Kind::Rows, self.file)
        }
        fn removed(&mut self, keys: RecordBatch) -> Result<()> {
            self.writer.add(keys, Kind::Removed, self.file)
        }
    }
    let layer = segments.iter().map(|s| s.layer).max().unwrap_or_default();
    let groups = hull(segments.iter().map(|s| s.groups));
    let supersedes: Vec<Groups> = match oldest {
        true => Vec::new(),
        false => segments.iter().flat_map(|s| s.supersedes.clone()).collect(),
    };
    let mut out = Out {
        writer: SegmentWriter::default(),
        file,
    };
    merge_segments(table, segments, max_parallelism, files, !oldest, &mut out)?;
    let Out { writer, file } = out;
    let merged = writer.finish(layer, groups, file)?;
    if supersedes.is_empty() {
        return Ok(merged);
    }
    let mut merged = merged.unwrap_or_else(|| marker(&file.name, layer, &supersedes));
    merged.groups = groups;
    merged.supersedes = supersedes;
    Ok(Some(merged))
}
