//! Compares the fast lane with hyper: both get the same bytes, in the same pieces, and must send the same bytes, log the same requests, and end at the same point.
//!
//! A seeded generator makes the cases: valid, unusual and broken requests, pipelined and split, with a client that reads slowly, closes its write side, or is shut down. `ROWHOUSE_LONG=1` runs ten million, and `ROWHOUSE_SEED=7` begins with the seventh.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use fastrand::Rng;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead as _, AsyncWrite as _, DuplexStream, ReadBuf};

use super::lane_buffers::READ_BYTES;
use super::{FastLane, ServedConnection};
use crate::access_log::spans::{AccessEntry, RequestSpans, Trace};
use crate::connection::connection_state::{ConnectionState, Phase};
use crate::connection::request_service::{Channel, RequestService};
use crate::connection::stream::Stream;
use crate::connection::worker_context::WorkerContext;
use crate::listen::admission::{Admission, Peer};
use crate::sample;
use crate::settings::{ServeSettings, network};
use crate::snapshot_store::SnapshotStore;

const CASES: u64 = 100_000;
const LONG_CASES: u64 = 10_000_000;

/// The requests that a server has recorded.
#[derive(Debug, Default)]
struct Records(Mutex<Vec<String>>);

impl RequestSpans for Records {
    fn record(&self, entry: &AccessEntry<'_>) -> Trace {
        let record = format!(
            "{} {} {} {} {} {:?} {} {:?} {:?}",
            entry.tenant,
            entry.method_name(),
            entry.route_name(),
            entry.status,
            entry.bytes,
            entry.encoding,
            if is_own_id(entry.id) { "-" } else { entry.id },
            entry.trace,
            entry.visitor,
        );
        self.0.lock().unwrap().push(record);
        entry.trace.unwrap_or(Trace {
            id: 1,
            parent: 1,
            sampled: false,
        })
    }
}

/// A server with one of the two lanes.
struct Lane {
    context: Rc<WorkerContext>,
    http1: Rc<http1::Builder>,
    records: Arc<Records>,
    is_fast: bool,
}

impl Lane {
    fn new(is_fast: bool) -> Self {
        let records = Arc::<Records>::default();
        let settings = ServeSettings {
            trusted_proxies: vec![network("127.0.0.0/8").unwrap()],
            spans: Some(Arc::clone(&records) as _),
            ..ServeSettings::default()
        };
        Self {
            records,
            ..Self::with(settings, is_fast)
        }
    }

    fn with(settings: ServeSettings, is_fast: bool) -> Self {
        let settings = Arc::new(settings);
        let snapshots = Arc::new(SnapshotStore::new(sample::snapshot()));
        let admission = Arc::new(Admission::new(
            Arc::clone(&snapshots),
            Arc::clone(&settings),
        ));
        let mut http1 = http1::Builder::new();
        http1
            .header_read_timeout(None)
            .half_close(true)
            .max_header_size(settings.limits.header_bytes);
        Self {
            context: Rc::new(WorkerContext::new(snapshots, settings, admission)),
            http1: Rc::new(http1),
            records: Arc::default(),
            is_fast,
        }
    }

    fn service(&self, is_trusted: bool, state: &Rc<ConnectionState>) -> RequestService {
        RequestService {
            context: Rc::clone(&self.context),
            state: Rc::clone(state),
            peer: Peer {
                address: match is_trusted {
                    true => IpAddr::V4(Ipv4Addr::LOCALHOST),
                    false => IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
                },
                is_trusted,
            },
            channel: Channel::Clear,
        }
    }

    fn connect(&self, case: &Case) -> Client {
        let (socket, far) = tokio::io::duplex(case.buffer);
        let state = Rc::new(ConnectionState::new(Instant::now(), Phase::Head));
        let service = self.service(case.is_trusted, &state);
        let stream = Stream::new(far, Rc::clone(&state));
        let connection: Pin<Box<dyn ServedConnection>> = match self.is_fast {
            true => Box::pin(FastLane::new(stream, service, Rc::clone(&self.http1))),
            false => Box::pin(self.http1.serve_connection(TokioIo::new(stream), service)),
        };
        Client {
            socket: Some(socket),
            connection: Some(connection),
            state,
            received: Vec::new(),
            log: String::new(),
        }
    }

    /// Runs a case. Returns everything that a client or an operator sees.
    fn run(&self, case: &Case) -> String {
        self.context.is_draining.set(false);
        self.records.0.lock().unwrap().clear();
        let mut client = self.connect(case);
        for (number, piece) in case.pieces.iter().enumerate() {
            client.send(piece);
            match case.end {
                End::Shutdown(at) if at == number => {
                    self.context.is_draining.set(true);
                    client.poll();
                    client.shut_down();
                }
                End::Drain(at) if at == number => self.context.is_draining.set(true),
                End::Room(at) if at == number => {
                    client.poll();
                    client.shut_down();
                }
                _ => {}
            }
            client.settle();
        }
        if case.end == End::HalfClose {
            client.close_write_side();
            client.settle();
        }
        let records = self.records.0.lock().unwrap().join("\n");
        format!("{}{}\n{records}", client.log, masked(&client.received))
    }
}

/// A client and the server's end of its connection.
struct Client {
    socket: Option<DuplexStream>,
    /// `None` once the connection has ended.
    connection: Option<Pin<Box<dyn ServedConnection>>>,
    state: Rc<ConnectionState>,
    received: Vec<u8>,
    log: String,
}

impl Client {
    fn poll(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        if let Some(connection) = &mut self.connection
            && let Poll::Ready(ended) = connection.as_mut().poll(&mut cx)
        {
            let error = ended.err();
            let kind = error.map(|error| (error.is_parse(), error.is_parse_too_large()));
            let _ = writeln!(self.log, "ended at {}: {kind:?}", self.received.len());
            self.connection = None;
        }
    }

    /// Ends the connection as the worker does.
    fn shut_down(&mut self) {
        if let Some(connection) = &mut self.connection
            && !self.state.expects_request()
        {
            connection.as_mut().graceful_shutdown();
        }
    }

    /// Receives what the server has sent. Returns whether there was anything.
    fn receive(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let mut space = [0; 4096];
        let mut has_received = false;
        while let Some(socket) = &mut self.socket {
            let mut buffer = ReadBuf::new(&mut space);
            match Pin::new(socket).poll_read(&mut cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.received.extend_from_slice(buffer.filled());
                    has_received = true;
                }
                Poll::Ready(end) => {
                    let _ = writeln!(self.log, "closed at {}: {end:?}", self.received.len());
                    self.socket = None;
                }
                Poll::Pending => break,
            }
        }
        has_received
    }

    /// Lets the server work until it waits for the client.
    fn settle(&mut self) {
        let mut idle = 0;
        while idle < 3 {
            self.poll();
            idle = if self.receive() { 0 } else { idle + 1 };
        }
        if self.connection.is_some() {
            let state = &self.state;
            let _ = writeln!(
                self.log,
                "at {}: {:?} {} {}",
                self.received.len(),
                state.phase(),
                state.has_unread(),
                state.expects_request()
            );
        }
    }

    /// Sends as much as the server takes.
    fn send(&mut self, mut bytes: &[u8]) {
        let mut cx = Context::from_waker(Waker::noop());
        let mut idle = 0;
        while let Some(socket) = self
            .socket
            .as_mut()
            .filter(|_| !bytes.is_empty() && idle < 3)
        {
            match Pin::new(socket).poll_write(&mut cx, bytes) {
                Poll::Ready(Ok(length)) => {
                    bytes = &bytes[length..];
                    idle = 0;
                }
                Poll::Ready(Err(_)) => return,
                Poll::Pending => {
                    self.poll();
                    idle = if self.receive() { 0 } else { idle + 1 };
                }
            }
        }
    }

    fn close_write_side(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        if let Some(socket) = &mut self.socket {
            assert!(Pin::new(socket).poll_shutdown(&mut cx).is_ready());
        }
    }
}

/// Returns whether the server made the id.
fn is_own_id(id: &str) -> bool {
    id.len() > 17 && id.as_bytes()[16] == b'-'
}

/// Replaces the values that differ between two responses to the same request.
fn masked(received: &[u8]) -> String {
    let mut text = received.escape_ascii().to_string();
    for name in ["\\r\\ndate: ", "\\r\\nx-request-id: "] {
        let mut parts = text.split(name);
        let mut joined = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let Some((value, rest)) = part.split_once("\\r\\n") else {
                // A client that stopped reading has a part of a value, which has no form of its own.
                let _ = write!(joined, "{name}-");
                continue;
            };
            let is_date = value.len() == 29 && value.ends_with(" GMT");
            let is_masked = is_own_id(value) || is_date;
            let value = if is_masked { "-" } else { value };
            let _ = write!(joined, "{name}{value}\\r\\n{rest}");
        }
        text = joined;
    }
    text
}

/// The way in which a case ends, and the piece after which it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    HalfClose,
    Shutdown(usize),
    Drain(usize),
    Room(usize),
}

#[derive(Debug)]
struct Case {
    pieces: Vec<Vec<u8>>,
    buffer: usize,
    is_trusted: bool,
    end: End,
}

/// Texts that are usual in a place of a request, and texts that are not.
struct Choices {
    usual: &'static [&'static str],
    unusual: &'static [&'static str],
}

impl Choices {
    /// Returns a usual text in nine of ten cases.
    fn pick(&self, random: &mut Rng) -> &'static str {
        let list = match random.u8(..10) {
            0 => self.unusual,
            _ => self.usual,
        };
        random.choice(list).unwrap()
    }
}

const METHODS: Choices = Choices {
    usual: &["GET", "GET", "GET", "HEAD"],
    unusual: &[
        "POST",
        "OPTIONS",
        "PUT",
        "DELETE",
        "CONNECT",
        "TRACE",
        "BREW",
        "get",
        "GE",
        "",
        "G\tT",
        "\r\nGET",
        "\nGET",
        " GET",
        "GETGETGETGETGETGETGETGET",
    ],
};

const TARGETS: Choices = Choices {
    usual: &[
        "/",
        "/about",
        "/about",
        "/terms",
        "/blog/first",
        "/nothing",
        "/about/",
        "/bluedoor/terms",
        "/assets/site.css",
        "/assets/font.woff2",
        "/robots.txt",
        "/moved",
        "/old/?a",
        "/%61bout",
        "/about?a=b",
    ],
    unusual: &[
        "*",
        "http://bluedoor.example/terms",
        "http://studio.example@bluedoor.example/terms",
        "http:///terms",
        "//evil.example/",
        "/..",
        "/a/%2e%2e/about",
        "/%",
        "/%00",
        "/%ff",
        "",
        "/a b",
        "/about#part",
        "about",
        "/\u{e9}",
        "/\u{7f}",
        "/\"<>`{}|\\^",
        "?a",
        "/?\u{e9}",
        "bluedoor.example:443",
        "/about\t",
        "/about\0",
    ],
};

const VERSIONS: Choices = Choices {
    usual: &[" HTTP/1.1"],
    unusual: &[
        " HTTP/1.0",
        " HTTP/1.2",
        " HTTP/2.0",
        " HTTP/3",
        " http/1.1",
        "",
        "  HTTP/1.1",
        " HTTP/1.1 ",
        " HTTP/1.",
        "\tHTTP/1.1",
    ],
};

const HOSTS: Choices = Choices {
    usual: &[
        "host: studio.example",
        "Host: studio.example",
        "HOST: bluedoor.example:8080",
        "host:bluedoor.example",
        "host: \t empty.example \t",
        "host: www.studio.example",
    ],
    unusual: &[
        "",
        "host:",
        "host: nobody.example",
        "host: a b",
        "host: u@studio.example",
        "host: studio.example, studio.example",
        "host : studio.example",
        " host: studio.example",
        "host: studio.example\r\nhost: studio.example",
        "host: studio.example\r\nhost: b.example",
        "host: [::1]:80",
        "host: studio.example.",
        "host: \u{e9}",
        "host: studio.example\u{7f}",
        "xhost: studio.example",
        "hosts: studio.example",
    ],
};

const FIELDS: Choices = Choices {
    usual: &[
        "accept-encoding: gzip, deflate, br, zstd",
        "Accept-Encoding: gzip",
        "accept-encoding: br;q=0",
        "accept-encoding: identity;q=0, *;q=0.5",
        "user-agent: Mozilla/5.0 (X11; Linux x86_64)",
        "referer: https://news.example/a?q",
        "referer: http://studio.example/",
        "accept: */*",
        "connection: keep-alive",
        "Connection: Keep-Alive",
        "cookie: a=b; c=d",
        "sec-purpose: prefetch",
        "if-none-match: \"br-13003\", W/\"gzip-9505\"",
        "if-none-match: *",
        "if-match: \"x\"",
        "If-Match: *",
        "x-request-id: proxy-1",
        "x-forwarded-for: 198.51.100.7, 10.0.0.1",
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "authorization: Basic Y2xpZW50OnNlY3JldA==",
        "accept-language: en",
        "te: trailers",
        "keep-alive: timeout=5",
        "x-empty:",
        "x-tab: a\tb",
        "priority: u=1",
    ],
    unusual: &[
        "connection: close",
        "Connection: keep-alive, close",
        "connection: upgrade",
        "connection:",
        "connection: keep-alive\r\nconnection: close",
        "connection: x",
        "proxy-connection: close",
        "content-length: 0",
        "content-length: 5",
        "Content-Length: 0\r\ncontent-length: 0",
        "content-length: 3\r\ncontent-length: 4",
        "content-length: 3, 3",
        "content-length: +3",
        "content-length: -1",
        "content-length: ",
        "content-length: 0x1",
        "content-length : 5",
        "content-length: 99999999999999999999",
        "content-length: 5\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked",
        "Transfer-Encoding: chunked",
        "transfer-encoding: xchunked",
        "transfer-encoding: chunked, gzip",
        "transfer-encoding: identity",
        "transfer-encoding:",
        "transfer-encoding: \u{b}chunked",
        "transfer-encoding\u{0}: chunked",
        "transfer_encoding: x",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity",
        "expect: 100-continue",
        "expect: x",
        "upgrade: h2c\r\nconnection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABk",
        "upgrade: websocket",
        "range: bytes=0-1",
        "Range: bytes=5-",
        "range: bytes=99999999-",
        "range: bytes=0-1\r\nif-range: \"plain\"",
        "if-range: \"x\"",
        "trailer: a",
        " folded: x",
        "x: a\r\n folded",
        "x : a",
        ": a",
        "x",
        "x: a\rb",
        "x: a\0b",
        "x: \u{e9}\u{ff}",
        "x: \u{7f}",
        "x: \u{1}",
        "\u{e9}: a",
        "(x): a",
        "x\ty: a",
        "@: a",
        "x: a\nhost: b.example",
        "x:\r\n\tb",
        "x-request-id: a\r\nx-request-id: b",
        "x-request-id: a b",
        "authorization: Basic",
    ],
};

const ENDS_OF_LINES: Choices = Choices {
    usual: &["\r\n"],
    unusual: &["\n", "\r", "\r\r\n", "\n\r", " \r\n", "\0\r\n"],
};

const CONTENTS: Choices = Choices {
    usual: &[""],
    unusual: &[
        "12345",
        "5\r\n12345\r\n0\r\n\r\n",
        "0\r\n\r\n",
        "x",
        "\r\n",
        "\n",
        "\r\n\r\n",
        "\0",
        "PRI",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\u{16}\u{3}\u{1}",
        "GET /terms",
    ],
};

/// Returns a request, as text whose letters are the bytes.
fn request(random: &mut Rng) -> String {
    let mut text = [METHODS.pick(random), " ", TARGETS.pick(random)].concat();
    if random.u8(..200) == 0 {
        text.push_str(&"a".repeat(random.usize(4000..5000)));
    }
    text.push_str(VERSIONS.pick(random));
    let mut lines = vec![HOSTS.pick(random).to_owned()];
    for _ in 0..random.usize(..7) {
        lines.push(FIELDS.pick(random).to_owned());
    }
    match random.u16(..400) {
        0 => lines.extend((0..random.usize(55..110)).map(|number| format!("x-{number}: y"))),
        1 => lines.push(format!("x: {}", "y".repeat(random.usize(15_000..17_500)))),
        _ => {}
    }
    random.shuffle(&mut lines);
    let is_strict = random.u8(..8) > 0;
    let mut end = || match is_strict {
        true => "\r\n",
        false => ENDS_OF_LINES.pick(random),
    };
    text.push_str(end());
    for line in lines.iter().filter(|line| !line.is_empty()) {
        text.push_str(line);
        text.push_str(end());
    }
    text.push_str(end());
    text.push_str(CONTENTS.pick(random));
    text
}

fn case(random: &mut Rng) -> Case {
    let mut bytes = Vec::new();
    for _ in 0..random.usize(1..5) {
        // Half of the letters of Latin-1 are bytes that UTF-8 does not have.
        bytes.extend(request(random).chars().map(|letter| letter as u8));
    }
    if random.u8(..6) == 0 {
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            match random.u8(..4) {
                0 => bytes[at] = random.u8(..),
                1 => bytes.insert(at, random.u8(..)),
                2 if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
    }
    let cuts = match random.u8(..100) {
        0..50 => 0,
        50..99 => random.usize(1..6),
        _ => bytes.len().min(300),
    };
    let mut pieces = vec![bytes];
    for _ in 0..cuts {
        let longest = pieces.len() - 1;
        let length = pieces[longest].len();
        if length < 2 {
            break;
        }
        let at = if cuts > 6 { 1 } else { random.usize(1..length) };
        let rest = pieces[longest].split_off(at);
        pieces.push(rest);
    }
    // Both lanes read such a piece at once, so that the same bytes are left in the socket at the end.
    let pieces: Vec<Vec<u8>> = pieces
        .iter()
        .flat_map(|piece| piece.chunks(READ_BYTES))
        .map(<[u8]>::to_vec)
        .collect();
    let at = random.usize(..pieces.len());
    Case {
        buffer: *random
            .choice(&[1 << 20, 1 << 20, 64 * 1024, 1000, 100])
            .unwrap(),
        is_trusted: random.bool(),
        end: match random.u8(..12) {
            0..5 => End::Open,
            5..9 => End::HalfClose,
            9 => End::Shutdown(at),
            10 => End::Drain(at),
            _ => End::Room(at),
        },
        pieces,
    }
}

/// Compares both lanes. Returns what they did.
fn compare((fast, slow): (&Lane, &Lane), case: &Case, name: &str) -> String {
    let (fast, slow) = (fast.run(case), slow.run(case));
    let pieces = || {
        let pieces = case.pieces.iter();
        pieces.map(|piece| piece.escape_ascii().to_string() + "\n")
    };
    assert!(
        fast == slow,
        "{name}: {:?}, buffer {}, trusted {}\n{}fast lane:\n{fast}\nhyper:\n{slow}",
        case.end,
        case.buffer,
        case.is_trusted,
        pieces().collect::<String>()
    );
    fast
}

#[test]
fn both_lanes_treat_all_bytes_alike() {
    let cases = match std::env::var_os("ROWHOUSE_LONG") {
        Some(_) => LONG_CASES,
        None => CASES,
    };
    let lanes = (&Lane::new(true), &Lane::new(false));
    let first: u64 = std::env::var("ROWHOUSE_SEED").map_or(0, |seed| seed.parse().unwrap());
    for seed in first..first + cases {
        let case = case(&mut Rng::with_seed(seed));
        compare(lanes, &case, &format!("seed {seed}"));
    }
}

/// Sends requests to a connection of the fast lane. Returns whether hyper has the connection then.
fn leaves_the_lane(requests: &str) -> bool {
    let lane = Lane::new(true);
    let (mut socket, far) = tokio::io::duplex(1 << 20);
    let state = Rc::new(ConnectionState::new(Instant::now(), Phase::Head));
    let service = lane.service(false, &state);
    let stream = Stream::new(far, state);
    let mut connection = FastLane::new(stream, service, Rc::clone(&lane.http1));
    let mut cx = Context::from_waker(Waker::noop());
    let sent = Pin::new(&mut socket).poll_write(&mut cx, requests.as_bytes());
    assert!(matches!(sent, Poll::Ready(Ok(length)) if length == requests.len()));
    assert!(Pin::new(&mut connection).poll(&mut cx).is_pending());
    connection.hyper.is_some()
}

#[test]
fn plain_requests_stay_in_the_lane_and_others_leave_it() {
    let host = "host: studio.example\r\n";
    let plain = format!("GET /about HTTP/1.1\r\n{host}connection: keep-alive\r\n\r\n");
    let head = format!("HEAD /nothing HTTP/1.1\r\n{host}if-none-match: \"x\"\r\n\r\n");
    assert!(!leaves_the_lane(&plain));
    assert!(!leaves_the_lane(&[&*plain, &*head, &*plain].concat()));
    for unusual in [
        "GET /about HTTP/1.1\r\n",
        &plain.replace("GET", "OPTIONS"),
        &plain.replace("1.1", "1.0"),
        &plain.replace("/about", "http://studio.example/about"),
        &plain.replace("connection: keep-alive", "content-length: 0"),
        &plain.replace("connection: keep-alive", "range: bytes=0-1"),
        &plain.replace("connection: keep-alive", host.trim_end()),
        &plain.replace(host, ""),
    ] {
        assert!(leaves_the_lane(unusual), "{unusual}");
    }
}

#[test]
fn page_is_answered_without_an_allocation() {
    let lane = Lane::with(ServeSettings::default(), true);
    let (mut socket, far) = tokio::io::duplex(1 << 16);
    let state = Rc::new(ConnectionState::new(Instant::now(), Phase::Head));
    let service = lane.service(false, &state);
    let stream = Stream::new(far, state);
    let mut connection = FastLane::new(stream, service, Rc::clone(&lane.http1));
    let request = b"GET /assets/site.css HTTP/1.1\r\nhost: studio.example\r\nuser-agent: Firefox\r\naccept-encoding: br, gzip\r\n\r\n";
    let mut cx = Context::from_waker(Waker::noop());
    let mut space = [0; 4096];
    let mut ask = || {
        let sent = Pin::new(&mut socket).poll_write(&mut cx, request);
        assert!(sent.is_ready());
        assert!(Pin::new(&mut connection).poll(&mut cx).is_pending());
        let mut buffer = ReadBuf::new(&mut space);
        assert!(
            Pin::new(&mut socket)
                .poll_read(&mut cx, &mut buffer)
                .is_ready()
        );
        assert!(buffer.filled().starts_with(b"HTTP/1.1 200 OK\r\n"));
    };
    for _ in 0..1000 {
        ask();
    }
    let memory = allocation_counter::measure(|| {
        for _ in 0..1000 {
            ask();
        }
    });
    // The text of `Date` and a new block may be needed.
    assert!(memory.count_total <= 4, "{}", memory.count_total);
}
