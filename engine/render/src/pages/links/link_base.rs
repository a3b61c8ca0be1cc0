//! Renders links for all addresses of a tenant at once, and later replaces them for each address.
//!
//! Two parts of a link depend on the address: the tenant's prefix, and the domain's origin, which links from another host need.
//! Pages are rendered once, with a mark in the place of either. For each address the marks are replaced.
//!
//! **Invariant:** a mark consists of a slash, letters and digits, so no escaping changes it. To templates and islands, every link within the deployment looks like a path. A mark is replaced by a path or an origin. A mark that an author writes is replaced the same way, which cannot produce markup.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use content::address::{Address, Origin};

/// The start of both marks, long enough that no text contains it by chance.
const MARK: &str = "/rowhouse5d81c0e7a2f4b396";
/// The mark for the tenant's prefix.
const PREFIX: &str = "/rowhouse5d81c0e7a2f4b396prefix";
/// The mark for the domain's origin.
const DOMAIN: &str = "/rowhouse5d81c0e7a2f4b396domain";

/// The parts of a link that depend on the address of its page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkBase {
    /// The prefix of the tenant's own paths; empty at the root of a host.
    pub(crate) prefix: Cow<'static, str>,
    /// The origin before paths of the domain; empty on the domain itself.
    pub(crate) domain: Cow<'static, str>,
}

impl LinkBase {
    /// Returns the base of one address in a deployment at `origin`.
    #[must_use]
    pub(crate) fn at(address: &Address, origin: &Origin) -> Self {
        Self {
            prefix: address.prefix.clone().into(),
            domain: match address.host == origin.domain() {
                true => "".into(),
                false => origin.to_string().into(),
            },
        }
    }

    /// Returns the base for all addresses. Its links contain marks, which [`LinkBase::replace_marks`] replaces.
    pub(crate) const fn for_all_addresses() -> Self {
        Self {
            prefix: Cow::Borrowed(PREFIX),
            domain: Cow::Borrowed(DOMAIN),
        }
    }

    /// Replaces the marks in `text` by the parts of this address.
    #[must_use]
    pub(crate) fn replace_marks(&self, text: &str) -> String {
        static FINDER: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(MARK));
        let mut placed = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = FINDER.find(rest.as_bytes()) {
            let (before, marked) = rest.split_at(start);
            placed.push_str(before);
            rest = if let Some(behind) = marked.strip_prefix(PREFIX) {
                // A link to the landing page of a tenant at the root of its host.
                let is_bare = self.prefix.is_empty() && !behind.starts_with('/');
                placed.push_str(if is_bare { "/" } else { &self.prefix });
                behind
            } else if let Some(behind) = marked.strip_prefix(DOMAIN) {
                placed.push_str(&self.domain);
                behind
            } else {
                placed.push_str(MARK);
                &marked[MARK.len()..]
            };
        }
        placed.push_str(rest);
        placed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pages::links::resolver::below;

    fn place(prefix: &'static str, domain: &'static str) -> LinkBase {
        let (prefix, domain) = (prefix.into(), domain.into());
        LinkBase { prefix, domain }
    }

    #[test]
    fn both_marks_share_a_start_and_need_no_escaping() {
        for mark in [PREFIX, DOMAIN] {
            assert!(mark.starts_with(MARK));
            assert!(mark[1..].bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
    }

    #[test]
    fn incomplete_mark_is_left_alone() {
        let text = format!("{MARK}{MARK}pre{PREFIX}/x");
        assert_eq!(
            place("/corner", "").replace_marks(&text),
            format!("{MARK}{MARK}pre/corner/x")
        );
    }

    proptest! {
        #[test]
        fn replacing_marks_equals_rendering_for_the_address(
            links in proptest::collection::vec(("[a-z <é]{0,9}", any::<bool>(), "(/|/[a-z]{1,4}(/[a-z]{1,3})?)", "([?#][a-z]{0,3})?"), 0..9),
        ) {
            for there in [place("", "https://studio.example"), place("/corner", ""), place("/apps/corner", "")] {
                let text = |place: &LinkBase| {
                    let links = links.iter().map(|(words, own, path, tail)| {
                        let href = match own {
                            true => below(&place.prefix, path),
                            false => format!("{}{path}", place.domain),
                        };
                        format!("{words}\"{href}{tail}\"")
                    });
                    links.collect::<String>()
                };
                prop_assert_eq!(there.replace_marks(&text(&LinkBase::for_all_addresses())), text(&there));
            }
        }
    }
}
