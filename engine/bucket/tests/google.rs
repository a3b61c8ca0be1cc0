//! Google Cloud Storage compares the generation of an object in a swap, and not its `ETag`.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use bucket::store::{Bucket, Change, Uploads};
use fleet::exchange::{Answer, Request};
use fleet::key::ObjectKey;

/// Starts a store with one object of generation 17, which sends the heads of its requests in lower case.
fn start_store() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (sender, heads) = mpsc::channel();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut reader = BufReader::new(client.try_clone().expect("a socket"));
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                reader.read_line(&mut head).expect("a line");
            }
            head.make_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.parse().expect("a length"));
            reader.read_exact(&mut vec![0; length]).expect("a body");
            let fields = "etag: \"abc\"\r\nx-goog-generation: 17\r\nlast-modified: Sat, 28 Nov 2026 12:00:00 GMT\r\nconnection: close";
            let is_known = head.contains("if-none-match: \"abc\"");
            let (status, body) = match head.starts_with("get ") {
                true if is_known => ("304 Not Modified", ""),
                true => ("200 OK", "one"),
                false => ("200 OK", ""),
            };
            let length = body.len();
            let response =
                format!("HTTP/1.1 {status}\r\n{fields}\r\ncontent-length: {length}\r\n\r\n{body}");
            client.write_all(response.as_bytes()).expect("a response");
            if sender.send(head).is_err() {
                break;
            }
        }
    });
    (address, heads)
}

#[tokio::test]
async fn swap_names_the_generation_of_the_object_that_was_read() {
    let (address, heads) = start_store();
    let variables = [
        ("GOOGLE_BASE_URL", &*format!("http://{address}")),
        ("GOOGLE_ALLOW_HTTP", "true"),
        ("GOOGLE_BEARER_TOKEN", "token"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let bucket = Bucket::open_with("gs://fleet/sites", variables).expect("an address");
    let key = ObjectKey::head();
    let Ok(Change::Object(object)) = bucket.get(&key, None).await else {
        panic!("no object");
    };
    heads.recv().expect("a read");
    let again = bucket.get(&key, Some(&object.tag)).await;
    assert_eq!(again.expect("an answer"), Change::None);
    heads.recv().expect("a question");
    let swap = Request::Swap(key, object.tag, "two".into());
    let sent = bucket.send(&swap, &Uploads::new()).await;
    assert_eq!(sent.expect("an answer"), Answer::Done);
    let head = heads.recv().expect("a write");
    assert!(
        head.contains("x-goog-if-generation-match: 17\r\n"),
        "{head}"
    );
}
