//! Where pages answer, and how pages that were rendered once get there.
//!
//! What differs between two addresses of a tenant is where its links lead: below a prefix or not, and to the domain from the domain or from elsewhere.
//! Pages are rendered once, with a mark wherever one of the two stands; for each address the marks are replaced.
//!
//! **Invariant:** a mark is a slash, letters and digits: no encoding changes it, and to templates and islands every link within the deployment begins as a path does. What takes its place is a path or an origin. An author who writes one gets the same in its place, which no markup can be made of.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use content::address::{Address, Origin};

/// What both marks begin with. Nobody writes it by chance.
const MARK: &str = "/rowhouse5d81c0e7a2f4b396";
/// In the place of the prefix.
const PREFIX: &str = "/rowhouse5d81c0e7a2f4b396prefix";
/// In the place of the domain's origin, where a link leads there.
const DOMAIN: &str = "/rowhouse5d81c0e7a2f4b396domain";

/// Where links stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkBase {
    /// What stands before the tenant's own paths; empty at the root of a host.
    pub(crate) prefix: Cow<'static, str>,
    /// What stands before paths of the domain; empty on the domain itself.
    pub(crate) domain: Cow<'static, str>,
}

impl LinkBase {
    /// One address of a deployment at `origin`.
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

    /// All addresses: links have marks, which [`LinkBase::put_in`] replaces.
    pub(crate) const fn everywhere() -> Self {
        Self {
            prefix: Cow::Borrowed(PREFIX),
            domain: Cow::Borrowed(DOMAIN),
        }
    }

    /// What was rendered for everywhere, at this place.
    #[must_use]
    pub(crate) fn put_in(&self, text: &str) -> String {
        static FINDER: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(MARK));
        let mut placed = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = FINDER.find(rest.as_bytes()) {
            let (before, marked) = rest.split_at(start);
            placed.push_str(before);
            rest = if let Some(behind) = marked.strip_prefix(PREFIX) {
                // The landing page of a tenant at the root of its host.
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
    fn both_marks_begin_alike_and_survive_every_encoding() {
        for mark in [PREFIX, DOMAIN] {
            assert!(mark.starts_with(MARK));
            assert!(mark[1..].bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
    }

    #[test]
    fn half_a_mark_stays_as_it_is() {
        let text = format!("{MARK}{MARK}pre{PREFIX}/x");
        assert_eq!(
            place("/corner", "").put_in(&text),
            format!("{MARK}{MARK}pre/corner/x")
        );
    }

    proptest! {
        #[test]
        fn what_was_made_for_everywhere_is_as_if_it_were_made_there(
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
                prop_assert_eq!(there.put_in(&text(&LinkBase::everywhere())), text(&there));
            }
        }
    }
}
