//! The script and preload tags in a page's head, known once the page is rendered.

use crate::island::Hydration;
use crate::resources::asset::ASSETS;
use crate::theme::PageScope;

/// Returns the loader, preceded by `modulepreload` links for the modules of the page's islands (HTML, link type `modulepreload`).
///
/// - Modules of `load` islands are fetched at once, so that they arrive while the page is read.
/// - Modules of `interaction` islands have a `media` that never matches. The loader changes it once the page is shown or a visitor turns to an island.
/// - All links have a low fetch priority, so that they do not delay the files of the first view (HTML, fetch priority).
/// - The loader is inline, allowed by its hash in the policy, and blocks rendering (HTML, blocking attributes). So its effects are in the first frame, and the page is not painted twice.
///
/// Returns an empty string if the page has no island to hydrate.
pub(crate) fn script_tags(scope: &PageScope) -> String {
    let islands = &scope.islands;
    let manifest = islands.bundle.manifest();
    let live = |client: Hydration| {
        let uses = scope.used.iter().filter(move |(_, used)| *used == client);
        uses.filter_map(|(name, _)| manifest.islands.get(name))
    };
    if scope
        .used
        .iter()
        .all(|(_, client)| *client == Hydration::None)
    {
        return String::new();
    }
    let runtime = || std::iter::once(&manifest.runtime.file).chain(&manifest.runtime.imports);
    let mut files: Vec<&str> = Vec::new();
    let mut html = String::new();
    for (client, media) in [
        (Hydration::Load, ""),
        (Hydration::Interaction, " media=\"not all\""),
    ] {
        for island in live(client) {
            let own = std::iter::once(&island.file).chain(&island.imports);
            for file in runtime().chain(own) {
                if files.contains(&file.as_str()) {
                    continue;
                }
                files.push(file);
                html.push_str(&format!(
                    "<link rel=\"modulepreload\"{media} href=\"{ASSETS}{file}\" fetchpriority=\"low\">\n"
                ));
            }
        }
    }
    let loader = islands.bundle.loader();
    html.push_str(&format!(
        "<script type=\"module\" blocking=\"render\">{loader}</script>\n"
    ));
    html
}
