//! A hundred random additions, edits, errors, repairs and removals under a steady load, with hostile tenants: no response fails, none mixes two versions, no resource grows, and at the end everything is as after a cold start.
//!
//! The seed is fixed, so a failure can be repeated: `ROWHOUSE_SOAK_SEED` sets another one. `ROWHOUSE_SOAK_ROUNDS` sets the number of changes (160 by default; the first sixty only warm up). If memory has grown, the changes after the warm-up are repeated.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod load;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rowhouse_tests::{Process, TestServer, copy, fixture, hostile_folders};
use tempfile::TempDir;

use load::{Load, version_in};

const SEED: u64 = 0x00c0_ffee;
const ROUNDS: u64 = 160;
/// The number of changes before the first measurement.
const WARM_UP: u64 = 60;
/// Lost memory grows in every period. The allocator may reach its maximum in any one of them.
const PERIODS: usize = 3;
/// Tenants that never change.
const STEADY_TENANTS: usize = 5;
/// Tenants that are added, changed, broken and removed.
const CHANGING_TENANTS: usize = 8;
/// Far more than a change takes, since the tests share their machine.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Lines of a page, each of which names the version.
const LINES: usize = 60;
/// The limit of replaced files, over all tenants, in bytes (`OF_ALL` in `engine/supervisor/src/snapshot/replaced.rs`).
const REPLACED_BYTES: u64 = 96 << 20;
/// The number of changes that fill this limit; a short run may make fewer.
const FILL_ROUNDS: u64 = 1_000;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// The page that visitors should find for a changing tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedPage {
    Nothing,
    Version(u64),
}

/// The content of a tenant's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folder {
    Absent,
    Good,
    Broken,
}

/// A changing tenant.
#[derive(Debug)]
struct ChangingTenant {
    name: String,
    folder: Folder,
    shown: ExpectedPage,
    /// Set while visitors must find the tenant.
    must_show: Arc<AtomicBool>,
    /// Counts the changes of `must_show`, so that a visitor can tell whether it was set all the time.
    turns: Arc<AtomicU64>,
}

impl ChangingTenant {
    fn set_must_show(&self, shown: bool) {
        self.must_show.store(shown, Ordering::SeqCst);
        self.turns.fetch_add(1, Ordering::SeqCst);
    }
}

struct Soak {
    root: TempDir,
    server: TestServer,
    restless: Vec<ChangingTenant>,
    dice: Rng,
    version: u64,
    made: BTreeMap<&'static str, u64>,
}

#[test]
fn random_changes_fail_no_response_and_leak_nothing() {
    let seed = from_environment("ROWHOUSE_SOAK_SEED", SEED);
    let rounds = from_environment("ROWHOUSE_SOAK_ROUNDS", ROUNDS);
    println!("ROWHOUSE_SOAK_SEED={seed} ROWHOUSE_SOAK_ROUNDS={rounds}");
    let mut soak = Soak::start(seed);
    let load = Load::start(&soak);
    soak.change(WARM_UP);
    soak.add_all_hostile();
    soak.clear();
    let mut before = soak.usage();
    let replaced = REPLACED_BYTES * rounds.min(FILL_ROUNDS) / FILL_ROUNDS;
    let mut periods = PERIODS;
    let after = loop {
        soak.change(rounds.saturating_sub(WARM_UP));
        soak.compare_with_new_process();
        soak.clear();
        let bound = before.memory + before.memory / 10 + replaced;
        let after = soak.usage_once(&before, bound);
        println!("{before:?} then {after:?}");
        if after.memory < bound {
            break after;
        }
        periods -= 1;
        assert!(periods > 0, "seed {seed}: memory grows and grows");
        before.memory = after.memory;
    };
    let (answers, problems) = load.stop();
    println!("{:?}, {answers} answers", soak.made);
    assert!(problems.is_empty(), "seed {seed}: {}", problems.join("\n"));
    assert!(answers > rounds * 10, "only {answers} answers");
    assert!(
        after.is_within(&before),
        "seed {seed}: descriptors or threads were left: {before:?} then {after:?}"
    );
}

impl Soak {
    fn start(seed: u64) -> Self {
        let root = TempDir::new().expect("a folder");
        copy(&fixture("sites/themes"), &root.path().join("themes"));
        let tenants = root.path().join("tenants");
        for index in 0..STEADY_TENANTS {
            let name = format!("steady{index}");
            write(&tenants.join(&name), &name, 1);
        }
        fs::write(
            tenants.join("steady0/tenant.yaml"),
            "name: steady0\nroot: true\n",
        )
        .expect("a file");
        let restless = (0..CHANGING_TENANTS).map(|index| ChangingTenant {
            name: format!("restless{index}"),
            folder: Folder::Absent,
            shown: ExpectedPage::Nothing,
            must_show: Arc::default(),
            turns: Arc::default(),
        });
        Self {
            server: TestServer::start(root.path(), &[]),
            restless: restless.collect(),
            dice: Rng::with_seed(seed),
            version: 1,
            made: BTreeMap::new(),
            root,
        }
    }

    /// Makes up to four random changes at once, and waits until visitors find the expected pages.
    fn change(&mut self, rounds: u64) {
        let mut made = 0;
        while made < rounds {
            let at_once = 1 + self.dice.usize(..4);
            let touched: BTreeSet<usize> = (0..at_once)
                .map(|_| self.dice.usize(..CHANGING_TENANTS))
                .collect();
            for index in &touched {
                self.touch(*index);
                made += 1;
            }
            if self.dice.usize(..4) == 0 {
                self.toggle_hostile();
            }
            for index in touched {
                self.wait_for(index);
            }
        }
    }

    /// Adds a hostile tenant, or removes it.
    fn toggle_hostile(&mut self) {
        let kind = &hostile_folders::ALL[self.dice.usize(..hostile_folders::ALL.len())];
        let folder = self.hostile_folder(kind);
        let action = if folder.exists() {
            fs::remove_dir_all(folder).expect("a removed folder");
            "removed a hostile one"
        } else {
            let beside = self.root.path().join("beside");
            kind.write(&beside);
            fs::rename(beside, folder).expect("a moved folder");
            "moved in a hostile one"
        };
        *self.made.entry(action).or_default() += 1;
    }

    /// Adds every hostile tenant, and waits until each is handled. Memory that the allocator retains then does not count as growth.
    fn add_all_hostile(&mut self) {
        for kind in hostile_folders::ALL {
            let folder = self.hostile_folder(kind);
            if !folder.exists() {
                kind.write(&folder);
            }
        }
        let begin = Instant::now();
        loop {
            let tenants = self.server.get_admin("/tenants").text();
            let tenants: Vec<serde_json::Value> = serde_json::from_str(&tenants).expect("JSON");
            let is_done = |kind: &hostile_folders::HostileFolder| {
                let id = format!("x-{}", kind.name);
                let tenant = tenants.iter().find(|tenant| tenant["id"] == *id);
                tenant
                    .is_some_and(|tenant| tenant["doing"].is_null() && tenant["state"] != "removed")
            };
            if hostile_folders::ALL.iter().all(is_done) {
                return;
            }
            assert!(begin.elapsed() < TIMEOUT * 4, "{}", self.server.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn hostile_folder(&self, kind: &hostile_folders::HostileFolder) -> std::path::PathBuf {
        self.root.path().join(format!("tenants/x-{}", kind.name))
    }

    /// Repairs all tenants, and compares every page with that of a new process.
    fn compare_with_new_process(&mut self) {
        for index in 0..CHANGING_TENANTS {
            if self.restless[index].folder == Folder::Broken {
                self.version += 1;
                let version = self.version;
                let tenant = &mut self.restless[index];
                write(
                    &self.root.path().join("tenants").join(&tenant.name),
                    &tenant.name,
                    version,
                );
                (tenant.folder, tenant.shown) = (Folder::Good, ExpectedPage::Version(version));
            }
            self.wait_for(index);
        }
        let fresh = TestServer::start(self.root.path(), &[]);
        let page = |server: &TestServer, host: &str, path: &str| {
            let port = format!(":{}", server.visitors.port());
            let answer = server.get(&format!("{host}{port}"), path);
            (answer.status, answer.text().replace(&port, ""))
        };
        let steady = (0..STEADY_TENANTS).map(|index| format!("steady{index}"));
        let names = steady.chain(self.restless.iter().map(|tenant| tenant.name.clone()));
        for name in names {
            for (host, path) in [
                ("localhost".to_owned(), format!("/{name}")),
                ("localhost".to_owned(), format!("/{name}/terms")),
                ("localhost".to_owned(), format!("/{name}/nowhere")),
                (format!("{name}.localhost"), "/terms".to_owned()),
                (format!("{name}.localhost"), "/sitemap.xml".to_owned()),
            ] {
                let (old, new) = (page(&self.server, &host, &path), page(&fresh, &host, &path));
                assert_eq!(old, new, "{host}{path} is not as after a fresh start");
            }
        }
    }

    fn touch(&mut self, index: usize) {
        self.version += 1;
        let (version, roll) = (self.version, self.dice.usize(..4));
        let tenant = &mut self.restless[index];
        let folder = self.root.path().join("tenants").join(&tenant.name);
        let action = match (tenant.folder, roll) {
            (Folder::Absent, 0) => {
                // Written like `cp -r`: one file after the other, in place.
                write(&folder, &tenant.name, version);
                tenant.folder = Folder::Good;
                "copied"
            }
            (Folder::Absent, 1) => {
                let beside = self.root.path().join("beside");
                write(&beside, &tenant.name, version);
                spoil(&beside);
                fs::rename(beside, folder).expect("a moved folder");
                tenant.folder = Folder::Broken;
                "moved in broken"
            }
            (Folder::Absent, _) => {
                let beside = self.root.path().join("beside");
                write(&beside, &tenant.name, version);
                fs::rename(beside, folder).expect("a moved folder");
                tenant.folder = Folder::Good;
                "moved in"
            }
            (_, 0) => {
                tenant.set_must_show(false);
                fs::remove_dir_all(folder).expect("a removed folder");
                tenant.folder = Folder::Absent;
                "removed"
            }
            (Folder::Good, 1) => {
                spoil(&folder);
                tenant.folder = Folder::Broken;
                "broken"
            }
            (before, _) => {
                write(&folder, &tenant.name, version);
                tenant.folder = Folder::Good;
                if before == Folder::Good {
                    "edited"
                } else {
                    "repaired"
                }
            }
        };
        match tenant.folder {
            Folder::Good => tenant.shown = ExpectedPage::Version(version),
            Folder::Absent => tenant.shown = ExpectedPage::Nothing,
            Folder::Broken => {}
        }
        *self.made.entry(action).or_default() += 1;
    }

    /// Waits until visitors find the expected pages, and operators the expected state.
    fn wait_for(&self, index: usize) {
        let tenant = &self.restless[index];
        let wanted = match (tenant.folder, tenant.shown) {
            (Folder::Absent, _) => None,
            (Folder::Good, _) => Some("live"),
            (Folder::Broken, ExpectedPage::Version(_)) => Some("degraded"),
            (Folder::Broken, ExpectedPage::Nothing) => Some("absent"),
        };
        let begin = Instant::now();
        loop {
            let shown = self.shown(&tenant.name);
            if shown == tenant.shown && self.state(&tenant.name).as_deref() == wanted {
                tenant.set_must_show(tenant.shown != ExpectedPage::Nothing);
                return;
            }
            assert!(
                begin.elapsed() < TIMEOUT,
                "{tenant:?} shows {shown:?} and is not {wanted:?}: {}\n{}",
                self.server.get_admin("/tenants").text(),
                self.server.log()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn shown(&self, name: &str) -> ExpectedPage {
        let answer = self.server.get(&self.server.domain(), &format!("/{name}"));
        version_in(&answer, name)
            .expect("a whole page")
            .map_or(ExpectedPage::Nothing, ExpectedPage::Version)
    }

    fn state(&self, name: &str) -> Option<String> {
        let tenants = self.server.get_admin("/tenants").text();
        let tenants: Vec<serde_json::Value> = serde_json::from_str(&tenants).expect("JSON");
        let tenant = tenants.iter().find(|tenant| tenant["id"] == name)?;
        // A tenant whose folder was removed is listed for a day.
        let state = tenant["state"].as_str().filter(|state| *state != "removed");
        state.map(ToOwned::to_owned)
    }

    /// Removes every changing and every hostile tenant.
    fn clear(&mut self) {
        for folder in hostile_folders::ALL
            .iter()
            .map(|kind| self.hostile_folder(kind))
        {
            if folder.exists() {
                fs::remove_dir_all(folder).expect("a removed folder");
            }
        }
        for index in 0..CHANGING_TENANTS {
            let tenant = &mut self.restless[index];
            tenant.set_must_show(false);
            let folder = self.root.path().join("tenants").join(&tenant.name);
            if folder.exists() {
                fs::remove_dir_all(folder).expect("a removed folder");
            }
            (tenant.folder, tenant.shown) = (Folder::Absent, ExpectedPage::Nothing);
            self.wait_for(index);
        }
    }

    /// Measures the process. Returns the least value within half a second, since connections close slightly after their responses.
    fn usage(&self) -> Usage {
        let process = Process(self.server.id());
        let now = || Usage {
            memory: process.memory(),
            descriptors: process.descriptors(),
            threads: process.threads(),
        };
        let mut least = now();
        for _ in 0..100 {
            thread::sleep(Duration::from_millis(5));
            let now = now();
            least = Usage {
                memory: now.memory,
                descriptors: least.descriptors.min(now.descriptors),
                threads: least.threads.min(now.threads),
            };
        }
        least
    }

    /// Measures again until the process has no more descriptors and threads than before and less memory than `memory`, or until the timeout. Threads end slightly after their work, and the best encodings of requested pages need memory while they are made.
    fn usage_once(&self, before: &Usage, memory: u64) -> Usage {
        let begin = Instant::now();
        loop {
            let usage = self.usage();
            let is_settled = usage.is_within(before) && usage.memory < memory;
            if is_settled || begin.elapsed() > TIMEOUT {
                return usage;
            }
        }
    }
}

/// The resources of a process.
#[derive(Debug)]
struct Usage {
    memory: u64,
    descriptors: usize,
    threads: u64,
}

impl Usage {
    /// Whether the process has no more descriptors and threads than before.
    fn is_within(&self, other: &Self) -> bool {
        self.descriptors <= other.descriptors && self.threads <= other.threads
    }
}

/// Writes a tenant of two pages that name their version in every line.
fn write(folder: &Path, name: &str, version: u64) {
    fs::create_dir_all(folder.join("pages")).expect("a folder");
    let manifest = folder.join("tenant.yaml");
    if !manifest.exists() {
        fs::write(&manifest, format!("name: {name}\n")).expect("a file");
    }
    for page in ["terms", "index"] {
        let lines = format!("{name}={version}.\n\n").repeat(LINES);
        let text = format!("---\ntitle: {name} {version}\n---\n{lines}");
        fs::write(folder.join(format!("pages/{page}.md")), text).expect("a file");
    }
}

fn spoil(folder: &Path) {
    fs::write(
        folder.join("pages/index.md"),
        "---\ntitel: a typing error\n---\n",
    )
    .expect("a file");
}
