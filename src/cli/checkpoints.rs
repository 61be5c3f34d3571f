//! `ebbflow checkpoints`: what jobs have saved.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::checkpoint::{CheckpointInfo, FileStore};
use crate::error::{Error, Result};
use crate::runtime::clock::{Clock, SystemClock};

/// Positions of one source that are shown; JSON has all.
const SHOWN_POSITIONS: usize = 5;

#[derive(Debug, Serialize)]
struct Job {
    directory: String,
    /// Who uses the directory.
    holder: Option<String>,
    /// Whether the last run has finished by itself.
    finished: bool,
    checkpoints: Vec<CheckpointInfo>,
}

/// Prints the checkpoints of the job in `directory`, or of all jobs in folders of it.
///
/// # Errors
/// When there are none, or the directory cannot be read.
#[allow(clippy::print_stdout)] // the command's output
pub(super) fn list(directory: &Path, json: bool) -> Result<bool> {
    let mut jobs = Vec::new();
    for job in FileStore::directories(directory)? {
        jobs.push(Job {
            directory: job.display().to_string(),
            holder: FileStore::holder(&job)?,
            finished: FileStore::is_finished(&job),
            checkpoints: FileStore::list(&job)?,
        });
    }
    if json {
        let text = serde_json::to_string_pretty(&jobs);
        println!("{}", text.map_err(|e| Error::internal(e.to_string()))?);
        return Ok(true);
    }
    let now_ms = SystemClock.now_ms();
    for job in &jobs {
        print!("{}", text(job, now_ms));
    }
    Ok(true)
}

fn text(job: &Job, now_ms: i64) -> String {
    let mut text = job.directory.clone();
    let state = match (&job.holder, job.finished) {
        (Some(holder), _) => format!(" (used by {holder})"),
        (None, true) => " (finished)".into(),
        (None, false) => String::new(),
    };
    let _ = writeln!(text, "{state}");
    if job.checkpoints.is_empty() {
        text.push_str("  no checkpoints\n");
    }
    for checkpoint in &job.checkpoints {
        write_checkpoint(&mut text, checkpoint, now_ms);
    }
    text
}

fn write_checkpoint(text: &mut String, checkpoint: &CheckpointInfo, now_ms: i64) {
    let now = u64::try_from(now_ms).unwrap_or(0);
    let seconds = now.saturating_sub(checkpoint.completed_ms) / 1000;
    let _ = write!(
        text,
        "  {} {}: {} ago, ",
        checkpoint.kind,
        checkpoint.epoch,
        age(seconds)
    );
    if let Some(damage) = &checkpoint.damage {
        let _ = writeln!(text, "cannot be read: {damage}");
        return;
    }
    let _ = write!(text, "{}", size(checkpoint.bytes()));
    if !checkpoint.committed {
        text.push_str(", not committed");
    }
    let _ = writeln!(text, ", written by Ebbflow {}", checkpoint.engine);
    for vertex in &checkpoint.vertices {
        if vertex.bytes == 0 && vertex.positions.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "    {:>10}  {}",
            size(vertex.bytes),
            vertex.uid.replace('\n', " & ")
        );
        if vertex.subtasks > 1 {
            let _ = write!(text, " ({} subtasks)", vertex.subtasks);
        }
        text.push('\n');
        for position in vertex.positions.iter().take(SHOWN_POSITIONS) {
            let _ = writeln!(
                text,
                "                {}: {}",
                position.split, position.position
            );
        }
        let more = vertex.positions.len().saturating_sub(SHOWN_POSITIONS);
        if more > 0 {
            let _ = writeln!(text, "                and {more} more (--json shows all)");
        }
    }
}

fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::VertexInfo;
    use crate::connectors::SplitPosition;

    #[test]
    fn sizes_and_ages_are_for_people() {
        assert_eq!(size(999), "999 B");
        assert_eq!(size(1_049), "1.0 kB");
        assert_eq!(size(1_250_000), "1.2 MB");
        assert_eq!(size(999_999_999_999), "999.9 GB");
        assert_eq!(age(119), "119 s");
        assert_eq!(age(3_600), "60 min");
    }

    #[test]
    fn a_checkpoint_shows_sizes_and_positions() {
        let position = |i: u32| SplitPosition {
            split: format!("file-{i}"),
            position: "{\"offset\":7}".into(),
        };
        let job = Job {
            directory: "d".into(),
            holder: Some("process 7".into()),
            finished: false,
            checkpoints: vec![CheckpointInfo {
                epoch: 3,
                kind: "checkpoint",
                completed_ms: 1_000,
                engine: "0.1.0".into(),
                vertices: vec![VertexInfo {
                    uid: "o/TableSourceScan[t]".into(),
                    name: "TableSourceScan".into(),
                    subtasks: 2,
                    bytes: 0,
                    positions: (0..7).map(position).collect(),
                }],
                ..CheckpointInfo::default()
            }],
        };
        let text = text(&job, 31_000);
        assert!(text.starts_with("d (used by process 7)\n  checkpoint 3: 30 s ago, 0 B, not"));
        assert!(text.contains("file-4: {\"offset\":7}"), "{text}");
        assert!(!text.contains("file-5"), "{text}");
        assert!(text.contains("and 2 more"), "{text}");
    }
}
