//! Counters of TLS handshakes.
//!
//! **Invariant:** plain numbers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustls::{HandshakeKind, ProtocolVersion};

/// Counters of TLS handshakes since startup.
#[derive(Debug, Default)]
pub struct HandshakeCounters {
    /// Completed handshakes: of TLS 1.3 and 1.2, each full and resumed.
    done: [[AtomicU64; 2]; 2],
    /// Handshakes ended with an alert, because no tenant claims the name or no name was sent.
    pub unknown_name: AtomicU64,
    /// Handshakes ended with an alert, because a claimed host has no certificate yet.
    pub no_certificate: AtomicU64,
    /// Handshakes that the client aborted, or that were not valid TLS.
    pub failed: AtomicU64,
    /// Handshakes ended because they took too long.
    pub slow: AtomicU64,
    /// Connections closed at once, because their subnet has too many handshakes in flight or per second.
    pub refused: AtomicU64,
    /// Handshakes of CAs that checked a challenge.
    pub challenges: AtomicU64,
}

impl HandshakeCounters {
    /// Counts a completed handshake of a visitor.
    pub(crate) fn complete(&self, version: Option<ProtocolVersion>, kind: Option<HandshakeKind>) {
        let older = usize::from(version != Some(ProtocolVersion::TLSv1_3));
        let resumed = usize::from(kind == Some(HandshakeKind::Resumed));
        self.done[older][resumed].fetch_add(1, Relaxed);
    }

    /// Returns all counts with TLS version and result.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        let done = [("1.3", &self.done[0]), ("1.2", &self.done[1])];
        let done = done.into_iter().flat_map(|(version, [full, resumed])| {
            [(version, "full", full), (version, "resumed", resumed)]
        });
        let others = [
            ("unknown_name", &self.unknown_name),
            ("no_certificate", &self.no_certificate),
            ("failed", &self.failed),
            ("timeout", &self.slow),
            ("refused", &self.refused),
            ("challenge", &self.challenges),
        ];
        done.chain(others.map(|(result, count)| ("", result, count)))
            .map(|(version, result, count)| (version, result, count.load(Relaxed)))
    }
}
