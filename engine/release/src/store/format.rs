//! The binary encoding of numbers and byte strings in the store's files.
//!
//! **Invariant:** knows nothing of releases. Reading arbitrary bytes terminates, does not panic, and uses no more memory than the bytes read.

/// A buffer that values are appended to.
#[derive(Debug, Default)]
pub(super) struct ByteWriter(pub(super) Vec<u8>);

impl ByteWriter {
    /// Appends a number as a little-endian base-128 varint: seven bits per byte; the eighth bit says that more bytes follow.
    pub(super) fn number(&mut self, number: u64) {
        let mut rest = number;
        while rest >= 0x80 {
            self.0.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }

    /// Appends the number of items that follow.
    pub(super) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    /// Appends bytes with their length.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }
}

/// The bytes still to be read. Every method returns `None` if they do not encode the value.
#[derive(Debug)]
pub(super) struct ByteReader<'a>(pub(super) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = *self.0.split_off_first()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        self.0.split_off(..length)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub(super) fn hash(&mut self) -> Option<[u8; 32]> {
        self.bytes()?.try_into().ok()
    }

    pub(super) fn is_set(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Reads a count and then that many items.
    pub(super) fn many<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        (0..self.count()?).map(|_| one(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn written_values_are_read_back(numbers: Vec<u64>, bytes: Vec<u8>) {
            let mut output = ByteWriter::default();
            output.count(numbers.len());
            numbers.iter().for_each(|number| output.number(*number));
            output.bytes(&bytes);
            let mut input = ByteReader(&output.0);
            prop_assert_eq!(input.many(ByteReader::number), Some(numbers));
            prop_assert_eq!(input.bytes(), Some(&bytes[..]));
            prop_assert!(input.0.is_empty());
        }

        #[test]
        fn reading_any_bytes_does_not_panic(bytes: Vec<u8>) {
            let _ = ByteReader(&bytes).many(ByteReader::text);
            let _ = ByteReader(&bytes).many(ByteReader::hash);
        }
    }
}
