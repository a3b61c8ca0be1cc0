//! Negotiation over real sockets: encodings, conditions, ranges.

use std::io::{Read, Write};

use crate::wire::{Reply, Server, request};

#[test]
fn best_encoding_is_sent() {
    let server = Server::start();
    for (accepted, coding) in [
        ("gzip, br", Some("br")),
        ("gzip", Some("gzip")),
        ("zstd, gzip;q=0.5", Some("gzip")),
        ("identity;q=0", None),
    ] {
        let reply = server.ask(&request(
            "GET",
            "/about",
            "studio.example",
            &format!("accept-encoding: {accepted}\r\n"),
        ));
        assert_eq!(
            (reply.status, reply.header("content-encoding")),
            (200, coding)
        );
        assert_eq!(reply.header("vary"), Some("accept-encoding"));
        assert!(reply.header("etag").is_some());
    }
}

#[test]
fn page_with_known_etag_gets_304() {
    let server = Server::start();
    let first = server.ask(&request(
        "GET",
        "/about",
        "studio.example",
        "accept-encoding: br\r\n",
    ));
    let etag = first.header("etag").unwrap();
    let again = server.ask(&request(
        "GET",
        "/about",
        "studio.example",
        &format!("accept-encoding: br\r\nif-none-match: W/{etag}\r\n"),
    ));
    assert_eq!(
        (again.status, again.header("etag"), again.body.len()),
        (304, Some(etag), 0)
    );
    assert_eq!(again.header("content-length"), None);
    assert_eq!(again.header("cache-control"), Some("no-cache"));
    let other = server.ask(&request(
        "GET",
        "/about",
        "studio.example",
        &format!("accept-encoding: gzip\r\nif-none-match: {etag}\r\n"),
    ));
    assert_eq!(other.status, 200);
}

#[test]
fn ranges_of_assets_are_served() {
    let server = Server::start();
    let ask = |fields: &str| {
        server.ask(&request(
            "GET",
            "/assets/font.woff2",
            "bluedoor.example",
            fields,
        ))
    };
    let whole = ask("");
    assert_eq!(
        (whole.status, whole.header("accept-ranges"), &*whole.body),
        (200, Some("bytes"), &b"0123456789"[..])
    );
    let part = ask("range: bytes=2-4\r\n");
    assert_eq!(
        (part.status, part.header("content-range"), &*part.body),
        (206, Some("bytes 2-4/10"), &b"234"[..])
    );
    let suffix = ask("range: bytes=-3\r\nif-range: \"plain\"\r\n");
    assert_eq!((suffix.status, &*suffix.body), (206, &b"789"[..]));
    let none = ask("range: bytes=10-\r\n");
    assert_eq!(
        (none.status, none.header("content-range")),
        (416, Some("bytes */10"))
    );
    assert_eq!(ask("range: bytes=0-1, 4-5\r\n").status, 200);
    assert_eq!(ask("range: bytes=0-1\r\nif-range: \"old\"\r\n").status, 200);
    let page = server.ask(&request(
        "GET",
        "/terms",
        "bluedoor.example",
        "range: bytes=0-1\r\n",
    ));
    assert_eq!((page.status, page.header("accept-ranges")), (200, None));
}

fn ask(server: &Server, path: &str, lines: &[&str]) -> Reply {
    let fields: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    server.ask(&request("GET", path, "studio.example", &fields))
}

#[test]
fn list_may_be_spread_over_several_fields() {
    let server = Server::start();
    let page = |lines: &[&str]| ask(&server, "/about", lines);
    let etag = page(&[]).header("etag").unwrap().to_owned();
    for lines in [
        [
            format!("if-none-match: {etag}"),
            "if-none-match: \"x\"".to_owned(),
        ],
        [
            "if-none-match: \"x\"".to_owned(),
            format!("If-None-Match: \"y\", W/{etag}"),
        ],
        [
            "if-none-match: \"x\"".to_owned(),
            "if-none-match: *".to_owned(),
        ],
    ] {
        assert_eq!(
            page(&lines.each_ref().map(|line| &**line)).status,
            304,
            "{lines:?}"
        );
    }
    assert_eq!(
        page(&["if-none-match: \"x\"", "if-none-match: \"y\""]).status,
        200
    );

    let first = format!("if-match: {etag}");
    assert_eq!(page(&[&first, "if-match: \"x\""]).status, 200);
    assert_eq!(page(&["if-match: \"x\"", &first]).status, 200);
    assert_eq!(page(&["if-match: \"x\"", "if-match: \"y\""]).status, 412);
    let weak = format!("if-match: W/{etag}");
    assert_eq!(
        page(&[&weak]).status,
        412,
        "a weak tag does not match strongly"
    );

    for (lines, coding) in [
        (
            ["accept-encoding: gzip;q=0.5", "accept-encoding: br"],
            Some("br"),
        ),
        (
            ["accept-encoding: br", "accept-encoding: gzip;q=0.5"],
            Some("br"),
        ),
        (
            ["accept-encoding: *", "accept-encoding: br;q=0"],
            Some("gzip"),
        ),
        (
            ["accept-encoding: *;q=0", "accept-encoding: identity;q=0"],
            None,
        ),
    ] {
        assert_eq!(page(&lines).header("content-encoding"), coding, "{lines:?}");
    }

    let mut socket = server.connect();
    let closing = "connection: te\r\nconnection: x, close\r\n";
    socket
        .write_all(request("GET", "/about", "studio.example", closing).as_bytes())
        .unwrap();
    assert_eq!(Reply::read(&mut socket).header("connection"), Some("close"));
    assert_eq!(socket.read(&mut [0]).unwrap(), 0);
}

#[test]
fn repeated_range_is_ignored_and_repeated_if_range_must_agree() {
    let server = Server::start();
    let file = |lines: &[&str]| ask(&server, "/assets/font.woff2", lines);
    let ranges = ["range: bytes=0-1"; 2];
    assert_eq!(file(&ranges[..1]).status, 206);
    let reply = file(&ranges);
    assert_eq!((reply.status, reply.body.len()), (200, 10));
    let part = [
        "range: bytes=0-1",
        "if-range: \"plain\"",
        "if-range: \"old\"",
    ];
    assert_eq!(file(&part[..2]).status, 206);
    assert_eq!(file(&part).status, 200);
}

#[test]
fn conditional_dates_are_ignored() {
    const SINCE: &str = "if-modified-since: Wed, 21 Oct 2026 07:28:00 GMT";
    const BEFORE: &str = "if-unmodified-since: Tue, 20 Oct 2026 07:28:00 GMT";
    let server = Server::start();
    let file = |lines: &[&str]| ask(&server, "/assets/font.woff2", lines);
    for line in [SINCE, BEFORE] {
        let reply = file(&[line]);
        assert_eq!(
            (reply.status, reply.header("last-modified")),
            (200, None),
            "{line}"
        );
    }
    let part = [
        "range: bytes=0-1",
        "if-range: Wed, 21 Oct 2026 07:28:00 GMT",
    ];
    assert_eq!(file(&part).status, 200);
    assert_eq!(file(&[SINCE, "if-none-match: \"plain\""]).status, 304);
}

#[test]
fn cache_directives_of_requests_are_ignored() {
    let server = Server::start();
    let plain = ask(&server, "/about", &[]);
    for line in [
        "cache-control: no-cache, no-store",
        "cache-control: only-if-cached",
        "pragma: no-cache",
    ] {
        let reply = ask(&server, "/about", &[line]);
        assert_eq!((reply.status, &reply.body), (200, &plain.body), "{line}");
        assert_eq!(reply.stable_headers(), plain.stable_headers(), "{line}");
    }
}
