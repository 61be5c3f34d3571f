//! Byte strings of any length in a few large chunks, addressed by offset.
//!
//! Owners keep the offsets. Released bytes are counted; once more than half of the arena is dead the
//! owner has it compacted ([`ByteArena::wants_compaction`]).

/// Address of a byte string in an arena: the chunk in the upper, the position in the lower half.
pub type Offset = u64;

/// An offset that no byte string has.
pub const VACANT: Offset = u64::MAX;

const FIRST_CHUNK: usize = 1 << 10;
const LARGEST_CHUNK: usize = 1 << 20;

/// An append-only store of byte strings, each preceded by its length as a varint.
#[derive(Debug, Default)]
pub struct ByteArena {
    chunks: Vec<Vec<u8>>,
    used: usize,
    dead: usize,
}

impl ByteArena {
    /// Stores a copy of `bytes`.
    pub fn push(&mut self, bytes: &[u8]) -> Offset {
        let needed = bytes.len() + varint_len(bytes.len());
        let fits = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= needed;
        if !self.chunks.last().is_some_and(fits) {
            let last = self.chunks.last().map_or(0, Vec::capacity);
            let size = (last * 2).clamp(FIRST_CHUNK, LARGEST_CHUNK).max(needed);
            self.chunks.push(Vec::with_capacity(size));
        }
        let index = self.chunks.len() - 1;
        let chunk = &mut self.chunks[index];
        let position = chunk.len();
        write_varint(chunk, bytes.len());
        chunk.extend_from_slice(bytes);
        self.used += needed;
        ((index as u64) << 32) | position as u64
    }

    /// The bytes at `offset`, which [`push`](Self::push) returned and which has not been released.
    #[must_use]
    #[inline]
    pub fn get(&self, offset: Offset) -> &[u8] {
        let chunk = &self.chunks[(offset >> 32) as usize];
        let position = (offset & 0xffff_ffff) as usize;
        let first = chunk[position];
        if first < 0x80 {
            let start = position + 1;
            return &chunk[start..start + usize::from(first)];
        }
        let (length, start) = read_varint(chunk, position);
        &chunk[start..start + length]
    }

    /// Gives up the bytes at `offset`; the space comes back with the next compaction.
    pub fn release(&mut self, offset: Offset) {
        let length = self.get(offset).len();
        self.dead += length + varint_len(length);
    }

    /// Whether more than half of the space is dead and it is worth the copying.
    #[must_use]
    pub fn wants_compaction(&self) -> bool {
        self.dead > LARGEST_CHUNK / 16 && self.dead > self.used / 2
    }

    /// Copies the byte strings at `offsets` into a new arena and rewrites the offsets; entries that
    /// are [`VACANT`] stay so. Every other offset is invalid afterwards.
    pub fn compact<'a>(&mut self, offsets: impl IntoIterator<Item = &'a mut Offset>) {
        let mut fresh = Self::default();
        for offset in offsets {
            if *offset != VACANT {
                *offset = fresh.push(self.get(*offset));
            }
        }
        *self = fresh;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.chunks.iter().map(Vec::capacity).sum::<usize>()
            + self.chunks.capacity() * size_of::<Vec<u8>>()
    }
}

fn varint_len(mut n: usize) -> usize {
    let mut length = 1;
    while n >= 0x80 {
        n >>= 7;
        length += 1;
    }
    length
}

#[allow(clippy::cast_possible_truncation)] // seven bits
fn write_varint(out: &mut Vec<u8>, mut n: usize) {
    while n >= 0x80 {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push((n & 0x7f) as u8);
}

fn read_varint(bytes: &[u8], mut position: usize) -> (usize, usize) {
    let mut n = 0;
    let mut shift = 0;
    loop {
        let byte = bytes[position];
        position += 1;
        n |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return (n, position);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_all_lengths_come_back_also_after_compaction() {
        let mut arena = ByteArena::default();
        let text = |i: usize| vec![(i % 251) as u8; i * i * 7 % 40_000];
        let mut offsets: Vec<Offset> = (0..300).map(|i| arena.push(&text(i))).collect();
        let before = arena.memory_size();
        for (i, offset) in offsets.iter_mut().enumerate() {
            if i % 3 != 0 {
                arena.release(*offset);
                *offset = VACANT;
            }
        }
        assert!(arena.wants_compaction());
        arena.compact(&mut offsets);
        for (i, offset) in offsets.iter().enumerate() {
            if i % 3 == 0 {
                assert_eq!(arena.get(*offset), text(i));
            }
        }
        assert!(arena.memory_size() < before);
    }
}
