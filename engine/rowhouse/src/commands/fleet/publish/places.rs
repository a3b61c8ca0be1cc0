//! The folders and files that can be published, and the errors that prevent it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use content::address::deployment::FILE;
use content::name::TenantId;
use content::report::{Code, Diagnostic, Report, Severity};
use content::source::{self, is_folder};
use fleet::key::{DEPLOYMENT, THEMES};
use supervisor::Registry;

use crate::cli::ContentFlags;
use crate::commands::fleet::folder::read_folder;
use crate::commands::setup::themes_folder;

/// The limit on the size of `deployment.yaml`, in bytes. The server has the same limit.
const MAX_DEPLOYMENT_BYTES: u64 = 1 << 20;

/// Returns the path of each name that can be published.
pub(super) fn places(content: &ContentFlags, registry: &Registry) -> BTreeMap<String, PathBuf> {
    let status = registry.status();
    let tenants = status.tenants().map(|tenant| tenant.id.to_string());
    let mut places: BTreeMap<String, PathBuf> = tenants
        .map(|id| (id.clone(), content.tenants.join(id)))
        .collect();
    if let Some(themes) = themes_folder(content.themes.as_deref()) {
        places.insert(THEMES.to_owned(), themes);
    }
    let within = || content.tenants.join(FILE);
    let deployment = content.deployment.clone().unwrap_or_else(within);
    if deployment.is_file() {
        places.insert(DEPLOYMENT.to_owned(), deployment);
    }
    places
}

/// Returns the hosts of a tenant.
pub(super) fn hosts(registry: &Registry, name: &str) -> Vec<String> {
    let status = registry.status();
    match (status.tenants.get(name), TenantId::new(name)) {
        (Some(tenant), _) => tenant.hosts.to_vec(),
        // A preview without a folder of its own.
        (None, Ok(id)) if id.is_preview() => {
            let domain = registry.config().origin.domain();
            vec![format!("{}.{domain}", id.host_label())]
        }
        (None, _) => Vec::new(),
    }
}

/// Reads the files of a tenant, of all themes (`theme/file`), or `deployment.yaml`.
pub(super) fn read(name: &str, path: &Path) -> Result<BTreeMap<String, Bytes>, Report> {
    match name {
        DEPLOYMENT => {
            let text = source::text(path, MAX_DEPLOYMENT_BYTES).map_err(report_of)?;
            let text = Bytes::from(text.unwrap_or_default());
            Ok(BTreeMap::from([(FILE.to_owned(), text)]))
        }
        THEMES => {
            let mut files = BTreeMap::new();
            let themes = source::list(path).map_err(|error| {
                let label = path.display().to_string();
                report_of(Diagnostic::error(
                    Code::Unreadable,
                    label,
                    error.to_string(),
                ))
            })?;
            for (theme, folder) in themes {
                if is_folder(&folder) {
                    files.extend(read_folder(&folder, &format!("{theme}/"))?);
                }
            }
            Ok(files)
        }
        _ => read_folder(path, ""),
    }
}

fn report_of(diagnostic: Diagnostic) -> Report {
    let mut report = Report::default();
    report.push(diagnostic);
    report
}

/// Returns whether a diagnostic is an error that prevents the publication of a name. Errors in themes and in `deployment.yaml` concern all names.
pub(super) fn prevents(diagnostic: &Diagnostic, tenants: &Path, name: &str) -> bool {
    let within = Path::new(&diagnostic.file).strip_prefix(tenants).ok();
    let tenant = within.and_then(|path| path.components().next());
    let tenant = tenant.map(|part| part.as_os_str());
    diagnostic.severity == Severity::Error
        && tenant.is_none_or(|tenant| tenant == name || tenant == FILE)
}
