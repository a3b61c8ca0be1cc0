//! The program is killed, paused and restarted while visitors send requests, and its state is damaged: no visitor ever gets wrong bytes, and afterwards every visitor gets the right ones.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{Visitor, binary, fixture, is_long, reserved_address};
use tempfile::TempDir;

/// The requested pages: the host's label before the domain, and the path.
const PAGES: [(&str, &str); 10] = [
    ("", "/"),
    ("", "/about"),
    ("", "/notes/first"),
    ("", "/nowhere"),
    ("", "/robots.txt"),
    ("", "/app"),
    ("", "/app/terms"),
    ("", "/apps/app/terms"),
    ("app.", "/terms"),
    ("app.", "/nowhere"),
];

/// The program at one address, restarted repeatedly.
struct Program {
    child: Child,
    instance: Instance,
}

/// The folder, the addresses and the options of a program.
struct Instance {
    folder: TempDir,
    visitors: SocketAddr,
    admin: SocketAddr,
    state: bool,
}

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(
            begin.elapsed() < Duration::from_secs(120),
            "timeout: {what}"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

impl Instance {
    fn new(state: bool) -> Self {
        Self {
            folder: TempDir::new().expect("a folder"),
            visitors: reserved_address(),
            admin: reserved_address(),
            state,
        }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn start(&self) -> Child {
        let log = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.log());
        let mut command = Command::new(binary());
        command
            .current_dir(fixture("sites"))
            .arg("serve")
            .args(["--listen", &self.visitors.to_string()])
            .args(["--admin", &self.admin.to_string()])
            .args([
                "--origin",
                &format!("http://localhost:{}", self.visitors.port()),
            ])
            .stdout(Stdio::null())
            .stderr(log.expect("a log"));
        if self.state {
            command.arg("--state").arg(self.folder.path().join("state"));
        }
        let child = command.spawn().expect("a started program");
        wait("readiness", || {
            let answer = Visitor::new(self.admin).get("localhost", "/readyz", &[]);
            answer.is_ok_and(|answer| answer.status == 200)
        });
        child
    }

    /// Returns the files of the state, without sockets.
    fn entries(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.folder.path().join("state")];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.is_file() {
                    files.push(path);
                }
            }
        }
        files
    }
}

impl Program {
    fn start(state: bool) -> Self {
        let instance = Instance::new(state);
        Self {
            child: instance.start(),
            instance,
        }
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status();
        assert!(status.expect("kill").success());
    }

    fn kill(&mut self) {
        self.signal("KILL");
        self.child.wait().expect("an end");
    }

    /// Returns the state letter of the process: `T` if it is stopped.
    fn process_state(&self) -> char {
        let text =
            fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("a process");
        let (_, rest) = text.rsplit_once(") ").expect("a state");
        rest.chars().next().expect("a letter")
    }

    fn pages(&self) -> Pages {
        let mut visitor = Visitor::new(self.instance.visitors);
        let pages = PAGES.map(|page| {
            (
                page,
                ask(&mut visitor, self.instance.visitors, page).expect("an answer"),
            )
        });
        BTreeMap::from(pages)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Status and body by host and path.
type Pages = BTreeMap<(&'static str, &'static str), (u16, Vec<u8>)>;

fn ask(
    visitor: &mut Visitor,
    address: SocketAddr,
    (label, path): (&str, &str),
) -> std::io::Result<(u16, Vec<u8>)> {
    let host = format!("{label}localhost:{}", address.port());
    let answer = visitor.get(&host, path, &["accept-encoding: gzip"])?;
    Ok((answer.status, answer.body))
}

/// The result of a load.
#[derive(Default)]
struct Load {
    over: AtomicBool,
    answered: AtomicUsize,
    failed: AtomicUsize,
}

impl Load {
    /// Runs `events` while four visitors send requests. A response must be the right one, or missing.
    fn during(address: SocketAddr, right: &Pages, events: impl FnOnce(&Self)) -> Self {
        let load = Self::default();
        thread::scope(|scope| {
            for first in 0..4 {
                let load = &load;
                scope.spawn(move || load.visit(address, right, first));
            }
            // Ends the load also after a panic.
            let _end = EndOnDrop(&load.over);
            events(&load);
        });
        load
    }

    fn visit(&self, address: SocketAddr, right: &Pages, first: usize) {
        let mut visitor = Visitor::new(address);
        for page in PAGES.iter().cycle().skip(first) {
            if self.over.load(Relaxed) {
                return;
            }
            match ask(&mut visitor, address, *page) {
                Ok(answer) => {
                    assert!(
                        answer == right[page],
                        "{page:?} answers {} and other bytes",
                        answer.0
                    );
                    self.answered.fetch_add(1, Relaxed);
                }
                Err(_) => {
                    self.failed.fetch_add(1, Relaxed);
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }

    /// Waits for `more` responses.
    fn wait_for_responses(&self, more: usize) {
        let so_far = self.answered.load(Relaxed);
        wait("an answer", || self.answered.load(Relaxed) >= so_far + more);
    }
}

/// Ends a load when dropped.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Damages a file of the state, given its number.
type Damage = Box<dyn Fn(usize, &Path)>;

/// Damage as by a process that is killed during a write, and by a bad disk.
const DAMAGES: [fn(&Path); 3] = [
    |path| {
        let bytes = fs::read(path).expect("a file");
        fs::write(path, &bytes[..bytes.len() / 3]).expect("a file");
        let half = format!("{}.1.half", path.display());
        fs::write(half, &bytes[..bytes.len() / 2]).expect("a file");
    },
    |path| {
        let mut bytes = fs::read(path).expect("a file");
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 1;
        }
        fs::write(path, bytes).expect("a file");
    },
    |path| fs::write(path, "").expect("a file"),
];

/// Returns the damage between two runs: none at first, and then each file in another way. In long runs, all files in one way after the other.
fn damages(state: bool) -> Vec<Option<Damage>> {
    let mut damages: Vec<Option<Damage>> = vec![None];
    if is_long() {
        for damage in DAMAGES {
            damages.push(Some(Box::new(move |_, path| damage(path))));
        }
    } else if state {
        damages.push(Some(Box::new(|number, path| {
            DAMAGES[number % DAMAGES.len()](path);
        })));
    }
    damages
}

fn killed(state: bool) {
    let mut program = Program::start(state);
    let right = program.pages();
    assert!(
        right
            .values()
            .all(|(status, body)| [200, 404].contains(status) && !body.is_empty())
    );
    let address = program.instance.visitors;
    Load::during(address, &right, |load| {
        for damage in damages(state) {
            load.wait_for_responses(100);
            wait("the state", || {
                !state || program.instance.entries().len() > 3
            });
            program.kill();
            if let Some(damage) = damage {
                let entries = program.instance.entries();
                assert_eq!(entries.len() > 3, state, "{entries:?}");
                entries
                    .iter()
                    .enumerate()
                    .for_each(|(number, path)| damage(number, path));
            }
            program.child = program.instance.start();
            load.wait_for_responses(100);
        }
    });
    assert!(program.pages() == right, "other bytes than at first");
    let log = fs::read_to_string(program.instance.log()).expect("a log");
    assert!(!log.contains("panicked"), "{log}");
    let words = [
        "the file is damaged, or was written by another program",
        "was not written completely",
    ];
    let refused = words.iter().any(|words| log.contains(words));
    assert_eq!(refused, state, "{log}");
}

#[test]
fn killed_process_restarts_with_same_bytes_and_damaged_state() {
    killed(true);
}

#[test]
fn killed_process_restarts_with_same_bytes_without_state() {
    killed(false);
}

#[test]
fn paused_process_continues_and_fails_no_request() {
    let program = Program::start(false);
    let right = program.pages();
    let address = program.instance.visitors;
    let load = Load::during(address, &right, |load| {
        for _ in 0..3 {
            load.wait_for_responses(100);
            program.signal("STOP");
            wait("the pause", || program.process_state() == 'T');
            // A new visitor waits with the others.
            let mut late = TcpStream::connect(address).expect("a connection");
            write!(late, "GET /about HTTP/1.0\r\nhost: localhost\r\n\r\n").expect("a request");
            program.signal("CONT");
            let mut answer = Vec::new();
            late.read_to_end(&mut answer).expect("an answer");
            assert!(answer.starts_with(b"HTTP/1.0 200 OK\r\n"));
            load.wait_for_responses(100);
        }
    });
    assert_eq!(load.failed.load(Relaxed), 0);
}
