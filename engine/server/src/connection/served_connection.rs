//! The interface of a connection for its worker.
//!
//! **Invariant:** knows no protocol.

use std::future::Future;
use std::pin::Pin;

use hyper_util::server::graceful::GracefulConnection;

/// A connection that answers requests until it ends.
pub(crate) trait ServedConnection: Future<Output = hyper::Result<()>> {
    /// Ends the connection after the request in flight.
    fn graceful_shutdown(self: Pin<&mut Self>);
}

impl<C> ServedConnection for C
where
    C: GracefulConnection<Error = hyper::Error> + Future<Output = hyper::Result<()>>,
{
    fn graceful_shutdown(self: Pin<&mut Self>) {
        GracefulConnection::graceful_shutdown(self);
    }
}
