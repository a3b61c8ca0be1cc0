//! The token that commands come with, where operators want one.
//!
//! **Invariant:** is never shown, neither in a log nor in an answer; how long a comparison takes says nothing of what is compared.

use std::fmt;
use std::sync::Arc;

use subtle::ConstantTimeEq as _;

/// A shorter one could be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// The token.
#[derive(Clone)]
pub struct AdminToken(Arc<[u8]>);

impl fmt::Debug for AdminToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AdminToken")
    }
}

impl AdminToken {
    /// The token of a file: what stands there, without the space around it.
    ///
    /// # Errors
    /// When it is shorter than 16 characters, or has others than those of ASCII that can be seen.
    pub fn new(text: &str) -> Result<Self, String> {
        let token = text.trim();
        if token.len() < MIN_TOKEN_BYTES {
            return Err(format!(
                "the token has {} characters, and needs at least {MIN_TOKEN_BYTES}: `openssl rand -hex 32` makes one",
                token.len()
            ));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(
                "the token has letters that a header field cannot have, or is more than one word: `openssl rand -hex 32` makes one".to_owned(),
            );
        }
        Ok(Self(token.as_bytes().into()))
    }

    /// Whether `given` is the token.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        self.0.ct_eq(given).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_long_word() {
        let token = AdminToken::new(" 0123456789abcdef\n").unwrap();
        assert!(token.is(b"0123456789abcdef"));
        for other in [&b""[..], b"0123456789abcdeF", b"0123456789abcdef0", b"0"] {
            assert!(!token.is(other), "{other:?}");
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
