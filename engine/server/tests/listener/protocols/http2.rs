//! HTTP/2 as clients see it, without TLS and with prior knowledge.

use crate::sample;
use std::future::Future;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::wire::{self, Server};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Method, Request, StatusCode};
use server::connection::events::EventChannel;
use server::settings::{Limits, ServeSettings};
use tempfile::NamedTempFile;

struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

type Client = SendRequest<Bytes>;
/// The task of the connection, with the error that ended the connection.
type Connection = tokio::task::JoinHandle<Result<(), h2::Error>>;

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(test)
}

async fn connect(server: &Server) -> (Client, Connection) {
    let socket = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    (client, tokio::spawn(connection))
}

async fn ask(client: &Client, request: Request<()>) -> Result<Reply, h2::Error> {
    let mut client = client.clone().ready().await?;
    let (response, _) = client.send_request(request, true)?;
    read(response).await
}

async fn read(response: h2::client::ResponseFuture) -> Result<Reply, h2::Error> {
    let (parts, mut stream) = response.await?.into_parts();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        stream.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    Ok(Reply {
        status: parts.status,
        headers: parts.headers,
        body,
    })
}

fn get(url: &str) -> Request<()> {
    Request::get(url).body(()).unwrap()
}

#[test]
fn authority_names_the_host() {
    let server = Server::start();
    run(async {
        let (client, _connection) = connect(&server).await;
        for authority in [
            "bluedoor.example",
            "BLUEDOOR.example:8080",
            "bluedoor.example.",
        ] {
            let reply = ask(&client, get(&format!("http://{authority}/terms")))
                .await
                .unwrap();
            assert_eq!(reply.status, 200, "{authority}");
            assert_eq!(
                reply.body,
                sample::text("bluedoor", "", "/terms").as_bytes(),
                "{authority}"
            );
        }
        let reply = ask(&client, get("http://nobody.example/terms"))
            .await
            .unwrap();
        assert_eq!(reply.status, 421);
        let reply = ask(&client, get("http://studio.example/bluedoor/terms"))
            .await
            .unwrap();
        assert_eq!(
            reply.body,
            sample::text("bluedoor", "/bluedoor", "/terms").as_bytes()
        );
    });
}

#[test]
fn host_must_agree_with_the_authority() {
    let server = Server::start();
    run(async {
        let (client, _connection) = connect(&server).await;
        let with_host = |host: &str| {
            Request::get("http://bluedoor.example/terms")
                .header("host", host)
                .body(())
                .unwrap()
        };
        assert_eq!(
            ask(&client, with_host("Bluedoor.example:80"))
                .await
                .unwrap()
                .status,
            200
        );
        assert_eq!(
            ask(&client, with_host("studio.example"))
                .await
                .unwrap()
                .status,
            400
        );
    });
}

#[test]
fn fields_match_those_of_http1() {
    let server = Server::start();
    run(async {
        let (client, _connection) = connect(&server).await;
        let request = |method: Method| {
            let request = Request::builder()
                .method(method)
                .uri("http://studio.example/about");
            request.header("accept-encoding", "br").body(()).unwrap()
        };
        let got = ask(&client, request(Method::GET)).await.unwrap();
        let head = ask(&client, request(Method::HEAD)).await.unwrap();
        let mut plain = server.ask(&wire::request(
            "GET",
            "/about",
            "studio.example",
            "accept-encoding: br\r\n",
        ));
        assert!(head.body.is_empty() && got.body == plain.body);
        plain
            .headers
            .retain(|(name, _)| !["date", "x-request-id"].contains(&&**name));
        for (name, value) in &plain.headers {
            assert_eq!(got.headers[&**name], **value, "{name}");
            assert_eq!(head.headers[&**name], **value, "{name}");
        }
        assert_eq!(got.headers.len(), plain.headers.len() + 2);

        let etag = got.headers["etag"].clone();
        let known = Request::get("http://studio.example/about").header("accept-encoding", "br");
        let known = ask(
            &client,
            known.header("if-none-match", etag).body(()).unwrap(),
        )
        .await
        .unwrap();
        assert_eq!(
            (
                known.status,
                known.body.len(),
                known.headers.get("content-length")
            ),
            (StatusCode::NOT_MODIFIED, 0, None)
        );
    });
}

#[test]
fn many_streams_are_answered_at_once() {
    let server = Server::start();
    run(async {
        let (client, _connection) = connect(&server).await;
        let replies: Vec<_> = (0..100)
            .map(|number| {
                let client = client.clone();
                let url = if number % 2 == 0 {
                    "http://studio.example/about"
                } else {
                    "http://studio.example/nothing"
                };
                tokio::spawn(async move { ask(&client, get(url)).await.unwrap().status.as_u16() })
            })
            .collect();
        for (number, reply) in replies.into_iter().enumerate() {
            assert_eq!(
                reply.await.unwrap(),
                if number % 2 == 0 { 200 } else { 404 }
            );
        }
        let large = ask(&client, get("http://studio.example/assets/large.bin"))
            .await
            .unwrap();
        assert_eq!(large.body.len(), sample::LARGE);
    });
}

#[test]
fn damaged_large_file_ends_only_its_own_stream() {
    let file = NamedTempFile::new().unwrap();
    let film = sample::film();
    std::fs::write(&file, &film).unwrap();
    let server = Server::start();
    server.snapshots.replace(sample::with_film(file.path()));
    let url = format!("http://studio.example{}", sample::FILM);
    run(async {
        let (client, _connection) = connect(&server).await;
        let complete = ask(&client, get(&url)).await.unwrap();
        assert_eq!(complete.body, film);
        std::fs::write(&file, &film[..film.len() / 2]).unwrap();
        let failed = ask(&client, get(&url)).await;
        let reason = failed.map(|reply| reply.status).unwrap_err().reason();
        assert_eq!(reason, Some(h2::Reason::INTERNAL_ERROR));
        let about = ask(&client, get("http://studio.example/about")).await;
        assert_eq!(about.unwrap().status, 200, "on the same connection");
    });
}

#[test]
fn large_file_waits_for_the_window_of_its_client() {
    let file = NamedTempFile::new().unwrap();
    let film = sample::film();
    std::fs::write(&file, &film).unwrap();
    let server = Server::start();
    server.snapshots.replace(sample::with_film(file.path()));
    run(async {
        let socket = tokio::net::TcpStream::connect(server.address);
        let mut builder = h2::client::Builder::new();
        let builder = builder.initial_window_size(1000);
        let (client, connection) = builder.handshake(socket.await.unwrap()).await.unwrap();
        tokio::spawn(connection);
        let film_url = format!("http://studio.example{}", sample::FILM);
        let (unread, _) = client.clone().send_request(get(&film_url), true).unwrap();
        let unread = unread.await.unwrap();
        let read = ask(&client, get(&film_url)).await.unwrap();
        assert_eq!(read.body, film);
        // The other response has waited meanwhile.
        let mut stream = unread.into_body();
        let first = stream.data().await.unwrap().unwrap();
        assert_eq!(first, film[..first.len()]);
        assert!(first.len() <= 1000);
    });
}

#[test]
fn events_reach_a_client_until_the_server_drains() {
    let events = EventChannel::new("first");
    let mut server = Server::with(ServeSettings {
        events: Some(events.clone()),
        ..ServeSettings::default()
    });
    run(async {
        let (client, _connection) = connect(&server).await;
        let url = format!("http://studio.example{}", server::connection::events::PATH);
        let (response, _) = client.clone().send_request(get(&url), true).unwrap();
        let mut stream = response.await.unwrap().into_body();
        for text in ["first", "second"] {
            if text == "second" {
                events.publish(text);
            }
            let mut received = Vec::new();
            while !String::from_utf8_lossy(&received).contains(text) {
                received.extend_from_slice(&stream.data().await.unwrap().unwrap());
            }
        }
        let about = ask(&client, get("http://studio.example/about")).await;
        assert_eq!(about.unwrap().status, 200);
        server.stop();
        while let Some(data) = stream.data().await {
            data.unwrap();
        }
    });
}

#[test]
fn content_is_refused() {
    let server = Server::start();
    run(async {
        let (client, _connection) = connect(&server).await;
        let post = Request::post("http://studio.example/about")
            .body(())
            .unwrap();
        let (response, mut stream) = client
            .clone()
            .ready()
            .await
            .unwrap()
            .send_request(post, false)
            .unwrap();
        let _ = stream.send_data(Bytes::from_static(b"content"), true);
        let reply = read(response).await.unwrap();
        assert_eq!(
            (reply.status.as_u16(), &reply.headers["allow"]),
            (405, &"GET, HEAD, OPTIONS".parse().unwrap())
        );
        // The connection stays open.
        assert_eq!(
            ask(&client, get("http://studio.example/about"))
                .await
                .unwrap()
                .status,
            200
        );
    });
}

/// Connects a client whose stream windows are zero, and which pings continuously.
async fn connect_without_room(server: &Server) -> (Client, Connection) {
    let socket = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    let (client, mut connection) = h2::client::Builder::new()
        .initial_window_size(0)
        .handshake(socket)
        .await
        .unwrap();
    let mut pings = connection.ping_pong().unwrap();
    tokio::spawn(async move {
        while pings.ping(h2::Ping::opaque()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    (client, tokio::spawn(connection))
}

async fn assert_ends(connection: Connection) {
    let ended = tokio::time::timeout(Duration::from_secs(10), connection).await;
    assert!(ended.is_ok(), "still open");
}

#[test]
fn requests_in_flight_per_connection_are_limited() {
    let server = limited(|limits| limits.http2_streams = 3);
    run(async {
        let (client, _connection) = connect(&server).await;
        let reply = ask(&client, get("http://studio.example/about")).await;
        assert_eq!(reply.unwrap().status, 200);
        assert_eq!(client.current_max_send_streams(), 3);
    });
}

#[test]
fn pings_do_not_keep_a_connection_open() {
    let server = limited(|limits| limits.idle = Duration::from_millis(600));
    run(async {
        let (_client, connection) = connect_without_room(&server).await;
        assert_ends(connection).await;
    });
    assert_eq!(server.snapshots.connections.idle.load(Relaxed), 1);
}

#[test]
fn response_that_is_never_read_times_out() {
    let server = limited(|limits| limits.request = Duration::from_millis(600));
    run(async {
        let (client, connection) = connect_without_room(&server).await;
        let response = client
            .clone()
            .send_request(get("http://studio.example/about"), true)
            .unwrap()
            .0;
        // Dropping the response would reset the stream.
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        assert_ends(connection).await;
    });
    assert_eq!(server.snapshots.connections.slow_requests.load(Relaxed), 1);
}

#[test]
fn request_target_is_limited_in_length() {
    let server = limited(|limits| limits.uri_bytes = 20);
    run(async {
        let (client, _connection) = connect(&server).await;
        let status = async |path: &str| {
            let url = format!("http://studio.example{path}");
            ask(&client, get(&url)).await.unwrap().status
        };
        assert_eq!(status("/about?aaaaaaaaaaaaa").await, 200);
        assert_eq!(status("/about?aaaaaaaaaaaaaa").await, 414);
    });
}

#[test]
fn header_fields_are_limited_in_size() {
    let server = limited(|limits| limits.header_bytes = 1024);
    run(async {
        let (client, _connection) = connect(&server).await;
        let large = Request::get("http://studio.example/about")
            .header("x", "y".repeat(2048))
            .body(())
            .unwrap();
        let refused = ask(&client, large).await.unwrap();
        assert_eq!(refused.status, 431);
        let small = ask(&client, get("http://studio.example/about")).await;
        assert_eq!(small.unwrap().status, 200, "the connection stays open");
    });
}

fn limited(change: impl FnOnce(&mut Limits)) -> Server {
    let mut limits = Limits::default();
    change(&mut limits);
    Server::with(ServeSettings {
        limits,
        ..ServeSettings::default()
    })
}

#[test]
fn shutdown_finishes_streams() {
    let mut server = Server::with(ServeSettings {
        grace: Duration::from_secs(10),
        ..ServeSettings::default()
    });
    let reply = run(async {
        let (client, connection) = connect(&server).await;
        let request = get("http://studio.example/assets/large.bin");
        let (response, _) = client
            .clone()
            .ready()
            .await
            .unwrap()
            .send_request(request, true)
            .unwrap();
        let response = response.await.unwrap();
        server.stop();
        let mut stream = response.into_body();
        let mut length = 0;
        while let Some(data) = stream.data().await {
            let data = data.unwrap();
            stream.flow_control().release_capacity(data.len()).unwrap();
            length += data.len();
        }
        drop(client);
        connection.await.unwrap().unwrap();
        length
    });
    assert_eq!(reply, sample::LARGE);
    assert_eq!(server.ended().cut.connections(), 0);
}
