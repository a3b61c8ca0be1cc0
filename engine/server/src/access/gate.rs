//! Collects the facts about a request for a protected tenant, and counts failed attempts.
//!
//! **Invariant:** is consulted for protected tenants only, so other requests cost nothing.

use std::time::{Instant, SystemTime};

use release::snapshot::access::AccessRule;

use crate::access::basic::BasicCredential;
use crate::access::decision::{AccessDecision, AccessRequest, Transport, decide};
use crate::access::failed_attempts::FailedAttempts;
use crate::listen::admission::Peer;
use crate::request::forwarded::visitor;
use crate::response::redirect::is_loopback;
use crate::response::routed_response::RequestHead;
use crate::settings::ServeSettings;

/// Decides about requests of one connection for protected tenants.
#[derive(Clone, Copy)]
pub(crate) struct Gate<'c> {
    pub(crate) settings: &'c ServeSettings,
    pub(crate) attempts: &'c FailedAttempts,
    pub(crate) peer: Peer,
    /// Whether the connection itself is encrypted.
    pub(crate) is_encrypted: bool,
}

impl Gate<'_> {
    /// Decides about a request. Counts no attempt.
    pub(crate) fn decide(&self, rule: &AccessRule, head: &RequestHead<'_>) -> AccessDecision {
        let credential = BasicCredential::read(head.headers);
        let request = AccessRequest {
            transport: self.transport(head),
            credential: credential.as_ref(),
            wait: credential.as_ref().and_then(|_| {
                let visitor = visitor(self.peer.address, head.headers, self.settings);
                self.attempts.wait(visitor, Instant::now())
            }),
        };
        decide(rule, &request, SystemTime::now())
    }

    /// Decides about a request, and counts a failed attempt.
    pub(crate) fn pass(&self, rule: &AccessRule, head: &RequestHead<'_>) -> AccessDecision {
        let decision = self.decide(rule, head);
        if decision == AccessDecision::Fail {
            let visitor = visitor(self.peer.address, head.headers, self.settings);
            self.attempts.record(visitor, Instant::now());
        }
        decision
    }

    /// Returns whether others can read the credential of a request.
    ///
    /// A connection without TLS is confidential at a loopback name, and behind a proxy that ends TLS: the origin is `https`, and this program does not end TLS itself or trusts the peer.
    fn transport(&self, head: &RequestHead<'_>) -> Transport {
        let tls = self.settings.tls.as_deref();
        let is_behind_proxy =
            self.settings.is_origin_secure && (tls.is_none() || self.peer.is_trusted);
        if self.is_encrypted || is_behind_proxy || is_at_loopback(head) {
            return Transport::Confidential;
        }
        tls.map_or(Transport::Clear, |tls| {
            Transport::ClearBesideHttps(tls.port)
        })
    }
}

/// Returns whether a request names this machine by a loopback name, which browsers never resolve to another machine (RFC 6761, section 6.3).
fn is_at_loopback(head: &RequestHead<'_>) -> bool {
    head.host()
        .is_ok_and(|host| is_loopback(host) || host.ends_with(".localhost"))
}
