//! Writes the access log: one line for each request, on a thread of its own.
//!
//! Each worker buffers its lines. The worker passes the buffer to the writing thread when the buffer is full, and each time it checks its connections. Lines of different workers are therefore not in order; their timestamps give the order. The channel is bounded: if the log is not read, lines are dropped and responses go on.
//! A line names the tenant, the route, the status and the duration. Routes come from the snapshot, so a flood of invented paths produces few distinct lines.
//!
//! **Invariant:** never changes or delays a response. A line repeats no text that a client invents, except what a trusted proxy says of a request. A line has the visitor's address only if the settings ask for addresses.

pub mod spans;

use std::fmt::{self, Write};
use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use tracing_appender::non_blocking::NonBlocking;

use crate::request::trace::Trace;
use crate::response::routed_response::Route;
use release::snapshot::ContentEncoding;

/// Buffered bytes at which a worker passes its lines on.
const BUFFER_BYTES: usize = 16 * 1024;

/// Settings and output of the access log.
#[derive(Debug, Clone)]
pub struct AccessLog {
    /// Format of a line.
    pub format: LogFormat,
    /// Whether a line has the visitor's address. Default: no, since an address is personal data.
    pub addresses: bool,
    /// The channel to the writing thread. The channel must drop lines when full.
    pub writer: NonBlocking,
}

impl AccessLog {
    /// Returns the number of buffers that were dropped because the channel was full.
    pub(crate) fn lost(&self) -> u64 {
        u64::try_from(self.writer.error_counter().dropped_lines()).unwrap_or(u64::MAX)
    }
}

/// The lines of a worker that are not passed on yet.
#[derive(Debug)]
pub(crate) struct AccessLogBuffer {
    log: AccessLog,
    lines: String,
}

impl AccessLogBuffer {
    pub(crate) fn new(log: AccessLog) -> Self {
        Self {
            log,
            lines: String::with_capacity(BUFFER_BYTES + 1024),
        }
    }

    pub(crate) const fn has_addresses(&self) -> bool {
        self.log.addresses
    }

    pub(crate) const fn has_lines(&self) -> bool {
        !self.lines.is_empty()
    }

    pub(crate) fn push(&mut self, entry: &AccessEntry<'_>) {
        // Writing to a `String` does not fail.
        let _ = entry.write(self.log.format, &mut self.lines);
        if self.lines.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    pub(crate) fn flush(&mut self) {
        if self.has_lines() {
            // The channel drops and counts what it cannot hold.
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

/// Format of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Fields separated by spaces, for people.
    Text,
    /// One JSON object per line, for programs.
    Json,
}

/// The fields of a request in the access log and in a span.
#[derive(Debug, Clone, Copy)]
pub struct AccessEntry<'a> {
    /// When the response was ready.
    pub at: Timestamp,
    /// The tenant's id, `_shared` or `_unknown`.
    pub tenant: &'a str,
    /// The method as the client sent it; see [`Self::method_name`].
    pub(crate) method: &'a str,
    pub(crate) route: Route<'a>,
    /// The status of the response.
    pub status: StatusCode,
    /// Body size in bytes.
    pub bytes: u64,
    /// The content encoding of the body.
    pub encoding: ContentEncoding,
    /// Duration from the complete header fields to the complete response.
    pub took: Duration,
    /// The request's id.
    pub id: &'a str,
    /// The trace of the request, if a trusted proxy named one.
    pub trace: Option<Trace>,
    /// The visitor's address, if the log has addresses.
    pub visitor: Option<IpAddr>,
}

impl Default for AccessEntry<'_> {
    fn default() -> Self {
        Self {
            at: Timestamp::UNIX_EPOCH,
            tenant: "-",
            method: "GET",
            route: Route::default(),
            status: StatusCode::OK,
            bytes: 0,
            encoding: ContentEncoding::Identity,
            took: Duration::ZERO,
            id: "-",
            trace: None,
            visitor: None,
        }
    }
}

impl AccessEntry<'_> {
    /// Appends the line, with its line feed, to `line`.
    pub(crate) fn write(&self, format: LogFormat, line: &mut String) -> fmt::Result {
        match format {
            LogFormat::Text => self.write_text(line),
            LogFormat::Json => self.write_json(line),
        }
    }

    fn write_text(&self, line: &mut String) -> fmt::Result {
        let Self {
            at,
            tenant,
            bytes,
            id,
            ..
        } = self;
        write!(line, "{at:.3} {tenant} {} ", self.method_name())?;
        for letter in self.route_letters() {
            let space = letter.is_whitespace() || letter.is_control();
            line.write_char(if space { '_' } else { letter })?;
        }
        write!(
            line,
            " {} {bytes} {} {}us {id}",
            self.status.as_u16(),
            self.encoding.token(),
            self.took.as_micros(),
        )?;
        if let Some(trace) = self.trace {
            write!(line, " trace={trace}")?;
        }
        if let Some(visitor) = self.visitor {
            write!(line, " visitor={visitor}")?;
        }
        line.write_char('\n')
    }

    fn write_json(&self, line: &mut String) -> fmt::Result {
        let Self {
            at,
            tenant,
            bytes,
            id,
            ..
        } = self;
        write!(
            line,
            r#"{{"timestamp":"{at:.3}","tenant":"{tenant}","method":"{}","route":""#,
            self.method_name()
        )?;
        for letter in self.route_letters() {
            match letter {
                '"' | '\\' => write!(line, "\\{letter}")?,
                letter if letter.is_control() => write!(line, "\\u{:04x}", u32::from(letter))?,
                letter => line.write_char(letter)?,
            }
        }
        write!(
            line,
            r#"","status":{},"bytes":{bytes},"encoding":"{}","duration_us":{},"request_id":"{id}""#,
            self.status.as_u16(),
            self.encoding.token(),
            self.took.as_micros(),
        )?;
        if let Some(trace) = self.trace {
            write!(line, r#","trace_id":"{trace}""#)?;
        }
        if let Some(visitor) = self.visitor {
            write!(line, r#","visitor":"{visitor}""#)?;
        }
        line.write_str("}\n")
    }

    /// Returns the route as one string.
    #[must_use]
    pub fn route_name(&self) -> String {
        self.route_letters().collect()
    }

    /// Returns the method, or `other` for a method that is not a common one.
    #[must_use]
    pub fn method_name(&self) -> &str {
        method_label(self.method)
    }

    fn route_letters(&self) -> impl Iterator<Item = char> {
        let Route { prefix, path, rest } = self.route;
        [prefix, path, rest].into_iter().flat_map(str::chars)
    }
}

/// Returns a common method as it is and `other` for the rest, since clients can invent methods.
fn method_label(method: &str) -> &str {
    match method {
        "GET" | "HEAD" | "OPTIONS" | "POST" | "PUT" | "DELETE" | "PATCH" => method,
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::mpsc::{Receiver, channel};
    use tracing_appender::non_blocking::NonBlockingBuilder;

    /// A log that is never read.
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
    fn blocked_log_drops_lines_without_delay() {
        let (release, blocked) = channel();
        let (writer, _guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(8)
            .finish(BlockedWriter(blocked));
        let counter = writer.error_counter();
        let mut buffer = AccessLogBuffer::new(AccessLog {
            format: LogFormat::Text,
            addresses: false,
            writer,
        });
        for _ in 0..20 {
            buffer.push(&AccessEntry::default());
            buffer.flush();
        }
        // The thread may have received the first buffer already.
        assert!(
            (11..=12).contains(&counter.dropped_lines()),
            "{}",
            counter.dropped_lines()
        );
        drop(release);
    }

    fn line(format: LogFormat, entry: &AccessEntry<'_>) -> String {
        let mut line = String::new();
        entry.write(format, &mut line).unwrap();
        line
    }

    #[test]
    fn entry_is_written_as_text_and_json() {
        let route = Route {
            prefix: "/a",
            path: "/b c\"",
            rest: "/*",
        };
        let plain = AccessEntry {
            at: Timestamp::from_millisecond(1_795_262_706_123).unwrap(),
            tenant: "studio",
            route,
            bytes: 7,
            encoding: ContentEncoding::Brotli,
            took: Duration::from_micros(12),
            id: "abc",
            ..AccessEntry::default()
        };
        assert_eq!(
            line(LogFormat::Text, &plain),
            "2026-11-21T12:05:06.123Z studio GET /a/b_c\"/* 200 7 br 12us abc\n"
        );
        let full = AccessEntry {
            method: "BREW",
            trace: Some(Trace {
                id: 10,
                parent: 1,
                sampled: true,
            }),
            visitor: Some(IpAddr::from([192, 0, 2, 1])),
            ..plain
        };
        let parsed: serde_json::Value =
            serde_json::from_str(&line(LogFormat::Json, &full)).unwrap();
        assert_eq!(
            parsed,
            serde_json::json!({
                "timestamp": "2026-11-21T12:05:06.123Z", "tenant": "studio", "method": "other",
                "route": "/a/b c\"/*", "status": 200, "bytes": 7, "encoding": "br", "duration_us": 12,
                "request_id": "abc", "trace_id": "0000000000000000000000000000000a", "visitor": "192.0.2.1",
            })
        );
        assert!(line(LogFormat::Text, &full).ends_with("a visitor=192.0.2.1\n"));
    }
}
