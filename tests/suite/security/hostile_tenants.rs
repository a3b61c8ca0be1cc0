//! Hostile tenants are added while visitors send requests and other tenants are edited. With `ROWHOUSE_LONG` the other tenants are the six sites, otherwise the two of a fixture.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::hostile_folders::{self, HostileFolder};
use rowhouse_tests::{
    Answer, Process, TestServer, Visitor, binary, copy, fixture, is_long, workspace,
};
use tempfile::TempDir;

/// The memory limit of the program, in bytes.
const MEMORY: u64 = 512 << 20;
/// The timeout of an edit and of `check`. Without optimisation, and beside other tests, both take several times as long as for visitors.
const EDIT_TIMEOUT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });
const CHECK_TIMEOUT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 10 });

struct Deployment {
    root: TempDir,
    /// The tenant whose terms are edited repeatedly.
    edited: &'static str,
    server: TestServer,
    edits: usize,
    slowest_edit: (Duration, &'static str),
}

impl Deployment {
    fn start() -> Self {
        let (source, edited) = if is_long() {
            (workspace(), "arnold")
        } else {
            (fixture("sites"), "app")
        };
        let root = TempDir::new().expect("a folder");
        for part in ["tenants", "themes"] {
            copy(&source.join(part), &root.path().join(part));
        }
        Self {
            edited,
            server: TestServer::start(root.path(), &[]),
            root,
            edits: 0,
            slowest_edit: (Duration::ZERO, ""),
        }
    }

    fn tenant(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join("tenants").join(name)
    }

    /// Requests every page of the six sites on the domain, except the edited one.
    fn pages(&self) -> BTreeMap<String, Answer> {
        let sitemap = self
            .server
            .get(&self.server.domain(), "/sitemap.xml")
            .text();
        let origin = format!("http://{}", self.server.domain());
        let paths = sitemap.split("<loc>").skip(1).filter_map(|rest| {
            let url = rest.split('<').next()?;
            Some(url.strip_prefix(&origin)?.to_owned())
        });
        let mut visitor = Visitor::new(self.server.visitors);
        paths
            .filter(|path| *path != self.edited_page() && !path.starts_with("/x-"))
            .map(|path| {
                let answer = visitor.get(&self.server.domain(), &path, &[]);
                let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
                (path, answer)
            })
            .collect()
    }

    fn edited_page(&self) -> String {
        format!("/{}/terms", self.edited)
    }

    /// Edits another tenant, and waits until visitors find the change.
    fn edit(&mut self, meanwhile: &'static str) {
        self.edits += 1;
        let words = format!("Edited for the time {}.", self.edits);
        let file = self.tenant(self.edited).join("pages/terms.md");
        let text = fs::read_to_string(&file).expect("a page");
        let kept: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with("Edited for"))
            .collect();
        fs::write(
            &file,
            format!("{}\n\n{words}\n", kept.join("\n").trim_end()),
        )
        .expect("a page");
        let begin = Instant::now();
        while !self
            .server
            .get(&self.server.domain(), &self.edited_page())
            .text()
            .contains(&words)
        {
            assert!(
                begin.elapsed() < EDIT_TIMEOUT,
                "{meanwhile}: the edit of another tenant is not served\n{}",
                self.server.log()
            );
            thread::sleep(Duration::from_millis(5));
        }
        if begin.elapsed() > self.slowest_edit.0 {
            self.slowest_edit = (begin.elapsed(), meanwhile);
        }
    }

    fn memory(&self) -> u64 {
        Process(self.server.id()).peak()
    }
}

#[test]
fn hostile_tenants_affect_no_other_tenant() {
    let mut deployment = Deployment::start();
    deployment.edit("at first");
    let before = deployment.pages();
    let least = if is_long() { 50 } else { 5 };
    assert!(before.len() > least, "only {} pages", before.len());
    let stop = AtomicBool::new(false);
    let (address, domain) = (deployment.server.visitors, deployment.server.domain());
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        let load = scope.spawn(|| visit(address, &domain, &before, &stop));
        for kind in hostile_folders::ALL {
            attack(&mut deployment, kind, &before);
        }
        stop.store(true, Ordering::SeqCst);
        let (answers, slowest) = load.join().expect("a visitor");
        println!(
            "{answers} answers, the slowest after {slowest:?}; the slowest edit after {:?} ({}); {} MB at most",
            deployment.slowest_edit.0,
            deployment.slowest_edit.1,
            deployment.memory() >> 20
        );
        assert!(answers > 1_000, "only {answers} answers");
    });
}

fn attack(deployment: &mut Deployment, kind: &HostileFolder, before: &BTreeMap<String, Answer>) {
    let name = kind.name;
    let beside = deployment.root.path().join("beside");
    kind.write(&beside);
    let folder = deployment.tenant(&format!("x-{name}"));
    fs::rename(&beside, &folder).expect("a moved folder");
    // At once, a little later, and when the new tenant is handled.
    for pause in [0, 500] {
        thread::sleep(Duration::from_millis(pause));
        deployment.edit(name);
    }
    let now = deployment.pages();
    assert!(now.keys().eq(before.keys()), "{name}: other pages");
    for (path, answer) in &now {
        let same = answer.status == 200 && answer.body == before[path].body;
        assert!(same, "{name} changed {path}");
    }
    let memory = deployment.memory();
    assert!(memory < MEMORY, "{name}: {} MB", memory >> 20);
    fs::remove_dir_all(&folder).expect("a removed folder");
    deployment.edit(name);
}

/// Requests one page after the other until stopped. Returns the number of responses, and the longest time.
fn visit(
    address: std::net::SocketAddr,
    domain: &str,
    pages: &BTreeMap<String, Answer>,
    stop: &AtomicBool,
) -> (usize, Duration) {
    let mut visitor = Visitor::new(address);
    let (mut answers, mut slowest) = (0, Duration::ZERO);
    for (path, before) in pages.iter().cycle() {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let begin = Instant::now();
        let answer = visitor.get(domain, path, &[]);
        let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(
            answer.status == 200 && answer.body == before.body,
            "{path} is not what it was: {}",
            answer.status
        );
        answers += 1;
        slowest = slowest.max(begin.elapsed());
        thread::sleep(Duration::from_millis(10));
    }
    (answers, slowest)
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn check_ends_in_time_and_reports_each_hostile_tenant() {
    let root = TempDir::new().expect("a folder");
    for part in ["tenants", "themes"] {
        copy(&workspace().join(part), &root.path().join(part));
    }
    for kind in hostile_folders::ALL {
        kind.write(&root.path().join(format!("tenants/x-{}", kind.name)));
    }
    let report = check(root.path());
    let of = |tenant: &str| {
        let parts = report.split("\n\n");
        let parts: Vec<&str> = parts
            .filter(|part| part.contains(&format!("tenants/{tenant}")))
            .collect();
        parts.join("\n\n")
    };
    for kind in hostile_folders::ALL {
        let own = of(&format!("x-{}", kind.name));
        if let Some(word) = kind.report_word {
            assert!(own.contains(word), "{}: no `{word}`:\n{own}", kind.name);
        }
        assert!(
            own.len() < 1_000_000,
            "{}: {} bytes of report",
            kind.name,
            own.len()
        );
    }
    for tenant in [
        "arnold", "bluedoor", "fitgoat", "givefive", "studio", "verses",
    ] {
        assert!(!of(tenant).contains("error["), "{}", of(tenant));
    }
}

/// Returns the output of `rowhouse check`, which must end in time.
fn check(root: &Path) -> String {
    let report = root.join("report");
    let mut child = Command::new(binary())
        .arg("check")
        .current_dir(root)
        .stdout(fs::File::create(&report).expect("a file"))
        .spawn()
        .expect("rowhouse");
    while child.try_wait().expect("a child").is_none() {
        // Processor time, since other tests run at the same time.
        if Process(child.id()).processor_time() > CHECK_TIMEOUT {
            child.kill().expect("a living child");
            child.wait().expect("a child");
            panic!("`rowhouse check` took longer than {CHECK_TIMEOUT:?}");
        }
        thread::sleep(Duration::from_millis(20));
    }
    fs::read_to_string(report).expect("a report")
}
