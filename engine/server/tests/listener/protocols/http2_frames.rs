//! HTTP/2 frame by frame, for input that well-behaved clients do not send (RFC 9113).

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::wire::{Reply, Server, get};
use server::settings::{Limits, ServeSettings};

// Frame types (section 6).
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
// Flags.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
// Error codes (section 7).
const PROTOCOL_ERROR: u32 = 1;
const REFUSED_STREAM: u32 = 7;
const ENHANCE_YOUR_CALM: u32 = 11;

/// A received frame.
#[derive(Debug)]
struct Frame {
    kind: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    /// Returns the error code that ends the stream or the connection.
    fn reason(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Encodes the fields of a GET request without compression (RFC 7541): names from the static table, or literals.
fn fields(path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.push(u8::try_from(text.len()).unwrap());
        assert!(text.len() < 127, "a length of more than one byte");
        bytes.extend(text.as_bytes());
    };
    // `:method: GET`, `:scheme: http`, and the names `:authority` and `:path`.
    let mut bytes = vec![0x82, 0x86, 0x01];
    text(&mut bytes, "studio.example");
    bytes.push(0x04);
    text(&mut bytes, path);
    for (name, value) in more {
        bytes.push(0);
        text(&mut bytes, name);
        text(&mut bytes, value);
    }
    bytes
}

fn request(stream: u32, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let flags = END_STREAM | END_HEADERS;
    frame(HEADERS, flags, stream, &fields(path, more))
}

/// Returns the stream numbers of a client.
fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| number * 2 + 1)
}

/// Opens a connection with these client settings.
fn connect(server: &Server, settings: &[u8]) -> TcpStream {
    let mut socket = server.connect();
    socket
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    socket.write_all(&frame(SETTINGS, 0, 0, settings)).unwrap();
    socket
}

/// Sends bytes. The server may close the connection before it has read all of them.
fn send(socket: &mut TcpStream, bytes: &[u8]) {
    let _ = socket.write_all(bytes);
}

fn next(socket: &mut TcpStream) -> Option<Frame> {
    let mut head = [0; 9];
    socket.read_exact(&mut head).ok()?;
    let [a, b, c, kind, _, rest @ ..] = head;
    let mut payload = vec![0; usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap()];
    socket.read_exact(&mut payload).ok()?;
    let stream = u32::from_be_bytes(rest);
    Some(Frame {
        kind,
        stream,
        payload,
    })
}

/// Returns the error code of the last frame, which must be `GOAWAY`.
fn end(socket: &mut TcpStream) -> u32 {
    let frames = std::iter::from_fn(|| next(socket));
    let last = frames.last().expect("a frame");
    assert_eq!(last.kind, GOAWAY, "{last:?}");
    last.reason()
}

fn assert_others_are_served(server: &Server) {
    let reply: Reply = server.ask(&get("/about", "studio.example"));
    assert_eq!(reply.status, 200);
}

#[test]
fn rapid_resets_end_the_connection() {
    let server = Server::start();
    let mut socket = connect(&server, &[]);
    let taken_back = 8_u32.to_be_bytes();
    let rapid: Vec<u8> = streams(2000)
        .flat_map(|stream| {
            let request = request(stream, "/assets/large.bin", &[]);
            [request, frame(RST_STREAM, 0, stream, &taken_back)].concat()
        })
        .collect();
    send(&mut socket, &rapid);
    assert_eq!(end(&mut socket), ENHANCE_YOUR_CALM);
    assert_others_are_served(&server);
}

#[test]
fn requests_beyond_the_stream_limit_are_refused() {
    let limits = Limits {
        http2_streams: 3,
        ..Limits::default()
    };
    let server = Server::with(ServeSettings {
        limits,
        ..ServeSettings::default()
    });
    // With an initial window of zero (setting 4) no response completes.
    let mut socket = connect(&server, &[0, 4, 0, 0, 0, 0]);
    let all: Vec<u8> = streams(5)
        .flat_map(|stream| request(stream, "/about", &[]))
        .collect();
    send(&mut socket, &all);
    let mut answered = Vec::new();
    let mut refused = Vec::new();
    while answered.len() + refused.len() < 5 {
        let frame = next(&mut socket).expect("an open connection");
        match frame.kind {
            HEADERS => answered.push(frame.stream),
            RST_STREAM => {
                assert_eq!(frame.reason(), REFUSED_STREAM);
                refused.push(frame.stream);
            }
            _ => {}
        }
    }
    answered.sort_unstable();
    refused.sort_unstable();
    assert_eq!((answered, refused), (vec![1, 3, 5], vec![7, 9]));
}

#[test]
fn responses_that_are_reset_make_room_for_others() {
    let limits = Limits {
        http2_streams: 3,
        ..Limits::default()
    };
    let server = Server::with(ServeSettings {
        limits,
        ..ServeSettings::default()
    });
    let mut socket = connect(&server, &[0, 4, 0, 0, 0, 0]);
    for first in [1, 7, 13] {
        for stream in [first, first + 2, first + 4] {
            send(&mut socket, &request(stream, "/assets/large.bin", &[]));
            let answer =
                std::iter::from_fn(|| next(&mut socket)).find(|frame| frame.kind != SETTINGS);
            let answer = answer.expect("an open connection");
            assert_eq!((answer.kind, answer.stream), (HEADERS, stream));
        }
        for stream in [first, first + 2, first + 4] {
            let cancel = 8_u32.to_be_bytes();
            send(&mut socket, &frame(RST_STREAM, 0, stream, &cancel));
        }
    }
    assert_others_are_served(&server);
}

#[test]
fn request_ids_displace_no_other_field_from_the_table() {
    let server = Server::start();
    let mut socket = connect(&server, &[]);
    send(&mut socket, &frame(WINDOW_UPDATE, 0, 0, &[0x40, 0, 0, 0]));
    let lengths: Vec<_> = streams(300)
        .map(|stream| {
            send(&mut socket, &request(stream, "/about", &[]));
            let mut frames = std::iter::from_fn(|| next(&mut socket));
            let head = frames.find(|frame| frame.kind == HEADERS);
            head.expect("an open connection").payload.len()
        })
        .collect();
    // The first response adds its fields to the table. Later responses only have an id, and a date when the second has changed.
    assert!(lengths[0] > 120, "{lengths:?}");
    assert!(
        lengths[1..].iter().all(|length| *length < 90),
        "{lengths:?}"
    );
}

#[test]
fn endless_header_fields_end_the_connection() {
    let server = Server::start();
    let mut socket = connect(&server, &[]);
    let mut flood = frame(HEADERS, END_STREAM, 1, &fields("/about", &[]));
    for _ in 0..10_000 {
        flood.extend(frame(CONTINUATION, 0, 1, &[]));
    }
    send(&mut socket, &flood);
    assert_eq!(end(&mut socket), ENHANCE_YOUR_CALM);
    assert_others_are_served(&server);
}

#[test]
fn connection_fields_are_refused_in_http2() {
    let server = Server::start();
    for field in [
        ("connection", "close"),
        ("transfer-encoding", "chunked"),
        ("Upper", "case"),
    ] {
        let mut socket = connect(&server, &[]);
        send(&mut socket, &request(1, "/about", &[field]));
        let mut frames = std::iter::from_fn(|| next(&mut socket));
        let ended = frames.find(|frame| [HEADERS, RST_STREAM, GOAWAY].contains(&frame.kind));
        let ended = ended.expect("an answer");
        assert_ne!(ended.kind, HEADERS, "{field:?}");
        assert_eq!(ended.reason(), PROTOCOL_ERROR, "{field:?}");
    }
}

#[test]
fn invalid_frames_end_the_connection() {
    let server = Server::start();
    for bytes in [
        // Data for an idle stream, a stream number of the server, `PUSH_PROMISE`, and settings of a wrong length.
        frame(0, 0, 1, b"data"),
        frame(HEADERS, END_STREAM | END_HEADERS, 2, &fields("/about", &[])),
        frame(5, END_HEADERS, 1, &[0, 0, 0, 2]),
        frame(SETTINGS, 0, 0, &[0]),
        vec![0xff; 100],
    ] {
        let mut socket = connect(&server, &[]);
        send(&mut socket, &bytes);
        assert_ne!(end(&mut socket), 0, "{bytes:?}");
    }
    assert_others_are_served(&server);
}
