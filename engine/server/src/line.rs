//! A line of the access log.
//!
//! It says which tenant and route answered, with what, and how long that took. Routes are the snapshot's own, so that even a flood of inventions has few different lines.
//!
//! **Invariant:** repeats nothing that a client made up, but for what a trusted proxy says of a request; has no address unless it is asked for.

use std::fmt::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;

use super::access::Format;
use super::origin::Trace;
use super::respond::Route;
use release::snapshot::Coding;

/// What a line says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) at: Timestamp,
    pub(super) tenant: &'a str,
    pub(super) method: &'a str,
    pub(super) route: Route<'a>,
    pub(super) status: StatusCode,
    pub(super) bytes: u64,
    pub(super) coding: Coding,
    pub(super) took: Duration,
    pub(super) id: &'a str,
    pub(super) trace: Option<Trace>,
    pub(super) visitor: Option<IpAddr>,
}

impl Default for Entry<'_> {
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

impl Entry<'_> {
    /// Writes the line with its end.
    pub(super) fn write(&self, format: Format, line: &mut String) -> fmt::Result {
        match format {
            Format::Text => self.write_words(line),
            Format::Json => self.write_json(line),
        }
    }

    fn write_words(&self, line: &mut String) -> fmt::Result {
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
    pub(super) fn route_name(&self) -> String {
        self.route_letters().collect()
    }

    /// The method, if it is one that there is.
    pub(super) fn method_name(&self) -> &str {
        known_method(self.method)
    }

    fn route_letters(&self) -> impl Iterator<Item = char> {
        let Route { prefix, path, rest } = self.route;
        [prefix, path, rest].into_iter().flat_map(str::chars)
    }
}

/// Methods are a client's invention too.
fn known_method(method: &str) -> &str {
    match method {
        "GET" | "HEAD" | "OPTIONS" | "POST" | "PUT" | "DELETE" | "PATCH" => method,
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: Format, entry: &Entry<'_>) -> String {
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
        let plain = Entry {
            at: Timestamp::from_millisecond(1_795_262_706_123).unwrap(),
            tenant: "studio",
            route,
            bytes: 7,
            coding: Coding::Brotli,
            took: Duration::from_micros(12),
            id: "abc",
            ..Entry::default()
        };
        assert_eq!(
            line(Format::Text, &plain),
            "2026-11-21T12:05:06.123Z studio GET /a/b_c\"/* 200 7 br 12us abc\n"
        );
        let full = Entry {
            method: "BREW",
            trace: Some(Trace {
                id: 10,
                parent: 1,
                sampled: true,
            }),
            visitor: Some(IpAddr::from([192, 0, 2, 1])),
            ..plain
        };
        let told: serde_json::Value = serde_json::from_str(&line(Format::Json, &full)).unwrap();
        assert_eq!(
            told,
            serde_json::json!({
                "timestamp": "2026-11-21T12:05:06.123Z", "tenant": "studio", "method": "other",
                "route": "/a/b c\"/*", "status": 200, "bytes": 7, "encoding": "br", "duration_us": 12,
                "request_id": "abc", "trace_id": "0000000000000000000000000000000a", "visitor": "192.0.2.1",
            })
        );
        assert!(line(Format::Text, &full).ends_with("a visitor=192.0.2.1\n"));
    }
}
