//! How much a visitor loads to see a page, and to use it.

use std::collections::BTreeSet;

use crate::compile::inputs::Inputs;
use crate::lints::at_key::keyed;
use crate::lints::page_facts::Seen;
use crate::resources::asset::ASSETS;
use crate::resources::encodings::compress::{Level, gzip};
use content::report::{Code, Diagnostic};
use content::tenant::{Page, Site};
use release::snapshot::{Body, Coding, Resource, Variant};

/// HTML with its style, compressed, in bytes.
const FIRST_VIEW: usize = 30 << 10;
/// All JavaScript of a page's islands, compressed, in bytes.
const SCRIPTS: usize = 80 << 10;

/// Warnings for a page that is too heavy; `resource` is what it answers.
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

/// What a page comes to, compressed by gzip, in bytes: the same whether anybody has requested it, and the most that a browser gets.
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

/// The bytes of a page, which are in memory.
fn bytes_in_memory(variant: &Variant) -> &[u8] {
    variant.bytes.in_memory().map_or(&[], |bytes| bytes)
}

/// The smallest form of a body, in bytes.
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

/// What the islands of a page make the browser load, in bytes.
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
