//! A proxy in front of Pebble, which passes requests of the program on and changes responses for a test.
//!
//! Pebble builds its URLs from the `Host` of a request, so all further requests also go through the proxy.

use std::fs;
use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};
use serde_json::Value;

use crate::certificates::authority::Authority;

/// A request of the program.
#[derive(Debug, Clone)]
pub(crate) struct AcmeRequest {
    pub(crate) at: Instant,
    pub(crate) method: String,
    /// The path.
    pub(crate) target: String,
    /// The signed payload of the body (RFC 8555, section 6.2). Null if the body is empty.
    pub(crate) payload: Value,
    head: String,
    body: Vec<u8>,
}

impl AcmeRequest {
    /// Returns the ordered host, if the request is an order.
    pub(crate) fn ordered(&self) -> Option<&str> {
        match &*self.target {
            "/order-plz" => self.payload["identifiers"][0]["value"].as_str(),
            _ => None,
        }
    }
}

/// A response.
#[derive(Debug, Clone)]
pub(crate) struct AcmeResponse {
    pub(crate) status: u16,
    /// Header fields, each with its line end.
    pub(crate) fields: String,
    pub(crate) body: Vec<u8>,
}

impl AcmeResponse {
    pub(crate) fn json(status: u16, fields: &str, body: &Value) -> Self {
        Self {
            status,
            fields: format!("content-type: application/json\r\n{fields}"),
            body: body.to_string().into_bytes(),
        }
    }

    /// Makes a problem document of ACME (RFC 8555, section 6.7).
    pub(crate) fn problem(status: u16, kind: &str, detail: &str, fields: &str) -> Self {
        let kind = format!("urn:ietf:params:acme:error:{kind}");
        let body = serde_json::json!({ "type": kind, "detail": detail, "status": status });
        Self::json(status, fields, &body)
    }

    /// Returns the value of a header field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.lines().filter_map(|line| line.split_once(':'));
        let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }

    /// Returns the body as JSON, or null if the body is not JSON.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Makes the response to a request. The second argument passes the request on to Pebble.
pub(crate) type Rule =
    dyn Fn(&AcmeRequest, &dyn Fn() -> AcmeResponse) -> AcmeResponse + Send + Sync;

/// The requests of the program so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Vec<AcmeRequest>>>);

impl Record {
    pub(crate) fn all(&self) -> Vec<AcmeRequest> {
        self.0.lock().expect("a record").clone()
    }

    /// Returns the orders for a host.
    pub(crate) fn orders(&self, host: &str) -> Vec<AcmeRequest> {
        let mut all = self.all();
        all.retain(|question| question.ordered() == Some(host));
        all
    }
}

/// Starts a proxy in front of the authority, which runs until the tests end.
pub(crate) fn start_proxy(authority: &mut Authority, rule: Box<Rule>) -> Record {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a socket");
    authority.use_proxy(listener.local_addr().expect("an address"));
    let read = |file: &str| fs::read(authority.folder.path().join(file)).expect("a file");
    let chain = CertificateDer::pem_slice_iter(&read("cert.pem"))
        .collect::<Result<_, _>>()
        .expect("a chain");
    let key = PrivateKeyDer::from_pem_slice(&read("key.pem")).expect("a key");
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a certificate");
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(&read("minica.pem")).expect("a root");
    roots.add(root).expect("a root");
    let client = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let record = Record::default();
    let proxy = Arc::new(AcmeProxy {
        server: Arc::new(server),
        client: Arc::new(client),
        pebble: authority.directory,
        rule,
        record: record.clone(),
    });
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let proxy = Arc::clone(&proxy);
            // Some tests close the client's connection early, so errors are ignored.
            thread::spawn(move || proxy.serve(socket));
        }
    });
    record
}

struct AcmeProxy {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    pebble: SocketAddr,
    rule: Box<Rule>,
    record: Record,
}

impl AcmeProxy {
    fn serve(&self, socket: TcpStream) -> io::Result<()> {
        let session = ServerConnection::new(Arc::clone(&self.server)).map_err(io::Error::other)?;
        let mut stream = BufReader::new(StreamOwned::new(session, socket));
        while let Some(question) = read_request(&mut stream)? {
            self.record
                .0
                .lock()
                .expect("a record")
                .push(question.clone());
            let pass = || self.pass(&question).expect("an answer of Pebble");
            let reply = (self.rule)(&question, &pass);
            let AcmeResponse {
                status,
                fields,
                body,
            } = reply;
            let head = format!(
                "HTTP/1.1 {status} -\r\n{fields}content-length: {}\r\n\r\n",
                body.len()
            );
            let stream = stream.get_mut();
            stream.write_all(head.as_bytes())?;
            if question.method != "HEAD" {
                stream.write_all(&body)?;
            }
            stream.flush()?;
        }
        Ok(())
    }

    /// Passes the request on to Pebble, and returns the response.
    fn pass(&self, question: &AcmeRequest) -> io::Result<AcmeResponse> {
        let host = ServerName::from(self.pebble.ip());
        let session =
            ClientConnection::new(Arc::clone(&self.client), host).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(session, TcpStream::connect(self.pebble)?);
        // HTTP/1.0 has no chunks, and the connection ends with the body.
        let head = question.head.replacen("HTTP/1.1\r\n", "HTTP/1.0\r\n", 1);
        stream.write_all(head.as_bytes())?;
        stream.write_all(&question.body)?;
        let mut stream = BufReader::new(stream);
        let head = read_head(&mut stream)?.unwrap_or_default();
        let mut body = Vec::new();
        // Go closes the connection without `close_notify` after such a response.
        if let Err(error) = stream.read_to_end(&mut body)
            && error.kind() != io::ErrorKind::UnexpectedEof
        {
            return Err(error);
        }
        let (status, fields) = head.split_once("\r\n").unwrap_or_default();
        let status = status.split(' ').nth(1).and_then(|text| text.parse().ok());
        let is_own = |line: &&str| {
            let name = line.split(':').next().unwrap_or_default();
            !matches!(
                &*name.to_ascii_lowercase(),
                "" | "content-length" | "connection"
            )
        };
        let fields = fields.lines().filter(is_own);
        Ok(AcmeResponse {
            status: status.ok_or_else(|| io::Error::other(format!("no status: {head}")))?,
            fields: fields.map(|line| format!("{line}\r\n")).collect(),
            body,
        })
    }
}

/// Reads the head of a request with its final empty line. Returns `None` if the connection ended before the head.
fn read_head(stream: &mut impl io::BufRead) -> io::Result<Option<String>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(head))
}

fn read_request(stream: &mut impl io::BufRead) -> io::Result<Option<AcmeRequest>> {
    let Some(head) = read_head(stream)? else {
        return Ok(None);
    };
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(Ok(0), |(_, value)| value.trim().parse());
    let mut body = vec![0; length.map_err(io::Error::other)?];
    stream.read_exact(&mut body)?;
    let signed: Value = serde_json::from_slice(&body).unwrap_or_default();
    let payload = signed["payload"].as_str().unwrap_or_default();
    let payload = BASE64_URL_SAFE_NO_PAD.decode(payload).unwrap_or_default();
    let mut words = head.split(' ').map(ToOwned::to_owned);
    Ok(Some(AcmeRequest {
        at: Instant::now(),
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
        payload: serde_json::from_slice(&payload).unwrap_or_default(),
        head,
        body,
    }))
}
