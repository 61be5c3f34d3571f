//! Time and memory of this process, as far as the operating system tells.

use crate::runtime::clock::monotonic_ns;

/// Ticks a second in which Linux counts CPU time.
const TICKS: f64 = 100.0;

/// A measurement that is going on.
pub(super) struct Usage {
    start_ns: u64,
    cpu_seconds: Option<f64>,
}

/// What was used.
pub(super) struct Taken {
    pub(super) seconds: f64,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) peak_bytes: Option<u64>,
}

impl Usage {
    /// Starts, and forgets the peak of memory so far.
    pub(super) fn start() -> Self {
        // without leave the peak is that of the whole process
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        Self {
            cpu_seconds: cpu_seconds(),
            start_ns: monotonic_ns(),
        }
    }

    /// What was used since the start.
    pub(super) fn taken(&self) -> Taken {
        Taken {
            seconds: monotonic_ns().saturating_sub(self.start_ns) as f64 / 1e9,
            cpu_seconds: cpu_seconds()
                .zip(self.cpu_seconds)
                .map(|(now, then)| now - then),
            peak_bytes: peak_bytes(),
        }
    }
}

/// CPU time of all threads so far, those that have ended included.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // the name in parentheses may hold blanks
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |i: usize| fields.get(i)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS)
}

fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}
