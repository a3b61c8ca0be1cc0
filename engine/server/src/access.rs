//! The access log: one line for each request, where no request waits for it.
//!
//! A worker collects its lines and hands them over together, when it next looks at its connections at the latest, to the thread that writes. Lines of different workers are therefore not in order; their times say what came first. The channel to it is bounded and takes what there is room for: when nobody reads the log, lines are lost and responses go on.
//!
//! **Invariant:** decides no answer; a response never waits here.

use std::io::Write as _;

use tracing_appender::non_blocking::NonBlocking;

use super::access_entry::AccessEntry;
pub use super::access_entry::Format;

/// The length at which lines are handed over.
const CAPACITY: usize = 16 * 1024;

/// The access log, where it is wanted.
#[derive(Debug, Clone)]
pub struct AccessLog {
    /// How a line looks.
    pub format: Format,
    /// Whether a line says who asked. Default: no, since an address is personal data.
    pub addresses: bool,
    /// The channel to the thread that writes. It has to drop what it has no room for.
    pub writer: NonBlocking,
}

impl AccessLog {
    /// How many pieces were lost since nobody read them.
    pub(super) fn lost(&self) -> u64 {
        u64::try_from(self.writer.error_counter().dropped_lines()).unwrap_or(u64::MAX)
    }
}

/// The lines of one worker that are not handed over yet.
#[derive(Debug)]
pub(super) struct AccessLogBuffer {
    log: AccessLog,
    lines: String,
}

impl AccessLogBuffer {
    pub(super) fn new(log: AccessLog) -> Self {
        Self {
            log,
            lines: String::with_capacity(CAPACITY + 1024),
        }
    }

    pub(super) const fn has_addresses(&self) -> bool {
        self.log.addresses
    }

    pub(super) const fn has_lines(&self) -> bool {
        !self.lines.is_empty()
    }

    pub(super) fn push(&mut self, entry: &AccessEntry<'_>) {
        // Writing to memory does not fail.
        let _ = entry.write(self.log.format, &mut self.lines);
        if self.lines.len() >= CAPACITY {
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        if self.has_lines() {
            // It drops what it has no room for, and counts that itself.
            let _ = self.log.writer.write(self.lines.as_bytes());
            self.lines.clear();
        }
    }
}

impl Drop for AccessLogBuffer {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{Receiver, channel};

    use tracing_appender::non_blocking::NonBlockingBuilder;

    use super::*;

    /// A log that nobody reads.
    struct BlockedWriter(Receiver<()>);

    impl io::Write for BlockedWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_log_costs_lines_and_no_time() {
        let (release, blocked) = channel();
        let (writer, _guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(8)
            .finish(BlockedWriter(blocked));
        let counter = writer.error_counter();
        let mut buffer = AccessLogBuffer::new(AccessLog {
            format: Format::Text,
            addresses: false,
            writer,
        });
        for _ in 0..20 {
            buffer.push(&AccessEntry::default());
            buffer.flush();
        }
        // The thread may have taken one already.
        assert!(
            (11..=12).contains(&counter.dropped_lines()),
            "{}",
            counter.dropped_lines()
        );
        drop(release);
    }
}
