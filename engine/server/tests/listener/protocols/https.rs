//! HTTPS as visitors see it: certificates, versions, alerts, hosts, limits.

use crate::sample;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::wire::authority::{Authority, BOTH_VERSIONS, TlsClient, secure};
use crate::wire::{self, Server, bind, get};
use rustls::{ClientConfig, HandshakeKind, NamedGroup, ProtocolVersion};
use server::listen::Listeners;
use server::settings::{Limits, ServeSettings, network};
use server::snapshot_store::RequestedAddress;
use server::tls::Tls;

const TLS13: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13];
const TLS12: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS12];

/// Alert, fatal, unrecognized_name.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// A server with one certificate for two hosts and another for a third.
struct Site {
    authority: Authority,
    tls: Arc<Tls>,
    server: Server,
    redirect: SocketAddr,
}

impl Site {
    fn start() -> Self {
        Self::with(ServeSettings::default())
    }

    fn with(settings: ServeSettings) -> Self {
        let authority = Authority::new();
        let tls = authority.tls(&[
            &["studio.example", "bluedoor.example"],
            &["www.studio.example"],
        ]);
        let settings = ServeSettings {
            tls: Some(Arc::clone(&tls)),
            ..settings
        };
        let (secure, redirect) = (bind(), bind());
        let (address, led) = (secure.local_addr().unwrap(), redirect.local_addr().unwrap());
        let listeners = Listeners {
            tls: vec![secure],
            redirect: vec![redirect],
            ..Listeners::default()
        };
        Self {
            authority,
            tls,
            server: Server::listening(listeners, address, settings),
            redirect: led,
        }
    }

    fn client(&self, host: &str) -> std::io::Result<TlsClient> {
        let config = self.authority.client(BOTH_VERSIONS, &["http/1.1"]);
        secure(self.server.address, &config, host)
    }

    /// Begins a handshake, and returns everything until the server closes the connection.
    fn greet(&self, host: &str) -> Vec<u8> {
        let mut socket = TcpStream::connect(self.server.address).unwrap();
        let config = self.authority.client(BOTH_VERSIONS, &[]);
        let name = rustls::pki_types::ServerName::try_from(host.to_owned()).unwrap();
        let mut session = rustls::ClientConnection::new(config, name).unwrap();
        while session.wants_write() {
            session.write_tls(&mut socket).unwrap();
        }
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        answer
    }

    fn counted(&self) -> (u64, u64, u64) {
        let counters = &self.server.snapshots.handshakes;
        let of = |count: &std::sync::atomic::AtomicU64| count.load(Relaxed);
        (
            of(&counters.unknown_name),
            of(&counters.refused),
            of(&counters.slow),
        )
    }
}

/// Sends one request and returns everything until the server closes the connection.
fn ask(client: &mut TlsClient, request: &str) -> String {
    client.write_all(request.as_bytes()).unwrap();
    let mut text = Vec::new();
    let _ = client.read_to_end(&mut text);
    String::from_utf8(text).unwrap()
}

fn last(path: &str, host: &str) -> String {
    wire::request("GET", path, host, "connection: close\r\n")
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "waited in vain: {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn page_is_served_over_both_tls_versions() {
    let site = Site::start();
    for (versions, expected) in [
        (TLS13, ProtocolVersion::TLSv1_3),
        (TLS12, ProtocolVersion::TLSv1_2),
    ] {
        let config = site.authority.client(versions, &["http/1.1"]);
        let mut client = secure(site.server.address, &config, "bluedoor.example").unwrap();
        assert_eq!(client.conn.protocol_version(), Some(expected));
        assert_eq!(client.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        let answer = ask(&mut client, &last("/terms", "bluedoor.example"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(
            answer.ends_with(&sample::text("bluedoor", "", "/terms")),
            "{answer}"
        );
    }
}

#[test]
fn key_agreement_is_post_quantum() {
    let site = Site::start();
    let config = site.authority.client(TLS13, &["h2"]);
    let client = secure(site.server.address, &config, "studio.example").unwrap();
    let group = client.conn.negotiated_key_exchange_group().unwrap();
    assert_eq!(group.name(), NamedGroup::X25519MLKEM768);
    assert_eq!(client.conn.alpn_protocol(), Some(&b"h2"[..]));
}

#[test]
fn session_resumes_for_the_same_host_only() {
    let site = Site::start();
    for versions in [TLS13, TLS12] {
        let config: Arc<ClientConfig> = site.authority.client(versions, &["http/1.1"]);
        let kind = |host: &str| {
            let mut client = secure(site.server.address, &config, host).unwrap();
            let answer = ask(&mut client, &last("/", host));
            assert!(answer.starts_with("HTTP/1.1"), "{answer}");
            client.conn.handshake_kind()
        };
        assert_eq!(kind("studio.example"), Some(HandshakeKind::Full));
        assert_eq!(kind("studio.example"), Some(HandshakeKind::Resumed));
        assert_eq!(kind("bluedoor.example"), Some(HandshakeKind::Full));
    }
}

#[test]
fn unclaimed_name_gets_an_alert_and_no_certificate() {
    let site = Site::start();
    // The last host is claimed, but has no certificate.
    for host in ["stranger.example", "203.0.113.7", "verses.example"] {
        // An IP address is not a valid server name (RFC 6066, section 3).
        assert_eq!(site.greet(host), UNRECOGNIZED_NAME, "{host}");
    }
    until("the count", || site.counted().0 >= 2);
}

#[test]
fn handshake_for_a_dormant_tenant_wakes_it_and_waits_for_its_certificate() {
    let site = Site::start();
    let snapshots = &site.server.snapshots;
    snapshots.set_dormant_lookup(|address| match address {
        RequestedAddress::Host("late.example", _) => Some("late".into()),
        _ => None,
    });
    let (say, woken) = channel();
    let say = Mutex::new(say);
    snapshots.on_notice(move |notice| {
        let _ = say.lock().unwrap().send(format!("{notice:?}"));
    });
    std::thread::scope(|scope| {
        let late = scope.spawn(|| site.client("late.example").unwrap());
        assert_eq!(woken.recv().unwrap(), "Dormant(\"late\")");
        // Other handshakes do not wait.
        site.client("studio.example").unwrap();
        assert!(!late.is_finished());
        let certificate = site.authority.certificate(&["late.example"]);
        site.tls
            .certificates
            .set_issued("late.example", &certificate);
        // The client verifies the name of the certificate.
        let client = late.join().unwrap();
        assert!(!client.conn.is_handshaking());
    });
}

#[test]
fn handshake_for_a_dormant_tenant_without_a_certificate_gets_an_alert_after_a_wait() {
    let site = Site::start();
    let snapshots = &site.server.snapshots;
    snapshots.set_dormant_lookup(|address| match address {
        RequestedAddress::Host("late.example", _) => Some("late".into()),
        _ => None,
    });
    let begun = Instant::now();
    assert_eq!(site.greet("late.example"), UNRECOGNIZED_NAME);
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_secs(5), "{waited:?}");
    assert_eq!(snapshots.handshakes.no_certificate.load(Relaxed), 1);
}

#[test]
fn plain_http_gets_an_alert_and_no_page() {
    let site = Site::start();
    let mut socket = site.server.connect();
    socket
        .write_all(get("/terms", "bluedoor.example").as_bytes())
        .unwrap();
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    assert_eq!(answer.first(), Some(&21), "an alert: {answer:?}");
    assert!(answer.len() < 16, "{answer:?}");
}

#[test]
fn request_for_another_host_needs_a_covering_certificate() {
    let site = Site::start();
    let status = |sni: &str, host: &str| {
        let mut client = site.client(sni).unwrap();
        let answer = ask(&mut client, &last("/terms", host));
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status("studio.example", "bluedoor.example"), "200");
    assert_eq!(status("studio.example", "BLUEDOOR.example.:8443"), "200");
    assert_eq!(status("www.studio.example", "bluedoor.example"), "421");
    assert_eq!(status("studio.example", "www.studio.example"), "421");
    assert_eq!(status("studio.example", "stranger.example"), "421");
    assert_eq!(status("studio.example", "a b"), "400");
}

#[test]
fn http_redirects_to_https_for_known_hosts() {
    let site = Site::start();
    let ask = |request: &str| {
        let mut socket = TcpStream::connect(site.redirect).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        wire::Reply::read(&mut socket)
    };
    let reply = ask(&get("/terms?a=1", "Bluedoor.example:8080"));
    assert_eq!(reply.status, 308);
    let location = reply.header("location");
    assert_eq!(location, Some("https://bluedoor.example:8443/terms?a=1"));
    assert!(reply.header("cache-control").is_some());
    let reply = ask(&wire::request(
        "POST",
        "/",
        "studio.example",
        "content-length: 0\r\n",
    ));
    assert_eq!(reply.status, 308);
    assert_eq!(ask(&get("/", "stranger.example")).status, 421);
    assert_eq!(ask("GET / HTTP/1.1\r\n\r\n").status, 400);
    let challenge = get("/.well-known/acme-challenge/unknown", "studio.example");
    assert_eq!(ask(&challenge).status, 404);
}

#[test]
fn unfinished_handshake_times_out() {
    let site = Site::with(ServeSettings {
        limits: Limits {
            handshake: Duration::from_millis(300),
            ..Limits::default()
        },
        ..ServeSettings::default()
    });
    let mut slow = site.server.connect();
    // The first bytes of a ClientHello.
    slow.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer);
    assert!(answer.is_empty(), "{answer:?}");
    until("the count", || site.counted().2 == 1);
    // A client with a completed handshake is not affected by the handshake timeout.
    let mut quick = site.client("studio.example").unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    assert!(ask(&mut quick, &last("/", "studio.example")).starts_with("HTTP/1.1"));
}

#[test]
fn handshakes_of_one_address_are_limited_in_number() {
    let site = Site::with(ServeSettings {
        limits: Limits {
            handshakes_per_address: 3,
            ..Limits::default()
        },
        ..ServeSettings::default()
    });
    let held: Vec<TcpStream> = (0..3).map(|_| site.server.connect()).collect();
    until("three in flight", || {
        site.server.snapshots.connections.open.load(Relaxed) == 3
    });
    assert!(site.client("studio.example").is_err());
    assert_eq!(site.counted().1, 1);
    drop(held);
    until("room", || site.client("studio.example").is_ok());
}

#[test]
fn handshake_rate_is_limited_and_open_connections_continue() {
    let site = Site::with(ServeSettings {
        limits: Limits {
            handshake_rate: 1,
            ..Limits::default()
        },
        ..ServeSettings::default()
    });
    let mut kept = site.client("studio.example").unwrap();
    let refused = (0..20)
        .filter(|_| site.client("studio.example").is_err())
        .count();
    assert!(refused >= 10, "{refused}");
    assert!(ask(&mut kept, &last("/", "studio.example")).starts_with("HTTP/1.1"));
}

#[test]
fn replacing_a_certificate_under_load_fails_no_handshake() {
    let site = Site::with(ServeSettings {
        limits: Limits {
            handshake_rate: 10_000,
            ..Limits::default()
        },
        ..ServeSettings::default()
    });
    let config = site.authority.client(BOTH_VERSIONS, &["http/1.1"]);
    let address = site.server.address;
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                for _ in 0..100 {
                    let mut client = secure(address, &config, "studio.example").unwrap();
                    let answer = ask(&mut client, &last("/", "studio.example"));
                    assert!(answer.starts_with("HTTP/1.1"), "{answer}");
                }
            })
        })
        .collect();
    let mut replaced = 0;
    while clients.iter().any(|client| !client.is_finished()) {
        let certificate = site.authority.certificate(&["studio.example"]);
        site.tls.certificates.set_files(&[certificate]);
        replaced += 1;
    }
    assert!(replaced > 1, "{replaced}");
    for client in clients {
        client.join().unwrap();
    }
}

#[test]
fn proxy_protocol_header_names_the_visitor() {
    let site = Site::with(ServeSettings {
        trusted_proxies: vec![network("127.0.0.0/8").unwrap()],
        proxy_protocol: true,
        limits: Limits {
            connections_per_address: 1,
            ..Limits::default()
        },
        ..ServeSettings::default()
    });
    let config = site.authority.client(BOTH_VERSIONS, &["http/1.1"]);
    let through = |header: &str| {
        let mut socket = site.server.connect();
        socket.write_all(header.as_bytes()).unwrap();
        let host = rustls::pki_types::ServerName::try_from("studio.example").unwrap();
        let mut session = rustls::ClientConnection::new(Arc::clone(&config), host).unwrap();
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok::<_, std::io::Error>(rustls::StreamOwned::new(session, socket))
    };
    let mut one = through("PROXY TCP4 192.0.2.1 127.0.0.1 5 443\r\n").unwrap();
    // The first visitor is at the limit. Another visitor has a limit of its own, and the proxy itself has none.
    assert!(through("PROXY TCP4 192.0.2.1 127.0.0.1 6 443\r\n").is_err());
    let mut other = through("PROXY TCP6 2001:db8::1 ::1 5 443\r\n").unwrap();
    let mut itself = through("PROXY UNKNOWN\r\n").unwrap();
    for client in [&mut one, &mut other, &mut itself] {
        let answer = ask(client, &last("/", "studio.example"));
        assert!(answer.starts_with("HTTP/1.1"), "{answer}");
    }
    // A proxy without a header is misconfigured.
    assert!(through("").is_err());
}

#[test]
fn shutdown_drains_tls_connections() {
    let mut site = Site::start();
    let mut idle = site.client("studio.example").unwrap();
    let mut new = site.client("studio.example").unwrap();
    let mut busy = site.client("studio.example").unwrap();
    busy.write_all(b"GET / HTTP/1.1\r\nhost: studio").unwrap();
    until("all", || {
        site.server.snapshots.connections.open.load(Relaxed) == 3
    });
    site.server.stop();
    // The handshake is complete, and a first request is expected.
    let answer = ask(&mut new, &last("/", "studio.example"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut rest = Vec::new();
    let _ = idle.read_to_end(&mut rest);
    assert!(rest.is_empty());
    let answer = ask(&mut busy, ".example\r\n\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"),
        "{answer}"
    );
    assert_eq!(site.server.ended().cut.connections(), 0);
}
