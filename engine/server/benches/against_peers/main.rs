//! Compares rowhouse with other servers: CPU time per request, response times at fixed rates, and the memory of idle connections.
//!
//! All servers send the same bodies and, except for their order and for fields that name the server or the moment, the same header fields; each row checks this first, and leaves out a server that does not. nginx, h2o, Caddy and static-web-server are measured if they are installed. A bare server of hyper, or of `h2` for HTTP/2, sends one fixed response, and chooses none. `rowhouse, no lane` answers all requests of HTTP/1.1 by hyper.
//!
//! Each server has one thread on the first core; the client uses the second core. The servers are measured in short turns, many times, and each ratio is the median of the ratios of the turns. Other work on the machine disturbs all servers of a turn alike, so a busy machine gives nearly the same ratios as a quiet one. Response times are only right on a quiet machine.
//!
//! `cargo bench --profile dist -p server --bench against_peers` prints all tables within five minutes. Arguments choose rows: `-- page http2`. The names are `page`, `small`, `large`, `log`, `tls`, `http2`, `http2-tls`, `rates` and `idle`. The benchmark needs `taskset`. `PROFILE=30` instead sends requests to rowhouse alone for 30 seconds, and prints its process id for `perf record -g -p`. `CHART=/folder/file.svg` also draws the rows.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::print_stdout,
    clippy::unwrap_used
)]

#[path = "../../tests/support/authority.rs"]
mod authority;
mod chart;
mod client;
mod peers;
#[path = "../support/process.rs"]
mod process;
mod rates;
mod row;
mod rowhouse;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use client::Client;
use process::{Server, is_installed, quantile};
use row::{ROWS, Row};
use rustls::RootCertStore;

/// A row ends after `TURNS` turns, or after `TIME` if at least `ENOUGH` turns were measured.
const TURNS: usize = 200;
const ENOUGH: usize = 30;
const TIME: Duration = Duration::from_secs(20);
/// The servers of the chart. The others take several times as long, and would shorten all bars.
const DRAWN: [&str; 3] = ["rowhouse", "nginx", "h2o"];
/// Turns that only warm caches and pools.
const WARM_UP: usize = 5;

fn main() {
    if let Some(served) = process::served_name() {
        let (name, row) = served.split_once('/').unwrap();
        let row = ROWS.iter().find(|known| known.name == row).unwrap();
        let folder = folder_of(std::os::unix::process::parent_id());
        rowhouse::serve(name, row, &folder);
    } else if is_installed("taskset") {
        compare();
    } else {
        println!("skipped: `taskset` is not installed");
    }
}

/// Returns the folder of files that the servers share, by the benchmark's process id.
fn folder_of(id: u32) -> PathBuf {
    std::env::temp_dir().join(format!("rowhouse-peers-{id}"))
}

fn compare() {
    process::take_second_core();
    // For the idle connections.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    let folder = folder_of(std::process::id());
    peers::write_pages(&folder);
    let roots = client::write_certificate(&folder);
    for peer in ["nginx", "h2o", "caddy", "static-web-server"] {
        match peers::version(peer) {
            Some(version) => println!("{peer}: {version}"),
            None => println!("{peer} is not installed, and is left out"),
        }
    }
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let wanted: Vec<_> = wanted
        .iter()
        .filter(|name| !name.starts_with('-'))
        .collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.contains(&&name.to_owned());
    let profile = std::env::var("PROFILE").ok();
    let mut drawn = Vec::new();
    for row in ROWS.iter().filter(|row| is_wanted(row.name)) {
        match &profile {
            Some(seconds) => load(row, &folder, &roots, seconds.parse().unwrap()),
            None => drawn.push((row.title, costs(row, &folder, &roots))),
        }
    }
    if let Some(path) = std::env::var_os("CHART") {
        let note = "Processor time of the server for one request. Shorter is better.";
        fs::write(path, chart::draw(&drawn, note)).unwrap();
    }
    if is_wanted("rates") || is_wanted("idle") {
        let row = &ROWS[0];
        let mut servers = vec![start("rowhouse", row, &folder)];
        let peers = ["nginx", "h2o"].into_iter();
        let peers = peers.filter(|name| peers::version(name).is_some());
        servers.extend(peers.map(|name| start(name, row, &folder)));
        if is_wanted("rates") {
            rates::response_times(row, &servers, &roots);
        }
        if is_wanted("idle") {
            rates::idle_memory(row, &servers);
        }
    }
    let _ = fs::remove_dir_all(folder);
}

fn is_own(name: &str) -> bool {
    name.starts_with("rowhouse") || name.starts_with("bare ")
}

fn start(name: &'static str, row: &Row, folder: &Path) -> Server {
    match is_own(name) {
        true => Server::of_this_program(name, &format!("{name}/{}", row.name)),
        false => peers::start(name, row, folder),
    }
}

/// A server that is measured, and the budget of rowhouse in relation to it.
struct Contender {
    server: Server,
    client: Client,
    budget: Option<f64>,
}

impl Contender {
    /// Returns the server's CPU time per request in microseconds, over one turn.
    fn turn(&mut self, row: &Row) -> f64 {
        let before = self.server.settled_cpu_time();
        for _ in 0..row.batches {
            self.client.batch().unwrap();
        }
        let took = self.server.settled_cpu_time() - before;
        took.as_secs_f64() * 1e6 / (row.batches * row.width) as f64
    }
}

/// Starts the servers of a row, and leaves out those that send other bytes.
fn contenders(row: &Row, folder: &Path, roots: &RootCertStore) -> Vec<Contender> {
    let mut contenders: Vec<Contender> = Vec::new();
    let body = row.page.body();
    for (name, budget) in [("rowhouse", None)].iter().chain(row.peers) {
        if !is_own(name) && peers::version(name).is_none() {
            continue;
        }
        let server = start(name, row, folder);
        let client = Client::new(row, server.address, roots);
        let client = client.and_then(|mut client| client.batch().map(|()| client));
        match client {
            Err(error) => println!("{name} is left out: {error}"),
            Ok(client) if client.body() != body => println!("{name} is left out: other body"),
            Ok(client) => {
                let first = contenders.first().map(|first| first.client.head());
                match first.filter(|head| *head != client.head()) {
                    Some(head) => {
                        let own = client.head();
                        let other = |line: &&String| !head.contains(line);
                        let more: Vec<_> = own.iter().filter(other).collect();
                        println!("{name} is left out: other fields, {more:?}");
                    }
                    None => contenders.push(Contender {
                        server,
                        client,
                        budget: *budget,
                    }),
                }
            }
        }
    }
    contenders
}

/// Measures a row, and prints its table. Returns the costs of the servers in [`DRAWN`], in microseconds.
fn costs(row: &Row, folder: &Path, roots: &RootCertStore) -> Vec<(&'static str, f64)> {
    println!("\n{} (`{}`)", row.title, row.name);
    let mut contenders = contenders(row, folder, roots);
    let mut turn = || -> Vec<f64> { contenders.iter_mut().map(|one| one.turn(row)).collect() };
    for _ in 0..WARM_UP {
        turn();
    }
    let begin = Instant::now();
    let mut turns = Vec::new();
    while turns.len() < ENOUGH || (turns.len() < TURNS && begin.elapsed() < TIME) {
        turns.push(turn());
    }
    println!(
        "{:<20}{:>8}  {:<24}{:>8}   {} turns",
        "server",
        "us",
        "rowhouse / server",
        "budget",
        turns.len()
    );
    let mut medians = Vec::new();
    for (number, contender) in contenders.iter().enumerate() {
        let costs: Vec<f64> = turns.iter().map(|turn| turn[number]).collect();
        let ratios: Vec<f64> = turns.iter().map(|turn| turn[0] / turn[number]).collect();
        let [low, middle, high] = [0.25, 0.5, 0.75].map(|part| quantile(&ratios, part));
        let verdict = contender.budget.map_or(String::new(), |budget| {
            let verdict = if middle <= budget { "met" } else { "over" };
            format!("{budget:>8.2}   {verdict}")
        });
        let (name, cost) = (contender.server.name, quantile(&costs, 0.5));
        let ratio = format!("{middle:.3} ({low:.3}-{high:.3})");
        println!("{name:<20}{cost:>8.2}  {ratio:<24}{verdict}");
        if DRAWN.contains(&name) {
            medians.push((name, cost));
        }
    }
    medians
}

/// Sends requests to rowhouse alone.
fn load(row: &Row, folder: &Path, roots: &RootCertStore, seconds: u64) {
    let server = start("rowhouse", row, folder);
    println!("{}: process {}", row.name, server.id());
    let mut client = Client::new(row, server.address, roots).unwrap();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        client.batch().unwrap();
    }
}
