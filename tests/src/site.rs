//! Folders of tenants to compile: a fixture, or a copy that a test changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use annotate_snippets::Renderer;
use bytes::Bytes;
use content::report::Report;
use release::snapshot::{HostEntry, Mount, MountPages, Resource, ResourceTable, Snapshot};
use render::CachePolicy;
use render::Islands;
use rowhouse::export::{ExportError, ExportOptions, export};
use rowhouse_ui::Bundle;
use supervisor::{DeploymentConfig, Registry};
use tempfile::TempDir;

/// The time at which fixtures are compiled by default.
pub const NOW: &str = "2026-11-21T12:00:00Z";

/// A temporary folder with `tenants` and optionally `themes`, and its registry.
#[derive(Debug)]
pub struct TestSite {
    folder: TempDir,
    registry: Registry,
    /// The last snapshot.
    pub snapshot: Snapshot,
}

impl TestSite {
    /// Copies a fixture (`tests/fixtures/<name>`) and compiles it.
    #[must_use]
    pub fn fixture(name: &str) -> Self {
        Self::copy_of(&crate::fixture(name))
    }

    /// Copies a folder with `tenants` and compiles it. Without `themes`, the embedded themes are used.
    #[must_use]
    pub fn copy_of(source: &Path) -> Self {
        static ISLANDS: OnceLock<Arc<Islands>> = OnceLock::new();
        let islands = ISLANDS.get_or_init(|| {
            let bundle = Bundle::embedded().expect("the islands");
            Arc::new(Islands::new(bundle, true))
        });
        Self::with_islands(source, Arc::clone(islands))
    }

    /// Copies a folder and compiles it with other islands than the embedded ones.
    #[must_use]
    pub fn with_islands(source: &Path, islands: Arc<Islands>) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        for part in ["tenants", "themes"] {
            if source.join(part).is_dir() {
                copy(&source.join(part), &folder.path().join(part));
            }
        }
        let themes = folder.path().join("themes");
        let config = DeploymentConfig {
            tenants: folder.path().join("tenants"),
            themes: themes.is_dir().then_some(themes),
            deployment: None,
            origin: "https://studio.example".parse().expect("an origin"),
            hsts: None,
            caching: CachePolicy::default(),
        };
        let mut site = Self {
            registry: Registry::new(config, islands),
            snapshot: Snapshot::default(),
            folder,
        };
        site.reload();
        site
    }

    /// Returns the folder of the copy.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Reloads the folders.
    pub fn reload(&mut self) -> &mut Self {
        self.reload_at(NOW)
    }

    /// Reloads the folders at another time (RFC 3339).
    pub fn reload_at(&mut self, now: &str) -> &mut Self {
        let now = now.parse().expect("a moment");
        self.snapshot = self.registry.reload(now).expect("the folders");
        self
    }

    /// Renders the images that pages name: social images and icons.
    pub fn render_images(&mut self) -> &mut Self {
        self.registry.render_images();
        self
    }

    /// Makes the Markdown forms of all pages.
    pub fn make_markdown_forms(&mut self) -> &mut Self {
        for (_, compiled) in self.registry.sites() {
            for (path, _) in compiled.markdown_forms().filter_map(Result::ok) {
                if let Some(task) = compiled.markdown_task(&path) {
                    task.run().expect("a Markdown form");
                }
            }
        }
        self
    }

    /// Makes the best encodings of all pages.
    pub fn add_best_encodings(&mut self) -> &mut Self {
        self.registry.compress_fully();
        self
    }

    /// Returns the files of an export, by their paths.
    ///
    /// # Errors
    /// Fails if two resources have the same path.
    pub fn exported(&self, options: ExportOptions) -> Result<BTreeMap<String, Bytes>, ExportError> {
        let mut files = BTreeMap::new();
        export(&self.registry, &self.snapshot, options, &mut files)?;
        Ok(files)
    }

    /// Returns the path of a file of the copy.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file of the copy, with its parent folders.
    pub fn write(&mut self, path: &str, content: impl AsRef<[u8]>) -> &mut Self {
        let target = self.path(path);
        fs::create_dir_all(target.parent().expect("a parent")).expect("a folder");
        fs::write(target, content).expect("a written file");
        self
    }

    /// Writes the manifest of a tenant and a landing page.
    pub fn add_tenant(&mut self, id: &str, manifest: &str) -> &mut Self {
        self.write(&format!("tenants/{id}/tenant.yaml"), manifest);
        self.write(
            &format!("tenants/{id}/pages/index.md"),
            "---\ntitle: Home\n---\n",
        )
    }

    /// Replaces a text in a file of the copy. The text must be there.
    pub fn edit(&mut self, path: &str, from: &str, to: &str) -> &mut Self {
        let text = fs::read_to_string(self.path(path)).expect("a file");
        assert!(text.contains(from), "{path} does not hold `{from}`");
        self.write(path, text.replacen(from, to, 1))
    }

    /// Removes a file or folder of the copy.
    pub fn remove(&mut self, path: &str) -> &mut Self {
        let target = self.path(path);
        if target.is_dir() {
            fs::remove_dir_all(target).expect("a removed folder");
        } else {
            fs::remove_file(target).expect("a removed file");
        }
        self
    }

    /// Returns the registry, for its summaries.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the report of all tenants.
    #[must_use]
    pub fn report(&self) -> Report {
        self.registry.report()
    }

    /// Returns the report as `check` prints it, with the temporary folder as `[ROOT]`.
    #[must_use]
    pub fn report_text(&self) -> String {
        let root = self.folder.path().display().to_string();
        let renderer = Renderer::plain();
        let text: Vec<String> = self
            .report()
            .iter()
            .map(|diagnostic| {
                let mut diagnostic = diagnostic.clone();
                diagnostic.file = diagnostic.file.replace(&format!("{root}/"), "");
                diagnostic.message = diagnostic.message.replace(&format!("{root}/"), "");
                diagnostic.render(&renderer)
            })
            .collect();
        text.join("\n\n").replace(&root, "[ROOT]") + "\n"
    }

    /// Returns the mount at the root of a host, or at a prefix of the host.
    #[must_use]
    pub fn mount(&self, host: &str, prefix: &str) -> Option<Arc<Mount>> {
        self.mounted(host, prefix).cloned()
    }

    fn mounted(&self, host: &str, prefix: &str) -> Option<&Arc<Mount>> {
        match self.snapshot.hosts.get(host)? {
            HostEntry::Site(routes) if prefix.is_empty() => routes.root.as_ref(),
            HostEntry::Site(routes) => routes.prefixes.get(prefix),
            HostEntry::Redirect(_) => None,
        }
    }

    /// Returns the files of a host that belong to no tenant, by path.
    ///
    /// # Panics
    /// Panics if the host serves no site.
    #[must_use]
    pub fn host_files(&self, host: &str) -> &ResourceTable {
        match self.snapshot.hosts.get(host) {
            Some(HostEntry::Site(routes)) => &routes.files,
            other => panic!("{host} serves no site: {other:?}"),
        }
    }

    /// Returns a rendered image of a host, by its path.
    ///
    /// # Panics
    /// Panics if the host serves no site.
    #[must_use]
    pub fn rendered_image(&self, host: &str, path: &str) -> Option<&Resource> {
        match self.snapshot.hosts.get(host) {
            Some(HostEntry::Site(routes)) => routes.images.get(path)?.get(),
            other => panic!("{host} serves no site: {other:?}"),
        }
    }

    /// Returns the pages of a tenant at an address.
    ///
    /// # Panics
    /// Panics if there is no mount, or if it is not rendered.
    #[must_use]
    pub fn pages(&self, host: &str, prefix: &str) -> &MountPages {
        let mount = self.mounted(host, prefix).expect("a mount");
        mount.pages.get().expect("what is rendered")
    }

    /// Returns the text of a page, by the path below its mount.
    #[must_use]
    pub fn page(&self, host: &str, prefix: &str, path: &str) -> Option<String> {
        let mount = self.mount(host, prefix)?;
        text_of(mount.resource(path)?)
    }
}

/// Returns the identity body of a resource, as text.
#[must_use]
pub fn text_of(resource: &Resource) -> Option<String> {
    match resource {
        Resource::Body(body) => {
            let bytes = &body.variants.identity()?.bytes;
            String::from_utf8(bytes.to_bytes().ok()?.to_vec()).ok()
        }
        Resource::Redirect(_) => None,
    }
}

/// Copies a folder with its content.
///
/// # Panics
/// Panics if a file cannot be read or written.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copied file");
        }
    }
}

/// Compares a text with a file. With `UPDATE_EXPECTED=1` in the environment, writes the file instead.
pub fn expect_text(actual: &str, expected: &Path) {
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::create_dir_all(expected.parent().expect("a parent")).expect("a folder");
        fs::write(expected, actual).expect("a written file");
        return;
    }
    let wanted = fs::read_to_string(expected).unwrap_or_default();
    assert!(
        wanted == actual,
        "{} differs; with UPDATE_EXPECTED=1 it is written anew\n--- expected\n{wanted}\n--- actual\n{actual}",
        expected.display()
    );
}
