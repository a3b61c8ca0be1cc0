//! Compares a thousand and ten thousand tenants (five pages of 5 KB of Markdown each) with the six sites: startup, first responses, saved pages, new folders, memory, a warm start, and the cost of a request. If Hugo is installed, it builds the same pages.
//!
//! Run `cargo bench -p rowhouse-tests --bench many`; `ROWHOUSE_MANY="300 1000"` sets other numbers. It prints figures with their budgets.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rowhouse_tests::{Answer, Process, TestServer, Times, Visitor, binary, copy, workspace};
use tempfile::TempDir;

/// The value of `--memory`, in bytes.
const MEMORY: &str = "536870912";
const PAGES: usize = 5;
const FIRST_ANSWERS: usize = 300;
const SAVES: usize = 20;
const DROPS: usize = 5;
const COMPARED: usize = 20;
const VISITORS: usize = 4;
const REQUESTS: usize = 50_000;
const TURNS: usize = 6;
const TIMEOUT: Duration = Duration::from_secs(120);

fn main() {
    // Builds the binary before the measurement.
    let _ = binary();
    let numbers = std::env::var("ROWHOUSE_MANY").unwrap_or_else(|_| "1000 10000".to_owned());
    for count in numbers.split_whitespace() {
        let count = count.parse().unwrap();
        let root = create_tenants(count);
        println!("\n{count} tenants of {PAGES} pages beside the six sites");
        cold(&root, count);
        with_state(&root);
        hugo(&root, count);
    }
    costs();
}

/// Measures without a state: responses during background rendering, and the cost of all pages.
fn cold(root: &TempDir, count: usize) {
    let begun = Instant::now();
    let server = TestServer::start_at_once(root.path(), &["--memory", MEMORY]);
    print_time("ready", begun.elapsed(), "5 s");
    let process = Process(server.id());
    println!("memory, ready     {:8} MB", process.memory() >> 20);
    let mut many = ManyTenants {
        visitor: Visitor::new(server.visitors),
        server,
        numbers: Rng::with_seed(7),
        count,
    };
    let first = many.first_answers();
    println!("first answers     {first}");
    println!("saved pages       {}  (budget 300 ms)", many.saves(root));
    println!("dropped folders   {}  (budget 300 ms)", many.drops(root));
    let begun = Instant::now();
    many.every_page();
    print_time("every page", begun.elapsed(), "none");
    println!(
        "memory, at most   {:8} MB  (budget 1000 MB)",
        process.peak() >> 20
    );
    println!(
        "processor time    {:8.1} s",
        process.processor_time().as_secs_f64()
    );
    many.compare(root);
}

/// Measures a warm start, with the state of the last process.
fn with_state(root: &TempDir) {
    let state = TempDir::new().unwrap();
    let path = state.path().to_str().unwrap();
    let options = ["--memory", MEMORY, "--state", path];
    {
        let server = TestServer::start_at_once(root.path(), &options);
        let begun = Instant::now();
        while server.get_admin("/readyz").text().contains("pending") {
            assert!(begun.elapsed() < TIMEOUT * 10, "{}", server.log());
            thread::sleep(Duration::from_millis(200));
        }
        print_time("all rendered", begun.elapsed(), "none");
    }
    let begun = Instant::now();
    let server = TestServer::start_at_once(root.path(), &options);
    print_time("ready, with state", begun.elapsed(), "3 s");
    drop(server);
}

/// Measures Hugo with the same pages. `ROWHOUSE_HUGO` names the binary.
fn hugo(root: &TempDir, count: usize) {
    let program = std::env::var("ROWHOUSE_HUGO").unwrap_or_else(|_| "hugo".to_owned());
    let found = Command::new(&program)
        .arg("version")
        .stdout(Stdio::null())
        .status();
    if !found.is_ok_and(|status| status.success()) {
        println!("no Hugo: `{program} version` does not work");
        return;
    }
    let site = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let file = site.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write(
        "hugo.toml",
        "baseURL = \"https://studio.example/\"\ntitle = \"Many\"\n",
    );
    let layout = "<!doctype html><html lang=en><title>{{ .Title }}</title><h1>{{ .Title }}</h1>{{ .Content }}</html>";
    for name in ["single", "list"] {
        write(&format!("layouts/_default/{name}.html"), layout);
    }
    for tenant in 0..count {
        let from = root.path().join(format!("tenants/t{tenant}/pages"));
        copy(&from, &site.path().join(format!("content/t{tenant}")));
    }
    let begun = Instant::now();
    let built = Command::new(&program)
        .arg("--quiet")
        .current_dir(site.path())
        .status()
        .unwrap();
    assert!(built.success());
    print_time("Hugo, all pages", begun.elapsed(), "none");
}

/// Measures the processor time of a request, with many tenants and with six.
fn costs() {
    let (many, few) = (create_tenants(1_000), create_tenants(0));
    let start = |root: &TempDir| {
        let server = TestServer::start(root.path(), &[]);
        let visitor = Visitor::new(server.visitors);
        (server, visitor)
    };
    let (mut of_many, mut of_few) = (Times::default(), Times::default());
    let ((many, mut of), (few, mut other)) = (start(&many), start(&few));
    let pages = |count: usize| (0..count).map(|tenant| format!("/t{tenant}/page-1"));
    let many_pages: Vec<String> = pages(1_000).collect();
    let few_pages = ["/bluedoor", "/verses", "/fitgoat", "/givefive", "/arnold"];
    let few_pages = few_pages.map(ToOwned::to_owned);
    wait_until_idle(&many, &mut of, &many_pages);
    wait_until_idle(&few, &mut other, &few_pages);
    for _ in 0..TURNS {
        of_many.add(requests(&many, &mut of, &many_pages));
        of_few.add(requests(&few, &mut other, &few_pages));
    }
    let cost = |times: &Times| times.median().as_secs_f64() * 1e6 / REQUESTS as f64;
    let (of_many, of_few) = (cost(&of_many), cost(&of_few));
    println!(
        "\nprocessor time of a request among 1,000 tenants {of_many:.2} µs, among six {of_few:.2} µs: {:.2} x",
        of_many / of_few
    );
}

/// Requests all pages, and waits until the background work for them ends: requested pages are compressed again.
fn wait_until_idle(server: &TestServer, visitor: &mut Visitor, paths: &[String]) {
    let (process, domain, begun) = (Process(server.id()), server.domain(), Instant::now());
    for path in paths {
        assert_eq!(ask(visitor, &domain, path).status, 200, "{path}");
    }
    let used_in_a_while = || {
        let before = process.processor_time();
        thread::sleep(Duration::from_secs(2));
        process.processor_time() - before
    };
    while used_in_a_while() > Duration::from_millis(20) {
        assert!(
            begun.elapsed() < TIMEOUT * 10,
            "the process never becomes idle"
        );
    }
    *visitor = Visitor::new(server.visitors);
}

fn requests(server: &TestServer, visitor: &mut Visitor, paths: &[String]) -> Duration {
    let (process, domain) = (Process(server.id()), server.domain());
    let before = process.processor_time();
    for path in paths.iter().cycle().take(REQUESTS) {
        assert_eq!(ask(visitor, &domain, path).status, 200, "{path}");
    }
    process.processor_time() - before
}

fn ask(visitor: &mut Visitor, domain: &str, path: &str) -> Answer {
    visitor.get(domain, path, &["accept-encoding: br"]).unwrap()
}

fn print_time(what: &str, took: Duration, budget: &str) {
    println!("{what:17} {:8.2} s   (budget {budget})", took.as_secs_f64());
}

/// A server with many tenants, and its visitor.
struct ManyTenants {
    server: TestServer,
    visitor: Visitor,
    numbers: Rng,
    count: usize,
}

impl ManyTenants {
    /// Measures first requests for tenants, most of which are not rendered yet.
    fn first_answers(&mut self) -> String {
        let mut times = Vec::new();
        for _ in 0..FIRST_ANSWERS {
            let path = path(self.numbers.usize(..self.count), 0);
            let begun = Instant::now();
            self.page(&path);
            times.push(begun.elapsed());
        }
        times.sort();
        let at = |part: usize| times[(times.len() - 1) * part / 100].as_millis();
        format!(
            "median {} ms, 99th percentile {} ms  (budget 100 and 300 ms)",
            at(50),
            at(99)
        )
    }

    /// Measures the time from the last write of a page until the page is served.
    fn saves(&mut self, root: &TempDir) -> Times {
        let mut times = Times::default();
        for round in 0..SAVES {
            let tenant = self.numbers.usize(..self.count);
            let mark = format!("This is change {round} of the page.");
            let file = format!("tenants/t{tenant}/pages/page-1.md");
            // The author has looked at the page before.
            self.page(&path(tenant, 1));
            fs::write(root.path().join(file), page(tenant, 1) + &mark).unwrap();
            times.add(self.until(&path(tenant, 1), |answer| answer.text().contains(&mark)));
        }
        times
    }

    /// Measures the time from the last write of a new folder until its first page is served.
    fn drops(&mut self, root: &TempDir) -> Times {
        let mut times = Times::default();
        for round in 0..DROPS {
            let new = self.count + round;
            let aside = TempDir::new_in(root.path()).unwrap();
            write_tenant(&aside.path().join("new"), new);
            let folder = root.path().join(format!("tenants/t{new}"));
            fs::rename(aside.path().join("new"), &folder).unwrap();
            times.add(self.until(&path(new, 0), |answer| answer.status == 200));
            fs::remove_dir_all(folder).unwrap();
        }
        times
    }

    /// Returns the time until a response satisfies `is_right`.
    fn until(&mut self, path: &str, is_right: impl Fn(&Answer) -> bool) -> Duration {
        let (begun, domain) = (Instant::now(), self.server.domain());
        while !is_right(&self.visitor.get(&domain, path, &[]).unwrap()) {
            assert!(begun.elapsed() < TIMEOUT, "{}", self.server.log());
            thread::sleep(Duration::from_millis(1));
        }
        begun.elapsed()
    }

    /// Requests all pages in random order, from several visitors at once.
    fn every_page(&mut self) {
        let mut left: Vec<usize> = (0..self.count * PAGES).collect();
        let mut pages = Vec::new();
        while !left.is_empty() {
            let index = left.swap_remove(self.numbers.usize(..left.len()));
            pages.push(path(index / PAGES, index % PAGES));
        }
        let (domain, address) = (self.server.domain(), self.server.visitors);
        thread::scope(|scope| {
            for part in pages.chunks(pages.len().div_ceil(VISITORS)) {
                let mut visitor = Visitor::new(address);
                let domain = &domain;
                scope.spawn(move || {
                    for path in part {
                        let answer = visitor.get(domain, path, &[]).unwrap();
                        assert_eq!(answer.status, 200, "{path}");
                    }
                });
            }
        });
    }

    fn page(&mut self, path: &str) -> String {
        let domain = self.server.domain();
        let answer = self.visitor.get(&domain, path, &[]).unwrap();
        assert_eq!(answer.status, 200, "{path}");
        answer.text()
    }

    /// Compares some pages with those of a server with few tenants.
    fn compare(&mut self, root: &TempDir) {
        // The old connection was idle for longer than the server allows.
        self.visitor = Visitor::new(self.server.visitors);
        let few = TempDir::new().unwrap();
        let mut answers = BTreeMap::new();
        copy(
            &root.path().join("tenants/studio"),
            &few.path().join("tenants/studio"),
        );
        for _ in 0..COMPARED {
            let tenant = self.numbers.usize(..self.count);
            let folder = format!("tenants/t{tenant}");
            copy(&root.path().join(&folder), &few.path().join(&folder));
            for page in 0..PAGES {
                let path = path(tenant, page);
                answers.insert(path.clone(), self.page(&path));
            }
        }
        let own = self.server.domain();
        let few = TestServer::start(few.path(), &[]);
        let (domain, mut visitor) = (few.domain(), Visitor::new(few.visitors));
        for (path, expected) in answers {
            let answer = visitor.get(&domain, &path, &[]).unwrap();
            let text = answer.text().replace(&domain, &own);
            // The list of the company's sites, and the name of the file with their drawings, depend on the number of tenants.
            assert_eq!(compared(&text), compared(&expected), "{path}");
        }
        println!(
            "{} pages are those of a server of few tenants",
            COMPARED * PAGES
        );
    }
}

/// Returns the content of `<main>`, without the hash of the file of drawings.
fn compared(html: &str) -> String {
    let from = html.find("<main").unwrap();
    let to = html.find("</main>").unwrap();
    let mut parts = html[from..to].split("/drawings.");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        text += part.split_once(".svg").unwrap().1;
    }
    text
}

/// Returns the path of a tenant's page below the domain.
fn path(tenant: usize, page: usize) -> String {
    match page {
        0 => format!("/t{tenant}"),
        page => format!("/t{tenant}/page-{page}"),
    }
}

/// Creates a folder with the six sites and `count` more tenants.
fn create_tenants(count: usize) -> TempDir {
    let root = TempDir::new().unwrap();
    copy(&workspace().join("tenants"), &root.path().join("tenants"));
    for tenant in 0..count {
        write_tenant(&root.path().join(format!("tenants/t{tenant}")), tenant);
    }
    root
}

fn write_tenant(folder: &Path, tenant: usize) {
    fs::create_dir_all(folder.join("pages")).unwrap();
    let manifest = format!("name: Tenant {tenant}\ndescription: The site of tenant {tenant}.\n");
    fs::write(folder.join("tenant.yaml"), manifest).unwrap();
    for number in 0..PAGES {
        let name = match number {
            0 => "index".to_owned(),
            number => format!("page-{number}"),
        };
        fs::write(
            folder.join(format!("pages/{name}.md")),
            page(tenant, number),
        )
        .unwrap();
    }
}

/// Returns 5 KB of Markdown that differ from all other pages.
fn page(tenant: usize, number: usize) -> String {
    const WORDS: [&str; 16] = [
        "house", "corner", "light", "street", "early", "garden", "letter", "window", "paper",
        "market", "keeps", "opens", "until", "every", "small", "home",
    ];
    let mut numbers = Rng::with_seed((tenant * PAGES + number) as u64);
    let mut text = format!(
        "---\ntitle: Page {number} of tenant {tenant}\ndescription: What page {number} of tenant {tenant} says.\n---\n"
    );
    while text.len() < 5_000 {
        if numbers.usize(..8) == 0 {
            write!(text, "\n\n## About the {}\n\n", WORDS[numbers.usize(..16)]).unwrap();
        }
        let words: Vec<&str> = (0..14).map(|_| WORDS[numbers.usize(..16)]).collect();
        write!(text, "The {}. ", words.join(" ")).unwrap();
    }
    text + "\n"
}
