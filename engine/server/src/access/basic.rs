//! Reads the credential of a request: `Authorization: Basic ...` (RFC 7617).
//!
//! **Invariant:** pure; the credential has no `Debug` form, so it cannot be logged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use release::snapshot::access::Credential;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use crate::request::preconditions::single_value;

/// The user name of a request and the hash of its token.
pub(crate) struct BasicCredential {
    user: Box<[u8]>,
    token_sha256: [u8; 32],
}

impl BasicCredential {
    /// Reads the field of a request. Returns `None` without a field, with several, and with one that is not valid.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let field = single_value(headers, AUTHORIZATION)?.as_bytes();
        let space = memchr::memchr(b' ', field)?;
        let (scheme, rest) = field.split_at(space);
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let text = STANDARD.decode(rest.trim_ascii()).ok()?;
        let (user, token) = text.split_at(memchr::memchr(b':', &text)?);
        Some(Self {
            user: user.into(),
            token_sha256: Sha256::digest(&token[1..]).into(),
        })
    }

    /// Returns whether user and token are those of `credential`, in constant time. The length of a user name is not secret.
    pub(crate) fn equals(&self, credential: &Credential) -> Choice {
        let is_same_token = self.token_sha256.ct_eq(&credential.token_sha256);
        is_same_token & self.user.ct_eq(credential.user.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(fields: &[&str]) -> Option<BasicCredential> {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(AUTHORIZATION, HeaderValue::from_str(field).unwrap());
        }
        BasicCredential::read(&headers)
    }

    fn credential(user: &str, token: &str) -> Credential {
        Credential {
            user: user.into(),
            token_sha256: Sha256::digest(token).into(),
            ends: None,
        }
    }

    #[test]
    fn user_ends_at_the_first_colon() {
        let text = STANDARD.encode("jo\u{e4}:a:b");
        for scheme in ["Basic", "basic", "BASIC", "Basic  "] {
            let read = read(&[&format!("{scheme} {text}")]).unwrap();
            for (user, token, is_equal) in [
                ("jo\u{e4}", "a:b", true),
                ("jo\u{e4}", "a", false),
                ("jo", "a:b", false),
                ("", "a:b", false),
                ("jo\u{e4}:a", "b", false),
            ] {
                let equals: bool = read.equals(&credential(user, token)).into();
                assert_eq!(equals, is_equal, "{user} {token}");
            }
        }
    }

    #[test]
    fn field_that_is_not_one_basic_credential_is_ignored() {
        let valid = format!("Basic {}", STANDARD.encode("a:b"));
        assert!(read(&[&valid]).is_some());
        let without_colon = format!("Basic {}", STANDARD.encode("ab"));
        for fields in [
            &[][..],
            &["Basic"],
            &["Basic "],
            &["Basic !"],
            &["Bearer YTpi"],
            &["BasicYTpi"],
            &[without_colon.as_str()],
            &[valid.as_str(), valid.as_str()],
        ] {
            assert!(read(fields).is_none(), "{fields:?}");
        }
    }
}
