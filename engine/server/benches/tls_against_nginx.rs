//! Compares the CPU time of TLS with nginx and, if installed, Caddy, with the same certificate, key, cipher suite and group: a request on an open connection, a full handshake and a resumed handshake.
//!
//! Then measures a visitor's 99th percentile on rowhouse and on nginx, while another address begins thousands of handshakes per second and completes none.
//!
//! All servers send the same body and a few header fields. Each server has one thread on the first core; the client uses the second core. The servers are measured in short turns, and each ratio is the median of the ratios of the turns.
//!
//! Run it with `cargo bench -p server --bench tls_against_nginx`. The benchmark needs `nginx` and `taskset`; without `caddy`, Caddy is left out. `ONLY_FLOOD=1` measures only the flood.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/support/authority.rs"]
mod authority;
#[path = "support/process.rs"]
mod process;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use authority::{TlsClient, secure};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use process::{Server, announce, is_installed, on_first_core, quantile};
use release::snapshot::fields::Fields;
use release::snapshot::{
    Body, ContentEncoding, HostEntry, HostRoutes, Mount, MountPages, Resource, Slot, Snapshot,
    Variant,
};
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use server::listen::{self, Listeners};
use server::settings::{Limits, ServeSettings};
use server::snapshot_store::SnapshotStore;
use server::tls::Tls;
use server::tls::certificate::Certificate;
use server::tls::certificate_store::CertificateStore;
use socket2::{Domain, Socket, Type};

const HOST: &str = "studio.example";
const BODY: usize = 6 * 1024;
const TURNS: usize = 60;
const WARM_UP: usize = 5;
const CONNECTIONS: usize = 16;
/// Requests per connection in a turn.
const BATCHES: usize = 20;
/// Handshakes in a turn.
const HANDSHAKES: usize = 60;
/// Handshakes per second that are never completed.
const FLOOD: u64 = 10_000;
const FIELDS: [(&str, &str); 6] = [
    ("content-type", "text/html"),
    ("cache-control", "public, max-age=0, must-revalidate"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; form-action 'self' mailto:; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("referrer-policy", "strict-origin-when-cross-origin"),
    ("strict-transport-security", "max-age=63072000"),
    ("x-content-type-options", "nosniff"),
];
const REQUEST: &str = "GET /page HTTP/1.1\r\nhost: studio.example\r\nuser-agent: Mozilla/5.0 (X11; Linux x86_64)\r\naccept: text/html\r\naccept-language: en-US,en;q=0.9\r\n\r\n";

fn main() {
    match process::served_name().as_deref() {
        Some(name) => serve_rowhouse(name == "limited"),
        None if is_installed("nginx") && is_installed("taskset") => compare(),
        None => println!("skipped: `nginx` or `taskset` is not installed"),
    }
}

fn folder() -> std::path::PathBuf {
    // The parent process passes its folder in the environment.
    std::env::var_os("ROWHOUSE_BENCH").map_or_else(
        || std::env::temp_dir().join(format!("rowhouse-tls-{}", std::process::id())),
        Into::into,
    )
}

fn compare() {
    process::take_second_core();
    let folder = folder();
    fs::create_dir_all(folder.join("pages")).unwrap();
    let authority = authority::Authority::new();
    let (chain, key) = authority.sign(&[HOST]);
    fs::write(folder.join("chain.pem"), chain).unwrap();
    fs::write(folder.join("key.pem"), key).unwrap();
    if std::env::var_os("ONLY_FLOOD").is_none() {
        costs(&folder, &authority.roots());
    }
    under_a_flood(&folder, &authority.roots());
    let _ = fs::remove_dir_all(folder);
}

/// Measures requests and handshakes.
fn costs(folder: &Path, roots: &RootCertStore) {
    let mut servers = vec![of_this_program("rowhouse", folder), nginx(folder)];
    match is_installed("caddy") {
        true => servers.push(caddy(folder)),
        false => println!("`caddy` is not installed, and is left out"),
    }
    for (what, measure) in [
        ("request, kept connection", Measure::Kept),
        ("full handshake", Measure::Full),
        ("resumed handshake", Measure::Resumed),
    ] {
        side_by_side(what, measure, &servers, roots);
    }
}

/// Measures the servers in turns. Prints the cost of each, and the ratio of the first server's cost to the others'.
fn side_by_side(what: &str, measure: Measure, servers: &[Server], roots: &RootCertStore) {
    let clients = servers.iter();
    let mut clients: Vec<_> = clients
        .map(|one| Client::new(one, roots, measure))
        .collect();
    let mut turn = || clients.iter_mut().map(Client::cost).collect::<Vec<f64>>();
    for _ in 0..WARM_UP {
        turn();
    }
    let turns: Vec<_> = (0..TURNS).map(|_| turn()).collect();
    let median = |number: usize| {
        let costs: Vec<f64> = turns.iter().map(|turn| turn[number]).collect();
        quantile(&costs, 0.5)
    };
    print!("{what:<26} {} {:>7.1} us", servers[0].name, median(0));
    for (number, server) in servers.iter().enumerate().skip(1) {
        let ratios: Vec<f64> = turns.iter().map(|turn| turn[0] / turn[number]).collect();
        let [low, middle, high] = [0.25, 0.5, 0.75].map(|part| quantile(&ratios, part));
        print!(
            "; {} {:>7.1} us, ratio {middle:.3} ({low:.3}-{high:.3})",
            server.name,
            median(number)
        );
    }
    println!();
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Kept,
    Full,
    Resumed,
}

struct Client<'s> {
    server: &'s Server,
    measure: Measure,
    config: Arc<ClientConfig>,
    kept: Vec<TlsClient>,
}

impl<'s> Client<'s> {
    fn new(server: &'s Server, roots: &RootCertStore, measure: Measure) -> Self {
        let mut client = Self {
            server,
            measure,
            config: config(roots, measure == Measure::Resumed),
            kept: Vec::new(),
        };
        if measure == Measure::Kept {
            client.kept = (0..CONNECTIONS).map(|_| client.connect()).collect();
        }
        client
    }

    fn connect(&self) -> TlsClient {
        secure(self.server.address, &self.config, HOST).unwrap()
    }

    /// Returns the server's CPU time in microseconds for one request or handshake.
    fn cost(&mut self) -> f64 {
        let before = self.server.settled_cpu_time();
        let count = match self.measure {
            Measure::Kept => {
                for _ in 0..BATCHES {
                    for client in &mut self.kept {
                        client.write_all(REQUEST.as_bytes()).unwrap();
                    }
                    for client in self.kept.iter_mut().rev() {
                        read_answer(client);
                    }
                }
                BATCHES * CONNECTIONS
            }
            Measure::Full | Measure::Resumed => {
                for _ in 0..HANDSHAKES {
                    let mut client = self.connect();
                    // Session tickets come with the response.
                    client.write_all(REQUEST.as_bytes()).unwrap();
                    read_answer(&mut client);
                }
                HANDSHAKES
            }
        };
        let took = self.server.settled_cpu_time() - before;
        took.as_secs_f64() * 1e6 / count as f64
    }
}

/// Returns a client configuration with one cipher suite and one group, so that the servers' preferences do not matter.
fn config(roots: &RootCertStore, resumes: bool) -> Arc<ClientConfig> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256];
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    if !resumes {
        config.resumption = rustls::client::Resumption::disabled();
    }
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

fn read_answer(client: &mut TlsClient) {
    let mut answer = vec![0; BODY + 4096];
    let mut length = 0;
    loop {
        let more = client.read(&mut answer[length..]).unwrap();
        assert!(more > 0, "the server has closed a connection");
        length += more;
        if let Some(end) = memchr::memmem::find(&answer[..length], b"\r\n\r\n")
            && length == end + 4 + BODY
        {
            assert!(answer.starts_with(b"HTTP/1.1 200"));
            return;
        }
    }
}

/// Measures a visitor's 99th percentile in quiet and during the flood. nginx is measured too, since the flood comes from the same machine and uses a part of it.
fn under_a_flood(folder: &Path, roots: &RootCertStore) {
    for server in [of_this_program("limited", folder), nginx(folder)] {
        let config = config(roots, false);
        let mut visitor = secure(server.address, &config, HOST).unwrap();
        let mut measure = |seconds: u64| {
            let (begin, mut times) = (Instant::now(), Vec::new());
            while begin.elapsed() < Duration::from_secs(seconds) {
                let start = Instant::now();
                visitor.write_all(REQUEST.as_bytes()).unwrap();
                read_answer(&mut visitor);
                times.push(start.elapsed().as_secs_f64() * 1e6);
                std::thread::sleep(Duration::from_millis(2));
            }
            quantile(&times, 0.99)
        };
        let quiet = measure(5);
        let (stop, begun) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let flood = {
            let (stop, begun, address) = (Arc::clone(&stop), Arc::clone(&begun), server.address);
            std::thread::spawn(move || flood(address, &stop, &begun))
        };
        let flooded = measure(5);
        stop.store(true, Relaxed);
        flood.join().unwrap();
        let rate = begun.load(Relaxed) / 5;
        println!(
            "99th percentile of a visitor of {}: quiet {quiet:.0} us, {flooded:.0} us under {rate} handshakes a second, ratio {:.2}",
            server.name,
            flooded / quiet
        );
    }
}

/// Connects from another address and sends the beginning of a handshake, again and again.
fn flood(address: SocketAddr, stop: &AtomicBool, begun: &AtomicU64) {
    let begin = Instant::now();
    let mut open = std::collections::VecDeque::new();
    while !stop.load(Relaxed) {
        let due = begin.elapsed().as_micros() as u64 * FLOOD / 1_000_000;
        if begun.load(Relaxed) >= due {
            // Evenly spread, as over a network: a burst would hold up the visitor, which is on the same core.
            std::thread::sleep(Duration::from_micros(20));
            continue;
        }
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket
            .bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0)).into())
            .unwrap();
        // Resetting frees the port at once: a flood of ten seconds needs more ports than there are.
        socket.set_linger(Some(Duration::ZERO)).unwrap();
        if socket.connect(&address.into()).is_ok() {
            let _ = socket.send(&[22, 3, 1, 2, 0, 1]);
            open.push_back(socket);
        }
        if open.len() > 512 {
            open.pop_front();
        }
        begun.fetch_add(1, Relaxed);
    }
}

fn of_this_program(name: &'static str, folder: &Path) -> Server {
    let mut command = on_first_core();
    // The port was free a moment ago.
    let address = free_address();
    command
        .arg(std::env::current_exe().unwrap())
        .args(["--serve", name])
        .env("ROWHOUSE_BENCH", folder)
        .env("ROWHOUSE_BENCH_ADDRESS", address.to_string());
    Server::of(name, &mut command, address)
}

fn free_address() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap()
}

fn nginx(folder: &Path) -> Server {
    let address = free_address();
    let here = folder.display();
    fs::write(folder.join("pages/page"), vec![b'x'; BODY]).unwrap();
    let fields: String = FIELDS[1..]
        .iter()
        .map(|(name, value)| format!("add_header {name} \"{value}\";\n"))
        .collect();
    let configuration = format!(
        "daemon off; master_process off; pid {here}/nginx.pid; error_log {here}/error.log;
        events {{ worker_connections 1024; }}
        http {{
          access_log off; server_tokens off; keepalive_requests 1000000000; keepalive_timeout 130s;
          default_type text/html;
          client_body_temp_path {here}/b; proxy_temp_path {here}/p; fastcgi_temp_path {here}/f;
          uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;
          open_file_cache max=1000 inactive=1h; open_file_cache_valid 1h;
          sendfile off;
          server {{
            listen {address} ssl; root {here}/pages;
            ssl_certificate {here}/chain.pem; ssl_certificate_key {here}/key.pem;
            ssl_protocols TLSv1.3; ssl_session_tickets on; ssl_session_timeout 1h;
            add_header x-request-id $request_id;
            {fields}
          }}
        }}"
    );
    let path = folder.join("nginx.conf");
    fs::write(&path, configuration).unwrap();
    let mut command = on_first_core();
    command.args(["nginx", "-c"]).arg(path);
    Server::of("nginx", &mut command, address)
}

fn caddy(folder: &Path) -> Server {
    let address = free_address();
    let here = folder.display();
    let fields: String = FIELDS
        .iter()
        .map(|(name, value)| format!("{name} \"{value}\"\n"))
        .collect();
    let configuration = format!(
        "{{
          admin off
          auto_https off
          log {{
            output discard
          }}
        }}
        https://{HOST}:{} {{
          bind {}
          tls {here}/chain.pem {here}/key.pem {{
            protocols tls1.3
          }}
          root * {here}/pages
          header {{
            x-request-id {{http.request.uuid}}
            {fields}
          }}
          file_server
        }}",
        address.port(),
        address.ip()
    );
    let path = folder.join("Caddyfile");
    fs::write(&path, configuration).unwrap();
    let mut command = on_first_core();
    command
        .args(["caddy", "run", "--adapter", "caddyfile", "--config"])
        .arg(path)
        .env("XDG_DATA_HOME", folder)
        .env("XDG_CONFIG_HOME", folder)
        .stderr(std::process::Stdio::null());
    Server::of("caddy", &mut command, address)
}

fn serve_rowhouse(limited: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let address = std::env::var("ROWHOUSE_BENCH_ADDRESS").unwrap();
    let listener = listen::bind(address.parse().unwrap()).unwrap();
    announce(&listener);
    let read = |file: &str| fs::read(folder().join(file)).unwrap();
    let certificate = Certificate::from_pem(&read("chain.pem"), &read("key.pem")).unwrap();
    let store = CertificateStore::default();
    store.set_files(&[Arc::new(certificate)]);
    let mut limits = Limits::default();
    if !limited {
        limits.handshake_rate = 1_000_000;
    }
    let settings = ServeSettings {
        workers: NonZeroUsize::MIN,
        tls: Some(Arc::new(Tls::new(Arc::new(store), None).unwrap())),
        limits,
        ..ServeSettings::default()
    };
    let listeners = Listeners {
        tls: vec![listener],
        ..Listeners::default()
    };
    let snapshots = Arc::new(SnapshotStore::new(snapshot()));
    let serving = server::run(listeners, snapshots, settings, std::future::pending());
    runtime.block_on(serving).unwrap();
}

fn snapshot() -> Snapshot {
    let field = |(name, value): &(&'static str, &'static str)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    let headers: HeaderMap = FIELDS.iter().map(field).collect();
    let fields = Arc::new(Fields::new(headers, true, false));
    let plain = Variant {
        encoding: ContentEncoding::Identity,
        bytes: vec![b'x'; BODY].into(),
        etag: HeaderValue::from_static("\"plain\""),
    };
    let page = Arc::new(Resource::Body(Body {
        status: StatusCode::OK,
        fields,
        cache_tag: None,
        variants: [plain].into(),
    }));
    let mount = Mount {
        tenant: "studio".into(),
        prefix: "".into(),
        pages: Slot::from(MountPages {
            resources: [("/page".into(), Arc::clone(&page))].into(),
            redirects: Arc::default(),
            not_found: vec![("".into(), Arc::clone(&page))],
            method_not_allowed: vec![("".into(), page)],
        }),
        traffic: Default::default(),
    };
    let routes = HostRoutes {
        root: Some(Arc::new(mount)),
        ..HostRoutes::default()
    };
    let entry = HostEntry::Site(Arc::new(routes));
    Snapshot {
        hosts: [(HOST.into(), entry)].into_iter().collect(),
        ..Snapshot::default()
    }
}
