//! The headers that do not depend on a request: made when a tenant is compiled, shared by all its bodies of a kind.

use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::asset::{ASSETS, is_compressible};
use super::speculation;
use crate::snapshot::fields::Fields;

/// What a body is, as far as its headers go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// An HTML page, with the hash of its inline style where there is one.
    Page {
        /// A source expression for `style-src`: `'sha256-...'`.
        style_hash: Option<String>,
        /// Whether search engines should leave it out.
        noindex: bool,
    },
    /// A file with its hash in its name: it never changes.
    Immutable,
    /// A file with a fixed name: it may change with the next snapshot.
    Plain,
}

/// Pages are fresh for as long as a shared cache is told, and always revalidated by browsers.
const REVALIDATE: &str = "public, max-age=0, must-revalidate";
/// A year, and never asked for again (RFC 8246).
const FOREVER: &str = "public, max-age=31536000, immutable";

/// The header fields of the bodies of one kind and media type.
#[must_use]
pub(super) fn fields(kind: &Kind, media_type: &str, secure: bool) -> Arc<Fields> {
    let varies = is_compressible(media_type);
    let ranges = *kind == Kind::Immutable;
    Arc::new(Fields::new(
        headers(kind, media_type, secure),
        varies,
        ranges,
    ))
}

fn headers(kind: &Kind, media_type: &str, secure: bool) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, media_type);
    set(
        header::CACHE_CONTROL,
        if *kind == Kind::Immutable {
            FOREVER
        } else {
            REVALIDATE
        },
    );
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-site",
    );
    if secure {
        set(
            header::STRICT_TRANSPORT_SECURITY,
            "max-age=63072000; includeSubDomains",
        );
    }
    match kind {
        Kind::Page {
            style_hash,
            noindex,
        } => {
            set(
                header::CONTENT_SECURITY_POLICY,
                &content_security_policy(style_hash.as_deref(), secure),
            );
            set(header::REFERRER_POLICY, "strict-origin-when-cross-origin");
            set(HeaderName::from_static("permissions-policy"), PERMISSIONS);
            set(
                HeaderName::from_static("cross-origin-opener-policy"),
                "same-origin",
            );
            set(header::X_FRAME_OPTIONS, "DENY");
            set(
                HeaderName::from_static("speculation-rules"),
                &format!("\"{ASSETS}{}\"", speculation::rules().hashed_name),
            );
            if *noindex {
                set(HeaderName::from_static("x-robots-tag"), "noindex");
            }
        }
        // A drawing opened by itself is a document: it must not run anything either.
        _ if media_type.starts_with("image/svg") => {
            set(
                header::CONTENT_SECURITY_POLICY,
                "default-src 'none'; sandbox",
            );
        }
        Kind::Immutable | Kind::Plain => {}
    }
    headers
}

const PERMISSIONS: &str = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()";

/// Everything from here, nothing inline but the tenant's own colours, no page in a frame, and forms to mail programs only (CSP Level 3, Trusted Types).
fn content_security_policy(style_hash: Option<&str>, secure: bool) -> String {
    let style = style_hash
        .map(|hash| format!(" {hash}"))
        .unwrap_or_default();
    let upgrade = if secure {
        "; upgrade-insecure-requests"
    } else {
        ""
    };
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'{style}; img-src 'self'; font-src 'self'; \
         connect-src 'self'; manifest-src 'self'; form-action 'self' mailto:; base-uri 'none'; object-src 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'{upgrade}"
    )
}
