//! Additions of `--dev`: the live-reload script, and a page for tenants that have no valid release.
//!
//! The script's tag names the tenant and a digest of the page without its style. If only the style changes, the digest stays the same and the browser swaps the style.
//!
//! **Invariant:** if [`Islands`] has no live-reload script, no byte of this module is in any page.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use annotate_snippets::Renderer as Terminal;
use bytes::Bytes;
use http::StatusCode;
use sha2::{Digest, Sha256};

use crate::compile::compiled_tenant::AddressMount;
use crate::island::Islands;
use crate::markdown::escape;
use crate::pages::head::PageHead;
use crate::resources::asset::{ASSETS, hex};
use crate::resources::encodings::compress::{self, CompressionLevel};
use crate::resources::header_fields::{self, BodyKind, CachePolicy};
use crate::theme::PageScope;
use content::address::Address;
use content::name::TenantId;
use content::report::Diagnostic;
use content::tenant::HiddenReason;
use content::tenant::manifest::Hsts;
use release::snapshot::{Body, Mount, MountPages, Resource, Resources, Slot};

/// Returns the live-reload script's tag for a page; empty without `--dev`.
pub(crate) fn tag(
    scope: &PageScope,
    html: &str,
    head: &PageHead,
    hidden: Option<HiddenReason>,
) -> String {
    if scope.islands.dev.is_none() {
        return String::new();
    }
    // The names of social images follow the tenant's colours, so they belong to the style.
    let image = head.image.iter().map(|image| &image.url);
    let colours = head.theme_colors.iter();
    let styles = image.chain(colours.flat_map(|(day, night)| [day, night]));
    let plain = styles.fold(html.to_owned(), |html, style| html.replace(style, ""));
    element(
        &scope.islands,
        scope.resolver.tenant.as_str(),
        &plain,
        hidden,
    )
}

/// Returns the live-reload script's tag for a page with this content; empty without `--dev`.
///
/// The tag of a page that visitors do not see says why. The script then marks the page.
pub(crate) fn element(
    islands: &Islands,
    tenant: &str,
    html: &str,
    hidden: Option<HiddenReason>,
) -> String {
    let Some(script) = &islands.dev else {
        return String::new();
    };
    let mark = match hidden {
        None => String::new(),
        Some(HiddenReason::Draft) => " data-draft".to_owned(),
        Some(HiddenReason::Scheduled(time)) => format!(" data-scheduled=\"{time}\""),
        Some(HiddenReason::Expired(time)) => format!(" data-expired=\"{time}\""),
    };
    format!(
        "<script type=\"module\" src=\"{ASSETS}{}\" data-tenant=\"{tenant}\" data-page=\"{}\"{mark}></script>\n",
        script.hashed_name,
        hex(&Sha256::digest(format!("{html}{mark}"))[..12]),
    )
}

/// Makes the mount of a tenant that never had a valid state. Every path returns a page with the tenant's errors.
#[must_use]
pub fn unavailable(
    tenant: &TenantId,
    address: Address,
    errors: &[Diagnostic],
    islands: &Islands,
    is_secure: bool,
) -> AddressMount {
    let page = Arc::new(Resource::Body(Body {
        status: StatusCode::SERVICE_UNAVAILABLE,
        fields: header_fields::fields(
            &BodyKind::Page {
                styles: BTreeSet::new(),
                script: None,
                noindex: true,
                framed: false,
                caching: CachePolicy::default(),
                hsts: Hsts::default(),
            },
            "text/html; charset=utf-8",
            is_secure,
        ),
        cache_tag: header_fields::cache_tag(tenant, None),
        variants: compress::variants(
            Bytes::from(unavailable_page(tenant, errors, islands)),
            true,
            CompressionLevel::Page,
        ),
    }));
    let mount = Mount {
        tenant: tenant.shared(),
        prefix: address.prefix.as_str().into(),
        pages: Slot::from(MountPages {
            resources: Resources::default(),
            redirects: Arc::default(),
            not_found: vec![("".into(), Arc::clone(&page))],
            method_not_allowed: vec![("".into(), page)],
        }),
        traffic: OnceLock::new(),
    };
    AddressMount {
        address,
        mount: Arc::new(mount),
        uncompressed: None,
    }
}

fn unavailable_page(tenant: &TenantId, errors: &[Diagnostic], islands: &Islands) -> String {
    let terminal = Terminal::plain();
    let mut said = String::new();
    for error in errors {
        // Writing into a String cannot fail.
        let _ = writeln!(said, "{}\n", error.render(&terminal));
    }
    let said = escape(said.trim_end());
    let script = element(islands, tenant.as_str(), &said, None);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{tenant} has no page yet</title>\n{script}</head>\n\
         <body>\n<h1>{tenant} has no page yet</h1>\n<p>Its folder has never been without errors. \
         The site replaces this page when the errors are fixed.</p>\n<pre>{said}</pre>\n</body>\n</html>\n"
    )
}
