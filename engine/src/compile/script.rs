//! The scripts that a page's head asks for, known once the page is rendered.

use super::asset::ASSETS;
use super::island::Client;
use super::template::Scope;

/// The loader, and before it what `load` islands need at once, so that it travels while the page is read.
/// None of them may take the line from the stylesheet, which the first view waits for (WHATWG HTML, fetch priority).
/// A page without islands to bring to life has no script.
pub(crate) fn script_tags(scope: &Scope) -> String {
    let islands = &scope.islands;
    let manifest = islands.bundle.manifest();
    let live = || {
        scope
            .used
            .iter()
            .filter(|(_, client)| *client != Client::None)
    };
    if live().next().is_none() {
        return String::new();
    }
    let mut files: Vec<&str> = Vec::new();
    for (name, _) in live().filter(|(_, client)| *client == Client::Load) {
        let Some(island) = manifest.islands.get(name) else {
            continue;
        };
        let runtime = std::iter::once(&manifest.runtime.file).chain(&manifest.runtime.imports);
        let own = std::iter::once(&island.file).chain(&island.imports);
        for file in runtime.chain(own) {
            if !files.contains(&file.as_str()) {
                files.push(file);
            }
        }
    }
    let mut html = String::new();
    for file in files {
        html.push_str(&format!(
            "<link rel=\"modulepreload\" href=\"{ASSETS}{file}\" integrity=\"{}\" fetchpriority=\"low\">\n",
            islands.integrity(file)
        ));
    }
    let loader = &manifest.loader;
    html.push_str(&format!(
        "<script type=\"module\" src=\"{ASSETS}{loader}\" integrity=\"{}\" fetchpriority=\"low\"></script>\n",
        islands.integrity(loader)
    ));
    html
}
