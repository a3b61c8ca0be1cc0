//! Recorded releases load unchanged, and equal data is stored once.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proptest::prelude::*;

use super::{PLENTY, blobs, long, open, release};
use crate::snapshot::fields::Fields;
use crate::snapshot::redirects::{
    QueryCondition, RedirectAction, RedirectRule, RedirectTable, RedirectTarget,
};
use crate::snapshot::{Body, ContentEncoding, MountPages, Resource, Resources, Variant};
use crate::store::format::ByteWriter;
use crate::store::pages::PagesLayout;
use crate::store::releases::{FORMATS, ReleaseFolder};
use crate::store::{AddressPages, NewRelease, ReleaseInfo, frame, pack_pages, pages, unpack_pages};

/// Returns all data that a response depends on.
fn answer(resource: &Resource) -> String {
    let body = match resource {
        Resource::Redirect(location) => return format!("{location:?}"),
        Resource::Body(body) => body,
    };
    let etag = HeaderValue::from_static("\"x\"");
    let fields = &body.fields;
    let whole = ContentEncoding::ALL.map(|encoding| fields.for_body(encoding, &etag));
    format!(
        "{:?} {whole:?} {:?} {} {:?} {:?}",
        body.status,
        fields.not_modified(&etag),
        fields.ranges(),
        body.cache_tag,
        // Other encodings are not stored.
        body.variants
            .identity()
            .map(|body| (&body.bytes, &body.etag)),
    )
}

/// The responses of an address: host, prefix, resources by path, error pages, and redirects.
type Answers<'a> = (
    &'a str,
    &'a str,
    BTreeMap<&'a str, String>,
    [Vec<String>; 2],
    &'a [RedirectRule],
);

fn answers(addresses: &[AddressPages]) -> Vec<Answers<'_>> {
    let of = |placed| {
        let AddressPages {
            host,
            prefix,
            pages,
        }: &AddressPages = placed;
        let resources = pages.resources.iter();
        let errors = [&pages.not_found, &pages.method_not_allowed].map(|pages| {
            let pages = pages.iter();
            let text =
                |(part, page): &(Box<str>, Arc<Resource>)| format!("{part} {}", answer(page));
            pages.map(text).collect()
        });
        (
            host.as_str(),
            prefix.as_str(),
            resources
                .map(|(path, resource)| (path, answer(resource)))
                .collect(),
            errors,
            pages.redirects.rules(),
        )
    };
    addresses.iter().map(of).collect()
}

fn any_value() -> impl Strategy<Value = HeaderValue> {
    let byte = prop_oneof![0x20_u8..0x7f, 0x80_u8..];
    proptest::collection::vec(byte, 0..8)
        .prop_map(|bytes| HeaderValue::from_bytes(&bytes).expect("a value"))
}

fn any_fields() -> impl Strategy<Value = Arc<Fields>> {
    let name = prop_oneof![
        Just("cache-tag".to_owned()),
        Just("vary".to_owned()),
        Just("cache-control".to_owned()),
        Just("accept-ranges".to_owned()),
        "[a-z][a-z0-9-]{0,3}",
    ];
    let pairs = proptest::collection::vec((name, any_value()), 0..12);
    (pairs, any::<bool>(), any::<bool>()).prop_map(|(pairs, varies, ranges)| {
        let mut given = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().expect("a name");
            given.append(name, value);
        }
        Arc::new(Fields::new(given, varies, ranges))
    })
}

fn any_body() -> impl Strategy<Value = Body> {
    let encoding = proptest::sample::select(&ContentEncoding::ALL[..]);
    // Short bodies, so that some are equal.
    let bytes = proptest::collection::vec(0_u8..3, 0..3);
    let variant = (encoding, bytes, any_value()).prop_map(|(encoding, bytes, etag)| Variant {
        encoding,
        bytes: bytes.into(),
        etag,
    });
    let variants = proptest::collection::vec(variant, 0..4);
    let tag = proptest::option::of(any_value());
    (100_u16..1000, any_fields(), tag, variants).prop_map(
        |(status, fields, cache_tag, variants)| Body {
            status: StatusCode::from_u16(status).expect("a status"),
            fields,
            cache_tag,
            variants: variants.into_iter().collect(),
        },
    )
}

fn any_resource() -> impl Strategy<Value = Arc<Resource>> {
    let redirect = any_value().prop_map(Resource::Redirect);
    prop_oneof![redirect, any_body().prop_map(Resource::Body)].prop_map(Arc::new)
}

fn any_rule() -> impl Strategy<Value = RedirectRule> {
    let condition = ("\\PC{0,3}", "\\PC{0,3}").prop_map(|(name, value)| QueryCondition {
        name: name.into(),
        value: value.into(),
    });
    let target = ("(/[a-z]{1,2})?", "(/:splat)?", "(\\?[a-z])?(#[a-z])?");
    let conditions = proptest::collection::vec(condition, 0..3);
    let parts = (
        "(/\\PC{0,3})?",
        any::<bool>(),
        conditions,
        target,
        300_u16..310,
    );
    parts.prop_map(
        |(path, is_wildcard, conditions, (start, splat, end), status)| {
            let target = RedirectTarget::new(&format!("{start}{splat}{end}"), is_wildcard);
            RedirectRule {
                path: path.into(),
                is_wildcard,
                conditions: conditions.into(),
                action: match status {
                    309 => RedirectAction::Gone,
                    status => RedirectAction::Redirect {
                        status: StatusCode::from_u16(status).expect("a status"),
                        target: target.expect("a header value"),
                    },
                },
            }
        },
    )
}

fn any_addresses() -> impl Strategy<Value = Vec<AddressPages>> {
    let resources = proptest::collection::vec(any_resource(), 1..8);
    let index = any::<proptest::sample::Index>;
    let rules = || proptest::collection::vec(any_rule(), 0..4);
    let path = "(/assets)?/[^/]{0,3}";
    let at_paths = || proptest::collection::vec((path, index()), 0..8);
    let place = (
        "[a-z.]{0,5}",
        "(/[a-z]{1,3})?",
        at_paths(),
        at_paths(),
        at_paths(),
        any::<bool>(),
        rules(),
    );
    let addresses = proptest::collection::vec(place, 0..4);
    (resources, addresses).prop_map(|(resources, addresses)| {
        let at = |index: proptest::sample::Index| index.get(&resources).clone();
        let mut files = None;
        let of = |(host, prefix, paths, errors, refused, shares, rules): (
            _,
            _,
            Vec<_>,
            Vec<_>,
            Vec<_>,
            _,
            _,
        )| {
            let path = |(path, index): (String, _)| (path.into(), at(index));
            let own: Resources = paths.into_iter().map(path).collect();
            let files = match shares {
                true => files.get_or_insert_with(|| Arc::clone(own.files())),
                false => own.files(),
            };
            AddressPages {
                host,
                prefix,
                pages: MountPages {
                    resources: Resources::new(own.pages().clone(), Arc::clone(files)),
                    not_found: errors.into_iter().map(path).collect(),
                    method_not_allowed: refused.into_iter().map(path).collect(),
                    redirects: Arc::new(RedirectTable::new(rules)),
                },
            }
        };
        addresses.into_iter().map(of).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn loaded_release_equals_the_recorded_one(
        addresses in any_addresses(),
        cause: Vec<String>,
        at in 0_u64..1 << 40,
        pages: usize,
        key: [u8; 32],
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
        let store = open(folder.path().to_owned(), 3, PLENTY);
        store.record("corner", NewRelease { at, cause: cause.clone(), pages, key, addresses: addresses.clone() });
        drop(store);
        let store = open(folder.path().to_owned(), 3, PLENTY);
        let entry = ReleaseInfo { number: 1, at, cause, pages, key };
        prop_assert_eq!(store.list("corner"), std::slice::from_ref(&entry));
        let loaded = store.load("corner", 1).expect("a release");
        prop_assert_eq!(loaded.entry, entry);
        prop_assert_eq!(answers(&loaded.addresses), answers(&addresses));
    }

    #[test]
    fn decoding_any_bytes_does_not_panic(bytes: Vec<u8>) {
        for (_, layout) in FORMATS {
            let _ = pages::read(&bytes, &[], layout);
        }
    }
}

#[test]
fn shared_bodies_are_shared_after_loading() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    store.record(
        "corner",
        release(1, &[("/", "same"), ("/also", "same"), ("/other", "other")]),
    );
    store.finish();
    assert!(blobs(folder.path()).is_empty(), "small bodies");
    let loaded = store.load("corner", 1).expect("a release");
    let resources = &loaded.addresses[0].pages.resources;
    let body = |path: &str| match &*resources[path] {
        Resource::Body(body) => body,
        Resource::Redirect(_) => panic!("a redirect"),
    };
    let start = |path| {
        body(path)
            .variants
            .identity()
            .and_then(|body| body.bytes.in_memory())
            .map(|bytes| bytes.as_ptr())
    };
    assert_eq!(start("/"), start("/also"));
    assert!(Arc::ptr_eq(&body("/").fields, &body("/other").fields));
}

#[test]
fn shared_files_are_shared_after_loading() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    let mut new = release(1, &[("/", "a page"), ("/assets/a.css", "a file")]);
    let copy = new.addresses[0].clone();
    let more = ["/a", "/b"].map(|prefix| AddressPages {
        prefix: prefix.to_owned(),
        ..copy.clone()
    });
    new.addresses.extend(more);
    store.record("corner", new);
    store.finish();
    let loaded = store.load("corner", 1).expect("a release");
    let [first, others @ ..] = &loaded.addresses[..] else {
        panic!("no place");
    };
    let files = first.pages.resources.files();
    assert_eq!((files.len(), others.len()), (1, 2));
    for other in others {
        assert!(Arc::ptr_eq(files, other.pages.resources.files()));
        assert!(other.pages.resources.contains_key("/"));
    }
}

#[test]
fn release_of_an_earlier_format_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    store.record("corner", release(1, &[("/", "a page")]));
    store.finish();
    let releases = ReleaseFolder {
        folder: folder.path().join("releases"),
    };
    let metadata = releases
        .open("corner", 1)
        .expect("a release")
        .pages
        .header
        .metadata;
    let [_, earlier @ ..] = FORMATS;
    for (magic, layout) in earlier {
        let mut before = ByteWriter::default();
        // No bodies and no header fields.
        before.count(0);
        before.count(0);
        // One redirect: at a page's path, at a file's path of one address, and for all errors.
        before.count(1);
        before.number(0);
        before.bytes(b"/away");
        before.count(1);
        before.bytes(b"corner.example");
        before.bytes(b"");
        let tables: &[&[&str]] = match layout {
            PagesLayout::FilesAtEachAddress => &[&["/", "/assets/a.css"]],
            _ => &[&["/"], &["/assets/a.css"]],
        };
        for (index, table) in tables.iter().enumerate() {
            if index > 0 {
                // The table belongs to the first address.
                before.number(1);
            }
            before.count(table.len());
            for path in *table {
                before.bytes(path.as_bytes());
                before.count(0);
            }
        }
        before.count(0);
        before.count(0);
        if layout == PagesLayout::Redirects {
            before.count(0);
        }
        let compressed = zstd::encode_all(&b""[..], 1).expect("bytes");
        let pages = [before.0, compressed].concat();
        let start = frame::encode_header(magic, &metadata, &pages);
        let file = [start, pages].concat();
        std::fs::write(releases.path("corner", 1), file).expect("a written file");

        let loaded = store.load("corner", 1).expect("a release");
        let resources = &loaded.addresses[0].pages.resources;
        assert!(resources.contains_key("/") && resources.contains_key("/assets/a.css"));
        let refused = &loaded.addresses[0].pages.method_not_allowed;
        assert_eq!(refused.len(), 1, "for every path");
        assert_eq!(&*refused[0].0, "");
    }
}

#[test]
fn second_release_writes_only_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    let (home, terms, new) = (long("home"), long("terms"), long("new terms"));
    store.record("corner", release(1, &[("/", &home), ("/terms", &terms)]));
    store.finish();
    let before = blobs(folder.path());
    let inode = |path: &PathBuf| std::fs::metadata(path).expect("a file").ino();
    let inodes: BTreeSet<u64> = before.iter().map(inode).collect();
    store.record("corner", release(2, &[("/", &home), ("/terms", &new)]));
    store.finish();
    let after = blobs(folder.path());
    assert_eq!(after.len(), before.len() + 1);
    let new = after.iter().filter(|path| !inodes.contains(&inode(path)));
    assert_eq!(new.count(), 1);
}

#[test]
fn similar_pages_compress_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path().to_owned(), 3, PLENTY);
    let words: String = (0..4_000).map(|number| format!("{number} ")).collect();
    let texts: Vec<String> = (0..40).map(|page| format!("{page} {words}")).collect();
    let paths: Vec<String> = (0..40).map(|page| format!("/{page}")).collect();
    let named = paths.iter().map(String::as_str);
    let all: Vec<(&str, &str)> = named.zip(texts.iter().map(String::as_str)).collect();
    store.record("corner", release(1, &all));
    store.finish();
    let size = |path: &PathBuf| std::fs::metadata(path).expect("a file").len();
    let kept: u64 = super::files(folder.path()).iter().map(size).sum();
    assert!(kept < 2 * words.len() as u64, "{kept} bytes");
    let loaded = store.load("corner", 1).expect("a release");
    assert_eq!(loaded.addresses[0].pages.resources.pages().len(), 40);
}

#[test]
fn packed_pages_are_unpacked_with_all_bodies() {
    let (home, terms) = (long("home"), "terms".to_owned());
    let pages = [("/", &*home), ("/terms", &*terms)];
    let packed = pack_pages(&release(1, &pages).addresses).expect("small pages");
    let packed = Bytes::from(packed);
    let addresses = unpack_pages(&packed).expect("pages");
    let resources = &addresses[0].pages.resources;
    for (path, text) in pages {
        let Some(Resource::Body(body)) = resources.get(path).map(AsRef::as_ref) else {
            panic!("{path}");
        };
        let identity = body.variants.identity().expect("a body");
        assert_eq!(
            identity.bytes.in_memory().expect("in memory"),
            text,
            "{path}"
        );
    }
    assert!(unpack_pages(&packed.slice(..packed.len() - 1)).is_none());
    let huge = "x".repeat(40 << 20);
    assert!(pack_pages(&release(1, &[("/", &huge)]).addresses).is_none());
}
