//! A visitor of a proxy or of rowhouse, who keeps a connection open as long as the server does.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Header fields in their order.
type Fields = Vec<(String, String)>;

/// A connection.
#[derive(Debug)]
pub(crate) struct Visitor<S = TcpStream> {
    stream: BufReader<S>,
}

impl Visitor {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self::over(stream))
    }
}

impl<S: io::Read + io::Write> Visitor<S> {
    /// Uses a stream, which may be encrypted.
    pub(crate) fn over(stream: S) -> Self {
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// Sends one request with more header lines, each with its line end. Returns the status, whether the connection stays open, and the body.
    pub(crate) fn get(
        &mut self,
        host: &str,
        path: &str,
        more: &str,
    ) -> io::Result<(u16, bool, Vec<u8>)> {
        let (status, fields, body) = self.answer(host, path, more)?;
        let connection = field(&fields, "connection").unwrap_or_default();
        Ok((status, !connection.eq_ignore_ascii_case("close"), body))
    }

    /// Sends one request. Returns the status and the `Location`.
    pub(crate) fn redirect_of(&mut self, host: &str, path: &str) -> io::Result<(u16, String)> {
        let (status, fields, _) = self.answer(host, path, "")?;
        let location = field(&fields, "location").unwrap_or_default();
        Ok((status, location.to_owned()))
    }

    /// Sends one request. Returns the status and the `Retry-After`.
    pub(crate) fn retry_after(
        &mut self,
        host: &str,
        path: &str,
    ) -> io::Result<(u16, Option<String>)> {
        let (status, fields, _) = self.answer(host, path, "")?;
        Ok((status, field(&fields, "retry-after").map(ToOwned::to_owned)))
    }

    /// Sends one request with more header lines. Returns the content encoding, the entity tag and the body.
    pub(crate) fn tagged(
        &mut self,
        host: &str,
        path: &str,
        more: &str,
    ) -> io::Result<(String, String, Vec<u8>)> {
        let (_, fields, body) = self.answer(host, path, more)?;
        let text = |name| field(&fields, name).unwrap_or_default().to_owned();
        Ok((text("content-encoding"), text("etag"), body))
    }

    fn answer(&mut self, host: &str, path: &str, more: &str) -> io::Result<(u16, Fields, Vec<u8>)> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{more}\r\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .ok_or_else(|| io::Error::other(format!("no status in {line:?}")))?;
        let mut fields = Vec::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut body = Vec::new();
        match field(&fields, "content-length").and_then(|text| text.parse().ok()) {
            Some(length) => {
                body.resize(length, 0);
                self.stream.read_exact(&mut body)?;
            }
            None if field(&fields, "connection") != Some("close") => {
                return Err(io::Error::other("a body without a length"));
            }
            None => {
                self.stream.read_to_end(&mut body)?;
            }
        }
        Ok((status, fields, body))
    }
}

/// Returns the value of a header field.
fn field<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    let mut fields = fields.iter();
    let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
    found.map(|(_, value)| &**value)
}

/// Sends one request on its own connection. Returns the status and the body, or `None` if there is no response.
pub(crate) fn ask(address: SocketAddr, host: &str, path: &str) -> Option<(u16, String)> {
    let (status, _, body) = Visitor::connect(address)
        .ok()?
        .get(host, path, "connection: close\r\n")
        .ok()?;
    Some((status, String::from_utf8_lossy(&body).into_owned()))
}
