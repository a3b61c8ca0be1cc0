//! Measures the time and the memory of one response, without sockets.
//!
//! Prints nanoseconds and allocations for each kind of response. Fails if a response allocates more than its header map, since a body must then have been built.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/support/sample.rs"]
mod sample;

use std::hint::black_box;
use std::time::Instant;

use allocation_counter::measure;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use server::response::respond::{RequestHead, respond};

const ROUNDS: u32 = 200_000;
/// Maximum size of a header map with all fields, in bytes. The sample's pages are six times as large.
const HEADER_MAP: u64 = 2560;

/// A request, its expected status, and the bytes that the response may allocate.
struct Case {
    name: &'static str,
    method: Method,
    path: &'static str,
    fields: Vec<(&'static str, String)>,
    status: StatusCode,
    bytes: u64,
}

fn main() {
    let snapshot = sample::snapshot();
    let page = |name, coding: &str| Case {
        name,
        method: Method::GET,
        path: "/bluedoor/terms",
        fields: vec![("accept-encoding", coding.to_owned())],
        status: StatusCode::OK,
        bytes: HEADER_MAP,
    };
    let other = |name, path, status| Case {
        name,
        path,
        status,
        ..page(name, "gzip, deflate, br, zstd")
    };
    let etag = {
        let known = page("", "br");
        let uri = known.path.parse().unwrap();
        let headers = known.headers();
        let answer = respond(&snapshot, &known.request(&uri, &headers));
        answer.response.headers()["etag"]
            .to_str()
            .unwrap()
            .to_owned()
    };
    let cases = [
        page("hit, br", "gzip, deflate, br, zstd"),
        page("hit, gzip of weights", "gzip;q=1.0, identity;q=0.5"),
        page("hit, gzip", "gzip, deflate"),
        page("hit, identity", ""),
        Case {
            fields: vec![
                ("accept-encoding", "br".to_owned()),
                ("if-none-match", etag),
            ],
            status: StatusCode::NOT_MODIFIED,
            ..page("known", "")
        },
        Case {
            method: Method::HEAD,
            ..page("head", "br")
        },
        Case {
            fields: vec![("range", "bytes=0-99".to_owned())],
            status: StatusCode::PARTIAL_CONTENT,
            path: "/assets/font.woff2",
            ..page("part", "")
        },
        other("shared file", "/assets/site.css", StatusCode::OK),
        other("encoded path", "/bluedoor/%74erms", StatusCode::OK),
        other(
            "redirect",
            "/bluedoor/terms/",
            StatusCode::PERMANENT_REDIRECT,
        ),
        other("miss", "/bluedoor/nothing", StatusCode::NOT_FOUND),
        other("refused", "/../x", StatusCode::BAD_REQUEST),
    ];

    println!(
        "{:<14}{:>8}{:>14}{:>8}",
        "answer", "ns", "allocations", "bytes"
    );
    let mut failed = false;
    for case in &cases {
        let uri: Uri = case.path.parse().unwrap();
        let headers = case.headers();
        let request = case.request(&uri, &headers);
        let answer = || black_box(respond(&snapshot, black_box(&request)));
        assert_eq!(answer().response.status(), case.status, "{}", case.name);

        let memory = measure(|| drop(answer()));
        let start = Instant::now();
        for _ in 0..ROUNDS {
            answer();
        }
        let nanos = start.elapsed().as_nanos() / u128::from(ROUNDS);
        let verdict = if memory.bytes_total > case.bytes {
            "  more than allowed"
        } else {
            ""
        };
        failed |= !verdict.is_empty();
        println!(
            "{:<14}{nanos:>8}{:>14}{:>8}{verdict}",
            case.name, memory.count_total, memory.bytes_total
        );
    }
    assert!(!failed, "an answer allocates more than its header map");
}

impl Case {
    fn request<'a>(&'a self, uri: &'a Uri, headers: &'a HeaderMap) -> RequestHead<'a> {
        RequestHead::new(&self.method, uri, Version::HTTP_11, headers, false)
    }

    /// Returns the fields of the case, among those that a browser sends with every request.
    fn headers(&self) -> HeaderMap {
        let common = [
            ("host", "studio.example"),
            (
                "user-agent",
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36",
            ),
            (
                "accept",
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            ),
            ("accept-language", "en-US,en;q=0.9"),
            ("sec-fetch-mode", "navigate"),
        ];
        let own = self
            .fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        common
            .into_iter()
            .chain(own)
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_str(value).unwrap(),
                )
            })
            .collect()
    }
}
