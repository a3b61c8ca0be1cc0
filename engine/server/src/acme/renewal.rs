//! Passes operators' requests for a new certificate from the admin listener to the ACME client.
//!
//! **Invariant:** orders nothing, and knows no certificate.

use std::sync::OnceLock;
use std::time::SystemTime;

use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

/// The number of requests that wait for the ACME client. Further requests wait for room.
const MAX_WAITING: usize = 16;

/// The channel for the answer to a request.
pub(super) type RenewalAnswer = oneshot::Sender<Result<(), RenewalRefusal>>;

/// A request for a new certificate, with the channel for its answer.
#[derive(Debug)]
pub(super) struct RenewalRequest {
    /// The host in lower case.
    pub(super) host: Box<str>,
    pub(super) answer: RenewalAnswer,
}

/// The reason why no new certificate is ordered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RenewalRefusal {
    /// The server has no ACME client.
    #[error(
        "the server orders no certificates: replace the file of `--certificate`, or start the server with `--acme-contact`"
    )]
    NoClient,
    /// No tenant claims the host.
    #[error("no site has the host `{0}`: `rowhouse certificates` lists all hosts")]
    UnknownHost(Box<str>),
    /// The certificate is an operator's own.
    #[error("the certificate of `{0}` is from a file: replace the file of `--certificate`")]
    FromFile(Box<str>),
    /// CAs issue no certificate for such a name.
    #[error("CAs issue no certificates for `{0}`")]
    NotOrderable(Box<str>),
    /// The CA limits orders, or has just issued a certificate.
    #[error("the CA limits how often it issues a certificate for `{host}`: try again in {} s", seconds_until(*until))]
    Limited {
        /// The host.
        host: Box<str>,
        /// The time of the next order.
        until: SystemTime,
    },
}

fn seconds_until(at: SystemTime) -> u64 {
    let left = at.duration_since(SystemTime::now());
    left.map_or(1, |left| left.as_secs() + 1)
}

/// The way to the ACME client, if there is one.
#[derive(Debug, Default)]
pub struct RenewalRequests(OnceLock<mpsc::Sender<RenewalRequest>>);

impl RenewalRequests {
    /// Returns the end that the ACME client receives from. Only the first call gets requests.
    pub(super) fn receiver(&self) -> mpsc::Receiver<RenewalRequest> {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        // A second client would get an end whose sender is dropped.
        let _ = self.0.set(sender);
        receiver
    }

    /// Requests a new certificate for a host. Completes when the order has begun, or waits for the CA.
    ///
    /// # Errors
    /// When no order can begin.
    pub(crate) async fn send(&self, host: &str) -> Result<(), RenewalRefusal> {
        let sender = self.0.get().ok_or(RenewalRefusal::NoClient)?;
        let (answer, answered) = oneshot::channel();
        let request = RenewalRequest {
            host: host.into(),
            answer,
        };
        sender
            .send(request)
            .await
            .map_err(|_| RenewalRefusal::NoClient)?;
        answered.await.unwrap_or(Err(RenewalRefusal::NoClient))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn request_is_answered_by_the_client_or_refused_without_one() {
        let requests = RenewalRequests::default();
        let refused = requests.send("own.example").await;
        assert_eq!(refused, Err(RenewalRefusal::NoClient));
        let mut received = requests.receiver();
        let client = async {
            let request = received.recv().await.unwrap();
            assert_eq!(&*request.host, "own.example");
            request.answer.send(Ok(())).unwrap();
        };
        let (answer, ()) = tokio::join!(requests.send("own.example"), client);
        assert_eq!(answer, Ok(()));
        drop(received);
        let refused = requests.send("own.example").await;
        assert_eq!(refused, Err(RenewalRefusal::NoClient));
    }
}
