//! Counters of TLS handshakes.
//!
//! **Invariant:** plain numbers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustls::{HandshakeKind, ProtocolVersion};

/// Counters of TLS handshakes since the start.
#[derive(Debug, Default)]
pub struct HandshakeCounters {
    /// TLS 1.3 and 1.2, each in full and resumed.
    done: [[AtomicU64; 2]; 2],
    /// Ended with an alert: the name is nobody's, or was not given.
    pub unknown_name: AtomicU64,
    /// Ended with an alert: the host is claimed, and has no certificate yet.
    pub no_certificate: AtomicU64,
    /// Broken off, or not TLS as it is spoken here.
    pub failed: AtomicU64,
    /// Ended because they took too long.
    pub slow: AtomicU64,
    /// Closed at once, since their subnet has too many in flight, or too many in a short time.
    pub refused: AtomicU64,
    /// Of authorities, which looked for the answer to a challenge.
    pub challenges: AtomicU64,
}

impl HandshakeCounters {
    /// Counts one that a visitor has completed.
    pub(crate) fn complete(&self, version: Option<ProtocolVersion>, kind: Option<HandshakeKind>) {
        let older = usize::from(version != Some(ProtocolVersion::TLSv1_3));
        let resumed = usize::from(kind == Some(HandshakeKind::Resumed));
        self.done[older][resumed].fetch_add(1, Relaxed);
    }

    /// All counts, with version and result.
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
