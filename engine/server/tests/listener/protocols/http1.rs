//! HTTP/1.1 as clients see it: a small snapshot on a free port, and requests written byte by byte.

use crate::sample;
use std::io::{Read, Write};

use crate::wire::{Server, get, request};

#[test]
fn every_spelling_of_a_host_finds_its_tenant() {
    let server = Server::start();
    for host in [
        "bluedoor.example",
        "BLUEDOOR.Example",
        "bluedoor.example:8080",
        "bluedoor.example.",
        "Bluedoor.example.:80",
    ] {
        let reply = server.ask(&get("/terms", host));
        assert_eq!(reply.status, 200, "{host}");
        assert_eq!(
            reply.body,
            sample::text("bluedoor", "", "/terms").as_bytes(),
            "{host}"
        );
    }
}

#[test]
fn absolute_form_names_the_host() {
    let server = Server::start();
    let reply =
        server.ask("GET http://Bluedoor.example:80/terms HTTP/1.1\r\nhost: studio.example\r\n\r\n");
    assert_eq!(
        (reply.status, &*reply.body),
        (200, sample::text("bluedoor", "", "/terms").as_bytes())
    );
    let reply =
        server.ask("GET http://nobody.example/terms HTTP/1.1\r\nhost: bluedoor.example\r\n\r\n");
    assert_eq!(reply.status, 421);
    assert_eq!(
        server
            .ask("GET http://bluedoor.example/terms HTTP/1.1\r\n\r\n")
            .status,
        400
    );
}

#[test]
fn request_without_a_clear_host_is_refused() {
    let server = Server::start();
    for head in [
        "",
        "host: a b\r\n",
        "host: studio.example\r\nhost: studio.example\r\n",
        "host: u@studio.example\r\n",
    ] {
        assert_eq!(
            server.ask(&format!("GET / HTTP/1.1\r\n{head}\r\n")).status,
            400,
            "{head}"
        );
    }
    assert_eq!(server.ask("GET / HTTP/1.0\r\n\r\n").status, 421);
}

#[test]
fn unknown_host_gets_no_page_of_a_tenant() {
    let server = Server::start();
    for host in [
        "nobody.example",
        "",
        "127.0.0.1",
        "[::1]:80",
        "example",
        "bluedoor.example.evil.example",
    ] {
        let reply = server.ask(&get("/terms", host));
        assert_eq!(reply.status, 421, "{host}");
        assert!(
            reply.text().starts_with("nobody lives here"),
            "{}",
            reply.text()
        );
    }
    let counted = server
        .snapshots
        .unknown
        .counts()
        .map(|count| count.requests)
        .sum::<u64>();
    assert_eq!(counted, 6);
    assert_eq!(server.snapshots.tenants().len(), 3);
}

#[test]
fn longest_prefix_of_complete_segments_wins() {
    let server = Server::start();
    for (path, expected) in [
        ("/da", sample::text("da", "/da", "/")),
        ("/datenschutz", sample::text("studio", "", "/datenschutz")),
        ("/bluedoor", sample::text("bluedoor", "/bluedoor", "/")),
        (
            "/bluedoor/terms",
            sample::text("bluedoor", "/bluedoor", "/terms"),
        ),
        (
            "/apps/bluedoor/terms",
            sample::text("bluedoor", "/apps/bluedoor", "/terms"),
        ),
        ("/about", sample::text("studio", "", "/about")),
        ("/%61bout", sample::text("studio", "", "/about")),
        ("/about?a=b", sample::text("studio", "", "/about")),
    ] {
        let reply = server.ask(&get(path, "studio.example"));
        assert_eq!((reply.status, reply.text()), (200, expected), "{path}");
    }
}

#[test]
fn missing_path_gets_the_404_page_of_its_area() {
    let server = Server::start();
    for (path, expected) in [
        ("/nothing", "no page of studio"),
        ("/dat", "no page of studio"),
        ("/blog/nothing", "no post of studio"),
        ("/blogger", "no page of studio"),
        ("/bluedoor/nothing", "no page of bluedoor"),
        ("/bluedoor/blog/x", "no post of bluedoor"),
        ("/bluedoor%2Fterms", "no page of studio"),
        ("//", ""),
        ("//bluedoor", "no page of studio"),
        ("//evil.example/", "no page of studio"),
        ("/apps", "no page of studio"),
        ("/assets/nothing.css", "no page of studio"),
    ] {
        let reply = server.ask(&get(path, "studio.example"));
        if expected.is_empty() {
            assert_eq!(
                (reply.status, reply.header("location")),
                (308, Some("/")),
                "{path}"
            );
        } else {
            assert_eq!(
                (reply.status, reply.text()),
                (404, expected.to_owned()),
                "{path}"
            );
        }
        assert_eq!(reply.header("etag"), None);
    }
    assert_eq!(server.ask(&get("/x", "empty.example")).status, 404);
}

#[test]
fn ambiguous_paths_are_refused() {
    let server = Server::start();
    for path in [
        "/../about",
        "/a/%2e%2e/about",
        "/%00",
        "/%",
        "/%ff",
        "/about%0a",
    ] {
        assert_eq!(
            server.ask(&get(path, "studio.example")).status,
            400,
            "{path}"
        );
    }
    assert_eq!(
        server
            .ask(&get(&format!("/{}", "a".repeat(5000)), "studio.example"))
            .status,
        414
    );
}

#[test]
fn trailing_slash_redirects_to_the_path_without_it() {
    let server = Server::start();
    for (path, expected) in [
        ("/about/", "/about"),
        ("/about/?a=b&c=/", "/about?a=b&c=/"),
        ("/bluedoor/", "/bluedoor"),
        ("/bluedoor/terms/", "/bluedoor/terms"),
        ("/%61bout/", "/%61bout"),
    ] {
        let reply = server.ask(&get(path, "studio.example"));
        assert_eq!(
            (reply.status, reply.header("location")),
            (308, Some(expected)),
            "{path}"
        );
        let page = expected.split('?').next().unwrap().replace("%61", "a");
        let tag = match page.strip_prefix("/bluedoor") {
            Some("") => "bluedoor,bluedoor/".to_owned(),
            Some(below) => format!("bluedoor,bluedoor{below}"),
            None => format!("studio,studio{page}"),
        };
        assert_eq!(reply.header("cache-tag"), Some(&*tag));
    }
    assert_eq!(server.ask(&get("/nothing/", "studio.example")).status, 404);
}

#[test]
fn moved_host_keeps_path_and_query() {
    let server = Server::start();
    let reply = server.ask(&get("/a%20b/?c", "WWW.studio.example"));
    assert_eq!(
        (reply.status, reply.header("location")),
        (308, Some("https://studio.example/a%20b/?c"))
    );
    assert_eq!(reply.header("cache-tag"), Some("studio"));
}

#[test]
fn head_is_get_without_the_body() {
    let server = Server::start();
    for (path, host) in [
        ("/about", "studio.example"),
        ("/nothing", "studio.example"),
        ("/", "nobody.example"),
        ("/%", "studio.example"),
        ("/about/", "studio.example"),
        (&*format!("/{}", "a".repeat(5000)), "studio.example"),
    ] {
        for coding in ["", "gzip", "br"] {
            let coding = format!("accept-encoding: {coding}\r\n");
            let got = server.ask(&request("GET", path, host, &coding));
            let head = server.ask(&request("HEAD", path, host, &coding));
            assert!(head.body.is_empty());
            assert_eq!(head.status, got.status);
            assert_eq!(
                head.header("content-length"),
                Some(&*got.body.len().to_string()),
                "{path}"
            );
            assert_eq!(head.stable_headers(), got.stable_headers(), "{path}");
        }
    }
}

#[test]
fn other_methods_get_405_with_allow() {
    let server = Server::start();
    for method in ["POST", "PUT", "DELETE", "TRACE", "BREW"] {
        let reply = server.ask(&request(method, "/bluedoor/x", "studio.example", ""));
        assert_eq!(
            (reply.status, reply.header("allow")),
            (405, Some("GET, HEAD, OPTIONS")),
            "{method}"
        );
        assert_eq!(reply.text(), "no such method of bluedoor");
    }
    for (path, area) in [
        ("/bluedoor/de", "/de"),
        ("/bluedoor/de/x", "/de"),
        ("/bluedoor/dex", ""),
    ] {
        let reply = server.ask(&request("POST", path, "studio.example", ""));
        assert_eq!(
            reply.text(),
            format!("no such method of bluedoor{area}"),
            "{path}"
        );
    }
    for path in ["/about", "*"] {
        let reply = server.ask(&request("OPTIONS", path, "studio.example", ""));
        assert_eq!(
            (reply.status, reply.header("allow")),
            (204, Some("GET, HEAD, OPTIONS"))
        );
    }
}

#[test]
fn content_is_refused_and_the_connection_closed() {
    let server = Server::start();
    for (method, fields, status) in [
        ("GET", "content-length: 1000000\r\n", 413),
        ("GET", "transfer-encoding: chunked\r\n", 413),
        ("POST", "content-length: 1000000\r\n", 405),
        (
            "POST",
            "content-length: 1000000\r\nexpect: 100-continue\r\n",
            405,
        ),
    ] {
        let mut socket = server.connect();
        socket
            .write_all(request(method, "/about", "studio.example", fields).as_bytes())
            .unwrap();
        // The server must not lose its response because the client keeps sending.
        let _ = socket.write_all(&[b'x'; 100_000]);
        let mut all = Vec::new();
        socket.read_to_end(&mut all).unwrap();
        let text = String::from_utf8_lossy(&all);
        assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{text}");
        assert!(text.contains("connection: close"), "{text}");
        assert_eq!(text.matches("HTTP/1.1").count(), 1, "{text}");
    }
}

#[test]
fn malformed_requests_are_refused() {
    let server = Server::start();
    for (head, what) in [
        (
            "host: studio.example\r\ncontent-length: 3\r\ncontent-length: 4\r\n",
            "two lengths",
        ),
        (
            "host: studio.example\r\ncontent-length: 3, 4\r\n",
            "two lengths in one field",
        ),
        (
            "host: studio.example\r\ncontent-length: +3\r\n",
            "a signed length",
        ),
        (
            "host: studio.example\r\ntransfer-encoding: chunked, gzip\r\n",
            "chunked not last",
        ),
        ("host: studio.example\r\n folded: x\r\n", "a folded field"),
        ("host: studio.example\r\nx: a\rb\r\n", "a bare CR"),
        (
            "host: studio.example\r\nx : a\r\n",
            "a space before the colon",
        ),
        ("host: studio.example\r\nx: a\0b\r\n", "a NUL"),
        ("host: studio.example\r\n: a\r\n", "an empty name"),
    ] {
        let reply = server.ask(&format!("GET / HTTP/1.1\r\n{head}\r\n"));
        assert_eq!(reply.status, 400, "{what}");
    }
    assert_eq!(
        server
            .ask("GET / HTTP/3.0\r\nhost: studio.example\r\n\r\n")
            .status,
        400
    );
    assert_eq!(
        server
            .ask("GET  / HTTP/1.1\r\nhost: studio.example\r\n\r\n")
            .status,
        400
    );
    let many = "x: y\r\n".repeat(200);
    assert_eq!(
        server
            .ask(&request("GET", "/", "studio.example", &many))
            .status,
        431
    );
    let large = format!("x: {}\r\n", "y".repeat(20_000));
    assert_eq!(
        server
            .ask(&request("GET", "/", "studio.example", &large))
            .status,
        431
    );
}

#[test]
fn no_form_of_a_request_reaches_another_tenant() {
    let server = Server::start();
    for (line, status) in [
        ("GET http://studio.example@bluedoor.example/terms", 400),
        ("GET http://bluedoor.example\\@studio.example/terms", 400),
        ("GET http:///terms", 400),
        ("GET //bluedoor.example/terms", 404),
        ("GET /http://bluedoor.example/terms", 404),
        ("GET bluedoor.example/terms", 400),
        ("CONNECT bluedoor.example:443", 400),
        ("GET /terms#/../bluedoor", 404),
    ] {
        let head = format!("{line} HTTP/1.1\r\nhost: studio.example\r\n");
        let forwarded = "x-forwarded-host: bluedoor.example\r\nforwarded: host=bluedoor.example\r\n\
            x-original-url: /bluedoor/terms\r\n";
        let reply = server.ask(&format!("{head}{forwarded}\r\n"));
        assert_eq!(reply.status, status, "{line}");
        assert!(!reply.text().contains("bluedoor"), "{line}");
    }
}

#[test]
fn bytes_after_ambiguous_lengths_are_not_a_request() {
    let server = Server::start();
    let smuggled = get("/terms", "bluedoor.example");
    for fields in [
        "content-length: 5\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        "transfer-encoding: xchunked\r\n",
    ] {
        let mut socket = server.connect();
        let request = request("POST", "/about", "studio.example", fields);
        let _ = socket.write_all(format!("{request}0\r\n\r\n{smuggled}").as_bytes());
        let mut all = Vec::new();
        let _ = socket.read_to_end(&mut all);
        let text = String::from_utf8_lossy(&all);
        assert!(text.starts_with("HTTP/1.1 4"), "{fields}: {text}");
        assert_eq!(text.matches("HTTP/1.1").count(), 1, "{fields}: {text}");
    }
}

#[test]
fn all_resources_support_the_same_methods() {
    let server = Server::start();
    for (host, path) in [
        ("studio.example", "/about"),
        ("studio.example", "/about/"),
        ("studio.example", "/nothing"),
        ("studio.example", "/assets/site.css"),
        ("empty.example", "/robots.txt"),
        ("empty.example", "/nothing"),
        ("empty.example", "/assets/site.css"),
        ("www.studio.example", "/about"),
    ] {
        for method in ["POST", "DELETE", "BREW"] {
            let reply = server.ask(&request(method, path, host, ""));
            assert_eq!(
                (reply.status, reply.header("allow")),
                (405, Some("GET, HEAD, OPTIONS")),
                "{method} {host}{path}"
            );
        }
        let reply = server.ask(&request("OPTIONS", path, host, ""));
        assert_eq!(
            (reply.status, reply.header("allow")),
            (204, Some("GET, HEAD, OPTIONS")),
            "OPTIONS {host}{path}"
        );
    }
    let reply = server.ask(&get("/robots.txt", "empty.example"));
    assert_eq!(reply.status, 200);
}

#[test]
fn repeated_trailing_slashes_are_one_redirect() {
    let server = Server::start();
    for (host, path, expected) in [
        ("studio.example", "//", "/"),
        ("studio.example", "///?a=//b/", "/?a=//b/"),
        ("studio.example", "/about//", "/about"),
        ("studio.example", "/bluedoor//", "/bluedoor"),
        ("studio.example", "/bluedoor///?a", "/bluedoor?a"),
        (
            "studio.example",
            "/apps/bluedoor/terms//",
            "/apps/bluedoor/terms",
        ),
        ("bluedoor.example", "/terms///", "/terms"),
        ("bluedoor.example", "/caf%C3%A9//", "/caf%C3%A9"),
        ("studio.example", "/old//?a", "/about?a"),
    ] {
        let reply = server.ask(&get(path, host));
        assert_eq!(
            (reply.status, reply.header("location")),
            (308, Some(expected)),
            "{host}{path}"
        );
    }
    for path in [
        "//evil.example",
        "//evil.example//",
        "///evil.example///",
        "//about//",
        "/bluedoor//evil.example//",
        "/%2Fevil.example//",
        "/about%2F/",
        "/nothing//",
    ] {
        let reply = server.ask(&get(path, "studio.example"));
        assert_eq!(
            (reply.status, reply.header("location")),
            (404, None),
            "{path}"
        );
    }
}
