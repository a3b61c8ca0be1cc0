//! Clients that cost little: blocking sockets, requests made once, and no parsing beyond the end of a response.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, RootCertStore};

use crate::authority::{Authority, secure};
use crate::row::{Page, Protocol, Row};

/// A server that does not respond for so long is broken.
const TIMEOUT: Duration = Duration::from_secs(10);
pub const HOST: &str = "studio.example";
/// The header fields that Chrome sends for a typed address.
const FIELDS: [(&str, &str); 12] = [
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    ),
    (
        "accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    ),
    ("accept-language", "en-US,en;q=0.9"),
    ("accept-encoding", "gzip, deflate"),
    ("sec-fetch-mode", "navigate"),
    (
        "sec-ch-ua",
        r#""Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99""#,
    ),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", r#""Linux""#),
    ("upgrade-insecure-requests", "1"),
    ("sec-fetch-site", "none"),
    ("sec-fetch-user", "?1"),
    ("sec-fetch-dest", "document"),
];

trait Wire: Read + Write {}
impl<W: Read + Write> Wire for W {}

/// Open connections to a server, of either protocol.
pub enum Client {
    Http1(Http1Client),
    Http2(Http2Client),
}

impl Client {
    pub fn new(row: &Row, address: SocketAddr, roots: &RootCertStore) -> io::Result<Self> {
        let tls = row
            .protocol
            .is_tls()
            .then(|| tls_config(row.protocol, roots));
        let open = || -> io::Result<Box<dyn Wire>> {
            Ok(match &tls {
                Some(config) => Box::new(secure(address, config, HOST)?),
                None => Box::new(connect(address)?),
            })
        };
        Ok(match row.protocol.is_http2() {
            true => Self::Http2(Http2Client::new(open()?, row)?),
            false => Self::Http1(Http1Client {
                wires: (0..row.width).map(|_| open()).collect::<io::Result<_>>()?,
                request: request(&row.page),
                inbox: Inbox::new(&row.page),
            }),
        })
    }

    /// Sends as many requests as the client has connections or streams, and reads the responses.
    pub fn batch(&mut self) -> io::Result<()> {
        match self {
            Self::Http1(client) => client.batch(),
            Self::Http2(client) => client.batch(),
        }
    }

    /// Returns the last complete body.
    pub fn body(&self) -> Vec<u8> {
        match self {
            Self::Http1(client) => client.inbox.content(),
            Self::Http2(client) => client.body.clone(),
        }
    }

    /// Returns the lines of the last response's head, in lower case and in order, without those that differ between servers. Empty for HTTP/2, whose fields are encoded.
    pub fn head(&self) -> Vec<String> {
        let own = [
            "date",
            "server",
            "connection",
            "etag",
            "x-request-id",
            "last-modified",
            "accept-ranges",
            "content-length",
            "transfer-encoding",
        ];
        let Self::Http1(client) = self else {
            return Vec::new();
        };
        let head = &client.inbox.buffer[..client.inbox.head];
        let head = String::from_utf8_lossy(head).to_lowercase();
        let mut lines: Vec<String> = head
            .lines()
            .filter(|line| !own.iter().any(|name| line.starts_with(name)))
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    }
}

/// Returns a configuration with one cipher suite and one group, so that the servers' preferences do not matter.
fn tls_config(protocol: Protocol, roots: &RootCertStore) -> Arc<ClientConfig> {
    use rustls::crypto::aws_lc_rs;
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256];
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    let name: &[u8] = if protocol.is_http2() {
        b"h2"
    } else {
        b"http/1.1"
    };
    config.alpn_protocols = vec![name.to_vec()];
    Arc::new(config)
}

/// Writes a certificate of [`HOST`] for all servers, and returns the roots that clients trust.
pub fn write_certificate(folder: &std::path::Path) -> RootCertStore {
    let authority = Authority::new();
    let (chain, key) = authority.sign(&[HOST]);
    std::fs::write(folder.join("chain.pem"), chain).unwrap();
    std::fs::write(folder.join("key.pem"), key).unwrap();
    authority.roots()
}

pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Returns a request of HTTP/1.1.
pub fn request(page: &Page) -> Vec<u8> {
    let fields = FIELDS.map(|(name, value)| format!("{name}: {value}\r\n"));
    let (path, fields) = (page.path, fields.concat());
    format!("GET {path} HTTP/1.1\r\nhost: {HOST}\r\n{fields}\r\n").into_bytes()
}

/// Bytes of a response of HTTP/1.1 that has arrived.
pub struct Inbox {
    buffer: Vec<u8>,
    length: usize,
    /// Bytes of the head, once it is complete.
    head: usize,
    body: usize,
    /// Whether the body has chunks (RFC 9112, section 7.1).
    is_chunked: bool,
}

impl Inbox {
    pub fn new(page: &Page) -> Self {
        Self {
            buffer: vec![0; page.bytes + 4096],
            length: 0,
            head: 0,
            body: page.bytes,
            is_chunked: false,
        }
    }

    /// Prepares for the next response.
    pub fn clear(&mut self) {
        (self.length, self.head, self.is_chunked) = (0, 0, false);
    }

    /// Returns the body without its chunks.
    fn content(&self) -> Vec<u8> {
        let mut rest = &self.buffer[self.head..self.length];
        if !self.is_chunked {
            return rest.to_vec();
        }
        let mut content = Vec::new();
        while let Some(end) = memchr::memmem::find(rest, b"\r\n") {
            let size = str::from_utf8(&rest[..end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            if size == 0 {
                break;
            }
            content.extend_from_slice(&rest[end + 2..][..size]);
            rest = &rest[end + 2 + size + 2..];
        }
        content
    }

    /// Reads once. Returns whether the response is complete.
    pub fn read(&mut self, wire: &mut (impl Read + ?Sized)) -> io::Result<bool> {
        let more = wire.read(&mut self.buffer[self.length..])?;
        if more == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.length += more;
        if self.head == 0 {
            let end = memchr::memmem::find(&self.buffer[..self.length], b"\r\n\r\n");
            self.head = end.map_or(0, |end| end + 4);
            if self.head > 0 && !self.buffer.starts_with(b"HTTP/1.1 200") {
                let head = String::from_utf8_lossy(&self.buffer[..self.head]);
                return Err(io::Error::other(head.into_owned()));
            }
            let head = self.buffer[..self.head].to_ascii_lowercase();
            let field = b"\r\ntransfer-encoding: chunked\r\n";
            self.is_chunked = memchr::memmem::find(&head, field).is_some();
        }
        if self.is_chunked {
            return Ok(self.buffer[..self.length].ends_with(b"\r\n0\r\n\r\n"));
        }
        if self.head > 0 && self.length > self.head + self.body {
            return Err(io::Error::other("the response has another length"));
        }
        Ok(self.head > 0 && self.length == self.head + self.body)
    }
}

pub struct Http1Client {
    wires: Vec<Box<dyn Wire>>,
    request: Vec<u8>,
    inbox: Inbox,
}

impl Http1Client {
    fn batch(&mut self) -> io::Result<()> {
        for wire in &mut self.wires {
            wire.write_all(&self.request)?;
        }
        // The last socket is read first, so that the client wakes up once and not for each response: visitors are on other machines.
        for wire in self.wires.iter_mut().rev() {
            self.inbox.clear();
            while !self.inbox.read(wire)? {}
        }
        Ok(())
    }
}

/// Frames of HTTP/2 (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
/// Windows of a stream and of a connection, as of Chrome.
const STREAM_WINDOW: u32 = 6_291_456;
const CONNECTION_WINDOW: u32 = 15_663_105;

/// One connection of HTTP/2. Its first request fills the server's dynamic table, so that later requests are as short as a browser's.
pub struct Http2Client {
    wire: Box<dyn Wire>,
    width: usize,
    next_stream: u32,
    /// The fields of a request, all in the dynamic table.
    block: Vec<u8>,
    /// Bytes of data that the server does not know to be read.
    unacknowledged: u32,
    buffer: Vec<u8>,
    filled: usize,
    /// The data of the last response.
    body: Vec<u8>,
    last_stream: u32,
}

impl Http2Client {
    fn new(wire: Box<dyn Wire>, row: &Row) -> io::Result<Self> {
        let mut client = Self {
            wire,
            width: row.width,
            next_stream: 1,
            block: Vec::new(),
            unacknowledged: 0,
            buffer: vec![0; 256 * 1024],
            filled: 0,
            body: Vec::new(),
            last_stream: 1,
        };
        let mut first = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // ENABLE_PUSH and INITIAL_WINDOW_SIZE.
        let mut settings = vec![0, 2, 0, 0, 0, 0, 0, 4];
        settings.extend(STREAM_WINDOW.to_be_bytes());
        frame(&mut first, SETTINGS, 0, 0, &settings);
        frame(
            &mut first,
            WINDOW_UPDATE,
            0,
            0,
            &CONNECTION_WINDOW.to_be_bytes(),
        );
        // GET and the scheme of the static table (RFC 7541, appendix A), then fields that are added to the dynamic table.
        let start = [0x82, if row.protocol.is_tls() { 0x87 } else { 0x86 }];
        let mut block = start.to_vec();
        let fields = [(":path", row.page.path), (":authority", HOST)];
        let fields: Vec<_> = fields.into_iter().chain(FIELDS).collect();
        for (name, value) in &fields {
            block.push(0x40);
            for text in [name, value] {
                // A length below 127 is one byte.
                block.push(u8::try_from(text.len()).unwrap());
                block.extend(text.bytes());
            }
        }
        client.block = block;
        client.send_requests(first, 1)?;
        // The newest entry of the dynamic table has the number 62.
        let entries = (62..62 + fields.len() as u8).rev();
        client.block = start
            .into_iter()
            .chain(entries.map(|entry| 0x80 | entry))
            .collect();
        Ok(client)
    }

    fn batch(&mut self) -> io::Result<()> {
        let mut out = Vec::new();
        let read = std::mem::take(&mut self.unacknowledged);
        if read > 0 {
            frame(&mut out, WINDOW_UPDATE, 0, 0, &read.to_be_bytes());
        }
        self.send_requests(out, self.width)
    }

    /// Sends `out` and `count` requests, and reads the responses.
    fn send_requests(&mut self, mut out: Vec<u8>, count: usize) -> io::Result<()> {
        for _ in 0..count {
            let stream = self.next_stream;
            frame(
                &mut out,
                HEADERS,
                END_STREAM | END_HEADERS,
                stream,
                &self.block,
            );
            self.next_stream += 2;
        }
        self.last_stream = self.next_stream - 2;
        self.body.clear();
        self.wire.write_all(&out)?;
        let mut open = count;
        while open > 0 {
            let more = self.wire.read(&mut self.buffer[self.filled..])?;
            if more == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.filled += more;
            open -= self.read_frames()?;
        }
        Ok(())
    }

    /// Reads all complete frames. Returns the number of streams that they end.
    fn read_frames(&mut self) -> io::Result<usize> {
        let (mut at, mut ended) = (0, 0);
        while let [high, middle, low, kind, flags, stream @ ..] = &self.buffer[at..self.filled] {
            let length = u32::from_be_bytes([0, *high, *middle, *low]);
            let size = 9 + length as usize;
            if self.filled - at < size {
                break;
            }
            let stream = u32::from_be_bytes(stream[..4].try_into().unwrap());
            let payload = &self.buffer[at + 9..at + size];
            match *kind {
                DATA | HEADERS => {
                    ended += usize::from(flags & END_STREAM);
                    if *kind == DATA {
                        self.unacknowledged += length;
                        if stream == self.last_stream {
                            self.body.extend(payload);
                        }
                    }
                }
                SETTINGS if flags & ACK == 0 => {
                    let mut out = Vec::new();
                    frame(&mut out, SETTINGS, ACK, 0, &[]);
                    self.wire.write_all(&out)?;
                }
                RESET | GOAWAY => return Err(io::Error::other(format!("frame {kind}"))),
                _ => {}
            }
            at += size;
        }
        self.buffer.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(ended)
    }
}

/// Appends a frame.
fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = payload.len() as u32;
    out.extend(&length.to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}
