//! Large files over HTTP/1.1: complete, in part, and damaged while they are served.

use crate::sample::{self, FILM};
use std::fs;
use std::io::{Read as _, Write as _};

use crate::wire::{Reply, Server, get, request};
use release::large::BLOCK_BYTES;
use tempfile::NamedTempFile;

/// Starts a server with a video, and returns the file that the video is read from.
fn server_with_film() -> (Server, NamedTempFile) {
    let file = NamedTempFile::new().unwrap();
    fs::write(&file, sample::film()).unwrap();
    let server = Server::start();
    server.snapshots.replace(sample::with_film(file.path()));
    (server, file)
}

#[test]
fn large_file_is_served_completely_and_in_part() {
    let (server, _file) = server_with_film();
    let film = sample::film();
    let mut socket = server.connect();
    let mut ask = |method: &str, fields: &str| {
        let request = request(method, FILM, "studio.example", fields);
        socket.write_all(request.as_bytes()).unwrap();
        Reply::read(&mut socket)
    };
    let whole = ask("GET", "");
    assert_eq!((whole.status, &whole.body), (200, &film));
    for (range, bytes) in [
        ("0-0", &film[..1]),
        ("-5", &film[film.len() - 5..]),
        ("65530-131100", &film[65_530..=131_100]),
        ("131072-", &film[2 * BLOCK_BYTES..]),
    ] {
        let part = ask("GET", &format!("range: bytes={range}\r\n"));
        assert_eq!((part.status, &part.body[..]), (206, bytes), "{range}");
    }
    let beyond = ask("GET", "range: bytes=9999999-\r\n");
    assert_eq!(beyond.status, 416);
    let known = ask("GET", "if-none-match: \"film\"\r\n");
    assert_eq!((known.status, known.body.len()), (304, 0));
    let head = server.ask(&request("HEAD", FILM, "studio.example", ""));
    let length = film.len().to_string();
    assert_eq!(head.header("content-length"), Some(&*length));
}

#[test]
fn damaged_large_file_ends_only_its_own_response() {
    let (server, file) = server_with_film();
    let film = sample::film();
    let mut flipped = film.clone();
    flipped[2 * BLOCK_BYTES + 9] ^= 1;
    let cut = film[..BLOCK_BYTES + 3].to_vec();
    for (damaged, complete) in [(flipped, 2 * BLOCK_BYTES), (cut, BLOCK_BYTES)] {
        fs::write(&file, &damaged).unwrap();
        let mut other = server.connect();
        let mut socket = server.connect();
        socket
            .write_all(get(FILM, "studio.example").as_bytes())
            .unwrap();
        let mut received = Vec::new();
        // The connection ends before the response does.
        let _ = socket.read_to_end(&mut received);
        // Bytes that were not sent yet, even the header fields, are lost with the connection.
        let end = received.windows(4).position(|at| at == b"\r\n\r\n");
        let body = end.map_or(&[][..], |end| &received[end + 4..]);
        let is_undamaged = film[..complete].starts_with(body);
        assert!(is_undamaged, "no bytes of a damaged block");
        other
            .write_all(get("/about", "studio.example").as_bytes())
            .unwrap();
        assert_eq!(Reply::read(&mut other).status, 200);
    }
    fs::write(&file, &film).unwrap();
    assert_eq!(server.ask(&get(FILM, "studio.example")).body, film);
}
