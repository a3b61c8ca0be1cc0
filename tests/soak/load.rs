//! A steady load of visitors, who check each response: it must be complete, and of one version.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rowhouse_tests::{Answer, Visitor};
use sha2::{Digest as _, Sha256};

use crate::{LINES, STEADY_TENANTS, Soak};

/// The pause between two requests of a visitor, which leaves processor time to others.
const PACE: Duration = Duration::from_millis(2);

/// Visitors who send requests until stopped.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<(u64, Vec<String>)>>,
}

/// A page that is requested repeatedly.
struct Page {
    name: String,
    host: String,
    path: String,
    must_show: Arc<AtomicBool>,
    turns: Arc<AtomicU64>,
    is_steady: bool,
}

impl Load {
    pub(crate) fn start(soak: &Soak) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let address = soak.server.visitors;
        let threads = (0..2).map(|turn| {
            let (stop, mut asked) = (Arc::clone(&stop), asked(soak, address));
            asked.rotate_left(turn * 3);
            thread::spawn(move || visit(address, &asked, &stop))
        });
        Self {
            threads: threads.collect(),
            stop,
        }
    }

    pub(crate) fn stop(self) -> (u64, Vec<String>) {
        self.stop.store(true, Ordering::SeqCst);
        let mut all = (0, Vec::new());
        for thread in self.threads {
            let (answers, problems) = thread.join().expect("a visitor");
            all.0 += answers;
            all.1.extend(problems);
        }
        all
    }
}

fn asked(soak: &Soak, address: SocketAddr) -> Vec<Page> {
    let port = address.port();
    let at = |name: &str, is_steady, must_show: &Arc<AtomicBool>, turns: &Arc<AtomicU64>| {
        let prefix = if name == "steady0" {
            String::new()
        } else {
            format!("/{name}")
        };
        [
            (format!("localhost:{port}"), format!("{prefix}/terms")),
            (format!("{name}.localhost:{port}"), "/".to_owned()),
        ]
        .map(|(host, path)| Page {
            name: name.to_owned(),
            host,
            path,
            must_show: Arc::clone(must_show),
            turns: Arc::clone(turns),
            is_steady,
        })
    };
    let always = Arc::new(AtomicBool::new(true));
    // The host of the root tenant's own name only redirects.
    let steady = (1..STEADY_TENANTS)
        .flat_map(|index| at(&format!("steady{index}"), true, &always, &Arc::default()));
    let restless = soak
        .restless
        .iter()
        .flat_map(|tenant| at(&tenant.name, false, &tenant.must_show, &tenant.turns));
    steady.chain(restless).collect()
}

/// Requests one page after the other. Returns the number of responses, and the failures.
fn visit(address: SocketAddr, asked: &[Page], stop: &AtomicBool) -> (u64, Vec<String>) {
    let mut visitor = Visitor::new(address);
    let (mut answers, mut problems) = (0, Vec::new());
    let mut first: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for page in asked.iter().cycle() {
        if stop.load(Ordering::SeqCst) || problems.len() > 5 {
            break;
        }
        let turn = page.turns.load(Ordering::SeqCst);
        let promised = page.must_show.load(Ordering::SeqCst);
        let (host, path) = (&page.host, &page.path);
        match visitor.get(host, path, &[]) {
            Err(error) => problems.push(format!("{host}{path}: {error}")),
            Ok(answer) => {
                answers += 1;
                let held = promised && page.turns.load(Ordering::SeqCst) == turn;
                match version_in(&answer, &page.name) {
                    Err(problem) => problems.push(format!("{host}{path}: {problem}")),
                    Ok(None) if held => problems.push(format!("{host}{path}: {}", answer.status)),
                    Ok(_) if page.is_steady => {
                        let body = first
                            .entry(format!("{host}{path}"))
                            .or_insert_with(|| answer.body.clone());
                        if *body != answer.body {
                            problems.push(format!("{host}{path}: other bytes than at first"));
                        }
                    }
                    Ok(_) => {}
                }
            }
        }
        thread::sleep(PACE);
    }
    (answers, problems)
}

/// Returns the version of the tenant's page, or `None` for another page. Fails if the page has no version or two versions.
pub(crate) fn version_in(answer: &Answer, name: &str) -> Result<Option<u64>, String> {
    if answer.status == 404 || answer.status == 421 {
        return Ok(None);
    }
    let text = answer.text();
    let digest = Sha256::digest(&answer.body);
    let tag: String = digest
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if answer.header("etag") != format!("\"{tag}\"") {
        return Err(format!(
            "status {}: the tag {} is not of the body",
            answer.status,
            answer.header("etag")
        ));
    }
    let marks: Vec<&str> = text.split(&format!("{name}=")).skip(1).collect();
    let versions: BTreeSet<&str> = marks
        .iter()
        .filter_map(|rest| rest.split('.').next())
        .collect();
    match (marks.len(), versions.first()) {
        (LINES, Some(version)) if versions.len() == 1 => Ok(version.parse().ok()),
        (count, _) => Err(format!(
            "status {}: {count} lines of {versions:?}",
            answer.status
        )),
    }
}
