//! Speculation rules: which pages browsers may prefetch before the visitor follows a link (HTML, speculative loading).
//!
//! The rules are inline in each page, allowed by their hash in the policy. The `Speculation-Rules` header would cost one more request beside the fonts of the first view: 0.1 s on a slow network.

use std::sync::LazyLock;

use crate::resources::asset::policy_hash;

/// Prefetches pages of the same origin when the pointer rests on a link or a finger touches it.
const RULES: &str = r#"{"prefetch":[{"where":{"and":[{"href_matches":"/*"},{"not":{"href_matches":"/assets/*"}}]},"eagerness":"moderate"}]}"#;

/// Returns the script element for a page's head.
pub(crate) fn tag() -> String {
    format!("<script type=\"speculationrules\">{RULES}</script>\n")
}

/// Returns the rules' hash as a source expression of the policy: `'sha256-...'`.
pub(crate) fn hash() -> &'static str {
    static HASH: LazyLock<String> = LazyLock::new(|| policy_hash(RULES));
    &HASH
}
