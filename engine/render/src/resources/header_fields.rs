//! The headers that do not depend on a request: made when a tenant is compiled, shared by all bodies of a kind.

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

/// How long shared caches, a CDN's for example, may keep pages. Browsers ask again in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Caching {
    /// Seconds for which they may keep a page without asking (`s-maxage`, RFC 9111). Without it they ask every time.
    pub shared_max_age: Option<u32>,
    /// Seconds for which they may answer with an old page while they ask for the new one (`stale-while-revalidate`, RFC 5861).
    pub stale_while_revalidate: Option<u32>,
}

impl Caching {
    fn cache_control(self) -> String {
        let mut text = "public, max-age=0".to_owned();
        if let Some(seconds) = self.shared_max_age {
            text.push_str(&format!(", s-maxage={seconds}"));
        }
        match self.stale_while_revalidate {
            Some(seconds) => text.push_str(&format!(", stale-while-revalidate={seconds}")),
            // It would forbid what the other directive allows (RFC 9111, section 5.2.2.2).
            None => text.push_str(", must-revalidate"),
        }
        text
    }
}

/// What a body is, as far as its headers go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum BodyKind {
    /// An HTML page, or several of one site.
    Page {
        /// The hashes of their styles, as source expressions: `'sha256-...'`.
        styles: BTreeSet<String>,
        /// The hash of the script that they hold.
        script: Option<String>,
        /// Whether search engines should leave it out.
        noindex: bool,
        /// Whether it has frames of its own origin and stands in such: only in the gallery of `--dev`, and in the manual of the program.
        framed: bool,
        /// How long it may be kept.
        caching: Caching,
        /// What its host says of TLS, where visitors come over it.
        hsts: Hsts,
    },
    /// A file with its hash in its name: it never changes.
    Immutable,
    /// The same of a tenant's own.
    Tenant {
        /// Whether it is a document by itself, which then may do nothing.
        confined: bool,
        /// `Content-Disposition` of what is saved and not shown.
        attachment: Option<String>,
    },
    /// A file with a fixed name: it may change with the next snapshot.
    Plain,
}

impl BodyKind {
    /// A tenant's own file, with its media type.
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

/// What has a fixed name is requested again every time.
const REVALIDATE: &str = "public, max-age=0, must-revalidate";
/// A year, and never requested again (RFC 8246).
const FOREVER: &str = "public, max-age=31536000, immutable";

/// All that fields follow from.
type FieldsKey = (BodyKind, String, bool);

/// The fields that some body has now. Most tenants have the same ones: one copy of them stays in the processor's cache, and a thousand would not.
static IN_USE: LazyLock<Mutex<HashMap<FieldsKey, Weak<Fields>>>> = LazyLock::new(Mutex::default);

/// The header fields of the bodies of one kind and media type, whoever's they are.
#[must_use]
pub(crate) fn fields(kind: &BodyKind, media_type: &str, secure: bool) -> Arc<Fields> {
    let name = (kind.clone(), media_type.to_owned(), secure);
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(fields) = in_use.get(&name).and_then(Weak::upgrade) {
        return fields;
    }
    in_use.retain(|_, fields| fields.strong_count() > 0);
    let varies = is_compressible(media_type);
    let ranges = kind.is_immutable();
    let fields = Arc::new(Fields::new(
        headers(kind, media_type, secure),
        varies,
        ranges,
    ));
    in_use.insert(name, Arc::downgrade(&fields));
    fields
}

fn headers(kind: &BodyKind, media_type: &str, secure: bool) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // Values that are the same everywhere are static: a copy of such a one touches no counter that all workers share.
    let mut always = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    always(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    always(
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-site",
    );
    match kind {
        BodyKind::Immutable | BodyKind::Tenant { .. } => always(header::CACHE_CONTROL, FOREVER),
        BodyKind::Plain => always(header::CACHE_CONTROL, REVALIDATE),
        BodyKind::Page {
            noindex,
            framed,
            hsts,
            ..
        } => {
            // Pages only: what every host serves, fonts for example, cannot speak for each of them, and the last answer counts.
            if secure {
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
            // Each page has its own. Present from the start, so that setting it does not make the copy grow.
            set(CACHE_TAG, "-");
            set(
                header::CONTENT_SECURITY_POLICY,
                &content_security_policy(styles, script.as_deref(), *framed, secure),
            );
        }
        BodyKind::Tenant {
            confined,
            attachment,
        } => {
            if *confined {
                set(header::CONTENT_SECURITY_POLICY, CONFINED);
            }
            if let Some(attachment) = attachment {
                set(header::CONTENT_DISPOSITION, attachment);
            }
        }
        // A drawing opened by itself is a document: it must not run anything either.
        BodyKind::Immutable | BodyKind::Plain if media_type.starts_with("image/svg") => {
            set(header::CONTENT_SECURITY_POLICY, CONFINED);
        }
        BodyKind::Immutable | BodyKind::Plain => {}
    }
    headers
}

/// What a file may do that is opened by itself: nothing, on an origin of its own. Only a drawing has styles and pictures, and those it holds itself (HTML, sandboxing; CSP Level 3, section 6.4.2).
const CONFINED: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox";

const PERMISSIONS: &str = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()";

/// Everything from here, nothing inline but what the engine writes, no page in a frame, and forms to mail programs only (CSP Level 3, Trusted Types).
///
/// The styles are those of all pages of a site at an address, so that these have the same fields: an export says them once, and HTTP/2 sends them once.
///
/// Scripts come from the program's own path, never from below a tenant's. `'self'` cannot name a path, and a host can only if each host has fields of its own, which thousands of tenants cannot afford.
/// So there are two policies, and a script has to fit both (CSP Level 3, section 3.1): this origin, and that path of whatever origin. The loader and the rules for fetching ahead, which stand in the page, fit both by their hashes.
/// A tenant at the root of its own host has files below that path, too; none of them is a script by its type.
fn content_security_policy(
    styles: &BTreeSet<String>,
    script: Option<&str>,
    framed: bool,
    secure: bool,
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
    let upgrade = if secure {
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

/// What a page is thrown away by. One that no file stands for has its tenant's tag only.
pub(crate) fn cache_tag(tenant: &TenantId, page: Option<&Page>) -> Option<HeaderValue> {
    let tenant = tenant.as_str();
    let tag = page.map(|page| fields::cache_tag(tenant, &page.path));
    HeaderValue::from_str(tag.as_deref().unwrap_or(tenant)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_caches_keep_pages_for_as_long_as_they_are_told() {
        let control = |shared_max_age, stale_while_revalidate| {
            let caching = Caching {
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
