//! The tests of HTTP/2, with the same limits, over TLS.
#![allow(missing_docs)]
#![expect(
    clippy::duplicate_mod,
    reason = "both files are test programs of their own, too"
)]

#[path = "frames.rs"]
mod frames;
#[path = "http2.rs"]
mod http2;
