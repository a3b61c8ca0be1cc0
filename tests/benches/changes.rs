//! Measures the time from the last write to the first response with the new bytes, over HTTP: a hundred saved pages, theme changes, new folders and removed folders, beside the six tenants.
//!
//! Run `cargo bench -p rowhouse-tests --bench changes`. It fails if a median is over its budget.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{Process, TestServer, Times, Visitor, copy, workspace};
use tempfile::TempDir;

const ROUNDS: usize = 100;
const BUDGET: Duration = Duration::from_millis(300);
/// The pause between two requests, which limits the precision of the times.
const POLL_INTERVAL: Duration = Duration::from_micros(500);
const TIMEOUT: Duration = Duration::from_secs(30);

/// Makes one change, and returns the time until visitors see the change.
type Change = fn(&mut Bench, usize) -> Duration;

struct Bench {
    root: TempDir,
    server: TestServer,
    visitor: Visitor,
}

fn main() {
    let root = TempDir::new().unwrap();
    for part in ["tenants", "themes"] {
        copy(&workspace().join(part), &root.path().join(part));
    }
    let server = TestServer::start(root.path(), &[]);
    let mut bench = Bench {
        visitor: Visitor::new(server.visitors),
        server,
        root,
    };
    bench.wait_until_idle();
    let kinds: [(&str, Change); 5] = [
        ("a saved page", Bench::save),
        ("a section's template", Bench::template),
        ("a word of the theme", Bench::word),
        ("a dropped folder", Bench::drop_in),
        ("a removed folder", Bench::remove),
    ];
    let mut over = false;
    for (name, change) in kinds {
        let mut times = Times::default();
        for round in 0..ROUNDS {
            times.add(change(&mut bench, round));
        }
        over |= times.median() > BUDGET;
        println!("{name:<20} {times}");
    }
    let memory = Process(bench.server.id()).memory() >> 20;
    println!("resident memory after all: {memory} MB");
    assert!(!over, "a median is over {BUDGET:?}");
}

impl Bench {
    /// Waits until all images are rendered, which takes the first minutes of a server.
    fn wait_until_idle(&mut self) {
        let domain = self.server.domain();
        let begin = Instant::now();
        while self
            .visitor
            .get(&domain, "/favicon.ico", &[])
            .unwrap()
            .status
            != 200
        {
            assert!(begin.elapsed() < TIMEOUT * 4);
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn save(&mut self, round: usize) -> Duration {
        let path = self.root.path().join("tenants/bluedoor/pages/terms.md");
        let text = fs::read_to_string(&path).unwrap();
        let mark = format!("Marked {round}.");
        let clean = text.split("\nMarked ").next().unwrap();
        fs::write(&path, format!("{clean}\n{mark}\n")).unwrap();
        self.wait_for("/bluedoor/terms", |status, text| {
            status == 200 && text.contains(&mark)
        })
    }

    /// Changes the theme of all six sites, and waits for one of them. The others are rendered at the same time.
    fn template(&mut self, round: usize) -> Duration {
        let path = "themes/base/sections/checklist/section.html";
        let mark = format!("<b hidden>Marked {round}.</b>");
        self.replace(path, "<b hidden>", &mark);
        self.wait_for("/verses", |_, text| text.contains(&mark))
    }

    fn word(&mut self, round: usize) -> Duration {
        let mark = format!("Skip to content {round}");
        let line = format!("  skip_link: {mark}");
        self.replace("themes/base/strings/en.yaml", "  skip_link:", &line);
        self.wait_for("/verses", |_, text| text.contains(&mark))
    }

    /// Replaces the line that begins with `begin`, or appends the line.
    fn replace(&self, path: &str, begin: &str, line: &str) {
        let path = self.root.path().join(path);
        let text = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        match lines.iter().position(|line| line.starts_with(begin)) {
            Some(at) => lines[at] = line,
            None => lines.push(line),
        }
        fs::write(&path, lines.join("\n") + "\n").unwrap();
    }

    fn drop_in(&mut self, round: usize) -> Duration {
        let folder = self.root.path().join(format!("tenants/dropped{round}"));
        tenant(&folder, round);
        self.wait_for(&format!("/dropped{round}/terms"), |status, _| status == 200)
    }

    fn remove(&mut self, round: usize) -> Duration {
        let folder = self.root.path().join(format!("tenants/dropped{round}"));
        fs::remove_dir_all(folder).unwrap();
        self.wait_for(&format!("/dropped{round}/terms"), |status, _| status == 404)
    }

    /// Returns the time from now, just after the last write, until the response is as wanted.
    fn wait_for(&mut self, path: &str, wanted: impl Fn(u16, &str) -> bool) -> Duration {
        let (begin, domain) = (Instant::now(), self.server.domain());
        loop {
            let answer = self.visitor.get(&domain, path, &[]).unwrap();
            if wanted(answer.status, &answer.text()) {
                return begin.elapsed();
            }
            assert!(begin.elapsed() < TIMEOUT, "{path}: {}", self.server.log());
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Writes a tenant with two small pages in the order of `cp -r`.
fn tenant(folder: &Path, round: usize) {
    fs::create_dir_all(folder.join("pages")).unwrap();
    fs::write(
        folder.join("tenant.yaml"),
        format!("name: Dropped {round}\n"),
    )
    .unwrap();
    for page in ["index", "terms"] {
        let text = format!("---\ntitle: {page} of {round}\n---\nSome words, which are few.\n");
        fs::write(folder.join(format!("pages/{page}.md")), text).unwrap();
    }
}
