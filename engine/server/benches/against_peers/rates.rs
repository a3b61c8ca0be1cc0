//! Response times at fixed rates, and the memory of idle connections.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustls::RootCertStore;

use crate::client::{Client, Inbox, connect, request};
use crate::process::{Server, quantile};
use crate::row::Row;

const CONNECTIONS: usize = 32;
/// Parts of the rate that the slowest server reaches.
const PARTS: [f64; 2] = [0.5, 0.9];
/// Turns of each server at each rate.
const TURNS: usize = 6;
const TURN: Duration = Duration::from_secs(1);
const IDLE_CONNECTIONS: usize = 4096;
/// Budget of the memory of all idle connections.
const IDLE_BUDGET: u64 = 40_000_000;

/// Sends requests at fixed rates, and prints how long after their time the responses were complete. A late response does not delay the next request.
pub fn response_times(row: &Row, servers: &[Server], roots: &RootCertStore) {
    let capacities = servers.iter().map(|server| {
        let mut client = Client::new(row, server.address, roots).unwrap();
        let rates: Vec<f64> = (0..5).map(|_| capacity(row, &mut client)).collect();
        quantile(&rates, 0.5)
    });
    let capacities: Vec<f64> = capacities.collect();
    let lowest = quantile(&capacities, 0.0);
    println!("\nResponse times at fixed rates, {}", row.title);
    for (server, capacity) in servers.iter().zip(&capacities) {
        println!("{:<20}{capacity:>8.0} requests/s at most", server.name);
    }
    println!(
        "{:<20}{:>12}{:>12}{:>12}{:>12}",
        "server", "requests/s", "50 %, us", "99 %, us", "99.9 %, us"
    );
    for part in PARTS {
        let rate = lowest * part;
        let mut times = vec![Vec::new(); servers.len()];
        for _ in 0..TURNS {
            for (server, times) in servers.iter().zip(&mut times) {
                times.extend(at_rate(row, server, rate).unwrap());
            }
        }
        for (server, times) in servers.iter().zip(&times) {
            let [half, most, nearly_all] = [0.5, 0.99, 0.999].map(|part| quantile(times, part));
            println!(
                "{:<20}{rate:>12.0}{half:>12.0}{most:>12.0}{nearly_all:>12.0}",
                server.name
            );
        }
    }
}

/// Returns the requests per second that a server answers as fast as it can.
fn capacity(row: &Row, client: &mut Client) -> f64 {
    let (begin, mut count) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_millis(300) {
        client.batch().unwrap();
        count += row.width;
    }
    count as f64 / begin.elapsed().as_secs_f64()
}

/// Returns the response times in microseconds, each from the moment at which its request was due.
fn at_rate(row: &Row, server: &Server, rate: f64) -> io::Result<Vec<f64>> {
    let request = request(&row.page);
    let open = |_| -> io::Result<(TcpStream, Inbox)> {
        let socket = connect(server.address)?;
        socket.set_nonblocking(true)?;
        Ok((socket, Inbox::new(&row.page)))
    };
    let mut connections = (0..CONNECTIONS).map(open).collect::<io::Result<Vec<_>>>()?;
    let mut free: Vec<usize> = (0..CONNECTIONS).collect();
    let mut busy: Vec<(usize, Duration)> = Vec::new();
    let count = (rate * TURN.as_secs_f64()) as usize;
    let (mut times, mut sent) = (Vec::with_capacity(count), 0);
    let begin = Instant::now();
    while times.len() < count {
        let due = Duration::from_secs_f64(sent as f64 / rate);
        if sent < count
            && begin.elapsed() >= due
            && let Some(number) = free.pop()
        {
            connections[number].0.write_all(&request)?;
            busy.push((number, due));
            sent += 1;
        }
        let mut failed = None;
        busy.retain(|(number, due)| {
            let (socket, inbox) = &mut connections[*number];
            match inbox.read(socket) {
                Ok(true) => {
                    times.push((begin.elapsed() - *due).as_secs_f64() * 1e6);
                    inbox.clear();
                    free.push(*number);
                    return false;
                }
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => failed = Some(error),
            }
            true
        });
        if let Some(error) = failed {
            return Err(error);
        }
    }
    Ok(times)
}

/// Prints the memory that idle connections take after one request each.
pub fn idle_memory(row: &Row, servers: &[Server]) {
    println!("\nMemory of {IDLE_CONNECTIONS} idle connections after one request each");
    println!(
        "{:<20}{:>12}{:>12}{:>12}",
        "server", "before, KB", "more, KB", "bytes each"
    );
    for server in servers {
        let (mut before, mut sockets) = (0, Vec::new());
        let mut inbox = Inbox::new(&row.page);
        for _ in 0..=IDLE_CONNECTIONS {
            let mut socket = connect(server.address).unwrap();
            socket.write_all(&request(&row.page)).unwrap();
            inbox.clear();
            while !inbox.read(&mut socket).unwrap() {}
            sockets.push(socket);
            if sockets.len() == 1 {
                // The server is ready only with its first response.
                before = server.memory();
            }
        }
        std::thread::sleep(Duration::from_secs(1));
        let more = server.memory().saturating_sub(before);
        let verdict = match (server.name, more <= IDLE_BUDGET) {
            ("rowhouse", true) => "met",
            ("rowhouse", false) => "over",
            _ => "",
        };
        println!(
            "{:<20}{:>12}{:>12}{:>12}  {verdict}",
            server.name,
            before / 1024,
            more / 1024,
            more / IDLE_CONNECTIONS as u64
        );
    }
}
