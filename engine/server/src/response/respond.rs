//! Looks up the response to a request.
//!
//! 1. *Content.* No resource accepts content: GET, HEAD and OPTIONS with content get 413.
//! 2. *Host.* A request without a clear host gets 400. A host that no tenant claims gets a neutral 421.
//! 3. *Access.* A protected tenant is looked up (as in step 7) and refuses requests without a valid credential, for every path and method. Other responses of the tenant are marked private.
//! 4. *Method.* OPTIONS gets 204 with `Allow` for every path. Methods other than GET and HEAD get 405 with `Allow` for every path, with the 405 page of the path's tenant and language.
//! 5. *Moved host.* 308 to the same path on the new origin.
//! 6. *Path.* Decoded once; an ambiguous path gets 400.
//! 7. *Mount.* The longest prefix of complete segments, or else the root of the host. A mount that is not rendered gets 503. Callers that can wait call [`pending_content`] first.
//! 8. *Redirect with conditions.* The author's redirect of exactly this path with conditions on the query, if the request meets them.
//! 9. *Trailing slashes.* 308 to the path without them, with the query, if that path exists. If that path is a redirect itself, 308 to its target.
//! 10. *Look-up.* In the mount, then in the files of the host, then in the files that all hosts share. A resource with status 302 in the mount comes last, since it replaces an image that is not rendered yet.
//! 11. *Other redirects.* The author's redirect of the path, or of the longest prefix of the path. Status 410 has the page of step 13.
//! 12. *Markdown.* The Markdown form of a page, unless a redirect has exactly this path. A form that is not made yet gets 503; callers that can wait call [`pending_content`] first.
//! 13. *Not found.* The 404 page of the most specific area of the site, or else of the tenant.
//! 14. *Body.* The best content encoding. For 200 only, preconditions and ranges. HEAD is GET without the body.
//!
//! Every response at the host of a preview has `X-Robots-Tag: noindex`. A preview that is too old answers 410 after step 3.
//!
//! A hit costs three hash look-ups. The prepared header map is copied if the response changes a field, or goes to hyper; there is no other allocation. `benches/respond.rs` enforces that.
//!
//! **Invariant:** pure: no clock, no sockets, no metrics, no logs. Builds no body.

use std::future::pending;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, RETRY_AFTER,
};
use http::{Method, Response, StatusCode, Version};

use crate::access::decision::AccessDecision;
use crate::request::negotiate::choose;
use crate::request::path::normalise_path;
use crate::request::preconditions::{ConditionOutcome, Validators, evaluate};
use crate::response::redirect;
use crate::response::refusal::{mark_private, mark_unindexed, refusal};
use crate::response::response_body::ResponseBody;
pub use crate::response::routed_response::{RequestHead, ResponseOwner, Route, RoutedResponse};
use crate::response::routed_response::{plain, refused};
use crate::response::snapshot_response::{SharedFields, SnapshotResponse};
use crate::snapshot_store::RequestNotice;
use release::snapshot::access::AccessRule;
use release::snapshot::redirects::{RedirectDecision, with_query};
use release::snapshot::{
    Body, ContentEncoding, HostEntry, HostKind, HostRoutes, MarkdownSlot, Mount, MountPages,
    Resource, ResourceTable, Slot, Snapshot, Variant,
};

const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// Decides about requests for a tenant with this rule.
pub(crate) type AccessGate<'g> = &'g dyn Fn(&AccessRule) -> AccessDecision;

/// Returns the answer to `request` from `snapshot`, without the content of protected tenants.
#[must_use]
pub fn respond<'s>(snapshot: &'s Snapshot, request: &RequestHead<'_>) -> RoutedResponse<'s> {
    let mut answer = look_up_within(snapshot, request, &|_| AccessDecision::Close);
    finish(&mut answer, request);
    answer
}

/// Completes an answer: removes the body for HEAD.
pub(crate) fn finish(answer: &mut RoutedResponse<'_>, request: &RequestHead<'_>) {
    if request.method == Method::HEAD && answer.response.status() != StatusCode::NOT_MODIFIED {
        remove_body(&mut answer.response);
    }
}

/// Makes an HTTP/1 response the last of its connection. `version` is that of the request.
pub(crate) fn close_after<B>(response: &mut Response<B>, version: Version) {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    if version == Version::HTTP_10 {
        // To a response of HTTP/1.1, hyper would append the `keep-alive` of a client of HTTP/1.0. Some clients then send another request.
        *response.version_mut() = version;
    }
}

/// Looks up the answer to `request` in `snapshot`, with the content of protected tenants for requests that `gate` allows. The caller [finishes](finish) the answer.
pub(crate) fn look_up_within<'s>(
    snapshot: &'s Snapshot,
    request: &RequestHead<'_>,
    gate: AccessGate<'_>,
) -> RoutedResponse<'s> {
    let is_known = matches!(
        *request.method,
        Method::GET | Method::HEAD | Method::OPTIONS
    );

    // 1.
    if request.has_content && is_known {
        let mut answer = refused(StatusCode::PAYLOAD_TOO_LARGE);
        let host = request.host().ok();
        let entry = host.and_then(|host| snapshot.hosts.get(host));
        if let Some(entry) = entry {
            complete_at(entry, &mut answer);
        }
        return answer;
    }

    // 2.
    let Ok(host) = request.host() else {
        return refused(StatusCode::BAD_REQUEST);
    };
    let Some(entry) = snapshot.hosts.get(host) else {
        return unknown_host(snapshot, request);
    };
    let mut answer = look_up_at(snapshot, entry, request, gate);
    complete_at(entry, &mut answer);
    answer
}

/// Completes a response of a known host.
fn complete_at(entry: &HostEntry, answer: &mut RoutedResponse<'_>) {
    if let HostEntry::Site(routes) = entry
        && routes.kind != HostKind::Tenants
    {
        mark_unindexed(answer);
    }
}

/// Performs the steps from 3.
fn look_up_at<'s>(
    snapshot: &'s Snapshot,
    entry: &'s HostEntry,
    request: &RequestHead<'_>,
    gate: AccessGate<'_>,
) -> RoutedResponse<'s> {
    // 4.
    if !matches!(*request.method, Method::GET | Method::HEAD) {
        let mut answer = other_method(snapshot, entry, request, gate);
        answer.response.headers_mut().insert(ALLOW, ALLOWED_METHODS);
        return answer;
    }

    // 5.
    let routes = match entry {
        HostEntry::Site(routes) => routes,
        HostEntry::Redirect(moved) => return redirect::host(moved, request),
    };

    // 6.
    let Ok(path) = normalise_path(request.uri.path()) else {
        return refused(StatusCode::BAD_REQUEST);
    };

    // 7.
    let Some((mount, below)) = mount(routes, &path) else {
        return outside_mounts(snapshot, routes, &path, request)
            .unwrap_or_else(|| refused(StatusCode::NOT_FOUND));
    };

    // 3.
    guarded(snapshot, mount, request, gate, || match routes.kind {
        HostKind::ExpiredPreview => expired(mount),
        HostKind::Tenants | HostKind::Preview => {
            in_mount(snapshot, routes, mount, (&path, below), request)
        }
    })
}

/// Returns the rule of a mount's tenant, if the tenant is protected.
fn rule<'s>(snapshot: &'s Snapshot, mount: &Mount) -> Option<&'s AccessRule> {
    snapshot.access.as_ref()?.rule(&mount.tenant)
}

/// Returns an answer of the mount's tenant, if `gate` allows it.
fn guarded<'s>(
    snapshot: &'s Snapshot,
    mount: &'s Mount,
    request: &RequestHead<'_>,
    gate: AccessGate<'_>,
    answer: impl FnOnce() -> RoutedResponse<'s>,
) -> RoutedResponse<'s> {
    let Some(rule) = rule(snapshot, mount) else {
        return answer();
    };
    refusal(gate(rule), mount, request).unwrap_or_else(|| {
        let mut answer = answer();
        mark_private(&mut answer);
        answer
    })
}

/// Performs the steps from 8. `below` is the part of `path` below the mount.
fn in_mount<'s>(
    snapshot: &'s Snapshot,
    routes: &'s HostRoutes,
    mount: &'s Arc<Mount>,
    (path, below): (&str, &str),
    request: &RequestHead<'_>,
) -> RoutedResponse<'s> {
    let Some(pages) = mount.pages.get() else {
        return not_rendered(mount);
    };

    // 8.
    let query = request.uri.query();
    if let Some(decision) = pages.redirects.decide(below, query, true) {
        return redirected(mount, pages, below, decision, request);
    }

    // 9.
    if path.len() > 1 && path.ends_with('/') {
        let shorter = match below.trim_end_matches('/') {
            "" => "/",
            shorter => shorter,
        };
        match pages.resources.get_key_value(shorter) {
            Some((key, resource)) if matches!(**resource, Resource::Redirect(_)) => {
                let route = Route {
                    prefix: &mount.prefix,
                    path: key,
                    rest: "/",
                };
                return page(resource, mount, route, request);
            }
            Some((key, _)) => return redirect::without_slashes(mount, key, request),
            None => {
                if let Some((key, _)) = pages.markdown(shorter) {
                    return redirect::without_slashes(mount, key, request);
                }
            }
        }
    }

    // 10.
    if let Some((key, resource)) = pages.resources.get_key_value(below) {
        // A 302 to the original gives way to the image once the image is rendered.
        if is_temporary_redirect(resource)
            && let Some(answer) = outside_mounts(snapshot, routes, path, request)
        {
            return answer;
        }
        return page(
            resource,
            mount,
            Route {
                prefix: &mount.prefix,
                path: key,
                rest: "",
            },
            request,
        );
    }
    if let Some(answer) = outside_mounts(snapshot, routes, path, request) {
        return answer;
    }

    // 11.
    let markdown = pages.markdown(below);
    if markdown.is_none()
        && let Some(decision) = pages.redirects.decide(below, query, false)
    {
        return redirected(mount, pages, below, decision, request);
    }

    // 12.
    if let Some((key, slot)) = markdown {
        if slot.is_open() {
            return not_rendered(mount);
        }
        if let Some(resource) = slot.get() {
            let route = Route {
                prefix: &mount.prefix,
                path: key,
                rest: "",
            };
            return page(resource, mount, route, request);
        }
    }

    // 13.
    not_found(mount, pages, below, request)
}

/// Performs step 13: returns the 404 page for a path.
fn not_found<'s>(
    mount: &'s Mount,
    pages: &'s MountPages,
    below: &str,
    request: &RequestHead<'_>,
) -> RoutedResponse<'s> {
    error_page(&pages.not_found, mount, below, request)
        .unwrap_or_else(|| refused(StatusCode::NOT_FOUND))
}

/// Returns the error page of the most specific area that covers a path.
fn error_page<'s>(
    pages: &'s [(Box<str>, Arc<Resource>)],
    mount: &'s Mount,
    below: &str,
    request: &RequestHead<'_>,
) -> Option<RoutedResponse<'s>> {
    let (area, resource) = pages.iter().find(|(area, _)| covers(area, below))?;
    let route = Route {
        prefix: &mount.prefix,
        path: area,
        rest: "/*",
    };
    Some(page(resource, mount, route, request))
}

/// Returns the response of a redirect that the author wrote. A removed page has the 404 page of its path, with status 410.
fn redirected<'s>(
    mount: &'s Mount,
    pages: &'s MountPages,
    below: &str,
    RedirectDecision { rule, location }: RedirectDecision<'s>,
    request: &RequestHead<'_>,
) -> RoutedResponse<'s> {
    if let Some(location) = location {
        return redirect::by_author(mount, rule, location);
    }
    let mut answer = not_found(mount, pages, below, request);
    answer.route = redirect::route(mount, rule);
    answer.response.set_status(StatusCode::GONE);
    answer
}

/// Returns whether a resource is a temporary redirect.
fn is_temporary_redirect(resource: &Resource) -> bool {
    matches!(resource, Resource::Body(body) if body.status == StatusCode::FOUND)
}

/// Answers OPTIONS and methods that no resource supports, if `gate` allows the mount of the path.
fn other_method<'s>(
    snapshot: &'s Snapshot,
    entry: &'s HostEntry,
    request: &RequestHead<'_>,
    gate: AccessGate<'_>,
) -> RoutedResponse<'s> {
    let path = normalise_path(request.uri.path());
    let found = match (entry, &path) {
        (HostEntry::Site(routes), Ok(path)) => mount(routes, path),
        _ => None,
    };
    let is_expired =
        matches!(entry, HostEntry::Site(routes) if routes.kind == HostKind::ExpiredPreview);
    let answer = || match path {
        Ok(_) if is_expired => {
            found.map_or_else(|| refused(StatusCode::GONE), |(mount, _)| expired(mount))
        }
        Err(_) if matches!(entry, HostEntry::Site(_)) && request.method != Method::OPTIONS => {
            refused(StatusCode::BAD_REQUEST)
        }
        _ => without_content(found, request),
    };
    match found {
        Some((mount, _)) => guarded(snapshot, mount, request, gate, answer),
        None => answer(),
    }
}

/// Answers OPTIONS and methods that no resource supports. `mount`: the mount of the path, and the path below the mount.
fn without_content<'s>(
    mount: Option<(&'s Arc<Mount>, &str)>,
    request: &RequestHead<'_>,
) -> RoutedResponse<'s> {
    let plainly = |status| RoutedResponse {
        response: plain(status).into(),
        owner: ResponseOwner::Host,
        route: Route {
            path: "*",
            ..Route::default()
        },
        encoding: ContentEncoding::Identity,
    };
    if request.method == Method::OPTIONS {
        let mut answer = plainly(StatusCode::NO_CONTENT);
        answer.response.headers_mut().clear();
        return answer;
    }
    let Some((mount, below)) = mount else {
        return plainly(StatusCode::METHOD_NOT_ALLOWED);
    };
    let Some(pages) = mount.pages.get() else {
        return not_rendered(mount);
    };
    error_page(&pages.method_not_allowed, mount, below, request)
        .unwrap_or_else(|| plainly(StatusCode::METHOD_NOT_ALLOWED))
}

/// Returns the mount of `path`, and the rest of the path below the mount.
fn mount<'s, 'p>(routes: &'s HostRoutes, path: &'p str) -> Option<(&'s Arc<Mount>, &'p str)> {
    // A plain loop ends at the last segment that can be a prefix, which is the first or second.
    let slashes = path.bytes().enumerate().skip(1);
    let segments = slashes
        .filter_map(|(index, byte)| (byte == b'/').then_some(index))
        .chain([path.len()]);
    let mut taken = routes.root.as_ref().map(|mount| (mount, 0));
    for end in segments.take(routes.longest_prefix) {
        if let Some(mount) = routes.prefixes.get(&path[..end]) {
            taken = Some((mount, end));
        }
    }
    taken.map(|(mount, end)| (mount, if end == path.len() { "/" } else { &path[end..] }))
}

/// The pages, the image or the Markdown form that a request must wait for.
#[derive(Debug, Clone)]
pub(crate) enum PendingContent {
    /// The content of this tenant, which this replica does not have yet.
    Tenant(Arc<str>),
    /// The path's mount, which is not rendered yet.
    Pages(Arc<Mount>),
    /// An image of that mount's tenant, which is not rendered yet.
    Image(Arc<Mount>, Arc<Slot<Resource>>),
    /// The Markdown form of a page of that mount's tenant, which is not made yet, and its path below the mount.
    Markdown(Arc<Mount>, Arc<MarkdownSlot>, Box<str>),
}

impl PendingContent {
    /// Returns the notice for the supervisor.
    pub(crate) fn notice(&self) -> RequestNotice<'_> {
        match self {
            Self::Tenant(tenant) => RequestNotice::Dormant(tenant),
            Self::Pages(mount) => RequestNotice::Pages(&mount.tenant),
            Self::Image(mount, _) => RequestNotice::Image(&mount.tenant),
            Self::Markdown(mount, _, path) => RequestNotice::Markdown(&mount.tenant, path),
        }
    }

    /// Waits until the pages, the image or the Markdown form are made. The content of a tenant comes with another snapshot, for which callers look themselves.
    pub(crate) async fn wait(&self) {
        match self {
            Self::Tenant(_) => pending().await,
            Self::Pages(mount) => mount.pages.filled().await,
            Self::Image(_, slot) => slot.filled().await,
            Self::Markdown(_, slot, _) => slot.filled().await,
        }
    }
}

/// Returns whether `answer` says that no tenant of the snapshot has the address of the request.
pub(crate) fn is_unclaimed(answer: &RoutedResponse<'_>) -> bool {
    match (answer.response.status(), answer.owner) {
        // The tenant at the root of a host answers for all prefixes that no other tenant has.
        (StatusCode::NOT_FOUND, ResponseOwner::Tenant(mount)) => mount.prefix.is_empty(),
        (StatusCode::NOT_FOUND, _) | (StatusCode::MISDIRECTED_REQUEST, ResponseOwner::Unknown) => {
            true
        }
        _ => false,
    }
}

/// Returns the 503 of a tenant whose content this replica does not have yet.
pub(crate) fn dormant<'s>() -> RoutedResponse<'s> {
    let mut answer = RoutedResponse {
        response: plain(StatusCode::SERVICE_UNAVAILABLE).into(),
        owner: ResponseOwner::Host,
        route: Route::default(),
        encoding: ContentEncoding::Identity,
    };
    let fields = answer.response.headers_mut();
    fields.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// Returns the pages, the image or the Markdown form that a request must wait for, if any. A request for an image with a substitute does not wait, and neither does a request that `gate` refuses.
pub(crate) fn pending_content(
    snapshot: &Snapshot,
    request: &RequestHead<'_>,
    gate: AccessGate<'_>,
) -> Option<PendingContent> {
    let is_file = is_file(request.uri.path());
    if !snapshot.is_partial && !is_file {
        return None;
    }
    let host = request.host().ok()?;
    let HostEntry::Site(routes) = snapshot.hosts.get(host)? else {
        return None;
    };
    let path = normalise_path(request.uri.path()).ok()?;
    let (mount, below) = mount(routes, &path)?;
    if rule(snapshot, mount).is_some_and(|rule| gate(rule) != AccessDecision::Allow) {
        return None;
    }
    let Some(pages) = mount.pages.get() else {
        return mount
            .pages
            .is_open()
            .then(|| PendingContent::Pages(Arc::clone(mount)));
    };
    if !is_file || pages.resources.contains_key(below) {
        return None;
    }
    if let Some(slot) = routes.images.get(&*path) {
        let pending = || PendingContent::Image(Arc::clone(mount), Arc::clone(slot));
        return slot.is_open().then(pending);
    }
    let (key, slot) = pages.markdown(below)?;
    let is_waiting = slot.is_open() && !routes.files.contains_key(&*path);
    is_waiting.then(|| PendingContent::Markdown(Arc::clone(mount), Arc::clone(slot), key.into()))
}

/// Returns whether a path looks like a file: its last segment has a dot. Paths of pages have none, so the look-up of images can be skipped.
fn is_file(path: &str) -> bool {
    let mut backwards = path.bytes().rev();
    backwards.find(|byte| matches!(byte, b'.' | b'/')) == Some(b'.')
}

/// Returns the 503 of a tenant that is not rendered yet.
fn not_rendered(mount: &Mount) -> RoutedResponse<'_> {
    let mut answer = without_page(mount, StatusCode::SERVICE_UNAVAILABLE);
    let fields = answer.response.headers_mut();
    fields.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// Returns the 410 of a preview that is too old.
fn expired(mount: &Mount) -> RoutedResponse<'_> {
    without_page(mount, StatusCode::GONE)
}

/// Returns a response of a tenant without a page: the status as plain text.
fn without_page(mount: &Mount, status: StatusCode) -> RoutedResponse<'_> {
    RoutedResponse {
        response: plain(status).into(),
        owner: ResponseOwner::Tenant(mount),
        route: Route {
            prefix: &mount.prefix,
            path: "",
            rest: "/*",
        },
        encoding: ContentEncoding::Identity,
    }
}

/// Returns whether `path` is `area` or is below `area`.
fn covers(area: &str, path: &str) -> bool {
    path.strip_prefix(area)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn page<'s>(
    resource: &'s Resource,
    mount: &'s Mount,
    route: Route<'s>,
    request: &RequestHead<'_>,
) -> RoutedResponse<'s> {
    let tag = || redirect::tag(&mount.tenant, route.path);
    let (response, encoding) = resource_response(resource, request, tag);
    RoutedResponse {
        response,
        owner: ResponseOwner::Tenant(mount),
        route,
        encoding,
    }
}

/// Looks a path up outside the mounts: in the host's own files, the files that all hosts share, and rendered images.
fn outside_mounts<'s>(
    snapshot: &'s Snapshot,
    routes: &'s HostRoutes,
    path: &str,
    request: &RequestHead<'_>,
) -> Option<RoutedResponse<'s>> {
    let file = |table: &'s ResourceTable| {
        let (key, resource) = table.get_key_value(path)?;
        Some(("", &**key, &**resource))
    };
    let image = || {
        let (key, slot) = routes.images.get_key_value(path)?;
        Some(("", &**key, slot.get()?))
    };
    let (prefix, key, resource) = file(&routes.files)
        .or_else(|| file(&snapshot.shared))
        .or_else(|| routes.replaced_file(path))
        .or_else(image)?;
    let owner = || redirect::tag(&routes.root.as_ref()?.tenant, key);
    let (response, encoding) = resource_response(resource, request, owner);
    Some(RoutedResponse {
        response,
        owner: ResponseOwner::Host,
        route: Route {
            prefix,
            path: key,
            ..Route::default()
        },
        encoding,
    })
}

pub(crate) fn unknown_host<'s>(
    snapshot: &'s Snapshot,
    request: &RequestHead<'_>,
) -> RoutedResponse<'s> {
    match &snapshot.unknown_host {
        Some(resource) => {
            let (response, encoding) = resource_response(resource, request, || None);
            RoutedResponse {
                response,
                owner: ResponseOwner::Unknown,
                route: Route::default(),
                encoding,
            }
        }
        None => refused(StatusCode::MISDIRECTED_REQUEST),
    }
}

/// Performs step 14. `tag` returns the cache tag of a redirect; a body has its own.
fn resource_response<'s>(
    resource: &'s Resource,
    request: &RequestHead<'_>,
    tag: impl FnOnce() -> Option<HeaderValue>,
) -> (SnapshotResponse<'s>, ContentEncoding) {
    let body = match resource {
        Resource::Body(body) => body,
        Resource::Redirect(location) => {
            let location = with_query(location, request.uri.query());
            return (
                redirect::permanent(location, tag()).into(),
                ContentEncoding::Identity,
            );
        }
    };
    let Some(variant) = choose(&body.variants, &request.fields.accepted) else {
        return (
            plain(StatusCode::NOT_FOUND).into(),
            ContentEncoding::Identity,
        );
    };
    let length = usize::try_from(variant.bytes.len()).unwrap_or(usize::MAX);
    let outcome = if body.status == StatusCode::OK {
        let range_length = body.fields.ranges().then_some(length);
        evaluate(
            &request.fields.conditions,
            Validators {
                etag: &variant.etag,
                range_length,
            },
        )
    } else {
        ConditionOutcome::Full
    };

    let response = match outcome {
        ConditionOutcome::Full => {
            let mut response = with_fields(body, variant, ResponseBody::full(&variant.bytes));
            if body.status != StatusCode::OK {
                response.headers_mut().remove(ETAG);
            }
            response
        }
        ConditionOutcome::Partial(range) => {
            let part = ResponseBody::partial(&variant.bytes, range.clone());
            let mut response = with_fields(body, variant, part);
            response.set_status(StatusCode::PARTIAL_CONTENT);
            set_content_range(
                response.headers_mut(),
                format!("bytes {}-{}/{length}", range.start, range.end - 1),
            );
            response
        }
        ConditionOutcome::NotModified => {
            let mut response = Response::new(Bytes::new().into());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            *response.headers_mut() = body.fields.not_modified(&variant.etag);
            response.into()
        }
        ConditionOutcome::Failed => plain(StatusCode::PRECONDITION_FAILED).into(),
        ConditionOutcome::Unsatisfiable => {
            let mut response = plain(StatusCode::RANGE_NOT_SATISFIABLE);
            set_content_range(response.headers_mut(), format!("bytes */{length}"));
            response.into()
        }
    };
    (response, variant.encoding)
}

fn with_fields<'s>(
    body: &'s Body,
    variant: &'s Variant,
    bytes: ResponseBody,
) -> SnapshotResponse<'s> {
    let fields = SharedFields {
        fields: &body.fields,
        encoding: variant.encoding,
        etag: &variant.etag,
        cache_tag: body.cache_tag.as_ref(),
    };
    SnapshotResponse::new(body.status, fields, bytes)
}

fn set_content_range(fields: &mut HeaderMap, range: String) {
    if let Ok(range) = HeaderValue::from_maybe_shared(Bytes::from(range)) {
        fields.insert(CONTENT_RANGE, range);
    }
}

/// Removes the body for HEAD and keeps its length.
fn remove_body(response: &mut SnapshotResponse<'_>) {
    let length = HeaderValue::from(response.take_body().len());
    response.headers_mut().insert(CONTENT_LENGTH, length);
}
