//! The buffers that all connections of a worker share, since a worker handles one request at a time.
//!
//! An idle connection has no buffer, and a request allocates none.
//!
//! **Invariant:** no bytes of a request or a response are used for another.

use bytes::buf::Limit;
use bytes::{BufMut as _, BytesMut};
use http::HeaderMap;

/// Bytes that many requests are read into, one after the other.
const BLOCK_BYTES: usize = 32 * 1024;
/// Maximum of bytes for one read, as of hyper. Bytes that are not read stay in the socket, where a closing connection finds them.
pub(super) const READ_BYTES: usize = 8 * 1024;

/// The buffers of a worker's fast lane.
#[derive(Debug, Default)]
pub(crate) struct LaneBuffers {
    input: BytesMut,
    /// The head of the next response.
    pub(super) head: Vec<u8>,
    /// The header fields of a request that its response depends on.
    pub(super) fields: HeaderMap,
}

impl LaneBuffers {
    /// Returns the empty buffer to read into.
    pub(super) fn input(&mut self) -> Limit<&mut BytesMut> {
        if self.input.capacity() < READ_BYTES {
            // Uses the same block again once no request holds a part of it.
            self.input.reserve(BLOCK_BYTES);
        }
        (&mut self.input).limit(READ_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_share_a_block() {
        let mut buffers = LaneBuffers::default();
        buffers.input().put_slice(b"GET");
        drop(buffers.input().get_mut().split().freeze());
        let memory = allocation_counter::measure(|| {
            for _ in 0..1000 {
                let mut input = buffers.input();
                input.put_slice(&[b'x'; 600]);
                drop(input.get_mut().split().freeze());
            }
        });
        assert_eq!(memory.count_total, 0);
    }
}
