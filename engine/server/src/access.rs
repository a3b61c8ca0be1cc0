//! One line for each request, where no request waits for it.
//!
//! A worker collects its lines and hands them over together, at the latest with its next round, to the thread that writes. Lines of different workers are therefore not in order; their times say what came first. The way there is bounded and takes what there is room for: when nobody reads the log, lines are lost and responses go on.
//!
//! **Invariant:** decides no answer; a response never waits here.

use std::io::Write as _;

use tracing_appender::non_blocking::NonBlocking;

use super::line::Entry;

/// The length at which lines are handed over.
const FULL: usize = 16 * 1024;

/// The access log, where it is wanted.
#[derive(Debug, Clone)]
pub struct AccessLog {
    /// How a line looks.
    pub format: Format,
    /// Whether a line says who asked. Default: no, since an address is personal data.
    pub addresses: bool,
    /// The way to the thread that writes. It has to lose what it has no room for.
    pub writer: NonBlocking,
}

impl AccessLog {
    /// How many pieces were lost since nobody read them.
    pub(super) fn lost(&self) -> u64 {
        u64::try_from(self.writer.error_counter().dropped_lines()).unwrap_or(u64::MAX)
    }
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Words with spaces between them, for people.
    Text,
    /// One JSON object, for programs.
    Json,
}

/// A worker's lines.
#[derive(Debug)]
pub(super) struct Lines {
    log: AccessLog,
    waiting: String,
}

impl Lines {
    pub(super) fn new(log: AccessLog) -> Self {
        Self {
            log,
            waiting: String::with_capacity(FULL + 1024),
        }
    }

    pub(super) const fn with_addresses(&self) -> bool {
        self.log.addresses
    }

    pub(super) const fn has_some(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn push(&mut self, entry: &Entry<'_>) {
        // Writing to memory does not fail.
        let _ = entry.write(self.log.format, &mut self.waiting);
        if self.waiting.len() >= FULL {
            self.hand_over();
        }
    }

    pub(super) fn hand_over(&mut self) {
        if self.has_some() {
            // It loses what it cannot take, and counts that itself.
            let _ = self.log.writer.write(self.waiting.as_bytes());
            self.waiting.clear();
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.hand_over();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{Receiver, channel};

    use tracing_appender::non_blocking::NonBlockingBuilder;

    use super::*;

    /// A log that nobody reads.
    struct Stuck(Receiver<()>);

    impl io::Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stuck_log_costs_lines_and_no_time() {
        let (release, stuck) = channel();
        let (writer, _guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(8)
            .finish(Stuck(stuck));
        let counter = writer.error_counter();
        let mut lines = Lines::new(AccessLog {
            format: Format::Text,
            addresses: false,
            writer,
        });
        for _ in 0..20 {
            lines.push(&Entry::default());
            lines.hand_over();
        }
        // One may be with the thread already.
        assert!(
            (11..=12).contains(&counter.dropped_lines()),
            "{}",
            counter.dropped_lines()
        );
        drop(release);
    }
}
