//! What browsers may fetch before a visitor has chosen it (HTML, speculative loading).
//!
//! The rules stand in each page, by their hash in the policy: a file that the `Speculation-Rules` header names is one more request beside the fonts of the first view, and costs a visitor on a slow network a tenth of a second.

use std::sync::LazyLock;

use crate::resources::asset::policy_hash;

/// Pages of the same origin, when the pointer rests on their link or a finger touches it.
const RULES: &str = r#"{"prefetch":[{"where":{"and":[{"href_matches":"/*"},{"not":{"href_matches":"/assets/*"}}]},"eagerness":"moderate"}]}"#;

/// The element that every page has in its head.
pub(crate) fn tag() -> String {
    format!("<script type=\"speculationrules\">{RULES}</script>\n")
}

/// The rules as a source expression of the policy: `'sha256-...'`.
pub(crate) fn hash() -> &'static str {
    static HASH: LazyLock<String> = LazyLock::new(|| policy_hash(RULES));
    &HASH
}
