//! `deploy/haproxy/haproxy.cfg` without changes: two instances restart one after the other under load, or are killed, and no request fails.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use rowhouse_tests::{binary, reserved_address};
use tempfile::TempDir;

use crate::fleet::object_store::ObjectStore;
use crate::fleet::replicas::replica;
use crate::http::Visitor;
use crate::support::{Program, Rowhouse, is_there, place, run, tenant, wait_for};

/// The number of visitors; every second one opens a connection for each request.
const VISITORS: usize = 8;

/// The number of responses between two steps.
const RESPONSES_PER_STEP: usize = 500;

const ORIGIN: &str = "http://studio.example";

/// The load: the number of responses, and the failures.
#[derive(Debug, Default)]
struct Load {
    over: AtomicBool,
    answered: AtomicUsize,
}

impl Load {
    /// Sends requests until the load ends, and returns the failures.
    fn visit(&self, proxy: SocketAddr, keeps: bool) -> Vec<String> {
        let mut failures = Vec::new();
        let mut connection = None;
        while !self.over.load(Relaxed) && failures.len() < 10 {
            let answer = connection
                .take()
                .map_or_else(|| Visitor::connect(proxy), Ok)
                .and_then(|mut visitor: Visitor| {
                    let more = if keeps { "" } else { "connection: close\r\n" };
                    let (status, kept, body) = visitor.get("studio.example", "/", more)?;
                    if keeps && kept {
                        connection = Some(visitor);
                    }
                    Ok((status, body))
                });
            match answer {
                Ok((200, body)) if body.ends_with(b"</html>") || body.ends_with(b"</html>\n") => {
                    self.answered.fetch_add(1, Relaxed);
                }
                Ok((status, body)) => failures.push(format!("{status} with {} bytes", body.len())),
                Err(error) => failures.push(error.to_string()),
            }
        }
        failures
    }

    fn end(&self) {
        self.over.store(true, Relaxed);
    }

    fn wait_for_responses(&self) {
        let until = self.answered.load(Relaxed) + RESPONSES_PER_STEP;
        wait_for("some more answers", || {
            (self.answered.load(Relaxed) >= until).then_some(())
        });
    }
}

/// Ends the load when dropped, also after a failure; otherwise the visitors could not be joined.
struct EndOnDrop<'a>(&'a Load);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Returns the number of requests that an instance has served.
fn served_requests(instance: &Rowhouse) -> Option<u64> {
    let (_, metrics) = instance.get_admin("/metrics")?;
    metrics
        .lines()
        .filter(|line| line.starts_with("rowhouse_http_requests_total{tenant=\"home\""))
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .reduce(|sum: u64, more: u64| sum + more)
}

/// Starts HAProxy in front of two instances, and waits until it passes requests on.
fn balance(proxy: SocketAddr, instances: &[Rowhouse; 2]) -> Program {
    let mut haproxy = Program::start(
        Command::new("haproxy")
            .arg("-f")
            .arg(place("haproxy/haproxy.cfg"))
            .env("FRONT", proxy.to_string())
            .env("ONE", instances[0].visitors.to_string())
            .env("ONE_ADMIN", instances[0].admin.port().to_string())
            .env("TWO", instances[1].visitors.to_string())
            .env("TWO_ADMIN", instances[1].admin.port().to_string()),
    );
    wait_for("an answer through haproxy", || {
        haproxy.must_run();
        crate::http::ask(proxy, "studio.example", "/").filter(|(status, _)| *status == 200)
    });
    haproxy
}

/// Sends requests while `steps` runs, and returns the failures.
fn failures_under_load(proxy: SocketAddr, steps: impl FnOnce(&Load)) -> Vec<String> {
    let load = Load::default();
    thread::scope(|scope| {
        let _ending = EndOnDrop(&load);
        let visitors: Vec<_> = (0..VISITORS)
            .map(|number| {
                let load = &load;
                scope.spawn(move || load.visit(proxy, number % 2 == 0))
            })
            .collect();
        load.wait_for_responses();
        steps(&load);
        load.wait_for_responses();
        load.end();
        visitors
            .into_iter()
            .flat_map(|visitor| visitor.join().expect("a visitor"))
            .collect()
    })
}

fn wait_for_visitors(instance: &Rowhouse) {
    wait_for("visitors of the new process", || {
        served_requests(instance).filter(|had| *had >= 50)
    });
}

#[test]
fn rolling_restart_behind_haproxy_fails_no_request() {
    if !is_there("haproxy") {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let tenants: PathBuf = folder.path().join("tenants");
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let mut instances = [
        Rowhouse::start(&tenants, ORIGIN),
        Rowhouse::start(&tenants, ORIGIN),
    ];
    let proxy = reserved_address();
    let haproxy = balance(proxy, &instances);
    let failures = failures_under_load(proxy, |load| {
        for instance in &mut instances {
            assert_eq!(
                instance.program.end(),
                Some(0),
                "{}",
                instance.program.log()
            );
            // Only the other instance serves these.
            load.wait_for_responses();
            *instance = Rowhouse::start_at(&tenants, ORIGIN, instance.visitors, instance.admin);
            wait_for_visitors(instance);
        }
    });
    assert!(failures.is_empty(), "{failures:?}\n{}", haproxy.log());
}

#[test]
fn killed_replicas_of_a_fleet_fail_no_request() {
    if !is_there("haproxy") {
        return;
    }
    let Some(store) = ObjectStore::start() else {
        return;
    };
    let folder = TempDir::new().expect("a folder");
    tenant(&folder.path().join("tenants/home"), "Home", "root: true\n");
    let (is_published, text) = run(Command::new(binary())
        .args(["publish", "--store", &store.address("sites")])
        .current_dir(folder.path())
        .envs(store.variables()));
    assert!(is_published, "{text}");
    let states = [(); 2].map(|()| TempDir::new().expect("a folder"));
    let start = |state: &TempDir, visitors: SocketAddr, admin: SocketAddr| {
        let mut command = replica(&store, state);
        command
            .env("ROWHOUSE_ORIGIN", ORIGIN)
            .env("ROWHOUSE_LISTEN", visitors.to_string())
            .env("ROWHOUSE_ADMIN", admin.to_string());
        Rowhouse::start_with(&mut command)
    };
    let mut instances = [0, 1].map(|number| {
        let (visitors, admin) = (reserved_address(), reserved_address());
        start(&states[number], visitors, admin)
    });
    let proxy = reserved_address();
    let haproxy = balance(proxy, &instances);
    let failures = failures_under_load(proxy, |load| {
        for (instance, state) in instances.iter_mut().zip(&states) {
            instance.program.kill();
            load.wait_for_responses();
            *instance = start(state, instance.visitors, instance.admin);
            wait_for_visitors(instance);
        }
    });
    assert!(failures.is_empty(), "{failures:?}\n{}", haproxy.log());
}
