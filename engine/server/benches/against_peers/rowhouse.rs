//! The servers that are this program: rowhouse with and without its fast lane, and a bare server of the library that it uses: hyper, or `h2` for HTTP/2.

use std::convert::Infallible;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use release::snapshot::fields::Fields;
use release::snapshot::{
    Body, ContentEncoding, HostEntry, HostRoutes, Mount, MountPages, Resource, Slot, Snapshot,
    Variant, VersionedTable,
};
use server::access_log::{AccessLog, LogFormat};
use server::listen::{self, Listeners};
use server::settings::{Limits, ServeSettings};
use server::snapshot_store::SnapshotStore;
use server::tls::Tls;
use server::tls::certificate::Certificate;
use server::tls::certificate_store::CertificateStore;
use tokio::net::TcpStream;

use crate::client::HOST;
use crate::peers::FIELDS;
use crate::process::announce;
use crate::row::{PAGES, Page, Row};

const ETAG: &str = "\"0123456789abcdef0123456789abcdef\"";
/// Fields that are made when a tenant is compiled; all others are constants.
const MADE: [&str; 4] = [
    "content-type",
    "cache-control",
    "cache-tag",
    "content-security-policy",
];

/// Serves a row until the process is killed.
pub fn serve(name: &str, row: &Row, folder: &Path) {
    match name {
        "bare hyper" | "bare h2" => serve_bare(row),
        _ => serve_rowhouse(row, folder, name == "rowhouse"),
    }
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

fn serve_bare(row: &Row) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(Default::default())
        .unwrap();
    runtime.block_on(async {
        let mut fields = headers();
        let encoded = [("vary", "accept-encoding"), ("content-encoding", "gzip")];
        let encoded = encoded.into_iter().filter(|_| row.page.is_compressed);
        let others = [("etag", ETAG), ("x-request-id", "0123456789abcdef-0123")];
        for (name, value) in encoded.chain(others) {
            fields.insert(name, HeaderValue::from_static(value));
        }
        let fields: &'static HeaderMap = Box::leak(Box::new(fields));
        let bytes = Bytes::from(row.page.body());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        announce(&listener);
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            socket.set_nodelay(true).unwrap();
            let bytes = bytes.clone();
            let mut response = Response::new(());
            *response.headers_mut() = fields.clone();
            if row.protocol.is_http2() {
                tokio::task::spawn_local(serve_h2(socket, response, bytes));
                continue;
            }
            let service = service_fn(move |_| {
                let response = response.clone().map(|()| Full::new(bytes.clone()));
                async { Ok::<_, Infallible>(response) }
            });
            let server = hyper::server::conn::http1::Builder::new();
            tokio::task::spawn_local(server.serve_connection(TokioIo::new(socket), service));
        }
    });
}

async fn serve_h2(socket: TcpStream, mut response: Response<()>, bytes: Bytes) {
    let fields = response.headers_mut();
    fields.insert(CONTENT_LENGTH, bytes.len().into());
    fields.insert(
        DATE,
        HeaderValue::from_static("Sun, 29 Nov 2026 06:11:09 GMT"),
    );
    let mut connection = h2::server::handshake(socket).await.unwrap();
    while let Some(Ok((_, mut reply))) = connection.accept().await {
        let mut stream = reply.send_response(response.clone(), false).unwrap();
        stream.send_data(bytes.clone(), true).unwrap();
    }
}

fn serve_rowhouse(row: &Row, folder: &Path, fast_lane: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let listener = listen::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    announce(&listener);
    let log = row.has_log.then(|| {
        let file = fs::File::create(folder.join("rowhouse.log")).unwrap();
        tracing_appender::non_blocking(file)
    });
    let is_tls = row.protocol.is_tls();
    let settings = ServeSettings {
        workers: NonZeroUsize::MIN,
        access_log: log.as_ref().map(|(writer, _)| AccessLog {
            format: LogFormat::Json,
            addresses: false,
            writer: writer.clone(),
        }),
        tls: is_tls.then(|| tls(folder)),
        fast_lane,
        // One address opens all connections here.
        limits: Limits {
            connections: 16_384,
            connections_per_address: 16_384,
            handshake_rate: 1_000_000,
            ..Limits::default()
        },
        ..ServeSettings::default()
    };
    let listeners = match is_tls {
        true => Listeners {
            tls: vec![listener],
            ..Listeners::default()
        },
        false => vec![listener].into(),
    };
    let snapshots = Arc::new(SnapshotStore::new(snapshot()));
    let serving = server::run(listeners, snapshots, settings, std::future::pending());
    runtime.block_on(serving).unwrap();
}

fn tls(folder: &Path) -> Arc<Tls> {
    let read = |file: &str| fs::read(folder.join(file)).unwrap();
    let certificate = Certificate::from_pem(&read("chain.pem"), &read("key.pem")).unwrap();
    let store = CertificateStore::default();
    store.set_files(&[Arc::new(certificate)]);
    Arc::new(Tls::new(Arc::new(store), None).unwrap())
}

fn resource(page: &Page) -> Arc<Resource> {
    let variant = |encoding, bytes: Vec<u8>, etag| Variant {
        encoding,
        bytes: bytes.into(),
        etag: HeaderValue::from_static(etag),
    };
    let variants: Vec<_> = if page.is_compressed {
        let plain = vec![b'x'; 4 * page.bytes];
        vec![
            variant(ContentEncoding::Gzip, page.body(), ETAG),
            variant(ContentEncoding::Identity, plain, "\"plain\""),
        ]
    } else {
        vec![variant(ContentEncoding::Identity, page.body(), ETAG)]
    };
    Arc::new(Resource::Body(Body {
        status: StatusCode::OK,
        fields: Arc::new(Fields::new(headers(), page.is_compressed, false)),
        cache_tag: Some(HeaderValue::from_static("bluedoor,bluedoor/terms")),
        variants: variants.into_iter().collect(),
    }))
}

/// Builds a snapshot with as many hosts and paths as six sites have, so that look-ups do not hit the first entry.
fn snapshot() -> Snapshot {
    let page = || resource(&PAGES[0]);
    let mount = |tenant: &str, prefix: &str| {
        let numbered = (0..40).map(|number| (format!("/page/{number}").into(), page()));
        let pages = PAGES.iter().map(|page| (page.path.into(), resource(page)));
        let resources = numbered.chain(pages).collect();
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
    hosts.insert(HOST.into(), HostEntry::Site(Arc::new(studio)));
    Snapshot {
        hosts,
        ..Snapshot::default()
    }
}
