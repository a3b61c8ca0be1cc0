//! A store that is slow, or refuses requests because there are too many: a proxy in front of a real store.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use bucket::store::Bucket;
use tempfile::TempDir;

use crate::fleet::object_store::ObjectStore;
use crate::fleet::replicas::{TestPublisher, has_text, readiness, replica, wait_for_text};
use crate::support::{Rowhouse, wait_for};

/// The response of S3 to too many requests.
const SLOW_DOWN: &str =
    "<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>";

/// The behaviour of the store from now on.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// The delay of each request, in milliseconds.
    delay: AtomicU64,
    /// The number of refused requests out of each four.
    refused: AtomicUsize,
    requests: AtomicUsize,
}

impl Faults {
    pub(crate) fn set(&self, delay: Duration, refused: usize) {
        let delay = delay.as_millis().try_into().expect("a short delay");
        self.delay.store(delay, Relaxed);
        self.refused.store(refused, Relaxed);
    }

    /// Returns the number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Relaxed)
    }

    /// Answers one request, from the store or in its place.
    fn serve(&self, client: &TcpStream, store: SocketAddr) -> io::Result<()> {
        let mut reader = BufReader::new(client);
        let mut head = String::new();
        let mut length = 0;
        loop {
            let begin = head.len();
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
            let line = head[begin..].trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        thread::sleep(Duration::from_millis(self.delay.load(Relaxed)));
        let mut client = client;
        if self.requests.fetch_add(1, Relaxed) % 4 < self.refused.load(Relaxed) {
            let length = SLOW_DOWN.len();
            let response = format!(
                "HTTP/1.1 503 Slow Down\r\ncontent-type: application/xml\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{SLOW_DOWN}"
            );
            return client.write_all(response.as_bytes());
        }
        // The last line is empty. The signature of the request does not cover this field.
        head.insert_str(head.len() - 2, "connection: close\r\n");
        let mut upstream = TcpStream::connect(store)?;
        upstream.write_all(head.as_bytes())?;
        upstream.write_all(&body)?;
        io::copy(&mut upstream, &mut client)?;
        client.shutdown(Shutdown::Both)
    }
}

/// Starts the proxy, which runs until the tests end.
pub(crate) fn start_proxy(store: SocketAddr) -> (SocketAddr, Arc<Faults>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a socket");
    let address = listener.local_addr().expect("an address");
    let faults = Arc::new(Faults::default());
    let shared = Arc::clone(&faults);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let faults = Arc::clone(&shared);
            // A client that gives up closes its connection.
            thread::spawn(move || faults.serve(&client, store));
        }
    });
    (address, faults)
}

#[test]
fn slow_or_throttled_store_delays_versions_and_fails_no_request() {
    let Some(store) = ObjectStore::start() else {
        return;
    };
    let (address, faults) = start_proxy(store.s3());
    let endpoint = ("AWS_ENDPOINT_URL".to_owned(), format!("http://{address}"));
    let publisher = TestPublisher::new(store.bucket("sites"));
    publisher.publish("mill", Some("Version 1"));
    let state = TempDir::new().expect("a folder");
    let mut command = replica(&store, &state);
    command.env(&endpoint.0, &endpoint.1);
    let server = Rowhouse::start_with(&mut command);
    assert!(has_text(&server, "mill", "Version 1"));

    faults.set(Duration::from_secs(2), 0);
    publisher.publish("mill", Some("Version 2"));
    wait_for_text(&server, "mill", "Version 2");
    assert_eq!(readiness(&server).1, "ready\n");

    // The client of the store repeats refused requests: of the publisher, and of the replica.
    faults.set(Duration::ZERO, 2);
    let variables = store.variables().into_iter().chain([endpoint]);
    let bucket = Bucket::open_with(&store.address("sites"), variables).expect("an address");
    TestPublisher::new(bucket).publish("mill", Some("Version 3"));
    wait_for_text(&server, "mill", "Version 3");

    faults.set(Duration::ZERO, 4);
    wait_for("an alarm", || {
        let (status, text) = readiness(&server);
        assert_eq!(status, 200, "{text}");
        assert!(has_text(&server, "mill", "Version 3"));
        text.contains("alarm: the bucket `s3://fleet/sites` cannot be read")
            .then_some(())
    });
    faults.set(Duration::ZERO, 0);
    publisher.publish("mill", Some("Version 4"));
    wait_for_text(&server, "mill", "Version 4");
    wait_for("the end of the alarm", || {
        (readiness(&server).1 == "ready\n").then_some(())
    });
}
