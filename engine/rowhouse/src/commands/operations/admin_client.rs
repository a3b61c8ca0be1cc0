//! Asks the admin listener of a running server: plain HTTP/1.1, a connection for each question.
//!
//! **Invariant:** knows no route and no command; what an answer means is its caller's business.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Bytes of an answer that are read: the differences of a release take a few millions.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024 * 1024;

/// What a server answered.
#[derive(Debug)]
pub(crate) struct AdminResponse {
    /// The status code.
    pub(crate) status: u16,
    /// The content as text.
    pub(crate) text: String,
}

/// Sends one request without content, and reads the answer. `fields` are whole lines, each with its line end; `patience` is for each step.
///
/// A server that listens on every address (`0.0.0.0`) is reached by that address, too.
///
/// # Errors
/// When nobody answers in time, or what answers is no HTTP.
pub(crate) fn ask(
    admin: SocketAddr,
    method: &str,
    target: &str,
    fields: &str,
    patience: Duration,
) -> io::Result<AdminResponse> {
    let mut stream = TcpStream::connect_timeout(&admin, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let request = format!(
        "{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    match stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut answer) {
        // That is how systems call a time-out of a socket.
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(io::Error::new(ErrorKind::TimedOut, "no answer in time"))
        }
        Err(error) => Err(error),
        Ok(_) => parsed(&answer),
    }
}

/// An answer whose content ends with the connection.
fn parsed(answer: &[u8]) -> io::Result<AdminResponse> {
    let answer = String::from_utf8_lossy(answer);
    let no_http = || io::Error::new(ErrorKind::InvalidData, "the answer is no whole HTTP answer");
    let (head, content) = answer.split_once("\r\n\r\n").ok_or_else(no_http)?;
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok())
        .ok_or_else(no_http)?;
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok());
    if length.is_some_and(|length| content.len() < length) {
        return Err(no_http());
    }
    Ok(AdminResponse {
        status,
        text: content.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_or_an_error() {
        let answer = parsed(b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno\n").unwrap();
        assert_eq!((answer.status, &*answer.text), (404, "no\n"));
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
