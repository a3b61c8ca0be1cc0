//! Encrypts objects with private keys in them, such as accounts and certificates.
//!
//! The cipher is AES-256-GCM with random nonces (NIST SP 800-38D). The name of the object is authenticated too, so an object that is moved to another name does not open.
//!
//! **Invariant:** a sealed object reveals its length, and nothing else.

pub mod sealed_store;

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};

/// The bytes of a key.
const KEY_BYTES: usize = 32;

/// The bytes of a nonce, which a sealed object begins with.
const NONCE_BYTES: usize = 12;

/// The key that all replicas of a fleet have.
pub struct SealingKey(RandomizedNonceKey);

/// A text that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key has 64 hexadecimal digits, and this text has not")]
pub struct InvalidKey;

/// An object that this key does not open: it was sealed with another key, for another name, or is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot be opened with the key of this replica")]
pub struct Unopened;

impl SealingKey {
    /// Reads a key: 64 hexadecimal digits, as `openssl rand -hex 32` prints.
    ///
    /// # Errors
    /// Returns an error if the text is no key.
    pub fn parse(text: &str) -> Result<Self, InvalidKey> {
        let digits = text.trim();
        let pairs = (0..digits.len()).step_by(2).map(|at| {
            let pair = digits.get(at..at + 2)?;
            let is_hexadecimal = pair.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_hexadecimal.then(|| u8::from_str_radix(pair, 16).ok())?
        });
        let key: Vec<u8> = pairs.collect::<Option<_>>().ok_or(InvalidKey)?;
        if key.len() != KEY_BYTES {
            return Err(InvalidKey);
        }
        let key = RandomizedNonceKey::new(&AES_256_GCM, &key).map_err(|_| InvalidKey)?;
        Ok(Self(key))
    }

    /// Encrypts the content of an object with this name.
    ///
    /// # Errors
    /// Returns an error if the operating system has no random numbers.
    pub fn seal(&self, name: &str, mut content: Vec<u8>) -> Result<Vec<u8>, Unopened> {
        let name = Aad::from(name.as_bytes());
        let nonce = self.0.seal_in_place_append_tag(name, &mut content);
        let nonce = nonce.map_err(|_| Unopened)?;
        Ok([&nonce.as_ref()[..], &content].concat())
    }

    /// Decrypts the content of an object with this name.
    ///
    /// # Errors
    /// Returns an error if the key does not open the object.
    pub fn open(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, Unopened> {
        let (nonce, content) = sealed.split_at_checked(NONCE_BYTES).ok_or(Unopened)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Unopened)?;
        let mut content = content.to_vec();
        let opened = self
            .0
            .open_in_place(nonce, Aad::from(name.as_bytes()), &mut content);
        let length = opened.map_err(|_| Unopened)?.len();
        content.truncate(length);
        Ok(content)
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SealingKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn sealed_object_opens_with_its_key_and_name_only() {
        let key = SealingKey::parse(&format!("{KEY}\n")).expect("a key");
        let content = b"a private key".to_vec();
        let sealed = key.seal("mill", content.clone()).expect("sealed");
        let again = key.seal("mill", content.clone()).expect("sealed");
        assert_ne!(sealed, again, "each object has its own nonce");
        assert!(!sealed.windows(7).any(|part| part == b"private"));
        assert_eq!(key.open("mill", &sealed), Ok(content));
        assert_eq!(key.open("corner", &sealed), Err(Unopened));
        let other = SealingKey::parse(&KEY.replace("00", "ff")).expect("a key");
        assert_eq!(other.open("mill", &sealed), Err(Unopened));
        for length in 0..sealed.len() {
            assert_eq!(key.open("mill", &sealed[..length]), Err(Unopened));
        }
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert_eq!(key.open("mill", &damaged), Err(Unopened), "{at}");
        }
    }

    #[test]
    fn text_of_another_length_or_with_other_characters_is_no_key() {
        for text in [
            "",
            &KEY[1..],
            &KEY.replace('a', "g"),
            &KEY.replace("0a", "é"),
        ] {
            assert_eq!(SealingKey::parse(text).err(), Some(InvalidKey), "{text}");
        }
    }
}
