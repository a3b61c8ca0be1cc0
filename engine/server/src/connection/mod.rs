//! Runs connections: a worker's event loop, the state and timeouts of each connection, and the services that answer its requests.
//!
//! * [`worker`] is a thread with its event loop; its connections share a [`worker_context`], and each is a [`served_connection`].
//! * [`stream`] wraps a connection's socket; [`proxy_header`] reads its first bytes; [`connection_state`] tracks its phase.
//! * [`fast_lane`] answers plain HTTP/1.1 requests without hyper.
//! * [`http2`] serves HTTP/2; hyper serves all other connections.
//! * [`request_service`] passes requests to the layers, [`body_stream`] sends the response, and [`event_service`] streams [`events`].
//! * [`drain`] counts the requests that a graceful shutdown waited for.
//!
//! **Invariant:** knows no route and no tenant.

pub(crate) mod body_stream;
pub(crate) mod connection_state;
pub mod drain;
pub(crate) mod event_service;
pub mod events;
pub(crate) mod fast_lane;
pub(crate) mod http2;
pub(crate) mod http_date;
pub(crate) mod proxy_header;
pub(crate) mod request_service;
pub(crate) mod served_connection;
pub(crate) mod stream;
pub(crate) mod worker;
pub(crate) mod worker_context;
