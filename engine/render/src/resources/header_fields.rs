//! Header fields that do not depend on a request. The fields are made when a tenant is compiled, and shared by all bodies of a kind.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::media::media_type::{Disposition, attachment, is_compressible, tenant_type};
use crate::pages::head::speculation_rules;
use crate::resources::asset::ASSETS;
use content::name::TenantId;
use content::tenant::manifest::Hsts;
use content::tenant::page::Page;
use release::snapshot::fields::{self, CACHE_TAG, Fields};

/// How long shared caches, for example of a CDN, may keep pages. Browsers revalidate pages in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CachePolicy {
    /// Seconds for which a shared cache may serve a page without revalidation (`s-maxage`, RFC 9111). `None` means revalidation for every request.
    pub shared_max_age: Option<u32>,
    /// Seconds for which a shared cache may serve a stale page while it revalidates (`stale-while-revalidate`, RFC 5861).
    pub stale_while_revalidate: Option<u32>,
}

impl CachePolicy {
    fn cache_control(self) -> String {
        let mut text = "public, max-age=0".to_owned();
        if let Some(seconds) = self.shared_max_age {
            text.push_str(&format!(", s-maxage={seconds}"));
        }
        match self.stale_while_revalidate {
            Some(seconds) => text.push_str(&format!(", stale-while-revalidate={seconds}")),
            // `must-revalidate` would forbid serving stale pages (RFC 9111, section 5.2.2.2).
            None => text.push_str(", must-revalidate"),
        }
        text
    }
}

/// The kind of a body, as far as its header fields depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum BodyKind {
    /// One or more HTML pages of one site.
    Page {
        /// The hashes of the inline styles, as source expressions: `'sha256-...'`.
        styles: BTreeSet<String>,
        /// The hash of the inline script.
        script: Option<String>,
        /// Whether search engines must not index it.
        noindex: bool,
        /// Whether it may frame and be framed by pages of its own origin: only in the gallery of `--dev` and in the manual.
        framed: bool,
        /// How long shared caches may keep it.
        caching: CachePolicy,
        /// The `Strict-Transport-Security` policy of its host, sent over TLS only.
        hsts: Hsts,
    },
    /// A file with a hashed name. It never changes.
    Immutable,
    /// A tenant's file with a hashed name. It never changes.
    Tenant {
        /// Whether browsers may open it as a document. The document is then sandboxed.
        confined: bool,
        /// The `Content-Disposition` of a file that browsers save instead of showing it.
        attachment: Option<String>,
    },
    /// A file with a fixed name. It may change with the next snapshot.
    Plain,
}

impl BodyKind {
    /// Returns the kind and the media type of a tenant's file.
    pub(crate) fn of_tenant(name: &str) -> (Self, &'static str) {
        let (media_type, opened) = tenant_type(name);
        let kind = Self::Tenant {
            confined: opened != Disposition::Part,
            attachment: (opened == Disposition::Download).then(|| attachment(name)),
        };
        (kind, media_type)
    }

    const fn is_immutable(&self) -> bool {
        matches!(self, Self::Immutable | Self::Tenant { .. })
    }
}

/// `Cache-Control` of files with fixed names: revalidated for every request.
const REVALIDATE: &str = "public, max-age=0, must-revalidate";
/// `Cache-Control` of hashed files: kept for a year and never revalidated (RFC 8246).
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// All values that header fields depend on: kind, media type, and whether the host uses TLS.
type FieldsKey = (BodyKind, String, bool);

/// The sets of fields that some body uses now.
///
/// Most tenants share the same few sets. One copy stays in the processor's cache; a thousand copies would not.
static IN_USE: LazyLock<Mutex<HashMap<FieldsKey, Weak<Fields>>>> = LazyLock::new(Mutex::default);

/// Returns the header fields for a kind and a media type, shared by all bodies of all tenants.
#[must_use]
pub(crate) fn fields(kind: &BodyKind, media_type: &str, is_secure: bool) -> Arc<Fields> {
    let name = (kind.clone(), media_type.to_owned(), is_secure);
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(fields) = in_use.get(&name).and_then(Weak::upgrade) {
        return fields;
    }
    in_use.retain(|_, fields| fields.strong_count() > 0);
    let varies = is_compressible(media_type);
    let ranges = kind.is_immutable();
    let fields = Arc::new(Fields::new(
        headers(kind, media_type, is_secure),
        varies,
        ranges,
    ));
    in_use.insert(name, Arc::downgrade(&fields));
    fields
}

fn headers(kind: &BodyKind, media_type: &str, is_secure: bool) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // Constant values are static, because copying a static value touches no reference counter that all workers share.
    let mut always = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    always(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    always(
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-site",
    );
    match kind {
        BodyKind::Immutable | BodyKind::Tenant { .. } => always(header::CACHE_CONTROL, IMMUTABLE),
        BodyKind::Plain => always(header::CACHE_CONTROL, REVALIDATE),
        BodyKind::Page {
            noindex,
            framed,
            hsts,
            ..
        } => {
            // On pages only: shared files, for example fonts, must not decide for every host, because the last response counts.
            if is_secure {
                always(header::STRICT_TRANSPORT_SECURITY, hsts.field());
            }
            always(header::REFERRER_POLICY, "strict-origin-when-cross-origin");
            always(HeaderName::from_static("permissions-policy"), PERMISSIONS);
            always(
                HeaderName::from_static("cross-origin-opener-policy"),
                "same-origin",
            );
            if !*framed {
                always(header::X_FRAME_OPTIONS, "DENY");
            }
            if *noindex {
                always(HeaderName::from_static("x-robots-tag"), "noindex");
            }
        }
    }

    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, media_type);
    match kind {
        BodyKind::Page {
            styles,
            script,
            caching,
            framed,
            ..
        } => {
            set(header::CACHE_CONTROL, &caching.cache_control());
            // Each page sets its own tag. The placeholder keeps the map from growing when a page sets the tag.
            set(CACHE_TAG, "-");
            set(
                header::CONTENT_SECURITY_POLICY,
                &content_security_policy(styles, script.as_deref(), *framed, is_secure),
            );
        }
        BodyKind::Tenant {
            confined,
            attachment,
        } => {
            if *confined {
                set(header::CONTENT_SECURITY_POLICY, SANDBOX_POLICY);
            }
            if let Some(attachment) = attachment {
                set(header::CONTENT_DISPOSITION, attachment);
            }
        }
        // An SVG that is opened by itself is a document, and must not run scripts either.
        BodyKind::Immutable | BodyKind::Plain if media_type.starts_with("image/svg") => {
            set(header::CONTENT_SECURITY_POLICY, SANDBOX_POLICY);
        }
        BodyKind::Immutable | BodyKind::Plain => {}
    }
    headers
}

/// The policy of a file that is opened as a document: no permissions, in an origin of its own.
///
/// Only SVGs have styles and images, and they embed them (HTML, sandboxing; CSP Level 3, section 6.4.2).
const SANDBOX_POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox";

const PERMISSIONS: &str = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()";

/// Returns the Content-Security-Policy of pages: subresources of the same origin, inline elements of the engine, no frames, forms to the same origin and mail programs (CSP Level 3, Trusted Types).
///
/// `styles` covers all pages of a site at an address, so that they share one set of fields. An export writes the set once, and HTTP/2 sends it once.
///
/// Scripts come from the engine's own path, never from a tenant's. `'self'` cannot name a path. A host can, but then each host needs fields of its own, which is too much memory for thousands of tenants.
/// Hence there are two policies, and a script has to fit both (CSP Level 3, section 3.1): the same origin, and the engine's path on any origin.
/// The inline loader and the inline speculation rules fit both by their hashes.
/// A tenant at the root of its own host also has files below that path, but none of them has a script's media type.
fn content_security_policy(
    styles: &BTreeSet<String>,
    script: Option<&str>,
    framed: bool,
    is_secure: bool,
) -> String {
    let frames = match framed {
        true => "frame-src 'self'; frame-ancestors 'self'",
        false => "frame-ancestors 'none'",
    };
    let style = match styles.is_empty() {
        true => " 'none'".to_owned(),
        false => styles.iter().map(|hash| format!(" {hash}")).collect(),
    };
    let rules = speculation_rules::hash();
    let script = script.map(|hash| format!(" {hash}")).unwrap_or_default();
    let upgrade = if is_secure {
        "; upgrade-insecure-requests"
    } else {
        ""
    };
    format!(
        "default-src 'none'; script-src 'self' {rules}{script}; worker-src 'none'; style-src{style}; img-src 'self'; media-src 'self'; font-src 'self'; \
         connect-src 'self'; manifest-src 'self'; form-action 'self' mailto:; base-uri 'none'; object-src 'none'; \
         {frames}{upgrade}; require-trusted-types-for 'script'; trusted-types 'none', \
         script-src *:*{ASSETS} {rules}{script}"
    )
}

/// Returns the cache tag that a CDN purges a page by. A page without a file has the tenant's tag only.
pub(crate) fn cache_tag(tenant: &TenantId, page: Option<&Page>) -> Option<HeaderValue> {
    let tenant = tenant.as_str();
    let tag = page.map(|page| fields::cache_tag(tenant, &page.path));
    HeaderValue::from_str(tag.as_deref().unwrap_or(tenant)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_caches_keep_pages_for_the_configured_seconds() {
        let control = |shared_max_age, stale_while_revalidate| {
            let caching = CachePolicy {
                shared_max_age,
                stale_while_revalidate,
            };
            caching.cache_control()
        };
        assert_eq!(control(None, None), REVALIDATE);
        assert_eq!(
            control(Some(60), None),
            "public, max-age=0, s-maxage=60, must-revalidate"
        );
        assert_eq!(
            control(Some(60), Some(600)),
            "public, max-age=0, s-maxage=60, stale-while-revalidate=600"
        );
    }
}
