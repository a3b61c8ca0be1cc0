//! Measures the effect of slow attacks on visitors: their 99th percentile in quiet, and while a thousand connections send header fields, send content or read responses byte by byte.
//!
//! The server has its default limits and uses the first core; attackers and visitors share the second. Attackers connect from ten addresses (all of 127/8 is this machine), and reconnect when they are cut off. Quiet and attacked rounds alternate, so that both see the same disturbances. The ratio is that of their medians.
//!
//! `cargo bench -p server --bench under_attack` prints the ratios within two minutes, even on a busy machine. The benchmark needs `taskset`.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

#[path = "support/process.rs"]
mod process;
#[path = "../tests/support/sample.rs"]
mod sample;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use process::{Server, announce, is_installed, quantile, take_second_core};
use server::listen;
use server::settings::ServeSettings;
use server::snapshot_store::SnapshotStore;
use socket2::{Domain, Socket, Type};

const ATTACKERS: usize = 1000;
/// Source addresses, so that each opens fewer connections than an address may have.
const ADDRESSES: usize = 10;
const ROUNDS: usize = 5;
const VISITORS: usize = 4;
/// Requests of each visitor in a round, one per `PAUSE`.
const VISITS: usize = 250;
const PAUSE: Duration = Duration::from_millis(4);
/// Interval between two actions of an attacker.
const PULSE: Duration = Duration::from_secs(1);
/// A server that does not respond for so long is broken, and the benchmark ends.
const TIMEOUT: Duration = Duration::from_secs(10);
const BUDGET: f64 = 2.0;

#[derive(Debug, Clone, Copy)]
enum Attack {
    /// Header fields are sent byte by byte.
    Head,
    /// Content is sent byte by byte.
    Body,
    /// A response is read byte by byte.
    Read,
}

fn main() {
    if process::served_name().is_some() {
        serve();
    } else if is_installed("taskset") {
        take_second_core();
        compare();
    } else {
        println!("skipped: `taskset` is not installed");
    }
}

fn compare() {
    println!(
        "{:<10}{:>12}{:>14}{:>8}{:>12}{:>10}",
        "attack", "quiet p99", "attacked p99", "ratio", "cut", "memory"
    );
    for attack in [Attack::Head, Attack::Body, Attack::Read] {
        let server = Server::of_this_program("rowhouse", "rowhouse");
        let (mut quiet, mut attacked) = (Vec::new(), Vec::new());
        let (before, mut most, mut cut) = (server.memory(), 0, 0);
        for _ in 0..ROUNDS {
            // The closing connections of the last round must not disturb the quiet round.
            server.settled_cpu_time();
            quiet.push(p99(server.address));
            let attackers = AttackerGroup::start(attack, server.address);
            attacked.push(p99(server.address));
            most = most.max(server.memory());
            cut += attackers.stop();
        }
        let (quiet, attacked) = (quantile(&quiet, 0.5), quantile(&attacked, 0.5));
        let ratio = attacked / quiet;
        let verdict = if ratio <= BUDGET { "met" } else { "over" };
        println!(
            "{:<10}{quiet:>9.0} us{attacked:>11.0} us{ratio:>8.2}{cut:>12}{:>7} KB  {verdict}",
            format!("slow {attack:?}"),
            most.saturating_sub(before) / 1024
        );
    }
    println!("budget of the ratio: {BUDGET:.1}");
}

/// Returns the 99th percentile of visitors' response times, in microseconds.
fn p99(server: SocketAddr) -> f64 {
    let visitors: Vec<_> = (0..VISITORS)
        .map(|_| thread::spawn(move || visit(server)))
        .collect();
    let all: Vec<f64> = visitors
        .into_iter()
        .flat_map(|visitor| visitor.join().unwrap())
        .collect();
    quantile(&all, 0.99)
}

fn visit(server: SocketAddr) -> Vec<f64> {
    let mut socket = TcpStream::connect(server).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let request = b"GET /about HTTP/1.1\r\nhost: studio.example\r\naccept-encoding: br\r\n\r\n";
    let mut response = vec![0; 64 * 1024];
    (0..VISITS)
        .map(|_| {
            thread::sleep(PAUSE);
            let begin = Instant::now();
            socket.write_all(request).unwrap();
            read_response(&mut socket, &mut response);
            begin.elapsed().as_secs_f64() * 1e6
        })
        .collect()
}

fn read_response(socket: &mut TcpStream, response: &mut [u8]) {
    let mut length = 0;
    loop {
        let more = socket.read(&mut response[length..]).unwrap();
        assert!(more > 0, "a visitor was cut off");
        length += more;
        if let Some(end) = memchr::memmem::find(&response[..length], b"\r\n\r\n") {
            let head = std::str::from_utf8(&response[..end]).unwrap();
            let (_, size) = head.split_once("content-length: ").unwrap();
            let size: usize = size.lines().next().unwrap().parse().unwrap();
            if length == end + 4 + size {
                return;
            }
        }
    }
}

/// Attackers on a thread of their own.
struct AttackerGroup {
    over: Arc<AtomicBool>,
    thread: thread::JoinHandle<usize>,
}

impl AttackerGroup {
    /// Returns once all attackers are connected.
    fn start(attack: Attack, server: SocketAddr) -> Self {
        let (over, ready) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let (ending, counted) = (Arc::clone(&over), Arc::clone(&ready));
        let thread = thread::spawn(move || {
            let mut cut = 0;
            let mut sockets: Vec<Socket> = Vec::with_capacity(ATTACKERS);
            for number in 0..ATTACKERS {
                sockets.push(connect(attack, number, server));
                counted.fetch_add(1, Relaxed);
            }
            let mut next = 0;
            while !ending.load(Relaxed) {
                if !pulse(attack, &sockets[next]) {
                    cut += 1;
                    sockets[next] = connect(attack, next, server);
                }
                next = (next + 1) % ATTACKERS;
                thread::sleep(PULSE / ATTACKERS as u32);
            }
            cut
        });
        while ready.load(Relaxed) < ATTACKERS {
            assert!(!thread.is_finished(), "an attacker could not connect");
            thread::sleep(Duration::from_millis(5));
        }
        Self { over, thread }
    }

    /// Ends the attack and returns how often an attacker was cut off.
    fn stop(self) -> usize {
        self.over.store(true, Relaxed);
        self.thread.join().unwrap()
    }
}

fn connect(attack: Attack, number: usize, server: SocketAddr) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    if matches!(attack, Attack::Read) {
        socket.set_recv_buffer_size(4096).unwrap();
    }
    let address = [127, 0, 1, (number % ADDRESSES) as u8];
    socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
    socket.connect_timeout(&server.into(), TIMEOUT).unwrap();
    let begin: &[u8] = match attack {
        Attack::Head => b"GET /about HTTP/1.1\r\nhost: studio.example\r\nx: ",
        Attack::Body => {
            b"POST /about HTTP/1.1\r\nhost: studio.example\r\ncontent-length: 100000\r\n\r\n"
        }
        Attack::Read => b"GET /assets/large.bin HTTP/1.1\r\nhost: studio.example\r\n\r\n",
    };
    socket.send(begin).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// Sends or reads a byte. Returns `false` if the server has closed the connection.
fn pulse(attack: Attack, mut socket: &Socket) -> bool {
    let done = match attack {
        Attack::Read => socket.read(&mut [0]).map(|length| length > 0),
        Attack::Head | Attack::Body => socket.write(b"x").map(|_| true),
    };
    done.unwrap_or_else(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

fn serve() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let listener = listen::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    announce(&listener);
    let settings = ServeSettings {
        workers: NonZeroUsize::MIN,
        ..ServeSettings::default()
    };
    let snapshots = Arc::new(SnapshotStore::new(sample::snapshot()));
    let serving = server::run(vec![listener], snapshots, settings, std::future::pending());
    runtime.block_on(serving).unwrap();
}
