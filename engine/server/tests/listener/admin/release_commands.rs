//! Releases on the admin listener: commands of operators, and the guard against web pages.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::admin_listener::AdminListener;
use crate::wire::{Server, get, request};
use server::admin::control::{ChangeKind, Control, ControlError, PageChange, ReleaseLine};

/// A control with one tenant, `bluedoor`, and the releases 1 and 2. Other tenants return each kind of error.
#[derive(Debug)]
struct OneTenant;

impl OneTenant {
    fn check(tenant: &str, number: Option<u64>) -> Result<(), ControlError> {
        match (tenant, number) {
            ("bluedoor", None | Some(1 | 2)) => Ok(()),
            ("bluedoor", Some(number)) => Err(ControlError::UnknownRelease {
                tenant: tenant.to_owned(),
                number,
            }),
            ("young", _) => Err(ControlError::NoEarlierRelease(tenant.to_owned())),
            ("broken", _) => Err(ControlError::Failed("the disk is full".to_owned())),
            ("panics", _) => panic!("as it is told to"),
            _ => Err(ControlError::UnknownTenant(tenant.to_owned())),
        }
    }
}

impl Control for OneTenant {
    fn releases(&self, tenant: &str) -> Result<Vec<ReleaseLine>, ControlError> {
        Self::check(tenant, None)?;
        Ok(vec![ReleaseLine {
            number: 2,
            at: 7,
            cause: vec!["pages/index.md".to_owned()],
            pages: 3,
            is_served: true,
            is_pinned: false,
        }])
    }

    fn diff(
        &self,
        tenant: &str,
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<Vec<PageChange>, ControlError> {
        Self::check(tenant, from)?;
        Self::check(tenant, to)?;
        Ok(vec![PageChange {
            path: "/terms".to_owned(),
            change: ChangeKind::Changed,
            text: format!("-{from:?}\n+{to:?}\n"),
            metadata: String::new(),
        }])
    }

    fn roll_back(&self, tenant: &str, release: Option<u64>) -> Result<u64, ControlError> {
        Self::check(tenant, release)?;
        Ok(release.unwrap_or(1))
    }

    fn resume(&self, tenant: &str) -> Result<(), ControlError> {
        Self::check(tenant, None)
    }

    fn restore(&self, tenant: &str) -> Result<(), ControlError> {
        Self::check(tenant, None)
    }

    fn read_again(&self, tenant: &str) -> Result<(), ControlError> {
        Self::check(tenant, None)
    }
}

const COMMAND: &str = "x-rowhouse-command: 1\r\n";

/// Sends a request and returns status and JSON.
fn answer(admin: &AdminListener, method: &str, path: &str) -> (u16, serde_json::Value) {
    let reply = admin.send(&request(method, path, "localhost", COMMAND));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    (reply.status, serde_json::from_slice(&reply.body).unwrap())
}

#[test]
fn releases_are_listed_compared_and_rolled_back() {
    let snapshots = &Server::start().snapshots;
    let admin = AdminListener::with_control(snapshots, Some(Arc::new(OneTenant)));
    let difference = |from: &str, to: &str| serde_json::json!([{ "path": "/terms", "change": "changed", "text": format!("-{from}\n+{to}\n"), "metadata": "" }]);
    for (method, path, expected) in [
        (
            "GET",
            "releases",
            serde_json::json!([{
                "number": 2, "at": 7, "cause": ["pages/index.md"], "pages": 3, "is_served": true, "is_pinned": false,
            }]),
        ),
        ("GET", "diff", difference("None", "None")),
        ("GET", "diff?from=1", difference("Some(1)", "None")),
        ("GET", "diff?from=1&to=2", difference("Some(1)", "Some(2)")),
        ("POST", "rollback", serde_json::json!({ "release": 1 })),
        (
            "POST",
            "rollback?release=2",
            serde_json::json!({ "release": 2 }),
        ),
        ("POST", "resume", serde_json::json!({})),
        ("POST", "restore", serde_json::json!({})),
        ("POST", "read", serde_json::json!({})),
    ] {
        let path = format!("/tenants/bluedoor/{path}");
        assert_eq!(answer(&admin, method, &path), (200, expected), "{path}");
    }
}

#[test]
fn refusals_have_a_status_and_a_reason() {
    let snapshots = &Server::start().snapshots;
    let admin = AdminListener::with_control(snapshots, Some(Arc::new(OneTenant)));
    let nothing = AdminListener::open(snapshots);
    for (method, verb) in [
        ("GET", "releases"),
        ("GET", "diff"),
        ("POST", "rollback"),
        ("POST", "resume"),
        ("POST", "read"),
    ] {
        for (listener, tenant, status, why) in [
            (&admin, "nobody", 404, "unknown tenant `nobody`"),
            (&admin, "young", 404, "`young` has no earlier release"),
            (&admin, "broken", 500, "the disk is full"),
            (
                &admin,
                "panics",
                500,
                "internal error: see the server's log for the cause",
            ),
            (
                &nothing,
                "bluedoor",
                409,
                "releases are not persisted: start the server with `--state`",
            ),
        ] {
            let path = format!("/tenants/{tenant}/{verb}");
            let expected = (status, serde_json::json!({ "error": why }));
            assert_eq!(answer(listener, method, &path), expected, "{path}");
        }
    }
    for (method, verb) in [("GET", "diff?to=9"), ("POST", "rollback?release=9")] {
        let (status, error) = answer(&admin, method, &format!("/tenants/bluedoor/{verb}"));
        let why = "`bluedoor` has no release 9: choose one that `rowhouse releases bluedoor` lists";
        assert_eq!((status, error["error"].as_str()), (404, Some(why)));
    }
    for (method, verb) in [("GET", "diff?from=a"), ("POST", "rollback?release=-1")] {
        let (status, error) = answer(&admin, method, &format!("/tenants/bluedoor/{verb}"));
        assert_eq!((status, error["error"].is_string()), (400, true), "{error}");
    }
}

#[test]
fn web_pages_cannot_give_commands() {
    let snapshots = &Server::start().snapshots;
    let admin = AdminListener::with_control(snapshots, Some(Arc::new(OneTenant)));
    let with_origin = format!("{COMMAND}origin: http://localhost:8081\r\n");
    let with_content = format!("{COMMAND}content-length: 1\r\n");
    for verb in ["rollback", "resume", "read"] {
        let path = format!("/tenants/bluedoor/{verb}");
        for (method, host, fields, status) in [
            ("POST", "localhost", COMMAND, 200),
            (
                "POST",
                "localhost",
                "content-length: 0\r\nx-rowhouse-command: 1\r\n",
                200,
            ),
            ("POST", "localhost", "", 403),
            ("POST", "localhost", "x-rowhouse-command: 0\r\n", 403),
            ("POST", "localhost", &with_origin, 403),
            ("POST", "localhost", "origin: null\r\n", 403),
            ("POST", "localhost", &with_content, 413),
            ("POST", "rebound.example", COMMAND, 421),
            ("GET", "localhost", COMMAND, 405),
        ] {
            let reply = admin.send(&request(method, &path, host, fields));
            assert_eq!(reply.status, status, "{method} {path} {host} {fields}");
            assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        }
        // The CORS preflight of a page that wants to send the field.
        let fields = "origin: https://other.example\r\naccess-control-request-method: POST\r\naccess-control-request-headers: x-rowhouse-command\r\n";
        let reply = admin.send(&request("OPTIONS", &path, "localhost", fields));
        assert_eq!(reply.status, 403);
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    let reply = admin.send(&request(
        "POST",
        "/tenants/bluedoor/resume",
        "localhost",
        "",
    ));
    let why = "a command must have the header field `x-rowhouse-command: 1` and no `Origin`, so that web pages cannot send commands";
    let error: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(error, serde_json::json!({ "error": why }));
    for path in ["/tenants/bluedoor/releases", "/tenants/bluedoor/diff"] {
        assert_eq!(admin.send(&get(path, "rebound.example")).status, 421);
        assert_eq!(admin.send(&get(path, "localhost")).status, 200);
        assert_eq!(
            admin
                .send(&request("POST", path, "localhost", COMMAND))
                .status,
            405
        );
    }
}

/// A control whose comparisons wait until a rollback is done.
#[derive(Debug)]
struct SlowComparison {
    begun: Mutex<Sender<()>>,
    rolled_back: Mutex<Receiver<()>>,
    done: Mutex<Sender<()>>,
}

impl Control for SlowComparison {
    fn releases(&self, tenant: &str) -> Result<Vec<ReleaseLine>, ControlError> {
        OneTenant.releases(tenant)
    }

    fn diff(
        &self,
        tenant: &str,
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<Vec<PageChange>, ControlError> {
        self.begun.lock().unwrap().send(()).unwrap();
        let rolled_back = self.rolled_back.lock().unwrap();
        // Shorter than the listener's own timeout, so that a waiting command fails the test.
        let waited = rolled_back.recv_timeout(Duration::from_secs(15));
        waited.map_err(|_| ControlError::Failed("the rollback waits".to_owned()))?;
        OneTenant.diff(tenant, from, to)
    }

    fn roll_back(&self, tenant: &str, release: Option<u64>) -> Result<u64, ControlError> {
        self.done.lock().unwrap().send(()).unwrap();
        OneTenant.roll_back(tenant, release)
    }

    fn resume(&self, tenant: &str) -> Result<(), ControlError> {
        OneTenant.resume(tenant)
    }

    fn restore(&self, tenant: &str) -> Result<(), ControlError> {
        OneTenant.restore(tenant)
    }

    fn read_again(&self, tenant: &str) -> Result<(), ControlError> {
        OneTenant.read_again(tenant)
    }
}

#[test]
fn rollback_does_not_wait_for_a_comparison() {
    let snapshots = &Server::start().snapshots;
    let (begun, has_begun) = channel();
    let (done, rolled_back) = channel();
    let control = SlowComparison {
        begun: Mutex::new(begun),
        rolled_back: Mutex::new(rolled_back),
        done: Mutex::new(done),
    };
    let admin = AdminListener::with_control(snapshots, Some(Arc::new(control)));
    thread::scope(|scope| {
        let comparison = scope.spawn(|| answer(&admin, "GET", "/tenants/bluedoor/diff").0);
        has_begun.recv().unwrap();
        assert_eq!(answer(&admin, "GET", "/tenants/bluedoor/releases").0, 200);
        assert_eq!(answer(&admin, "POST", "/tenants/bluedoor/rollback").0, 200);
        assert_eq!(comparison.join().unwrap(), 200);
    });
}
