//! The console: the pages for operators in a browser, at `/` of the admin listener.
//!
//! | module | contents |
//! |---|---|
//! | [`home`], [`list`] | the first page: summary, alarms, charts, sites with errors, the list of sites |
//! | [`site`] | the page of a tenant, and the comparison of two of its releases |
//! | [`problems`] | errors and warnings as `check` prints them |
//! | [`missing`] | requested paths without a page, with a redirect for each |
//! | [`visits`] | the visits of a tenant by day and week |
//! | [`replicas`] | the replicas that follow one bucket |
//! | [`charts`] | charts of the last hour |
//! | [`value_text`] | numbers, sizes and times as text |
//! | [`parts`] | the sources of all values, and the query of a request |
//!
//! The pages are templates in the program (`engine/rowhouse/console/`), complete without scripts. The script in `ui/runtime/console/` requests a page again when the server reports a change, and replaces the elements that differ.
//!
//! **Invariant:** changes nothing; commands go to the routes of the admin listener. The cost of a page depends on its contents. Only the pass over the states of all tenants depends on their number.

mod charts;
mod home;
mod list;
mod manual;
mod missing;
mod parts;
mod problems;
mod replicas;
mod site;
mod value_text;
mod visits;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
};
use http::{Response, StatusCode};
use serde::Serialize;
use server::admin::console::Console;
use server::admin::version;
use tera::{Context, Tera};
use tracing::error;

use self::manual::ManualPages;
pub use self::parts::ConsoleParts;
use self::parts::QueryFields;
use self::value_text::MomentView;

/// The policy of every page: content of this listener only, and no HTML written by scripts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The templates by name.
const TEMPLATES: [(&str, &str); 7] = [
    ("parts.html", include_str!("../../console/parts.html")),
    ("frame.html", include_str!("../../console/frame.html")),
    ("home.html", include_str!("../../console/home.html")),
    ("site.html", include_str!("../../console/site.html")),
    ("compare.html", include_str!("../../console/compare.html")),
    ("replicas.html", include_str!("../../console/replicas.html")),
    ("notice.html", include_str!("../../console/notice.html")),
];

/// The longest wait for the store before the page of the replicas shows the last list.
const REPLICAS_TIMEOUT: Duration = Duration::from_secs(3);

const STYLE: &str = include_str!("../../console/console.css");
const ICON: &str = include_str!("../../console/icon.svg");

/// The header fields of every page and file.
const FIELDS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    // With `no-referrer`, a form of this origin would be sent with `Origin: null` (Fetch, section 3.2).
    (REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// The pages of the console.
#[derive(Debug)]
pub struct ConsolePages {
    parts: ConsoleParts,
    templates: Tera,
    manual: ManualPages,
}

/// The values of the frame around every page.
#[derive(Debug, Serialize)]
struct PageFrame {
    program: &'static str,
    /// The version of the shown state. The script compares this version with the version of the server.
    version: String,
    now: MomentView,
    has_token: bool,
    /// Whether the server follows a bucket, which other replicas may follow.
    has_replicas: bool,
}

impl ConsolePages {
    /// Creates the console and parses its templates.
    ///
    /// # Errors
    /// Fails if a template is invalid; a test parses all of them.
    pub fn new(parts: ConsoleParts) -> Result<Self, tera::Error> {
        let mut templates = Tera::new();
        templates.add_raw_templates(TEMPLATES)?;
        let manual = ManualPages::default();
        Ok(Self {
            parts,
            templates,
            manual,
        })
    }

    /// Renders a page; a failure is logged and gives status 500.
    fn rendered(
        &self,
        template: &str,
        view: &impl Serialize,
        status: StatusCode,
    ) -> Response<Bytes> {
        let frame = PageFrame {
            program: env!("CARGO_PKG_VERSION"),
            version: version(&self.parts.operator.board, &self.parts.snapshots),
            now: MomentView::new(SystemTime::now(), SystemTime::now()),
            has_token: self.parts.has_token,
            has_replicas: self.has_replicas(),
        };
        let rendered = Context::from_serialize(view).and_then(|mut context| {
            context.insert("frame", &frame);
            self.templates.render(template, &context)
        });
        match rendered {
            Ok(html) => respond(status, "text/html; charset=utf-8", html.into()),
            Err(error) => {
                error!(template, %error, "rendering a console page failed; responding with status 500");
                let text = "the page cannot be rendered: see the log for the cause\n";
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                respond(status, "text/plain; charset=utf-8", text.into())
            }
        }
    }

    /// Returns a page with a message.
    fn notice(
        &self,
        status: StatusCode,
        title: &str,
        text: &str,
        tenant: Option<&str>,
    ) -> Response<Bytes> {
        let view = ConsoleNotice {
            title,
            text,
            tenant,
            is_removed: false,
        };
        self.rendered("notice.html", &view, status)
    }

    fn manual_page(&self, path: &str) -> Option<Response<Bytes>> {
        self.manual.response(path).unwrap_or_else(|problem| {
            let text =
                format!("{problem}. `rowhouse manual --write DIR` writes the manual as files.");
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Some(self.notice(status, "The manual cannot be shown", &text, None))
        })
    }

    fn has_replicas(&self) -> bool {
        self.parts.operator.board.bucket().is_some()
    }

    fn no_page(&self) -> Response<Bytes> {
        let text = "The console has no page at this address.";
        self.notice(StatusCode::NOT_FOUND, "Not found", text, None)
    }
}

/// A page with a single message.
#[derive(Debug, Serialize)]
struct ConsoleNotice<'a> {
    title: &'a str,
    text: &'a str,
    tenant: Option<&'a str>,
    /// Whether the message is about a removed site, which has a guide.
    is_removed: bool,
}

impl Console for ConsolePages {
    fn page(&self, path: &str, query: &str) -> Response<Bytes> {
        let fields = QueryFields::of(query);
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let view_of_site = match &segments[..] {
            [""] => {
                let view = home::view(&self.parts, &fields);
                return self.rendered("home.html", &view, StatusCode::OK);
            }
            ["replicas"] if self.has_replicas() => {
                let list = self.parts.operator.board.replicas.request(REPLICAS_TIMEOUT);
                let view = replicas::view(list, SystemTime::now());
                return self.rendered("replicas.html", &view, StatusCode::OK);
            }
            ["console.css"] => return file("text/css; charset=utf-8", STYLE),
            ["console.js"] => {
                return file(
                    "text/javascript; charset=utf-8",
                    rowhouse_ui::CONSOLE_SCRIPT,
                );
            }
            ["icon.svg"] => return file("image/svg+xml", ICON),
            ["sites", id] => site::view(&self.parts, id, &fields)
                .map(|view| self.rendered("site.html", &view, StatusCode::OK))
                .or_else(|| {
                    let (title, text) = site::removal(&self.parts, id)?;
                    let view = ConsoleNotice {
                        title: &title,
                        text: &text,
                        tenant: None,
                        is_removed: true,
                    };
                    Some(self.rendered("notice.html", &view, StatusCode::OK))
                }),
            ["sites", id, "compare"] => {
                site::comparison(&self.parts, id, &fields).map(|compared| {
                    let status = compared
                        .as_ref()
                        .map_or_else(|(status, _)| *status, |_| StatusCode::OK);
                    match compared {
                        Ok(view) => self.rendered("compare.html", &view, status),
                        Err((_, error)) => {
                            self.notice(status, "Nothing to compare", &error, Some(id))
                        }
                    }
                })
            }
            _ => self.manual_page(path),
        };
        view_of_site.unwrap_or_else(|| self.no_page())
    }

    fn refusal(&self, tenant: &str, status: StatusCode, error: &str) -> Response<Bytes> {
        let tenant = site::is_known(&self.parts, tenant).then_some(tenant);
        self.notice(status, "Command refused", error, tenant)
    }
}

fn file(media_type: &'static str, text: &'static str) -> Response<Bytes> {
    respond(
        StatusCode::OK,
        media_type,
        Bytes::from_static(text.as_bytes()),
    )
}

fn respond(status: StatusCode, media_type: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    for (name, value) in FIELDS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_valid() {
        let mut templates = Tera::new();
        templates.add_raw_templates(TEMPLATES).unwrap();
        assert_eq!(templates.get_template_names().count(), TEMPLATES.len());
    }
}
