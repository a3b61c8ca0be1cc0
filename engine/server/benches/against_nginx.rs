//! Compares the CPU time per request of nginx, of a bare hyper server with one fixed response, and of rowhouse; then nginx and rowhouse with a JSON access log.
//!
//! All servers send the same bytes and, except for their order, the same header fields; the benchmark checks this first. nginx reads the page from a prepared gzip file that it keeps open, which at this size is cheaper than `sendfile`. Each server has one thread on the first core; the client uses the second core.
//!
//! The servers are measured in short turns, many times, and each ratio is the median of the ratios of the turns. Other work on the machine disturbs all servers of a turn alike, so a busy machine gives the same figures as a quiet one.
//!
//! `cargo bench -p server --bench against_nginx` prints the ratios and their budgets within a minute. The benchmark needs `nginx` and `taskset`. `SHOW=1` also prints the header fields of the responses.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

#[path = "support/process.rs"]
mod process;

use std::convert::Infallible;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use process::{Server, announce, is_installed, on_first_core, quantile};
use release::snapshot::fields::Fields;
use release::snapshot::{
    Body, ContentEncoding, HostEntry, HostRoutes, Mount, MountPages, Resource, Slot, Snapshot,
    Variant, VersionedTable,
};
use server::access_log::{AccessLog, LogFormat};
use server::listen;
use server::settings::ServeSettings;
use server::snapshot_store::SnapshotStore;

/// The benchmark ends after `TURNS` turns, or after `TIME` if at least `ENOUGH` turns were measured.
const TURNS: usize = 400;
const ENOUGH: usize = 40;
const TIME: Duration = Duration::from_secs(40);
/// Turns that only warm caches and pools.
const WARM_UP: usize = 10;
/// A server that does not respond for so long is broken.
const TIMEOUT: Duration = Duration::from_secs(10);
const CONNECTIONS: usize = 32;
/// Requests per connection in a turn.
const BATCHES: usize = 20;
/// Size of the compressed page in bytes, as of a typical page.
const COMPRESSED: usize = 6 * 1024;
const ETAG: &str = "\"0123456789abcdef0123456789abcdef\"";
/// The header fields of a real page.
const FIELDS: [(&str, &str); 11] = [
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "public, max-age=0, must-revalidate"),
    ("cache-tag", "bluedoor,bluedoor/terms"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; worker-src 'none'; style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; img-src 'self'; font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self' mailto:; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none', script-src *:*/assets/ 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
    ),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-site"),
    (
        "permissions-policy",
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()",
    ),
    ("referrer-policy", "strict-origin-when-cross-origin"),
    ("strict-transport-security", "max-age=63072000"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];
/// Fields that are made when a tenant is compiled; all others are constants.
const MADE: [&str; 4] = [
    "content-type",
    "cache-control",
    "cache-tag",
    "content-security-policy",
];
/// The header fields of a browser's request.
const ASKED: &str = "user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36\r\n\
    accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
    accept-language: en-US,en;q=0.9\r\naccept-encoding: gzip, deflate\r\nsec-fetch-mode: navigate\r\n";
const NGINX_LOG: &str = r#"log_format json escape=json '{"timestamp":"$time_iso8601","tenant":"$host","method":"$request_method","route":"$uri","status":$status,"bytes":$body_bytes_sent,"encoding":"$sent_http_content_encoding","duration_us":$request_time,"request_id":"$request_id"}'; access_log access.log json buffer=16k flush=1s;"#;

fn main() {
    match process::served_name().as_deref() {
        Some("hyper") => serve_hyper(),
        Some(name) => serve_rowhouse(name == "rowhouse, log"),
        None if is_installed("nginx") && is_installed("taskset") => compare(),
        None => println!("skipped: `nginx` or `taskset` is not installed"),
    }
}

fn compare() {
    process::take_second_core();
    let folder = std::env::temp_dir().join(format!("rowhouse-nginx-{}", std::process::id()));
    let servers = [
        nginx("nginx", &folder.join("quiet"), "access_log off;"),
        Server::of_this_program("hyper"),
        Server::of_this_program("rowhouse"),
        nginx("nginx, log", &folder.join("log"), NGINX_LOG),
        Server::of_this_program("rowhouse, log"),
    ];
    let mut clients = servers.each_ref().map(Client::new);
    for client in &clients {
        client.assert_same_answer(&clients[0]);
    }
    let mut turn = || clients.each_mut().map(Client::cost_of_a_request);
    for _ in 0..WARM_UP {
        turn();
    }
    let begin = Instant::now();
    let mut turns = Vec::new();
    while turns.len() < ENOUGH || (turns.len() < TURNS && begin.elapsed() < TIME) {
        turns.push(turn());
    }

    println!("{} turns in {:.0?}", turns.len(), begin.elapsed());
    println!("{:<14}{:>8}{:>8}", "server", "us", "bytes");
    for (number, client) in clients.iter().enumerate() {
        let costs: Vec<f64> = turns.iter().map(|turn| turn[number]).collect();
        let (name, bytes) = (client.server.name, client.response.len());
        println!("{name:<14}{:>8.2}{bytes:>8}", quantile(&costs, 0.5));
    }
    println!(
        "{:<24}{:>8}{:>16}{:>8}",
        "ratio", "median", "quartiles", "budget"
    );
    for (name, of, to, budget) in [
        ("rowhouse / nginx", 2, 0, 0.8),
        ("rowhouse / hyper", 2, 1, 1.0),
        ("rowhouse / nginx, logs", 4, 3, 1.3),
    ] {
        let ratios: Vec<f64> = turns.iter().map(|turn| turn[of] / turn[to]).collect();
        let [low, middle, high] = [0.25, 0.5, 0.75].map(|part| quantile(&ratios, part));
        let verdict = if middle <= budget { "met" } else { "over" };
        println!("{name:<24}{middle:>8.3}{low:>10.3}-{high:.3}{budget:>8} {verdict}");
    }
    drop(clients);
    drop(servers);
    let _ = fs::remove_dir_all(folder);
}

/// Open connections to a server.
struct Client<'s> {
    server: &'s Server,
    sockets: Vec<TcpStream>,
    request: String,
    response: Vec<u8>,
}

impl<'s> Client<'s> {
    fn new(server: &'s Server) -> Self {
        let request = format!(
            "GET /page HTTP/1.1\r\nhost: {}\r\n{ASKED}\r\n",
            server.address
        );
        let connect = |_| {
            let socket = TcpStream::connect(server.address).unwrap();
            socket.set_read_timeout(Some(TIMEOUT)).unwrap();
            socket
        };
        let mut sockets: Vec<_> = (0..CONNECTIONS).map(connect).collect();
        sockets[0].write_all(request.as_bytes()).unwrap();
        let mut response = Vec::new();
        read_response(&mut sockets[0], &mut response);
        let head = response.len() - COMPRESSED;
        if std::env::var_os("SHOW").is_some() {
            println!("{}", String::from_utf8_lossy(&response[..head]));
        }
        assert!(response.starts_with(b"HTTP/1.1 200"), "{}", server.name);
        Self {
            server,
            sockets,
            request,
            response,
        }
    }

    /// Panics if the response differs from that of `other`, except for fields that identify the server or the moment.
    fn assert_same_answer(&self, other: &Self) {
        let own = ["date", "server", "connection", "etag", "x-request-id"];
        let parts = |response: &[u8]| {
            let (head, body) = response.split_at(response.len() - COMPRESSED);
            let head = String::from_utf8(head.to_ascii_lowercase()).unwrap();
            let mut fields: Vec<String> = head
                .lines()
                .filter(|line| !own.iter().any(|name| line.starts_with(name)))
                .map(str::to_owned)
                .collect();
            fields.sort();
            let has = |name: &str| head.contains(&format!("\n{name}: "));
            assert!(has("date") && has("etag") && has("x-request-id"), "{head}");
            (fields, body.to_vec())
        };
        let (mine, theirs) = (parts(&self.response), parts(&other.response));
        assert_eq!(mine, theirs, "{}, {}", self.server.name, other.server.name);
    }

    /// Returns the server's CPU time per request in microseconds, over one turn.
    fn cost_of_a_request(&mut self) -> f64 {
        let before = self.server.settled_cpu_time();
        for _ in 0..BATCHES {
            for socket in &mut self.sockets {
                socket.write_all(self.request.as_bytes()).unwrap();
            }
            // The last socket is read first, so that the client wakes up once and not for each response: visitors are on other machines.
            for socket in self.sockets.iter_mut().rev() {
                // Request ids get longer over time, so the length varies.
                read_response(socket, &mut self.response);
            }
        }
        assert!(self.response.starts_with(b"HTTP/1.1 200"));
        let took = self.server.settled_cpu_time() - before;
        took.as_secs_f64() * 1e6 / (BATCHES * CONNECTIONS) as f64
    }
}

fn read_response(socket: &mut TcpStream, response: &mut Vec<u8>) {
    response.resize(COMPRESSED + 4096, 0);
    let mut length = 0;
    loop {
        let more = socket.read(&mut response[length..]).unwrap();
        assert!(more > 0, "the server has closed a connection");
        length += more;
        if let Some(end) = memchr::memmem::find(&response[..length], b"\r\n\r\n")
            && length == end + 4 + COMPRESSED
        {
            response.truncate(length);
            return;
        }
    }
}

/// Returns the bytes of the page: incompressible, and not valid gzip, since no server decodes them.
fn compressed() -> Vec<u8> {
    (0..COMPRESSED)
        .map(|index| (index * 7 % 251) as u8)
        .collect()
}

fn nginx(name: &'static str, folder: &Path, log: &str) -> Server {
    // The port was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut command = on_first_core();
    command
        .args(["nginx", "-c"])
        .arg(nginx_folder(folder, address, log));
    Server::of(name, &mut command, address)
}

fn nginx_folder(folder: &Path, address: SocketAddr, log: &str) -> PathBuf {
    fs::create_dir_all(folder.join("pages")).unwrap();
    fs::write(folder.join("pages/page"), vec![b'x'; 4 * COMPRESSED]).unwrap();
    fs::write(folder.join("pages/page.gz"), compressed()).unwrap();
    let fields: String = FIELDS[1..]
        .iter()
        .map(|(name, value)| format!("add_header {name} \"{value}\";\n"))
        .collect();
    let here = folder.display();
    let log = log.replace("access.log", &format!("{here}/access.log"));
    let configuration = format!(
        "daemon off; master_process off; pid {here}/nginx.pid; error_log {here}/error.log;
        events {{ worker_connections 1024; }}
        http {{
          {log} server_tokens off; keepalive_requests 1000000000; keepalive_timeout 130s;
          default_type text/html; charset utf-8;
          client_body_temp_path {here}/b; proxy_temp_path {here}/p; fastcgi_temp_path {here}/f;
          uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;
          open_file_cache max=1000 inactive=1h; open_file_cache_valid 1h; open_file_cache_errors on;
          sendfile off; tcp_nopush off;
          server {{
            listen {address}; root {here}/pages; gzip_static on; gzip_vary on; max_ranges 0; if_modified_since off;
            add_header last-modified \"\"; add_header x-request-id $request_id;
            {fields}
          }}
        }}"
    );
    let path = folder.join("nginx.conf");
    fs::write(&path, configuration).unwrap();
    path
}

fn headers() -> HeaderMap {
    let field = |(name, value): &(&'static str, &'static str)| {
        let value = if MADE.contains(name) {
            HeaderValue::from_str(&value.replace('\\', "")).unwrap()
        } else {
            HeaderValue::from_static(value)
        };
        (HeaderName::from_static(name), value)
    };
    FIELDS.iter().map(field).collect()
}

fn serve_hyper() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(Default::default())
        .unwrap();
    runtime.block_on(async {
        let mut fields = headers();
        for (name, value) in [
            ("vary", "accept-encoding"),
            ("content-encoding", "gzip"),
            ("etag", ETAG),
            ("x-request-id", "0123456789abcdef-0123"),
        ] {
            fields.insert(name, HeaderValue::from_static(value));
        }
        let fields: &'static HeaderMap = Box::leak(Box::new(fields));
        let bytes = Bytes::from(compressed());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        announce(&listener);
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            socket.set_nodelay(true).unwrap();
            let bytes = bytes.clone();
            let service = service_fn(move |_| {
                let mut response = Response::new(Full::new(bytes.clone()));
                *response.headers_mut() = fields.clone();
                async { Ok::<_, Infallible>(response) }
            });
            let server = hyper::server::conn::http1::Builder::new();
            tokio::task::spawn_local(server.serve_connection(TokioIo::new(socket), service));
        }
    });
}

fn serve_rowhouse(logging: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let listener = listen::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    announce(&listener);
    let log = logging.then(|| {
        let path = std::env::temp_dir().join(format!("rowhouse-{}.log", std::process::id()));
        let file = fs::File::create(&path).unwrap();
        // The file is written while it is open, and disappears with this process.
        fs::remove_file(path).unwrap();
        tracing_appender::non_blocking(file)
    });
    let settings = ServeSettings {
        workers: NonZeroUsize::MIN,
        access_log: log.as_ref().map(|(writer, _)| AccessLog {
            format: LogFormat::Json,
            addresses: false,
            writer: writer.clone(),
        }),
        ..ServeSettings::default()
    };
    let snapshots = Arc::new(SnapshotStore::new(snapshot()));
    let serving = server::run(vec![listener], snapshots, settings, std::future::pending());
    runtime.block_on(serving).unwrap();
}

/// Builds a snapshot with as many hosts and paths as six sites have, so that look-ups do not hit the first entry.
fn snapshot() -> Snapshot {
    let fields = Arc::new(Fields::new(headers(), true, false));
    let variant = |encoding, bytes: Vec<u8>, etag| Variant {
        encoding,
        bytes: bytes.into(),
        etag: HeaderValue::from_static(etag),
    };
    let gzip = variant(ContentEncoding::Gzip, compressed(), ETAG);
    let plain = variant(
        ContentEncoding::Identity,
        vec![b'x'; 4 * COMPRESSED],
        "\"plain\"",
    );
    let page = || {
        Arc::new(Resource::Body(Body {
            status: StatusCode::OK,
            fields: Arc::clone(&fields),
            cache_tag: Some(HeaderValue::from_static("bluedoor,bluedoor/terms")),
            variants: [gzip.clone(), plain.clone()].into(),
        }))
    };
    let mount = |tenant: &str, prefix: &str| {
        let numbered = (0..40).map(|number| (format!("/page/{number}").into(), page()));
        let page_of_all = ("/page".into(), page());
        let resources = numbered.chain([page_of_all]).collect();
        Arc::new(Mount {
            tenant: tenant.into(),
            prefix: prefix.into(),
            pages: Slot::from(MountPages {
                resources,
                redirects: Arc::default(),
                not_found: vec![("".into(), page())],
                method_not_allowed: vec![("".into(), page())],
            }),
            traffic: Default::default(),
        })
    };
    let tenants = ["arnold", "bluedoor", "fitgoat", "givefive", "verses"];
    let mut hosts: VersionedTable<HostEntry> = tenants
        .iter()
        .map(|tenant| {
            let routes = HostRoutes {
                root: Some(mount(tenant, "")),
                ..HostRoutes::default()
            };
            (
                format!("{tenant}.example").into(),
                HostEntry::Site(Arc::new(routes)),
            )
        })
        .collect();
    let prefixes = tenants.iter().map(|tenant| {
        let prefix = format!("/{tenant}");
        (prefix.as_str().into(), mount(tenant, &prefix))
    });
    let studio = HostRoutes {
        root: Some(mount("studio", "")),
        prefixes: prefixes.collect(),
        longest_prefix: 2,
        ..HostRoutes::default()
    };
    hosts.insert("127.0.0.1".into(), HostEntry::Site(Arc::new(studio)));
    Snapshot {
        hosts,
        ..Snapshot::default()
    }
}
