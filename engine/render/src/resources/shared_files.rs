//! What belongs to all tenants: the files that every host serves, the answer of unknown hosts, the picture that stands in.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};

use crate::compile::cache::Cache;
use crate::island::Islands;
use crate::pages::links::resolver::Deployment;
use crate::resources::asset::{ASSETS, Asset};
use crate::resources::encodings::compress::{self, Level};
use crate::resources::file_resource::shared_files;
use crate::resources::header_fields::{self, BodyKind};
use crate::resources::tenant_files::tenant_asset;
use crate::theme::Templates;
use content::address::Origin;
use content::tenant::assets::named;
use content::tenant::manifest::Hsts;
use content::tenant::{MANIFEST, Site};
use release::snapshot::{Body, Moved, Resource, ResourceTable};

/// The files that every host serves: the themes' and the islands'.
#[must_use]
pub fn shared(
    themes: &[Arc<Templates>],
    islands: &Islands,
    secure: bool,
    cache: &Cache,
) -> ResourceTable {
    let files: Vec<&Asset> = themes
        .iter()
        .flat_map(|templates| templates.assets.files.values())
        .collect();
    let mut table = shared_files(files, Level::Shared, secure, cache);
    table.extend(
        islands
            .files
            .iter()
            .map(|(path, resource)| (path.clone(), Arc::clone(resource))),
    );
    table
}

/// What a host that nobody has answers: no tenant's page and no name of any. `words` are the deployment's own; without any there is no body.
#[must_use]
pub fn unknown_host(words: Option<String>, secure: bool) -> Arc<Resource> {
    let text = words.map_or_else(String::new, |words| words + "\n");
    let media_type = "text/plain; charset=utf-8";
    Arc::new(Resource::Body(Body {
        status: StatusCode::MISDIRECTED_REQUEST,
        fields: header_fields::fields(&BodyKind::Plain, media_type, secure),
        cache_tag: None,
        variants: compress::variants(Bytes::from(text), false, Level::Page),
    }))
}

/// The root tenant's social image, which stands in for those that others do not have.
#[must_use]
pub fn default_image(root: &Site, origin: &Origin) -> Option<String> {
    let written = root.manifest.image.as_ref()?.as_str();
    let (key, bytes) = named(&root.assets, written, MANIFEST)?;
    let (asset, _) = tenant_asset(key, bytes, key);
    Some(format!("{origin}{ASSETS}{}", asset.hashed_name))
}

/// A permanent move to the domain of a deployment, which is its root tenant's.
#[must_use]
pub fn moved_to(deployment: &Deployment) -> Option<Moved> {
    let Deployment { origin, root, .. } = deployment;
    let tenant = root.as_ref();
    // What the domain says of the hosts below it, each of them need not say again.
    let hsts = match deployment.hsts {
        Hsts::Off => Hsts::Off,
        Hsts::Host | Hsts::Subdomains | Hsts::Preload => Hsts::Host,
    };
    let hsts = HeaderValue::from_static(hsts.field());
    Some(Moved {
        cache_tag: tenant.and_then(|tenant| HeaderValue::from_str(tenant.as_str()).ok()),
        hsts: origin.is_secure().then_some(hsts),
        origin: HeaderValue::from_str(&origin.to_string()).ok()?,
    })
}
