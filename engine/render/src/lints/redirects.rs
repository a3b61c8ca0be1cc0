//! Follows the redirects of the manifest: none leads to another redirect or back to itself.
//!
//! A wildcard is followed with a path that no page has. Its target may be the path of another wildcard, such as a fallback of all paths, since pages come first. But it must end.
//!
//! **Invariant:** decides with the table that requests get, and never with a copy of its rules.

use content::formats::link::rooted;
use content::formats::old_path::SPLAT;
use content::name::reserved::is_reserved;
use content::report::{Code, Diagnostic, Report, Severity};
use content::tenant::manifest::Redirect;
use content::tenant::{MANIFEST, Site};
use percent_encoding::percent_decode_str;
use release::snapshot::{Mount, MountPages};
use url::form_urlencoded;

use crate::pages::links::resolver::{LinkTarget, parse_link};

/// The number of redirects after which a chain is endless. Browsers follow 20.
const MAX_REDIRECTS: usize = 20;

/// A name that stands for the names that visitors may request below a wildcard.
const SAMPLE: &str = "sample-5d81c0e7a2f4b396";

/// Adds an error for each redirect whose target is redirected again, or that never ends.
pub(super) fn check(site: &Site, mount: &Mount, report: &mut Report) {
    let Some(pages) = mount.pages.get() else {
        return;
    };
    let manifest = site.name_of(MANIFEST);
    let positions = site.formatted.iter();
    let mut positions = positions.filter(|text| text.format == "redirect-target");
    for redirect in &site.manifest.redirects {
        let Some(to) = &redirect.to else {
            continue;
        };
        let position = positions.next().map(|text| text.position);
        if !is_own(site, to.as_str()) {
            continue;
        }
        let (from, to) = (redirect.from.as_str(), to.as_str());
        let steps = follow(redirect, &mount.prefix, pages);
        let is_endless = steps.len() > MAX_REDIRECTS;
        let (message, hint) = if is_endless {
            let first: Vec<&str> = steps.iter().take(3).map(String::as_str).collect();
            let message = format!(
                "`{from}` never stops to redirect: {}, ...",
                first.join(" to ")
            );
            (message, "redirect one of these paths to a page")
        } else if steps.len() > 2 && !to.contains(SPLAT) {
            let message = format!("`{from}` redirects to `{to}`, which is a redirect itself");
            (
                message,
                "redirect to the page at which the other redirect ends",
            )
        } else {
            continue;
        };
        report.add(Severity::Error, Code::RedirectChain, &manifest, || {
            let diagnostic = Diagnostic::error(Code::RedirectChain, manifest.clone(), message);
            let diagnostic = diagnostic.hint(hint);
            match position {
                Some(position) => site.locate(diagnostic, MANIFEST, position),
                None => diagnostic,
            }
        });
    }
}

/// Returns whether a link is a path of the tenant. Other targets are not in its table.
fn is_own(site: &Site, link: &str) -> bool {
    match parse_link(&rooted(link, MANIFEST)) {
        Ok(LinkTarget::SameTenant(..)) => true,
        Ok(LinkTarget::OtherTenant(tenant, ..)) => tenant == site.id.as_str(),
        _ => false,
    }
}

/// Returns the requested path and each path that it redirects to, at most one more than [`MAX_REDIRECTS`].
fn follow(redirect: &Redirect, prefix: &str, pages: &MountPages) -> Vec<String> {
    let old = redirect.old_path();
    let mut path = match old.is_wildcard {
        true => format!("{}/{SAMPLE}", old.path),
        false => old.path,
    };
    let mut query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(
            redirect
                .query
                .iter()
                .map(|(name, value)| (name, value.as_str())),
        )
        .finish();
    let mut steps = vec![shown(&path)];
    while steps.len() <= MAX_REDIRECTS {
        let is_taken = pages.resources.contains_key(&path) || is_reserved(&path);
        let Some(decision) = pages.redirects.decide(&path, Some(&query), is_taken) else {
            break;
        };
        let location = decision.location.as_ref();
        let next = location.and_then(|(_, location)| {
            let below = location.to_str().ok()?.strip_prefix(prefix)?;
            let below = below.split('#').next().unwrap_or_default();
            let (path, query) = below.split_once('?').unwrap_or((below, ""));
            let path = percent_decode_str(path).decode_utf8().ok()?;
            Some((
                if path.is_empty() {
                    "/".into()
                } else {
                    path.into_owned()
                },
                query.to_owned(),
            ))
        });
        match next {
            Some((next, with)) => (path, query) = (next, with),
            None => {
                // Another origin, or a page that was removed.
                steps.push("its target".to_owned());
                break;
            }
        }
        steps.push(shown(&path));
    }
    steps
}

fn shown(path: &str) -> String {
    format!("`{}`", path.replace(SAMPLE, "*"))
}
