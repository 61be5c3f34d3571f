//! The result mode `table`: the dynamic table itself, redrawn in place as it changes.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use indexmap::IndexMap;

use super::shell::closed;
use super::tableau::{Cells, rows, write_table};
use crate::error::Result;
use crate::session::Query;

/// Time between two drawings.
const PAUSE: Duration = Duration::from_millis(100);

/// Lines around the rows: three borders, the header, the count and the cursor's line.
const FRAME: usize = 6;

/// The rows now, in the order of their coming, with how often each is there.
#[derive(Debug, Default)]
struct Content {
    rows: IndexMap<Vec<String>, i64>,
    changed: bool,
}

/// How a table is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) zone: chrono_tz::Tz,
    pub(super) max_width: usize,
    /// Lines of the terminal.
    pub(super) height: usize,
}

/// Shows the table of `query` until it ends. Without a terminal only the final table is shown.
pub(super) fn show(mut query: Query, frame: Frame) -> Result<()> {
    let cells = Cells::new(query.schema(), frame.zone);
    let names = query.schema().names();
    let content = Mutex::new(Content {
        changed: true,
        ..Content::default()
    });
    let lock = || content.lock().unwrap_or_else(PoisonError::into_inner);
    let terminal = io::stdout().is_terminal();
    let (ended, end) = bounded::<()>(0);
    let mut drawn = 0;
    let result = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let _ended = ended;
            while let Some(batch) = query.next_batch()? {
                let mut content = lock();
                for i in 0..batch.len() {
                    let row = cells.row(&batch, i);
                    let count = content.rows.entry(row).or_default();
                    *count += batch.kind(i).sign();
                }
                content.rows.retain(|_, count| *count != 0);
                content.changed = true;
            }
            Ok(())
        });
        while end.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            let mut content = lock();
            if terminal && std::mem::take(&mut content.changed) {
                drawn = draw(&names, &content, frame, drawn)?;
            }
        }
        reader.join().unwrap_or(Ok(()))
    });
    let all = Frame {
        height: if terminal { frame.height } else { usize::MAX },
        ..frame
    };
    draw(&names, &lock(), all, drawn)?;
    result
}

/// Draws over the `drawn` lines of the last time; answers how many it has drawn.
fn draw(names: &[String], content: &Content, frame: Frame, drawn: usize) -> Result<usize> {
    let mut text = Vec::new();
    if drawn > 0 {
        text.extend_from_slice(format!("\x1b[{drawn}A\x1b[J").as_bytes());
    }
    let start = text.len();
    let total: i64 = content.rows.values().map(|count| (*count).max(0)).sum();
    let all = content.rows.iter().flat_map(|(row, count)| {
        let times = usize::try_from(*count).unwrap_or(0);
        std::iter::repeat_n(row.clone(), times)
    });
    let room = frame.height.saturating_sub(FRAME).max(1);
    let shown: Vec<Vec<String>> = all.take(room).collect();
    write_table(&mut text, names, &shown, frame.max_width).map_err(closed)?;
    let total = u64::try_from(total).unwrap_or(0);
    let hidden = total.saturating_sub(shown.len() as u64);
    let note = if hidden > 0 {
        format!("{}, {hidden} not shown\n", rows(total))
    } else {
        format!("{}\n", rows(total))
    };
    text.extend_from_slice(note.as_bytes());
    let mut out = io::stdout().lock();
    out.write_all(&text)
        .and_then(|()| out.flush())
        .map_err(closed)?;
    Ok(text.iter().skip(start).filter(|b| **b == b'\n').count())
}
