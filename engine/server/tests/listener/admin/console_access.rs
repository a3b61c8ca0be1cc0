//! The console on the admin listener: who may read, who may give commands, and the events.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::admin_listener::AdminListener;
use crate::wire::{Reply, Server, get, request};
use server::admin::AdminToken;
use server::admin::control::{Control, ControlError, PageChange, ReleaseLine};
use server::admin::status::DeploymentStatus;
use server::metrics::not_found::{MAX_PATH_BYTES, MAX_PATHS_PER_TENANT};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A control with one tenant, `bluedoor`.
#[derive(Debug)]
struct OneTenant;

impl OneTenant {
    fn known(tenant: &str) -> Result<(), ControlError> {
        let unknown = || ControlError::UnknownTenant(tenant.to_owned());
        (tenant == "bluedoor").then_some(()).ok_or_else(unknown)
    }
}

impl Control for OneTenant {
    fn releases(&self, tenant: &str) -> Result<Vec<ReleaseLine>, ControlError> {
        Self::known(tenant).map(|()| Vec::new())
    }

    fn diff(
        &self,
        _: &str,
        _: Option<u64>,
        _: Option<u64>,
    ) -> Result<Vec<PageChange>, ControlError> {
        Ok(Vec::new())
    }

    fn roll_back(&self, tenant: &str, release: Option<u64>) -> Result<u64, ControlError> {
        Self::known(tenant).map(|()| release.unwrap_or(1))
    }

    fn resume(&self, tenant: &str) -> Result<(), ControlError> {
        Self::known(tenant)
    }

    fn restore(&self, tenant: &str) -> Result<(), ControlError> {
        Self::known(tenant)
    }

    fn read_again(&self, tenant: &str) -> Result<(), ControlError> {
        Self::known(tenant)
    }
}

fn with_token() -> AdminListener {
    let token = AdminToken::new(TOKEN).unwrap();
    let control: Arc<dyn Control> = Arc::new(OneTenant);
    AdminListener::with_token(&Server::start().snapshots, Some(control), Some(token))
}

/// Sends a form as the console does.
fn form(admin: &AdminListener, path: &str, fields: &str, body: &str) -> Reply {
    let length = body.len();
    let head = format!(
        "content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n{fields}"
    );
    admin.send(&format!(
        "{}{body}",
        request("POST", path, "localhost", &head)
    ))
}

#[test]
fn paths_without_a_route_are_pages_of_the_console() {
    let admin = with_token();
    let reply = admin.send(&get("/?q=a", "localhost"));
    assert_eq!((reply.status, &*reply.text()), (200, "/?q=a"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(admin.ask("/nothing").0, 404);
    assert_eq!(admin.ask("/livez"), (200, "live\n".to_owned()));
    let reply = admin.send(&request("POST", "/", "localhost", ""));
    assert_eq!(
        (reply.status, reply.header("allow")),
        (405, Some("GET, HEAD"))
    );
    let reply = admin.send(&request("GET", "/", "localhost", "content-length: 1\r\n"));
    assert_eq!(reply.status, 413);
}

#[test]
fn page_of_another_origin_can_neither_read_nor_give_commands() {
    let admin = with_token();
    let body = format!("token={TOKEN}");
    for foreign in [
        "origin: http://localhost:1\r\n",
        "origin: null\r\n",
        "sec-fetch-site: cross-site\r\n",
        "sec-fetch-site: same-site\r\n",
    ] {
        for path in [
            "/",
            "/tenants",
            "/events",
            "/metrics",
            "/tenants/bluedoor/releases",
        ] {
            let reply = admin.send(&request("GET", path, "localhost", foreign));
            assert_eq!(reply.status, 403, "{path} {foreign}");
        }
        let reply = form(&admin, "/tenants/bluedoor/resume", foreign, &body);
        assert_eq!(reply.status, 403, "{foreign}");
    }
    for path in ["/", "/events", "/tenants/bluedoor/releases"] {
        assert_eq!(
            admin.send(&get(path, "rebound.example")).status,
            421,
            "{path}"
        );
    }
    // Another site may link here.
    let link =
        "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n";
    assert_eq!(
        admin.send(&request("GET", "/", "localhost", link)).status,
        200
    );
    assert_eq!(
        form(&admin, "/tenants/bluedoor/resume", link, &body).status,
        403
    );
}

#[test]
fn every_command_needs_the_token() {
    let admin = with_token();
    let path = "/tenants/bluedoor/rollback?release=2";
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    let own = "origin: http://localhost\r\nsec-fetch-site: same-origin\r\n";
    let right = format!("token={TOKEN}");
    for (fields, body, status) in [
        (&*bearer, "", 200),
        (own, &*right, 200),
        ("", &right, 200),
        ("", "", 401),
        ("x-rowhouse-command: 1\r\n", "", 401),
        (own, "token=", 401),
        (own, "token=0123456789abcdef", 401),
        (own, "other=0123456789abcdef", 401),
        ("authorization: Bearer 0123\r\n", &right, 401),
        ("authorization: Basic 0123\r\n", &right, 200),
    ] {
        let reply = form(&admin, path, fields, body);
        assert_eq!(reply.status, status, "{fields} {body}: {}", reply.text());
        let scheme = (status == 401).then_some("Bearer");
        assert_eq!(reply.header("www-authenticate"), scheme);
        assert!(!reply.text().contains("0123456789abcdef"));
    }
    let long = format!("token={}", "a".repeat(5_000));
    assert_eq!(form(&admin, path, own, &long).status, 413);
    assert_eq!(
        form(&admin, "/tenants/bluedoor/resume", own, &right).status,
        200
    );
    // Reading needs no token.
    assert_eq!(admin.ask("/tenants/bluedoor/releases").0, 200);
}

#[test]
fn form_is_redirected_back_or_shows_the_refusal() {
    let admin = with_token();
    let browser = "origin: http://localhost\r\naccept: text/html,*/*\r\n";
    let right = format!("token={TOKEN}");
    let reply = form(&admin, "/tenants/bluedoor/rollback", browser, &right);
    assert_eq!(
        (reply.status, reply.header("location")),
        (303, Some("/sites/bluedoor?done=rollback"))
    );
    let reply = form(&admin, "/tenants/bluedoor/read", browser, "token=wrong");
    assert_eq!(
        (reply.status, &*reply.text()),
        (401, "bluedoor: the token is not valid for this server")
    );
    let reply = form(&admin, "/tenants/nobody/resume", browser, &right);
    assert_eq!(
        (reply.status, &*reply.text()),
        (404, "nobody: unknown tenant `nobody`")
    );
}

#[test]
fn report_is_sent_as_an_event() {
    let admin = with_token();
    let mut socket = TcpStream::connect(admin.address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    socket
        .write_all(get("/events", "localhost").as_bytes())
        .unwrap();
    let mut lines = BufReader::new(socket).lines();
    let mut next = || {
        let line = lines.find_map(|line| Some(line.unwrap().strip_prefix("data: ")?.to_owned()));
        line.unwrap()
    };
    assert_eq!(next(), "0-0");
    admin.board.replace(DeploymentStatus::default());
    assert_eq!(next(), "1-0");
}

#[test]
fn missing_paths_are_recorded_by_tenant_within_bounds() {
    let server = Server::start();
    let visit = |path: &str, host: &str| server.ask(&get(path, host)).status;
    for number in 0..100 {
        assert_eq!(
            visit(&format!("/bluedoor/made-up/{number}"), "studio.example"),
            404
        );
        assert_eq!(visit("/bluedoor/pricing?secret=1", "studio.example"), 404);
    }
    let long = format!("/{}", "a".repeat(MAX_PATH_BYTES));
    for path in [&*long, "/someone@example.org", "/someone%40example.org"] {
        assert_eq!(visit(path, "studio.example"), 404, "{path}");
    }
    assert_eq!(visit("/about", "studio.example"), 200);
    assert_eq!(visit("/nothing", "unknown.example"), 421);
    let not_found = &server.snapshots.not_found;
    let paths = not_found.of("bluedoor");
    assert_eq!(paths.len(), MAX_PATHS_PER_TENANT);
    // A request is not counted while another worker holds the lock.
    assert_eq!(paths[0].path, "/pricing");
    assert!(paths[0].count > 50, "{paths:?}");
    assert_eq!(not_found.of("studio"), []);
}
