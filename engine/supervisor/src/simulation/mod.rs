//! Tests of the world with random histories of a simulated server. Every step of a history is checked.
//!
//! A seed determines a history. A history that breaks an invariant is shortened before it is printed.
//! `ROWHOUSE_LONG=1` runs a million histories instead of twenty thousand.

mod confirmation;
mod history;
mod server;
mod state;
mod upload;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread;
use std::time::Instant;

use content::name::TenantId;

use self::history::{HistoryStep, history};
use self::server::SimulatedServer;
use self::state::ServedPage;

/// Runs a history. Returns the first broken invariant with the number of the step that broke it, or the last snapshot.
fn run(
    steps: &[HistoryStep],
    begin: Instant,
) -> Result<BTreeMap<TenantId, ServedPage>, (usize, String)> {
    let mut server = SimulatedServer::new(begin);
    for (number, step) in steps.iter().enumerate() {
        server.perform(*step);
        if let Some(broken) = server.broken {
            return Err((number, broken));
        }
    }
    server.settle();
    match server.broken {
        Some(broken) => Err((steps.len(), broken)),
        None => Ok(server.snapshot),
    }
}

/// Removes steps while the remaining history still breaks an invariant.
fn shorten(mut steps: Vec<HistoryStep>, begin: Instant) -> Vec<HistoryStep> {
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut from = 0;
        while from < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(from..(from + size).min(steps.len()));
            match run(&fewer, begin) {
                Err(_) => steps = fewer,
                Ok(_) => from += size,
            }
        }
        size /= 2;
    }
    steps
}

/// Returns the first history that breaks an invariant, shortened and as text.
fn first_broken(seeds: std::ops::Range<u64>, begin: Instant) -> Option<String> {
    for seed in seeds {
        let steps = history(seed);
        let result = run(&steps, begin);
        if seed % 100 == 0 && result != run(&steps, begin) {
            return Some(format!("seed {seed}: two runs give different snapshots"));
        }
        if result.is_err() {
            let steps = shorten(steps, begin);
            let broken = run(&steps, begin).err().map(|(_, broken)| broken);
            let mut text = format!("seed {seed}: {}\n", broken.unwrap_or_default());
            for step in steps {
                let _ = writeln!(text, "  {step:?}");
            }
            return Some(text);
        }
    }
    None
}

#[test]
fn random_histories_preserve_the_invariants() {
    let long = std::env::var_os("ROWHOUSE_LONG").is_some();
    let histories: u64 = if long { 1_000_000 } else { 20_000 };
    let begin = Instant::now();
    let threads = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let share = histories.div_ceil(threads);
    let broken = thread::scope(|scope| {
        let part =
            |number| scope.spawn(move || first_broken(number * share..(number + 1) * share, begin));
        let parts: Vec<_> = (0..threads).map(part).collect();
        let mut broken = parts
            .into_iter()
            .filter_map(|part| part.join().expect("a result"));
        broken.next()
    });
    assert!(broken.is_none(), "{}", broken.unwrap_or_default());
}

#[test]
fn pinned_release_is_served_without_theme() {
    let mut steps = vec![HistoryStep::Theme(false), HistoryStep::Wait(3_000)];
    steps.extend([HistoryStep::Finish(0); 12]);
    steps.push(HistoryStep::RollBack {
        tenant: 2,
        release: 1,
    });
    steps.extend([HistoryStep::Finish(0); 12]);
    steps.push(HistoryStep::Restart);
    let snapshot = run(&steps, Instant::now()).map_err(|(_, broken)| broken);
    let mill = TenantId::new("mill").expect("a valid id");
    let shown = snapshot.map(|snapshot| snapshot.get(&mill).copied());
    assert_eq!(shown, Ok(Some(ServedPage::Release(1))));
}
