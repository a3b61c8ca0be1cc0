//! The time from the last write to the first answer with the new bytes, over HTTP: a saved page, a changed theme, a dropped folder and a removed one, a hundred times each, beside the six tenants.
//!
//! `cargo bench -p rowhouse-tests --bench changes`; it fails where a median is over the budget.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{Process, TestServer, Times, Visitor, copy, workspace};
use tempfile::TempDir;

const ROUNDS: usize = 100;
const BUDGET: Duration = Duration::from_millis(300);
/// Between two looks: the times are no finer than this.
const LOOK: Duration = Duration::from_micros(500);
const TIMEOUT: Duration = Duration::from_secs(30);

/// Makes one change, and tells how long it took to be seen.
type Change = fn(&mut Bench, usize) -> Duration;

struct Bench {
    place: TempDir,
    server: TestServer,
    visitor: Visitor,
}

fn main() {
    let place = TempDir::new().unwrap();
    for part in ["tenants", "themes"] {
        copy(&workspace().join(part), &place.path().join(part));
    }
    let server = TestServer::start(place.path(), &[]);
    let mut bench = Bench {
        visitor: Visitor::new(server.visitors),
        server,
        place,
    };
    bench.settle();
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
    /// Waits until everything is drawn, which the first minutes of a server are busy with.
    fn settle(&mut self) {
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
        let path = self.place.path().join("tenants/bluedoor/pages/terms.md");
        let text = fs::read_to_string(&path).unwrap();
        let mark = format!("Marked {round}.");
        let clean = text.split("\nMarked ").next().unwrap();
        fs::write(&path, format!("{clean}\n{mark}\n")).unwrap();
        self.wait_for("/bluedoor/terms", |status, text| {
            status == 200 && text.contains(&mark)
        })
    }

    /// All six sites use the theme. What is seen is one of them, the others are rendered beside it.
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

    /// Puts a line in the place of the one that begins so, or at the end.
    fn replace(&self, path: &str, begin: &str, line: &str) {
        let path = self.place.path().join(path);
        let text = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        match lines.iter().position(|line| line.starts_with(begin)) {
            Some(at) => lines[at] = line,
            None => lines.push(line),
        }
        fs::write(&path, lines.join("\n") + "\n").unwrap();
    }

    fn drop_in(&mut self, round: usize) -> Duration {
        let folder = self.place.path().join(format!("tenants/dropped{round}"));
        tenant(&folder, round);
        self.wait_for(&format!("/dropped{round}/terms"), |status, _| status == 200)
    }

    fn remove(&mut self, round: usize) -> Duration {
        let folder = self.place.path().join(format!("tenants/dropped{round}"));
        fs::remove_dir_all(folder).unwrap();
        self.wait_for(&format!("/dropped{round}/terms"), |status, _| status == 404)
    }

    /// The time from now, just after the last write, until an answer is as wanted.
    fn wait_for(&mut self, path: &str, wanted: impl Fn(u16, &str) -> bool) -> Duration {
        let (begin, domain) = (Instant::now(), self.server.domain());
        loop {
            let answer = self.visitor.get(&domain, path, &[]).unwrap();
            if wanted(answer.status, &answer.text()) {
                return begin.elapsed();
            }
            assert!(begin.elapsed() < TIMEOUT, "{path}: {}", self.server.log());
            thread::sleep(LOOK);
        }
    }
}

/// A small tenant of two pages, written as `cp -r` writes it.
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
