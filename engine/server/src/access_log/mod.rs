//! Writes the access log: one line for each request, where no request waits for it.
//!
//! A worker collects its lines. It hands them over, at the latest when it next looks at its connections, to the thread that writes. Lines of different workers are therefore not in order; their times say what came first. The channel is bounded: when the log is not read, lines are lost and responses go on.
//! A line says which tenant and route responded, with what, and how long that took. Routes are the snapshot's own, so that even a flood of made-up paths has few different lines.
//!
//! **Invariant:** decides no response, and a response never waits here. A line repeats nothing that a client made up, except what a trusted proxy says of a request; it has no address unless the settings ask for addresses.

pub mod spans;

use std::fmt::{self, Write};
use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use tracing_appender::non_blocking::NonBlocking;

use crate::request::trace::Trace;
use crate::response::answer::Route;
use release::snapshot::Coding;

/// The length at which lines are handed over.
const CAPACITY: usize = 16 * 1024;

/// The access log, where it is wanted.
#[derive(Debug, Clone)]
pub struct AccessLog {
    /// How a line looks.
    pub format: LogFormat,
    /// Whether a line says who asked. Default: no, since an address is personal data.
    pub addresses: bool,
    /// The channel to the thread that writes. It has to drop what it has no room for.
    pub writer: NonBlocking,
}

impl AccessLog {
    /// How many pieces were lost since nobody read them.
    pub(crate) fn lost(&self) -> u64 {
        u64::try_from(self.writer.error_counter().dropped_lines()).unwrap_or(u64::MAX)
    }
}

/// The lines of one worker that are not handed over yet.
#[derive(Debug)]
pub(crate) struct AccessLogBuffer {
    log: AccessLog,
    lines: String,
}

impl AccessLogBuffer {
    pub(crate) fn new(log: AccessLog) -> Self {
        Self {
            log,
            lines: String::with_capacity(CAPACITY + 1024),
        }
    }

    pub(crate) const fn has_addresses(&self) -> bool {
        self.log.addresses
    }

    pub(crate) const fn has_lines(&self) -> bool {
        !self.lines.is_empty()
    }

    pub(crate) fn push(&mut self, entry: &AccessEntry<'_>) {
        // Writing to memory does not fail.
        let _ = entry.write(self.log.format, &mut self.lines);
        if self.lines.len() >= CAPACITY {
            self.flush();
        }
    }

    pub(crate) fn flush(&mut self) {
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

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Words with spaces between them, for people.
    Text,
    /// One JSON object, for programs.
    Json,
}

/// What the access log, and a span, say of one request.
#[derive(Debug, Clone, Copy)]
pub struct AccessEntry<'a> {
    /// When it was answered.
    pub at: Timestamp,
    /// The tenant's id, or one of the two names for what is no tenant's.
    pub tenant: &'a str,
    /// The method as the client wrote it; see [`Self::method_name`].
    pub(crate) method: &'a str,
    pub(crate) route: Route<'a>,
    /// The status of the response.
    pub status: StatusCode,
    /// Bytes of the body.
    pub bytes: u64,
    /// The encoding of the body.
    pub coding: Coding,
    /// From the request's header fields until the response was ready to be sent.
    pub took: Duration,
    /// The request's id.
    pub id: &'a str,
    /// The trace that the request belongs to, where a trusted proxy named one.
    pub trace: Option<Trace>,
    /// The visitor's address, where the log is to have it.
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
            coding: Coding::Identity,
            took: Duration::ZERO,
            id: "-",
            trace: None,
            visitor: None,
        }
    }
}

impl AccessEntry<'_> {
    /// Writes the line with its end.
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
            self.coding.token(),
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
            self.coding.token(),
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

    /// The route in one piece.
    #[must_use]
    pub fn route_name(&self) -> String {
        self.route_letters().collect()
    }

    /// The method, or `other` for one that the client made up.
    #[must_use]
    pub fn method_name(&self) -> &str {
        known_method(self.method)
    }

    fn route_letters(&self) -> impl Iterator<Item = char> {
        let Route { prefix, path, rest } = self.route;
        [prefix, path, rest].into_iter().flat_map(str::chars)
    }
}

/// A client may make up methods, too.
fn known_method(method: &str) -> &str {
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
            format: LogFormat::Text,
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

    fn line(format: LogFormat, entry: &AccessEntry<'_>) -> String {
        let mut line = String::new();
        entry.write(format, &mut line).unwrap();
        line
    }

    #[test]
    fn a_line_can_be_read() {
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
            coding: Coding::Brotli,
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
