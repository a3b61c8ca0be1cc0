//! Reads the PROXY protocol header, in which a TCP load balancer names the visitor: versions 1 and 2 (`proxy-protocol.txt` of HAProxy, sections 2.1 and 2.2).
//!
//! The header is read from trusted proxies only, and is required there. A proxy that sends no header is misconfigured, and visitors would appear under the proxy's address.
//! Everything after the header comes from the visitor. Its header fields are therefore trusted only if the visitor is a trusted proxy too.
//!
//! **Invariant:** consumes no byte after the header.

use std::io;
use std::net::IpAddr;

use ppp::{HeaderResult, PartialResult as _, v1, v2};
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::TcpStream;

/// Maximum size of a header. Version 1 has at most 107 bytes. Version 2 has 52 bytes with two addresses, and may add fields that are not used here.
const MAX_HEADER_BYTES: usize = 4096;
/// Maximum length of the line of version 1, in bytes.
const MAX_LINE_BYTES: usize = 107;

/// The result of parsing a header.
#[derive(Debug, PartialEq, Eq)]
enum ParsedHeader {
    /// The header's length, and the visitor's address. No address if the proxy itself is the client (`LOCAL`, `UNKNOWN`).
    Complete(usize, Option<IpAddr>),
    /// The header is incomplete.
    Incomplete,
    /// The bytes are not a header.
    Invalid,
}

/// Reads the header and returns the visitor's address, or `None` if the proxy itself is the client.
///
/// # Errors
/// When there is no valid header, or the socket fails.
pub(crate) async fn read(socket: &mut TcpStream) -> io::Result<Option<IpAddr>> {
    let mut start = [0; MAX_HEADER_BYTES];
    loop {
        let ready = socket.ready(Interest::READABLE).await?;
        let length = socket.peek(&mut start).await?;
        match parse(&start[..length]) {
            ParsedHeader::Complete(length, address) => {
                let header = start.get_mut(..length).ok_or(io::ErrorKind::InvalidData)?;
                socket.read_exact(header).await?;
                return Ok(address);
            }
            ParsedHeader::Incomplete
                if length > 0 && length < MAX_HEADER_BYTES && !ready.is_read_closed() => {}
            ParsedHeader::Incomplete | ParsedHeader::Invalid => {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        // Clearing the readiness makes the next wait need new bytes.
        let _ = socket.try_io(Interest::READABLE, || -> io::Result<()> {
            Err(io::ErrorKind::WouldBlock.into())
        });
    }
}

fn parse(start: &[u8]) -> ParsedHeader {
    if start.starts_with(b"PROXY ") {
        // The parser must not see the bytes after the line.
        let within = &start[..start.len().min(MAX_LINE_BYTES)];
        return match memchr::memmem::find(within, b"\r\n") {
            Some(end) => parse_line(&start[..end + 2]),
            None if start.len() < MAX_LINE_BYTES => ParsedHeader::Incomplete,
            None => ParsedHeader::Invalid,
        };
    }
    if b"PROXY ".starts_with(start) {
        return ParsedHeader::Incomplete;
    }
    match HeaderResult::parse(start) {
        HeaderResult::V2(Ok(header)) => {
            let address = match (header.command, header.addresses) {
                (v2::Command::Local, _) => None,
                (_, v2::Addresses::IPv4(v4)) => Some(IpAddr::from(v4.source_address)),
                (_, v2::Addresses::IPv6(v6)) => Some(IpAddr::from(v6.source_address)),
                _ => None,
            };
            ParsedHeader::Complete(header.len(), address)
        }
        HeaderResult::V2(read) if read.is_incomplete() => ParsedHeader::Incomplete,
        _ => ParsedHeader::Invalid,
    }
}

fn parse_line(line: &[u8]) -> ParsedHeader {
    match v1::Header::try_from(line) {
        Ok(header) => {
            let address = match header.addresses {
                v1::Addresses::Tcp4(v4) => Some(IpAddr::from(v4.source_address)),
                v1::Addresses::Tcp6(v6) => Some(IpAddr::from(v6.source_address)),
                v1::Addresses::Unknown => None,
            };
            ParsedHeader::Complete(line.len(), address)
        }
        Err(_) => ParsedHeader::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A version 2 header for the visitor 192.0.2.7, and three bytes that follow the header.
    const BINARY: &[u8] =
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x7f\0\0\x01\x30\x39\x01\xbb\x16\x03\x01";

    #[test]
    fn header_is_read_without_the_bytes_that_follow() {
        let visitor = |address: &str| Some(address.parse().unwrap());
        for (bytes, length, address) in [
            (
                &b"PROXY TCP4 192.0.2.7 127.0.0.1 12345 443\r\n\x16\x03\xff\r\n"[..],
                42,
                visitor("192.0.2.7"),
            ),
            (
                b"PROXY TCP6 2001:db8::7 ::1 12345 443\r\nGET /",
                38,
                visitor("2001:db8::7"),
            ),
            (b"PROXY UNKNOWN\r\n", 15, None),
            (BINARY, 28, visitor("192.0.2.7")),
            (b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", 16, None),
        ] {
            assert_eq!(
                parse(bytes),
                ParsedHeader::Complete(length, address),
                "{bytes:?}"
            );
            for short in 1..length {
                assert_eq!(
                    parse(&bytes[..short]),
                    ParsedHeader::Incomplete,
                    "{short} of {bytes:?}"
                );
            }
        }
    }

    #[test]
    fn invalid_headers_are_refused() {
        let endless = [&b"PROXY TCP4 "[..], &[b'1'; 200]].concat();
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"\x16\x03\x01\x02\0",
            b"PROXY TCP4 localhost 127.0.0.1 1 2\r\n",
            b"PROXY TCP4 192.0.2.7 127.0.0.1 1\r\n",
            b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\0",
            b"proxy TCP4 192.0.2.7 127.0.0.1 1 2\r\n",
            &endless,
        ] {
            assert_eq!(parse(bytes), ParsedHeader::Invalid, "{bytes:?}");
        }
    }
}
