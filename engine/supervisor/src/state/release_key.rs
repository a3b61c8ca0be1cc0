//! The key of a release: a digest of its addresses, statuses, header fields and bodies.
//!
//! Files that pages name have a hash in their names, so that a changed file changes the pages that name it.
//! The inputs of a release are not part of its key: a change that visitors cannot see does not make a release.
//!
//! **Invariant:** two releases have equal keys exactly if every request gets the same response from both.

use std::collections::HashMap;
use std::sync::Arc;

use release::snapshot::{Body, MountPages, Resource, ResourceTable};
use release::store::AddressPages;
use sha2::{Digest, Sha256};

/// Returns a digest of all responses of a tenant at all its addresses.
pub(crate) fn key_of(addresses: &[AddressPages]) -> [u8; 32] {
    let mut hash = Sha256::new();
    // Most addresses share one table of files, which may be large.
    let mut of_files: HashMap<*const ResourceTable, [u8; 32]> = HashMap::new();
    for place in addresses {
        let MountPages {
            resources,
            redirects,
            not_found,
            method_not_allowed,
        } = &place.pages;
        hash.update(format!("{}{}\n", place.host, place.prefix));
        let refused = method_not_allowed.iter();
        let refused: Vec<_> = refused
            .map(|(area, page)| (format!("405{area}"), page))
            .collect();
        let other = refused.iter().map(|(name, page)| (&**name, *page));
        let errors = not_found.iter().map(|(area, page)| (&**area, page));
        hash.update(digest(
            by_path(resources.pages()).chain(errors).chain(other),
        ));
        for rule in redirects.rules() {
            hash.update(format!(
                "{} {:?} {}\n",
                rule.pattern(),
                rule.conditions,
                rule.action
            ));
        }
        let files = resources.files();
        let of_files = of_files
            .entry(Arc::as_ptr(files))
            .or_insert_with(|| digest(by_path(files)));
        hash.update(of_files);
    }
    hash.finalize().into()
}

/// Returns a digest of resources by path, independent of their order.
fn digest<'a>(resources: impl Iterator<Item = (&'a str, &'a Arc<Resource>)>) -> [u8; 32] {
    let mut responses: Vec<String> = resources
        .map(|(path, resource)| match &**resource {
            Resource::Redirect(to) => format!("{path} {to:?}\n"),
            Resource::Body(body) => format!("{path} {}\n", response(body)),
        })
        .collect();
    responses.sort_unstable();
    let mut hash = Sha256::new();
    for response in responses {
        hash.update(response);
    }
    hash.finalize().into()
}

fn by_path(table: &ResourceTable) -> impl Iterator<Item = (&str, &Arc<Resource>)> {
    table.iter().map(|(path, resource)| (&**path, resource))
}

/// Returns the status, the entity tag and the header fields of a response.
fn response(body: &Body) -> String {
    let etag = body.variants.identity().map(|identity| &identity.etag);
    let (given, _, _) = body.fields.parts();
    let mut fields: Vec<String> = given
        .iter()
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect();
    fields.sort_unstable();
    format!("{} {etag:?} {fields:?}", body.status)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
    use release::snapshot::fields::Fields;
    use release::snapshot::redirects::{
        RedirectAction, RedirectRule, RedirectTable, RedirectTarget,
    };
    use release::snapshot::{ContentEncoding, Variant};

    use super::*;

    const PAGE: (StatusCode, &str, &[(&str, &str)]) = (
        StatusCode::OK,
        "words",
        &[("content-type", "text/html"), ("cache-control", "no-cache")],
    );

    fn body((status, etag, given): (StatusCode, &'static str, &[(&str, &str)])) -> Arc<Resource> {
        let mut fields = HeaderMap::new();
        for (name, value) in given {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            fields.append(name, HeaderValue::from_str(value).expect("a value"));
        }
        let variant = Variant {
            encoding: ContentEncoding::Identity,
            etag: HeaderValue::from_static(etag),
            bytes: etag.into(),
        };
        Arc::new(Resource::Body(Body {
            status,
            fields: Arc::new(Fields::new(fields, true, false)),
            cache_tag: None,
            variants: [variant].into(),
        }))
    }

    fn place(prefix: &str, pages: &[(&str, Arc<Resource>)]) -> AddressPages {
        let pages = pages.iter();
        AddressPages {
            host: "studio.example".to_owned(),
            prefix: prefix.to_owned(),
            pages: MountPages {
                resources: pages
                    .map(|(path, page)| ((*path).into(), Arc::clone(page)))
                    .collect(),
                redirects: Arc::default(),
                not_found: vec![("".into(), body(PAGE))],
                method_not_allowed: vec![("".into(), body(PAGE))],
            },
        }
    }

    #[test]
    fn releases_with_equal_responses_have_equal_keys() {
        let (status, etag, fields) = PAGE;
        let reversed: Vec<_> = fields.iter().rev().copied().collect();
        let first = [("/a", body(PAGE)), ("/b", body(PAGE))];
        let second = [("/b", body((status, etag, &reversed))), ("/a", body(PAGE))];
        assert_eq!(key_of(&[place("", &first)]), key_of(&[place("", &second)]));
    }

    #[test]
    fn difference_in_address_status_field_or_body_changes_the_key() {
        let (status, etag, fields) = PAGE;
        let redirect = |to| Arc::new(Resource::Redirect(HeaderValue::from_static(to)));
        let only = |page| [place("", &[("/", page)])];
        let keys = [
            key_of(&only(body(PAGE))),
            key_of(&only(body((StatusCode::GONE, etag, fields)))),
            key_of(&only(body((status, "other words", fields)))),
            key_of(&only(body((status, etag, &fields[..1])))),
            key_of(&only(body((
                status,
                etag,
                &[fields[0], ("cache-control", "no-store")],
            )))),
            key_of(&only(redirect("/new"))),
            key_of(&only(redirect("/newer"))),
            key_of(&[place("/app", &[("/", body(PAGE))])]),
            key_of(&[place("", &[("/app", body(PAGE))])]),
            key_of(&[place("", &[("/assets/app", body(PAGE))])]),
        ];
        let moved = |rule: RedirectRule| {
            let mut moved = place("", &[("/", body(PAGE))]);
            moved.pages.redirects = Arc::new(RedirectTable::new(vec![rule]));
            key_of(&[moved])
        };
        let gone = RedirectRule {
            path: "/old".into(),
            is_wildcard: false,
            conditions: Box::default(),
            action: RedirectAction::Gone,
        };
        let to = |status| RedirectAction::Redirect {
            status,
            target: RedirectTarget::new("/new", false).expect("a target"),
        };
        let rules = [
            RedirectRule {
                is_wildcard: true,
                ..gone.clone()
            },
            RedirectRule {
                action: to(StatusCode::FOUND),
                ..gone.clone()
            },
            RedirectRule {
                action: to(StatusCode::PERMANENT_REDIRECT),
                ..gone.clone()
            },
            gone,
        ];
        let keys: Vec<_> = keys.into_iter().chain(rules.map(moved)).collect();
        for (number, key) in keys.iter().enumerate() {
            assert!(!keys[..number].contains(key), "{number}");
        }
    }
}
