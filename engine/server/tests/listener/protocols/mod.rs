//! The protocols: HTTP/1.1, HTTP/2 and HTTPS.

mod http1;
mod http2;
mod http2_frames;
mod https;
