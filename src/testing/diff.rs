//! What differs between two lists of lines, as a unified diff.

use similar::{ChangeTag, TextDiff};

/// Whether a diff may be coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// For files and pipes.
    Off,
    /// For terminals.
    On,
}

/// The diff from `want` to `got`, with 3 lines around each difference.
#[must_use]
pub fn unified(want: &[String], got: &[String], colours: Colours) -> String {
    let text = |lines: &[String]| {
        lines
            .iter()
            .fold(String::new(), |all, line| all + line + "\n")
    };
    let (want, got) = (text(want), text(got));
    let diff = TextDiff::from_lines(&want, &got);
    let mut out = String::from("--- want\n+++ got\n");
    for group in diff.grouped_ops(3) {
        if let Some(first) = group.first() {
            out.push_str(&format!("@@ line {} @@\n", first.old_range().start + 1));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = format!("{}{}", change.tag(), change.value().trim_end_matches('\n'));
            let colour = match change.tag() {
                ChangeTag::Delete => Some(nu_ansi_term::Color::Red),
                ChangeTag::Insert => Some(nu_ansi_term::Color::Green),
                ChangeTag::Equal => None,
            };
            match colour {
                Some(colour) if colours == Colours::On => {
                    out.push_str(&colour.paint(line).to_string());
                }
                _ => out.push_str(&line),
            }
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_is_missing_and_what_is_new() {
        let lines = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        let text = unified(&lines("a b c"), &lines("a x c"), Colours::Off);
        assert_eq!(text, "--- want\n+++ got\n@@ line 1 @@\n a\n-b\n+x\n c\n");
    }
}
