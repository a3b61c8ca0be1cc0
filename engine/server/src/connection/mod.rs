//! Runs connections: a worker's event loop, the state and timeouts of each connection, and the services that answer its requests.
//!
//! * [`worker`] is a thread with its event loop; its connections share a [`worker_context`], and each is a [`served_connection`].
//! * [`stream`] wraps a connection's socket; [`http2_preface`] and [`proxy_header`] read its first bytes; [`connection_state`] tracks its phase.
//! * [`fast_lane`] answers plain HTTP/1.1 requests without hyper.
//! * [`joined_writes`] joins the frames of HTTP/2 into fewer writes.
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
pub(crate) mod http2_preface;
pub(crate) mod joined_writes;
pub(crate) mod proxy_header;
pub(crate) mod request_service;
pub(crate) mod served_connection;
pub(crate) mod stream;
pub(crate) mod worker;
pub(crate) mod worker_context;
