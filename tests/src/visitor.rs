//! A visitor who keeps a connection open, as browsers do: for loads, and for measured times.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::Answer;

/// The timeout of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A client with one connection, which it opens again after the server has announced the end.
#[derive(Debug)]
pub struct Visitor {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Visitor {
    /// Makes a visitor without a connection.
    #[must_use]
    pub const fn new(address: SocketAddr) -> Self {
        Self {
            address,
            stream: None,
        }
    }

    /// Requests a path of a host, with header fields such as `accept-encoding: br`.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, or closes the connection before the response is complete.
    pub fn get(&mut self, host: &str, path: &str, fields: &[&str]) -> io::Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{fields}\r\n");
        stream.get_mut().write_all(request.as_bytes())?;
        let (status, headers) = read_head(&mut stream)?;
        let length = headers
            .get("content-length")
            .map_or(Ok(0), |text| text.parse());
        let mut body = vec![0; length.map_err(io::Error::other)?];
        stream.read_exact(&mut body)?;
        let answer = Answer {
            status,
            headers,
            body,
        };
        if answer.header("connection") != "close" {
            self.stream = Some(stream);
        }
        Ok(answer)
    }
}

/// Reads the status and the fields of a response.
///
/// # Errors
/// Fails if the connection ends before the end of the head, or if the head is not HTTP.
pub(crate) fn read_head(
    reader: &mut impl io::BufRead,
) -> io::Result<(u16, BTreeMap<String, String>)> {
    let mut line = String::new();
    let mut next = |line: &mut String| {
        line.clear();
        match reader.read_line(line)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            _ => Ok(()),
        }
    };
    next(&mut line)?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no status in {line:?}")))?;
    let mut fields = BTreeMap::new();
    loop {
        next(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return Ok((status, fields));
        };
        fields.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}
