//! A packed sequence of named byte strings: for each, the length and bytes of its name, then the length and bytes of its content. Lengths are 64-bit little-endian.

use bytes::Bytes;

/// Packs named byte strings into one buffer.
#[must_use]
pub fn pack<'a>(things: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let parts: Vec<[&[u8]; 2]> = things
        .into_iter()
        .map(|(name, bytes)| [name, bytes])
        .collect();
    let length = parts.iter().flatten().map(|part| part.len() + 8).sum();
    // Allocated exactly: parts of the buffer stay in memory while they are served.
    let mut packed = Vec::with_capacity(length);
    for thing in parts {
        for part in thing {
            packed.extend_from_slice(&(part.len() as u64).to_le_bytes());
            packed.extend_from_slice(part);
        }
    }
    packed
}

/// Splits a packed buffer without copying. Returns `None` if the lengths do not fit.
#[must_use]
pub fn unpack(packed: &Bytes) -> Option<Vec<(Bytes, Bytes)>> {
    let mut things = Vec::new();
    let mut rest = packed.clone();
    while !rest.is_empty() {
        things.push((part(&mut rest)?, part(&mut rest)?));
    }
    Some(things)
}

fn part(rest: &mut Bytes) -> Option<Bytes> {
    let length = rest.get(..8)?.try_into().ok()?;
    let length = usize::try_from(u64::from_le_bytes(length)).ok()?;
    let end = length.checked_add(8).filter(|end| *end <= rest.len())?;
    let part = rest.slice(8..end);
    *rest = rest.slice(end..);
    Some(part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn unpacking_returns_the_packed_content(things: Vec<(Vec<u8>, Vec<u8>)>) {
            let packed = pack(things.iter().map(|(name, bytes)| (&name[..], &bytes[..])));
            let back = unpack(&packed.into()).expect("complete");
            let back: Vec<_> = back.into_iter().map(|(name, bytes)| (name.to_vec(), bytes.to_vec())).collect();
            prop_assert_eq!(back, things);
        }

        #[test]
        fn unpacking_any_bytes_does_not_panic(bytes: Vec<u8>) {
            let _ = unpack(&bytes.into());
        }
    }
}
