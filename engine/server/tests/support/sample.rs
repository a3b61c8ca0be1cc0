//! A small snapshot for tests and benchmarks: a studio with one app, a shared file, and a moved host.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    clippy::unwrap_used
)]

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue};
use release::large::{self, LargeFile};
use release::snapshot::fields::Fields;
use release::snapshot::{
    Body, ContentEncoding, HostEntry, HostRedirect, HostRoutes, Mount, MountPages, Resource,
    ResourceTable, Slot, Snapshot, TrafficTable, Variant, Variants, VersionedTable,
};

/// Size of the large asset in bytes, enough to fill every socket buffer on the way.
pub const LARGE: usize = 16 * 1024 * 1024;

pub fn snapshot() -> Snapshot {
    let studio = Arc::new(mount(
        "studio",
        "",
        &["/", "/about", "/blog", "/blog/first", "/datenschutz"],
    ));
    let below = Arc::new(mount("bluedoor", "/bluedoor", &["/", "/terms"]));
    let alias = Arc::new(mount("bluedoor", "/apps/bluedoor", &["/", "/terms"]));
    let short = Arc::new(mount("da", "/da", &["/"]));
    let own = Arc::new(mount("bluedoor", "", &["/", "/terms", "/café"]));

    let prefixes = VersionedTable::from(vec![
        ("/bluedoor".into(), below),
        ("/apps/bluedoor".into(), alias),
        ("/da".into(), short),
    ]);
    let site = |root, prefixes, longest_prefix| {
        HostEntry::Site(Arc::new(HostRoutes {
            root,
            prefixes,
            longest_prefix,
            ..HostRoutes::default()
        }))
    };
    let empty = HostEntry::Site(Arc::new(HostRoutes {
        files: ResourceTable::from([(
            "/robots.txt".into(),
            plain_asset("text/plain", Bytes::from_static(b"User-agent: *\n")),
        )]),
        ..HostRoutes::default()
    }));
    let shared = ResourceTable::from([
        (
            "/assets/site.css".into(),
            asset("text/css", b"body { margin: 0 }".repeat(20).into()),
        ),
        (
            "/assets/font.woff2".into(),
            plain_asset("font/woff2", Bytes::from_static(b"0123456789")),
        ),
        (
            "/assets/large.bin".into(),
            plain_asset("application/octet-stream", vec![b'x'; LARGE].into()),
        ),
    ]);
    let hosts: VersionedTable<HostEntry> = VersionedTable::from(vec![
        ("studio.example".into(), site(Some(studio), prefixes, 2)),
        (
            "bluedoor.example".into(),
            site(Some(own), VersionedTable::default(), 0),
        ),
        ("empty.example".into(), empty),
        (
            "www.studio.example".into(),
            HostEntry::Redirect(HostRedirect {
                origin: HeaderValue::from_static("https://studio.example"),
                hsts: Some(HeaderValue::from_static("max-age=63072000")),
                cache_tag: Some(HeaderValue::from_static("studio")),
            }),
        ),
    ]);
    Snapshot {
        traffic: counted(&hosts),
        hosts,
        shared: Arc::new(shared),
        unknown_host: Some(error(StatusCode::MISDIRECTED_REQUEST, "nobody lives here")),
        is_partial: false,
        access: None,
    }
}

/// Attaches traffic counters to the mounts of these hosts, and returns the counters.
pub fn counted(hosts: &VersionedTable<HostEntry>) -> TrafficTable {
    let mut traffic = TrafficTable::default();
    for host in hosts.values() {
        if let HostEntry::Site(routes) = host {
            for mount in routes.root.iter().chain(routes.prefixes.values()) {
                mount.count_in(&mut traffic);
            }
        }
    }
    traffic
}

/// The path of a file that is too large for memory.
pub const FILM: &str = "/assets/film.mp4";

/// Returns the sample snapshot with a video, whose bytes are read from the file at `path`.
pub fn with_film(path: &Path) -> Snapshot {
    let open = || File::open(path).unwrap();
    let taken = large::copy_private(open(), u64::MAX, &std::env::temp_dir()).unwrap();
    let (_, length, digest, blocks) = taken.parts();
    let film = LargeFile::new((Arc::new(open()), length, digest, blocks));
    let fields = Arc::new(Fields::new(asset_headers("video/mp4"), false, true));
    let variants = [Variant {
        encoding: ContentEncoding::Identity,
        bytes: film.into(),
        etag: HeaderValue::from_static("\"film\""),
    }];
    let resource = Resource::Body(Body {
        status: StatusCode::OK,
        fields,
        cache_tag: None,
        variants: variants.into(),
    });
    let mut snapshot = snapshot();
    let shared = Arc::get_mut(&mut snapshot.shared).unwrap();
    shared.insert(FILM.into(), Arc::new(resource));
    snapshot
}

/// Returns the bytes of a video: three and a half blocks.
pub fn film() -> Vec<u8> {
    (0..3 * large::BLOCK_BYTES + large::BLOCK_BYTES / 2)
        .map(|at| (at % 251) as u8)
        .collect()
}

pub fn mount(tenant: &str, prefix: &str, paths: &[&str]) -> Mount {
    let mut resources: ResourceTable = paths
        .iter()
        .map(|path| {
            (
                (*path).into(),
                page(StatusCode::OK, &text(tenant, prefix, path)),
            )
        })
        .collect();
    for moved in ["/moved", "/old"] {
        let about = HeaderValue::from_static("/about");
        resources.insert(moved.into(), Arc::new(Resource::Redirect(about)));
    }
    Mount {
        tenant: tenant.into(),
        prefix: prefix.into(),
        pages: Slot::from(MountPages {
            resources: resources.into_iter().collect(),
            redirects: Arc::default(),
            not_found: vec![
                (
                    "/blog".into(),
                    error(StatusCode::NOT_FOUND, &format!("no post of {tenant}")),
                ),
                (
                    "".into(),
                    error(StatusCode::NOT_FOUND, &format!("no page of {tenant}")),
                ),
            ],
            method_not_allowed: ["/de", ""]
                .map(|area| {
                    let text = format!("no such method of {tenant}{area}");
                    (area.into(), error(StatusCode::METHOD_NOT_ALLOWED, &text))
                })
                .into(),
        }),
        traffic: Default::default(),
    }
}

/// Returns the body of a page, uncompressed.
pub fn text(tenant: &str, prefix: &str, path: &str) -> String {
    format!("page {tenant} {prefix} {path}\n").repeat(500)
}

fn error(status: StatusCode, text: &str) -> Arc<Resource> {
    page(status, text)
}

fn page(status: StatusCode, text: &str) -> Arc<Resource> {
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'"),
    );
    let fields = Arc::new(Fields::new(headers, true, false));
    Arc::new(Resource::Body(Body {
        status,
        fields,
        cache_tag: None,
        variants: variants(text.as_bytes()),
    }))
}

fn asset(kind: &'static str, bytes: Bytes) -> Arc<Resource> {
    let fields = Arc::new(Fields::new(asset_headers(kind), true, true));
    Arc::new(Resource::Body(Body {
        status: StatusCode::OK,
        fields,
        cache_tag: None,
        variants: variants(&bytes),
    }))
}

fn plain_asset(kind: &'static str, bytes: Bytes) -> Arc<Resource> {
    let fields = Arc::new(Fields::new(asset_headers(kind), false, true));
    let variants = [Variant {
        encoding: ContentEncoding::Identity,
        bytes: bytes.into(),
        etag: HeaderValue::from_static("\"plain\""),
    }]
    .into();
    Arc::new(Resource::Body(Body {
        status: StatusCode::OK,
        fields,
        cache_tag: None,
        variants,
    }))
}

fn asset_headers(kind: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    headers
}

/// Returns a variant for each encoding. The bytes are not compressed; they only have to differ.
fn variants(text: &[u8]) -> Variants {
    ContentEncoding::ALL
        .iter()
        .map(|encoding| {
            let bytes = match encoding {
                ContentEncoding::Identity => Bytes::copy_from_slice(text),
                coded => [coded.token().as_bytes(), b" ", text].concat().into(),
            };
            let etag = HeaderValue::from_str(&format!("\"{}-{}\"", encoding.token(), bytes.len()))
                .unwrap();
            Variant {
                encoding: *encoding,
                bytes: bytes.into(),
                etag,
            }
        })
        .collect()
}
