//! A client of the admin listener of a running server: HTTP/1.1, one connection per request.
//!
//! **Invariant:** knows no route and no command; its callers interpret the response.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// The largest response that is read, in bytes. A comparison of two releases takes a few million.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024 * 1024;

/// The response of a server.
#[derive(Debug)]
pub(crate) struct AdminResponse {
    /// The status code.
    pub(crate) status: u16,
    /// The body as text.
    pub(crate) text: String,
}

/// Sends a request without a body and returns the response.
///
/// `fields` are header lines, each with its line end. `timeout` applies to each step: connecting, writing and reading. A server that listens on every address is reached at `0.0.0.0`, too. `127.0.0.1` and `[::1]` are the same: where one refuses the connection, the other is tried.
///
/// # Errors
/// Fails if no server responds in time, or the response is not complete HTTP.
pub(crate) fn ask(
    admin: SocketAddr,
    method: &str,
    target: &str,
    fields: &str,
    timeout: Duration,
) -> io::Result<AdminResponse> {
    let mut stream = connect(admin, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let request = format!(
        "{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    match stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut response) {
        // Operating systems report a timeout of a socket as `WouldBlock`.
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(io::Error::new(ErrorKind::TimedOut, "no response in time"))
        }
        Err(error) => Err(error),
        Ok(_) => parsed(&response),
    }
}

/// Returns the message of a command that reaches no server at `admin`. `start` is the command that starts one.
pub(crate) fn no_server(admin: SocketAddr, error: &io::Error, start: &str) -> String {
    format!(
        "no server responds at `{admin}`: {error}; start it with `{start}`, or name its admin address with `--admin`"
    )
}

/// Connects to an address, or else to the other loopback address with its port. The error is that of the named address.
fn connect(admin: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let refused = match TcpStream::connect_timeout(&admin, timeout) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => error,
        connected => return connected,
    };
    let other: IpAddr = match admin.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Ipv4Addr::LOCALHOST.into(),
        _ => return Err(refused),
    };
    let other = SocketAddr::from((other, admin.port()));
    TcpStream::connect_timeout(&other, timeout).map_err(|_| refused)
}

/// Parses a response whose body ends with the connection.
fn parsed(response: &[u8]) -> io::Result<AdminResponse> {
    let response = String::from_utf8_lossy(response);
    let invalid = || io::Error::new(ErrorKind::InvalidData, "the response is not complete HTTP");
    let (head, content) = response.split_once("\r\n\r\n").ok_or_else(invalid)?;
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok())
        .ok_or_else(invalid)?;
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok());
    if length.is_some_and(|length| content.len() < length) {
        return Err(invalid());
    }
    Ok(AdminResponse {
        status,
        text: content.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn loopback_addresses_are_the_same() {
        let (four, six) = (
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        );
        for (server, named) in [(four, six), (six, four)] {
            let Ok(listener) = TcpListener::bind((server, 0)) else {
                eprintln!("skipped: this machine has no {server}");
                continue;
            };
            drop(listener);
            let is_found = || {
                let listener = TcpListener::bind((server, 0)).unwrap();
                let port = listener.local_addr().unwrap().port();
                let named = SocketAddr::from((named, port));
                let stream = connect(named, Duration::from_secs(10)).ok()?;
                let is_of_server = stream.peer_addr().ok()?.ip() == server;
                drop(listener);
                let error = connect(named, Duration::from_secs(10)).err()?;
                (is_of_server && error.kind() == ErrorKind::ConnectionRefused).then_some(())
            };
            // Another program may use the port at the other address, or once it is free.
            assert!((0..5).any(|_| is_found().is_some()), "{named}");
        }
    }

    #[test]
    fn response_is_complete_or_an_error() {
        let response = parsed(b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno\n").unwrap();
        assert_eq!((response.status, &*response.text), (404, "no\n"));
        assert_eq!(parsed(b"HTTP/1.1 204 No\r\n\r\n").unwrap().text, "");
        for broken in [
            "",
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nno",
        ] {
            assert!(parsed(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
