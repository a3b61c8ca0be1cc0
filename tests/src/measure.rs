//! Measurements for benchmarks: sorted times, and the resources of a process.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Ticks of processor time per second (`USER_HZ`, 100 on every supported Linux).
const TICKS: f64 = 100.0;

/// Times of repeated measurements.
#[derive(Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Adds a time.
    pub fn add(&mut self, time: Duration) {
        let place = self.0.partition_point(|other| *other < time);
        self.0.insert(place, time);
    }

    /// Returns the median, or zero without times.
    #[must_use]
    pub fn median(&self) -> Duration {
        self.0.get(self.0.len() / 2).copied().unwrap_or_default()
    }

    /// Returns the longest time, or zero without times.
    #[must_use]
    pub fn worst(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        let (count, median, worst) = (self.0.len(), self.median(), self.worst());
        write!(
            formatter,
            "median {:6.1} ms, worst {:6.1} ms of {count}",
            milliseconds(median),
            milliseconds(worst)
        )
    }
}

/// A process, read from `/proc`.
#[derive(Debug, Clone, Copy)]
pub struct Process(pub u32);

impl Process {
    fn path(self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.0))
    }

    fn status(self, name: &str) -> u64 {
        let status = fs::read_to_string(self.path("status")).expect("the process");
        let line = status.lines().find(|line| line.starts_with(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number
            .and_then(|number| number.parse().ok())
            .expect("a number")
    }

    /// Returns the resident memory, in bytes.
    #[must_use]
    pub fn memory(self) -> u64 {
        self.status("VmRSS:") << 10
    }

    /// Returns the resident memory without files, in bytes, which the system cannot reclaim.
    #[must_use]
    pub fn own_memory(self) -> u64 {
        self.status("RssAnon:") << 10
    }

    /// Returns the peak of the resident memory, in bytes.
    #[must_use]
    pub fn peak(self) -> u64 {
        self.status("VmHWM:") << 10
    }

    /// Returns the number of threads.
    #[must_use]
    pub fn threads(self) -> u64 {
        self.status("Threads:")
    }

    /// Returns the number of open files and connections.
    #[must_use]
    pub fn descriptors(self) -> usize {
        fs::read_dir(self.path("fd")).expect("the process").count()
    }

    /// Returns the used processor time, with time in the kernel.
    #[must_use]
    pub fn processor_time(self) -> Duration {
        let stat = fs::read_to_string(self.path("stat")).expect("the process");
        // The second field is a name in brackets that may contain spaces (proc(5)). User and system time are fields 14 and 15.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks: f64 = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<f64>().ok())
            .sum();
        Duration::from_secs_f64(ticks / TICKS)
    }

    /// Waits until the process uses almost no processor time for half a second.
    ///
    /// # Panics
    /// Panics if the process is still busy after two minutes.
    pub fn wait_until_quiet(self) {
        let begin = Instant::now();
        let mut before = self.processor_time();
        loop {
            thread::sleep(Duration::from_millis(500));
            let now = self.processor_time();
            if now - before <= Duration::from_millis(20) {
                return;
            }
            assert!(
                begin.elapsed() < Duration::from_secs(120),
                "the process never becomes idle"
            );
            before = now;
        }
    }
}
