//! Creates tokens for protected tenants.
//!
//! **Invariant:** a token comes from the cryptography provider's random numbers, and is not stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::tls::provider::provider;

/// Random bytes of a token, as many as its hash has.
const TOKEN_BYTES: usize = 32;

/// The operating system has no random numbers.
#[derive(Debug, Error)]
#[error("the random number generator of the operating system failed")]
pub struct TokenError;

/// Returns a new random token: 43 letters, digits, `-` and `_`.
///
/// # Errors
/// When the operating system's random number generator fails.
pub fn random_token() -> Result<String, TokenError> {
    let mut bytes = [0; TOKEN_BYTES];
    let random = provider().secure_random;
    random.fill(&mut bytes).map_err(|_| TokenError)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns the SHA-256 of a token in hexadecimal digits, as `deployment.yaml` has it.
#[must_use]
pub fn token_sha256(token: &str) -> String {
    let digest = Sha256::digest(token.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_random_and_hashed_as_sha256() {
        let [one, other] = [(); 2].map(|()| random_token().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 43);
        let expected = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        assert_eq!(token_sha256("secret"), expected);
    }
}
