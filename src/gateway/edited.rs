//! A statement whose text was changed before it was sent, and where its parts were before.

use std::ops::Range;

/// One change: bytes of the original, and how many took their place.
#[derive(Debug, Clone)]
struct Edit {
    old: Range<usize>,
    new: usize,
}

/// A text with changes.
#[derive(Debug, Clone)]
pub struct Edited {
    text: String,
    edits: Vec<Edit>,
}

impl Edited {
    /// A text without changes.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self {
            text: text.to_string(),
            edits: Vec::new(),
        }
    }

    /// Replaces bytes of the original. Changes MUST come in the order of the text and not overlap.
    #[must_use]
    pub fn replace(mut self, old: Range<usize>, with: &str) -> Self {
        let place = |offset: usize| {
            self.edits
                .iter()
                .fold(offset, |o, e| o + e.new - e.old.len())
        };
        let range = place(old.start)..place(old.end);
        self.text.replace_range(range, with);
        self.edits.push(Edit {
            old,
            new: with.len(),
        });
        self
    }

    /// The text as it is sent.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where a place of the changed text was in the original; what was put in is at its beginning.
    #[must_use]
    pub fn original(&self, offset: usize) -> usize {
        let (mut old, mut new) = (0, 0);
        for edit in &self.edits {
            let start = new + (edit.old.start - old);
            if offset < start {
                break;
            }
            if offset < start + edit.new {
                return edit.old.start;
            }
            (old, new) = (edit.old.end, start + edit.new);
        }
        old + (offset - new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_again() {
        let edited = Edited::of("0123456789")
            .replace(0..0, "EXPLAIN ")
            .replace(3..5, "x")
            .replace(8..8, "yy");
        assert_eq!(edited.text(), "EXPLAIN 012x567yy89");
        for (place, (offset, c)) in edited.text().char_indices().enumerate() {
            assert_eq!(place, offset);
            if let Some(digit) = c.to_digit(10) {
                assert_eq!(edited.original(offset), digit as usize, "{offset}");
            }
        }
        assert_eq!(edited.original(0), 0);
        assert_eq!(edited.original(11), 3);
        assert_eq!(edited.original(edited.text().len()), 10);
    }
}
