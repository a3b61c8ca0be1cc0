//! Makes resources of files: header fields and content encodings.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use rayon::prelude::*;

use crate::compile::cache::Cache;
use crate::images::image_variant::ImageVariant;
use crate::media::media_type::{is_compressible, media_type};
use crate::resources::asset::{ASSETS, Asset};
use crate::resources::encodings::compress::{self, CompressionLevel};
use crate::resources::header_fields::{self, BodyKind};
use release::snapshot::fields::Fields;
use release::snapshot::{Body, Resource, ResourceTable};

/// Makes the resource of a file.
pub(crate) fn file(
    asset: &Asset,
    (kind, media_type): (BodyKind, &str),
    is_secure: bool,
    level: CompressionLevel,
    cache: &Cache,
) -> Resource {
    Resource::Body(Body {
        status: StatusCode::OK,
        fields: header_fields::fields(&kind, media_type, is_secure),
        cache_tag: None,
        variants: match (&asset.large, &asset.brotli) {
            (Some(file), _) => compress::large(file.clone()),
            (None, Some(brotli)) => compress::with_brotli(asset.bytes.clone(), brotli.clone()),
            (None, None) => compress::cached_variants(
                asset.bytes.clone(),
                is_compressible(media_type),
                level,
                cache,
            ),
        },
    })
}

/// Makes a temporary redirect: 302 with `Location`, not cacheable (RFC 9110, section 15.4.3).
pub(crate) fn temporary_redirect(location: HeaderValue) -> Resource {
    let mut fields = HeaderMap::new();
    fields.insert(LOCATION, location);
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Resource::Body(Body {
        status: StatusCode::FOUND,
        fields: Arc::new(Fields::new(fields, false, false)),
        cache_tag: None,
        variants: compress::variants(Bytes::new(), false, CompressionLevel::Page),
    })
}

/// Returns the placeholders for image variants that are not drawn yet, by path. Each redirects to a fallback, in the end to the original.
pub(crate) fn fallback_resources(asset: &Asset) -> impl Iterator<Item = (Box<str>, Arc<Resource>)> {
    ImageVariant::all(asset).filter_map(|size| {
        let path = format!("{ASSETS}{}", size.file_name());
        let location = HeaderValue::from_str(&size.fallback_name()).ok()?;
        Some((path.into(), Arc::new(temporary_redirect(location))))
    })
}

/// Makes the resource of a file with a fixed name.
pub(crate) fn plain_file(
    media_type: &str,
    content: impl Into<Bytes>,
    is_secure: bool,
) -> Arc<Resource> {
    Arc::new(Resource::Body(Body {
        status: StatusCode::OK,
        fields: header_fields::fields(&BodyKind::Plain, media_type, is_secure),
        cache_tag: None,
        variants: compress::variants(
            content.into(),
            is_compressible(media_type),
            CompressionLevel::Page,
        ),
    }))
}

/// Makes the resources of files that every host serves, by path.
pub(crate) fn shared_files<'a>(
    assets: impl IntoParallelIterator<Item = &'a Asset>,
    level: CompressionLevel,
    is_secure: bool,
    cache: &Cache,
) -> ResourceTable {
    let files: Vec<_> = assets
        .into_par_iter()
        .map(|asset| {
            let path = format!("{ASSETS}{}", asset.hashed_name);
            let kind = (BodyKind::Immutable, media_type(&asset.hashed_name));
            let resource = file(asset, kind, is_secure, level, cache);
            (path.into_boxed_str(), Arc::new(resource))
        })
        .collect();
    files.into_iter().collect()
}
