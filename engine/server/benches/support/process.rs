//! Runs each server as a process of its own on the first core, so that its CPU time can be read. The measuring process uses the second core.
#![allow(dead_code, unreachable_pub)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Server {
    pub name: &'static str,
    pub address: SocketAddr,
    process: Child,
}

impl Server {
    /// Starts this program again with `--serve` and `served`; the new process prints its address.
    pub fn of_this_program(name: &'static str, served: &str) -> Self {
        let mut process = on_first_core()
            .arg(std::env::current_exe().unwrap())
            .args(["--serve", served])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = process.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        Self {
            name,
            process,
            address: line.trim().parse().unwrap(),
        }
    }

    /// Starts another program, which must listen on `address` within five seconds.
    pub fn of(name: &'static str, command: &mut Command, address: SocketAddr) -> Self {
        let process = command.spawn().unwrap();
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(start.elapsed() < Duration::from_secs(5), "{name}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self {
            name,
            process,
            address,
        }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns the CPU time of all threads, as the scheduler has accounted it.
    pub fn cpu_time(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
        let nanos = tasks.map(|task| {
            let path = task.unwrap().path().join("schedstat");
            let text = fs::read_to_string(path).unwrap_or_default();
            text.split(' ')
                .next()
                .and_then(|nanos| nanos.parse::<u64>().ok())
                .unwrap_or(0)
        });
        Duration::from_nanos(nanos.sum())
    }

    /// Returns the CPU time once the process is idle, since the scheduler accounts for a thread's time when the thread sleeps.
    pub fn settled_cpu_time(&self) -> Duration {
        let mut before = self.cpu_time();
        loop {
            std::thread::sleep(Duration::from_micros(500));
            let now = self.cpu_time();
            if now == before {
                return now;
            }
            before = now;
        }
    }

    /// Returns the resident memory in bytes.
    pub fn memory(&self) -> u64 {
        let path = format!("/proc/{}/statm", self.process.id());
        let text = fs::read_to_string(path).unwrap();
        text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the argument of `--serve`, if there is one.
pub fn served_name() -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--serve");
    arguments.nth(1)
}

/// Prints the address for the parent process.
pub fn announce(listener: &TcpListener) {
    println!("{}", listener.local_addr().unwrap());
}

pub fn on_first_core() -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]);
    command
}

/// Moves this process to the second core.
pub fn take_second_core() {
    let me = std::process::id().to_string();
    let _ = Command::new("taskset")
        .args(["-cp", "1", &me])
        .stdout(Stdio::null())
        .status();
}

pub fn is_installed(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}
