//! The scripts that a page's head asks for, known once the page is rendered.

use crate::island::Hydration;
use crate::resources::asset::ASSETS;
use crate::theme::Scope;

/// The loader, and before it the modules of the page's islands (HTML, link type `modulepreload`): what `load` islands
/// need is fetched at once, so that it travels while the page is read; what `interaction` islands need stands there with
/// a `media` that never holds, until the loader says that the page is there, or that a visitor turned to one.
/// None of them may take the line from what the first view shows (HTML, fetch priority).
/// The loader stands in the page, by its hash in the policy, and the first view waits for it (HTML, blocking attributes):
/// what it shows at once is in the first frame, and the page is not laid out and painted a second time for it.
/// A page without islands to bring to life has no script.
pub(crate) fn script_tags(scope: &Scope) -> String {
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
