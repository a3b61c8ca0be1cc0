//! The program: parses the command line, runs the command, and ends with its exit code.

use std::process::ExitCode;

use rowhouse::cli::Cli;
use rowhouse::commands;

// For Rust and for C libraries such as QuickJS. The allocator of the C library has a pool for each thread, and returns only the end of a pool to the system. The memory that rendered a tenant would stay in use for as long as the program runs.
#[cfg(not(feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // Without a thread of its own, jemalloc returns memory only at the next `free`, and an idle server frees nothing. An error is harmless: memory is returned later.
    #[cfg(feature = "jemalloc")]
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
    commands::run(Cli::from_process())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;
    use std::time::{Duration, Instant};

    const THREADS: usize = 8;
    const BLOCK_BYTES: usize = 1000;
    const BLOCKS: usize = 32_000;

    /// Returns the resident memory of this process, in MB.
    fn resident() -> usize {
        let status = fs::read_to_string("/proc/self/status").expect("a status");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("a line");
        let number = line.trim().strip_suffix(" kB").expect("kilobytes");
        number.parse::<usize>().expect("a number") / 1024
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn freed_memory_returns_to_the_system_while_some_blocks_stay() {
        let before = resident();
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                thread::spawn(|| {
                    let mut blocks: Vec<_> = (0..BLOCKS).map(|_| vec![1_u8; BLOCK_BYTES]).collect();
                    blocks.pop()
                })
            })
            .collect();
        let blocks: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().expect("a block"))
            .collect();
        // Allocators return memory after a delay, and some only when something is allocated.
        let end = Instant::now() + Duration::from_secs(30);
        let mut grown = usize::MAX;
        while grown >= 64 && Instant::now() < end {
            drop(vec![1_u8; 4 << 20]);
            grown = resident().saturating_sub(before);
            thread::yield_now();
        }
        assert!(grown < 64, "{grown} MB stay of 250 MB");
        assert_eq!(blocks.len(), THREADS);
    }
}
