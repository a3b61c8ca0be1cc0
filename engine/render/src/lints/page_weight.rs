//! Checks how many bytes a visitor loads to see and to use a page.

use std::collections::BTreeSet;

use crate::compile::inputs::CompileInputs;
use crate::lints::at_key::warning_at_key;
use crate::lints::page_facts::PageFacts;
use crate::resources::asset::ASSETS;
use crate::resources::encodings::compress::{CompressionLevel, gzip};
use content::report::{Code, Diagnostic};
use content::tenant::{Page, Site};
use release::snapshot::{Body, ContentEncoding, Resource, Variant};

/// Limit on the HTML of a page with its style, compressed, in bytes.
const MAX_HTML_BYTES: usize = 30 << 10;
/// Limit on the JavaScript of a page's islands, compressed, in bytes.
const MAX_SCRIPT_BYTES: usize = 80 << 10;

/// Returns warnings for a page that is too heavy. `resource` is its response body.
pub(super) fn check(
    site: &Site,
    page: &Page,
    seen: &PageFacts,
    resource: Option<&Resource>,
    inputs: &CompileInputs,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut warn = |message: String, hint: &str| {
        found.push(warning_at_key(site, page, "title", Code::PageWeight, message).hint(hint));
    };
    let html = resource.map_or(0, first_view);
    if html > MAX_HTML_BYTES {
        let message = format!("the page has {html} bytes compressed, more than {MAX_HTML_BYTES}");
        warn(message, "split the page, or inline fewer SVGs");
    }
    let scripts = scripts(&seen.islands, inputs);
    if scripts > MAX_SCRIPT_BYTES {
        let message =
            format!("the islands load {scripts} bytes of JavaScript, more than {MAX_SCRIPT_BYTES}");
        warn(
            message,
            "use fewer islands, or `client=\"none\"` for islands without interaction",
        );
    }
    found
}

/// Returns the size of a page compressed by gzip, in bytes. That is the upper bound of what browsers load, and does not depend on earlier requests.
fn first_view(resource: &Resource) -> usize {
    let Resource::Body(Body { variants, .. }) = resource else {
        return 0;
    };
    let mut encodings = variants.iter();
    if let Some(made) = encodings.find(|variant| variant.encoding == ContentEncoding::Gzip) {
        return bytes_in_memory(made).len();
    }
    let bytes = variants.identity().map_or(&[][..], bytes_in_memory);
    match bytes.len() > MAX_HTML_BYTES {
        true => {
            gzip(bytes, CompressionLevel::Page).map_or(bytes.len(), |compressed| compressed.len())
        }
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
fn scripts(used: &BTreeSet<String>, inputs: &CompileInputs) -> usize {
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
