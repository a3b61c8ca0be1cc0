//! Serves files that a newer release replaced, for cached pages that still refer to them.

use std::sync::Arc;

use http::StatusCode;

use crate::media::media_type::media_type;
use crate::resources::asset::{ASSETS, Asset};
use crate::resources::encodings::compress::{self, CompressionLevel};
use crate::resources::file_resource::fallback_resources;
use crate::resources::header_fields::{self, BodyKind};
use crate::resources::tenant_files::tenant_asset;
use content::source::Folder;
use release::payload::Payload;
use release::snapshot::{Body, Resource, ResourceTable};

/// The owner of a file, which decides the file's permissions in a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOwner {
    /// A tenant.
    Tenant,
    /// A theme or the islands.
    Shared,
}

/// Makes the resource of a replaced file. `path` contains the hashed name.
///
/// The file is not compressed again, because it is rarely requested.
#[must_use]
pub fn replaced_file(path: &str, bytes: Payload, owner: FileOwner, is_secure: bool) -> Resource {
    let name = path.strip_prefix(ASSETS).unwrap_or(path);
    let (kind, media_type) = match owner {
        FileOwner::Tenant => BodyKind::of_tenant(name),
        FileOwner::Shared => (BodyKind::Immutable, media_type(name)),
    };
    Resource::Body(Body {
        status: StatusCode::OK,
        fields: header_fields::fields(&kind, media_type, is_secure),
        cache_tag: None,
        variants: match bytes {
            Payload::Memory(bytes) => compress::variants(bytes, false, CompressionLevel::Page),
            Payload::Large(file) => compress::large(*file),
        },
    })
}

/// Returns the files of a tenant's folder as they are served, by path, uncompressed.
#[must_use]
pub fn replaced_files(folder: &Folder, is_secure: bool) -> ResourceTable {
    let key = |path| str::strip_prefix(path, "assets/");
    let files = folder.files.iter();
    let files = files.filter_map(|(path, bytes)| {
        let key = key(path)?;
        Some(tenant_asset(key, bytes, key).0)
    });
    let large = folder.large.iter();
    let large = large.filter_map(|(path, file)| Some(Asset::of_large(key(path)?, file)));
    files
        .chain(large)
        .flat_map(|asset| {
            let path = format!("{ASSETS}{}", asset.hashed_name);
            let resource = replaced_file(&path, asset.payload(), FileOwner::Tenant, is_secure);
            let file = (path.into_boxed_str(), Arc::new(resource));
            fallback_resources(&asset).chain([file]).collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};

    use super::*;

    #[test]
    fn replaced_file_of_a_tenant_has_no_more_permissions_than_a_current_one() {
        let folder = Folder {
            label: "tenants/sample".to_owned(),
            files: [
                ("assets/page.html", "<script>1</script>"),
                ("assets/a.js", "1"),
                (
                    "assets/a.svg",
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"1\"/>",
                ),
            ]
            .map(|(path, text)| (path.to_owned(), Bytes::from(text)))
            .into(),
            ..Folder::default()
        };
        let table = replaced_files(&folder, true);
        assert_eq!(table.len(), 3);
        for (path, resource) in &table {
            let Resource::Body(body) = resource.as_ref() else {
                panic!("{path} is not a file");
            };
            let encoding = release::snapshot::ContentEncoding::Identity;
            let tag = http::HeaderValue::from_static("\"x\"");
            let headers = body.fields.for_body(encoding, &tag);
            let policy = headers.get(CONTENT_SECURITY_POLICY).expect("a policy");
            assert!(policy.to_str().expect("text").contains("sandbox"), "{path}");
            let media_type = headers[CONTENT_TYPE].to_str().expect("text");
            let is_saved = headers.contains_key(CONTENT_DISPOSITION);
            assert_eq!(media_type == "application/octet-stream", is_saved, "{path}");
            assert_eq!(
                media_type == "image/svg+xml",
                path.ends_with(".svg"),
                "{path}"
            );
            let text = body
                .variants
                .identity()
                .and_then(|variant| variant.bytes.in_memory());
            assert!(!text.expect("bytes").ends_with(b"onload=\"1\"/>"), "{path}");
        }
    }
}
