//! A thousand tenants of five pages against six: time until ready, memory, one tenant's reload, and what a request costs.
//!
//! `cargo bench -p rowhouse-tests --bench thousand`; `ROWHOUSE_TENANTS_COUNT=10000` makes it ten times as many, to see what grows how. It prints figures and holds them against the budgets.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{Process, TestServer, Times, Visitor, binary, copy};
use tempfile::TempDir;

const TENANTS: usize = 1_000;
const REQUESTS: usize = 50_000;
const TURNS: usize = 6;
const RELOADS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(60);

struct Street {
    place: TempDir,
    server: TestServer,
    visitor: Visitor,
    count: usize,
    ready: Duration,
    changes: usize,
}

fn main() {
    let count =
        std::env::var("ROWHOUSE_TENANTS_COUNT").map_or(TENANTS, |text| text.parse().unwrap());
    let mut many = Street::start(count);
    println!("{count} tenants of five pages");
    println!(
        "ready            {:8.2} s   (budget 10 s)",
        many.ready.as_secs_f64()
    );
    println!("memory, ready    {:8} MB  (budget 500 MB)", many.memory());
    let early = many.reloads();
    println!("reload, early    {early}  (budget 300 ms)");
    many.wait_for_pictures();
    println!("memory, drawn    {:8} MB  (budget 500 MB)", many.memory());
    let late = many.reloads();
    println!("reload, settled  {late}  (budget 300 ms)");

    let mut few = Street::start(6);
    few.wait_for_pictures();
    println!("memory of six    {:8} MB", few.memory());
    let (mut of_many, mut of_few) = (Times::default(), Times::default());
    for _ in 0..TURNS {
        of_many.add(many.requests());
        of_few.add(few.requests());
    }
    let cost = |times: &Times| times.median().as_secs_f64() * 1e6 / REQUESTS as f64;
    println!(
        "processor time of a request {:.2} µs, of six {:.2} µs: {:.2} x",
        cost(&of_many),
        cost(&of_few),
        cost(&of_many) / cost(&of_few)
    );
}

impl Street {
    fn start(count: usize) -> Self {
        let place = TempDir::new().unwrap();
        let tenants = place.path().join("tenants");
        fs::create_dir_all(&tenants).unwrap();
        let made = Command::new(binary())
            .args(["new", "model"])
            .current_dir(place.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        fs::rename(tenants.join("model"), place.path().join("model")).unwrap();
        for index in 0..count {
            tenant(&place.path().join("model"), &tenants, index);
        }
        let begin = Instant::now();
        let server = TestServer::start(place.path(), &[]);
        Self {
            ready: begin.elapsed(),
            visitor: Visitor::new(server.visitors),
            server,
            place,
            count,
            changes: 0,
        }
    }

    fn memory(&self) -> u64 {
        Process(self.server.id()).memory() >> 20
    }

    /// Waits until the last picture is drawn: then nothing more is added by itself.
    fn wait_for_pictures(&mut self) {
        let begin = Instant::now();
        let process = Process(self.server.id());
        let mut before = process.processor_time();
        loop {
            thread::sleep(Duration::from_millis(500));
            let now = process.processor_time();
            if now == before {
                break;
            }
            assert!(begin.elapsed() < PATIENCE * 20);
            before = now;
        }
        // The server has closed a connection that was idle for so long.
        self.visitor = Visitor::new(self.server.visitors);
        println!("drawing took     {:8.2} s", begin.elapsed().as_secs_f64());
    }

    /// The time from the last write of a page until it is served.
    fn reloads(&mut self) -> Times {
        let mut times = Times::default();
        let domain = self.server.domain();
        for round in 0..RELOADS {
            let id = format!("tenant{}", 1 + round * (self.count - 1) / RELOADS);
            let file = self
                .place
                .path()
                .join(format!("tenants/{id}/pages/about.md"));
            self.changes += 1;
            let mark = format!("This is change {} of the page.", self.changes);
            fs::write(file, format!("---\ntitle: About\n---\n{mark}\n")).unwrap();
            let begin = Instant::now();
            while !self
                .visitor
                .get(&domain, &format!("/{id}/about"), &[])
                .unwrap()
                .text()
                .contains(&mark)
            {
                assert!(begin.elapsed() < PATIENCE, "{}", self.server.log());
                thread::sleep(Duration::from_micros(500));
            }
            times.add(begin.elapsed());
        }
        times
    }

    /// The processor time that many requests for pages of all tenants take.
    fn requests(&mut self) -> Duration {
        let process = Process(self.server.id());
        let domain = self.server.domain();
        let before = process.processor_time();
        for index in 0..REQUESTS {
            let path = format!("/tenant{}/terms", 1 + index * 7919 % (self.count - 1));
            let answer = self
                .visitor
                .get(&domain, &path, &["accept-encoding: br"])
                .unwrap();
            assert_eq!(answer.status, 200, "{path}");
        }
        process.processor_time() - before
    }
}

/// What `rowhouse new` makes, with a fifth page, under another name. The first one owns the domain.
fn tenant(model: &Path, tenants: &Path, index: usize) {
    let folder = tenants.join(format!("tenant{index}"));
    copy(model, &folder);
    let manifest = folder.join("tenant.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    let text = text.replace("name: Model", &format!("name: Tenant {index}"));
    let root = if index == 0 { "root: true\n" } else { "" };
    fs::write(manifest, format!("{text}{root}")).unwrap();
    fs::write(
        folder.join("pages/about.md"),
        format!("---\ntitle: About\n---\nNumber {index}.\n"),
    )
    .unwrap();
}
