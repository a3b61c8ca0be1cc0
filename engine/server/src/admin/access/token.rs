//! The token that authorises commands, if operators configure one.
//!
//! **Invariant:** never appears in a log or a response. The duration of a comparison reveals nothing about the token.

use std::fmt;
use std::sync::Arc;

use subtle::ConstantTimeEq as _;

/// Minimum length of a token. A shorter token could be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// The admin token.
#[derive(Clone)]
pub struct AdminToken(Arc<[u8]>);

impl fmt::Debug for AdminToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AdminToken")
    }
}

impl AdminToken {
    /// Parses the content of a token file, without surrounding white space.
    ///
    /// # Errors
    /// When the token is shorter than 16 characters, or has characters other than visible ASCII.
    pub fn new(text: &str) -> Result<Self, String> {
        let token = text.trim();
        if token.len() < MIN_TOKEN_BYTES {
            return Err(format!(
                "the token has {} characters and needs at least {MIN_TOKEN_BYTES}: create a token with `openssl rand -hex 32`",
                token.len()
            ));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(
                "the token has characters other than visible ASCII: create a token with `openssl rand -hex 32`".to_owned(),
            );
        }
        Ok(Self(token.as_bytes().into()))
    }

    /// Returns whether `given` is the token, in constant time.
    pub(in crate::admin) fn matches(&self, given: &[u8]) -> bool {
        self.0.ct_eq(given).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_one_word_of_sufficient_length() {
        let token = AdminToken::new(" 0123456789abcdef\n").unwrap();
        assert!(token.matches(b"0123456789abcdef"));
        for other in [&b""[..], b"0123456789abcdeF", b"0123456789abcdef0", b"0"] {
            assert!(!token.matches(other), "{other:?}");
        }
        assert_eq!(format!("{token:?}"), "AdminToken");
        for text in [
            "",
            "0123456789abcde",
            "0123456789 abcdef",
            "0123456789abcdeä",
        ] {
            assert!(AdminToken::new(text).is_err(), "{text}");
        }
    }
}
