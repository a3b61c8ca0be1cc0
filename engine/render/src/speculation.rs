//! What browsers may fetch before a visitor has chosen it (HTML, speculative loading).
//!
//! The rules go by the `Speculation-Rules` header, because an inline script would be against the policy.

use std::sync::LazyLock;

use bytes::Bytes;

use super::asset::Asset;

/// Pages of the same origin, when the pointer rests on their link or a finger touches it.
const RULES: &str = r#"{"prefetch":[{"where":{"and":[{"href_matches":"/*"},{"not":{"href_matches":"/assets/*"}}]},"eagerness":"moderate"}]}"#;

/// The file of rules that every page names.
pub(super) fn rules() -> &'static Asset {
    static FILE: LazyLock<Asset> = LazyLock::new(|| {
        Asset::new(
            "speculation.rules.json",
            Bytes::from_static(RULES.as_bytes()),
        )
    });
    &FILE
}
