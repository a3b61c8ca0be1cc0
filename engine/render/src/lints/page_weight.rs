//! Checks how many bytes a visitor loads to see and to use a page.

use std::collections::BTreeSet;

use crate::compile::inputs::Inputs;
use crate::lints::at_key::keyed;
use crate::lints::page_facts::Seen;
use crate::resources::asset::ASSETS;
use crate::resources::encodings::compress::{Level, gzip};
use content::report::{Code, Diagnostic};
use content::tenant::{Page, Site};
use release::snapshot::{Body, Coding, Resource, Variant};

/// Limit on the HTML of a page with its style, compressed, in bytes.
const FIRST_VIEW: usize = 30 << 10;
/// Limit on the JavaScript of a page's islands, compressed, in bytes.
const SCRIPTS: usize = 80 << 10;

/// Returns warnings for a page that is too heavy. `resource` is its response body.
pub(super) fn check(
    site: &Site,
    page: &Page,
    seen: &Seen,
    resource: Option<&Resource>,
    inputs: &Inputs,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut warn = |message: String, hint: &str| {
        found.push(keyed(site, page, "title", Code::PageWeight, message).hint(hint));
    };
    let html = resource.map_or(0, first_view);
    if html > FIRST_VIEW {
        let message = format!("the page comes to {html} bytes compressed, more than {FIRST_VIEW}");
        warn(message, "split the page, or inline fewer drawings");
    }
    let scripts = scripts(&seen.islands, inputs);
    if scripts > SCRIPTS {
        let message =
            format!("the islands load {scripts} bytes of JavaScript, more than {SCRIPTS}");
        warn(
            message,
            "use fewer islands, or `client=\"none\"` for those that need not live",
        );
    }
    found
}

/// Returns the size of a page compressed by gzip, in bytes. That is the upper bound of what browsers load, and does not depend on earlier requests.
fn first_view(resource: &Resource) -> usize {
    let Resource::Body(Body { variants, .. }) = resource else {
        return 0;
    };
    let mut codings = variants.iter();
    if let Some(made) = codings.find(|variant| variant.coding == Coding::Gzip) {
        return bytes_in_memory(made).len();
    }
    let bytes = variants.identity().map_or(&[][..], bytes_in_memory);
    match bytes.len() > FIRST_VIEW {
        true => gzip(bytes, Level::Page).map_or(bytes.len(), |compressed| compressed.len()),
        false => bytes.len(),
    }
}

/// Returns the bytes of a page's variant, which are always in memory.
fn bytes_in_memory(variant: &Variant) -> &[u8] {
    variant.bytes.in_memory().map_or(&[], |bytes| bytes)
}

/// Returns the size of the smallest variant of a body, in bytes.
fn weight(resource: &Resource) -> usize {
    match resource {
        Resource::Body(Body { variants, .. }) => {
            let sizes = variants.iter().map(|variant| variant.bytes.len());
            let smallest = sizes.min().unwrap_or_default();
            usize::try_from(smallest).unwrap_or(usize::MAX)
        }
        Resource::Redirect(_) => 0,
    }
}

/// Returns the JavaScript that a page's islands load, in bytes.
fn scripts(used: &BTreeSet<String>, inputs: &Inputs) -> usize {
    let manifest = inputs.islands.bundle.manifest();
    let islands = used.iter().filter_map(|name| manifest.islands.get(name));
    let own = islands.flat_map(|island| std::iter::once(&island.file).chain(&island.imports));
    let runtime = std::iter::once(&manifest.runtime.file).chain(&manifest.runtime.imports);
    let files: BTreeSet<&String> = own.chain(runtime).collect();
    let path = |file: &String| format!("{}{file}", ASSETS);
    let resources = files
        .into_iter()
        .filter_map(|file| inputs.islands.files.get(path(file).as_str()));
    resources.map(|resource| weight(resource)).sum()
}
