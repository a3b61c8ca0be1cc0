//! Resources that belong to no single tenant: files that every host serves, and the default social image.

use std::sync::Arc;

use http::HeaderValue;

use crate::compile::cache::Cache;
use crate::island::Islands;
use crate::pages::links::resolver::DeploymentFacts;
use crate::resources::asset::{ASSETS, Asset};
use crate::resources::encodings::compress::CompressionLevel;
use crate::resources::file_resource::shared_files;
use crate::resources::tenant_files::tenant_asset;
use crate::theme::Templates;
use content::address::Origin;
use content::tenant::assets::named;
use content::tenant::manifest::Hsts;
use content::tenant::{MANIFEST, Site};
use release::snapshot::{HostRedirect, ResourceTable};

/// Returns the files of the themes and of the islands, which every host serves.
#[must_use]
pub fn shared(
    themes: &[Arc<Templates>],
    islands: &Islands,
    is_secure: bool,
    cache: &Cache,
) -> ResourceTable {
    let files: Vec<&Asset> = themes
        .iter()
        .flat_map(|templates| templates.assets.files.values())
        .collect();
    let mut table = shared_files(files, CompressionLevel::Shared, is_secure, cache);
    table.extend(
        islands
            .files
            .iter()
            .map(|(path, resource)| (path.clone(), Arc::clone(resource))),
    );
    table
}

/// Returns the absolute URL of the root tenant's social image, the default for tenants without one.
#[must_use]
pub fn default_image(root: &Site, origin: &Origin) -> Option<String> {
    let written = root.manifest.image.as_ref()?.as_str();
    let (key, bytes) = named(&root.assets, written, MANIFEST)?;
    let (asset, _) = tenant_asset(key, bytes, key);
    Some(format!("{origin}{ASSETS}{}", asset.hashed_name))
}

/// Makes a permanent redirect to the domain of the deployment, which belongs to the root tenant.
#[must_use]
pub fn moved_to(deployment: &DeploymentFacts) -> Option<HostRedirect> {
    let DeploymentFacts { origin, root, .. } = deployment;
    let tenant = root.as_ref();
    // Subdomains are covered by the policy of the domain, so a host does not repeat it.
    let hsts = match deployment.hsts {
        Hsts::Off => Hsts::Off,
        Hsts::Host | Hsts::Subdomains | Hsts::Preload => Hsts::Host,
    };
    let hsts = HeaderValue::from_static(hsts.field());
    Some(HostRedirect {
        cache_tag: tenant.and_then(|tenant| HeaderValue::from_str(tenant.as_str()).ok()),
        hsts: origin.is_secure().then_some(hsts),
        origin: HeaderValue::from_str(&origin.to_string()).ok()?,
    })
}
