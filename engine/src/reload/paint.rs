//! Draws pictures on a thread of its own, one after the other: neither a visitor nor a saved file waits for them, and a processor is left for both.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use tracing::{debug, warn};

use crate::compile::picture::Undrawn;
use crate::report::guard::guard;

/// The thread that draws, for as long as this lives.
#[derive(Debug)]
pub(super) struct Painter {
    orders: Sender<Vec<Undrawn>>,
    finished: Receiver<()>,
}

impl Painter {
    /// Begins to wait for orders.
    pub(super) fn start() -> Self {
        let (orders, ordered) = channel();
        let (finish, finished) = channel();
        thread::spawn(move || paint(&ordered, &finish));
        Self { orders, finished }
    }

    /// Lets these be drawn, in the place of all that were ordered before.
    pub(super) fn order(&self, pictures: Vec<Undrawn>) {
        if !pictures.is_empty() {
            // The thread lives as long as this.
            let _ = self.orders.send(pictures);
        }
    }

    /// Whether everything that was ordered has been drawn since this was last asked.
    pub(super) fn has_finished(&self) -> bool {
        self.finished.try_iter().last().is_some()
    }
}

fn paint(orders: &Receiver<Vec<Undrawn>>, finish: &Sender<()>) {
    while let Ok(first) = orders.recv() {
        let begin = Instant::now();
        let mut pictures = first.into_iter();
        while let Some(picture) = pictures.next() {
            match guard("draw", "a picture", "pictures", || picture.draw()) {
                Ok(Ok(())) => {}
                Ok(Err(problem)) => warn!(problem, "a picture cannot be drawn"),
                Err(diagnostic) => warn!(problem = diagnostic.message, "a picture cannot be drawn"),
            }
            if let Some(newer) = orders.try_iter().last() {
                pictures = newer.into_iter();
            }
        }
        let took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        debug!(took_ms, "all pictures are drawn");
        // Nobody asks any longer when everything ends.
        let _ = finish.send(());
    }
}
