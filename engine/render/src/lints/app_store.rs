//! Checks the site of an app for the requirements of app stores.
//!
//! Only tenants whose manifest has an `app` are checked. All findings are warnings, so the site is still served.
//! The rules are from Apple's App Review Guidelines and Google Play's Developer Program Policies; each hint names its rule.

use std::collections::BTreeMap;

use crate::compile::prepared_tenant::PreparedTenant;
use crate::lints::page_facts::PageFacts;
use content::report::{Code, Diagnostic};
use content::tenant::app::{App, Platform, StoreNeed};
use content::tenant::{MANIFEST, Page, Site};

/// Returns a warning for each thing that a review would reject, except for those that the manifest says are not needed. `seen`: the facts of the rendered pages. `has_company`: whether there is a company profile. Without one, pages have no contact, which is reported already.
pub(super) fn check(
    site: &Site,
    prepared: &PreparedTenant,
    seen: &BTreeMap<String, PageFacts>,
    has_company: bool,
) -> Vec<Diagnostic> {
    let Some(app) = site.manifest.app.as_deref() else {
        return Vec::new();
    };
    let mut review = Review {
        site,
        app,
        prepared,
        seen,
        has_company,
        // The content of texts is checked in English only.
        is_read: site.manifest.language.as_str().split('-').next() == Some("en"),
        found: Vec::new(),
    };
    review.check_privacy();
    review.check_account_deletion();
    review.check_terms_and_age();
    review.check_support();
    review.check_contact(
        StoreNeed::Accessibility,
        &["accessibility", "barrierefrei"],
        "the page about accessibility has no email link",
        "say where visitors report barriers: link to `company:email` (Directive (EU) 2019/882, Annex V)",
    );
    review.check_contact(
        StoreNeed::Imprint,
        &["imprint", "impressum", "legal-notice"],
        "the imprint has no email link",
        "link to `company:email` (Regulation (EU) 2022/2065, Article 30; in Germany § 5 DDG)",
    );
    review.found
}

/// The review of an app's site.
struct Review<'a> {
    site: &'a Site,
    app: &'a App,
    prepared: &'a PreparedTenant,
    seen: &'a BTreeMap<String, PageFacts>,
    has_company: bool,
    is_read: bool,
    found: Vec<Diagnostic>,
}

impl<'a> Review<'a> {
    fn miss(&mut self, need: StoreNeed, page: Option<&Page>, message: &str, hint: &str) {
        if self.app.not_needed.iter().any(|entry| entry.need == need) {
            return;
        }
        let file = self
            .site
            .name_of(page.map_or(MANIFEST, |page| page.file.as_str()));
        let warning = Diagnostic::warning(Code::StoreReadiness, file, message);
        self.found.push(warning.hint(hint));
    }

    fn page(&self, words: &[&str]) -> Option<&'a Page> {
        words.iter().find_map(|word| page(self.site, word))
    }

    fn has_contact(&self, page: &Page) -> bool {
        !self.has_company || self.seen.get(&page.path).is_none_or(has_contact)
    }

    /// Checks that a page has an email link, if there is such a page.
    fn check_contact(&mut self, need: StoreNeed, words: &[&str], message: &str, hint: &str) {
        if let Some(page) = self.page(words).filter(|page| !self.has_contact(page)) {
            self.miss(need, Some(page), message, hint);
        }
    }

    fn check_privacy(&mut self) {
        match page(self.site, "privacy") {
            None => self.miss(
                StoreNeed::Privacy,
                None,
                "the app has no privacy policy",
                "add `pages/privacy.md` (App Review Guideline 5.1.1(i); Google Play, User Data)",
            ),
            Some(page) if page.front.updated.is_none() => self.miss(
                StoreNeed::Privacy,
                Some(page),
                "the privacy policy has no date",
                "add the date as `updated:` (Google Play, User Data: a policy is dated and current)",
            ),
            Some(_) => {}
        }
    }

    fn check_account_deletion(&mut self) {
        if self.app.account == Some(false) {
            return;
        }
        let need = StoreNeed::AccountDeletion;
        let privacy = page(self.site, "privacy");
        let text_of = |page: &Page| text_of(page, self.prepared);
        let is_silent = privacy.map(text_of).is_some_and(|words| {
            self.is_read && (!words.contains("delet") || !words.contains("settings"))
        });
        if is_silent {
            self.miss(
                need,
                privacy,
                "the privacy policy does not say where users delete their account",
                "say that users delete their account in the app, under Settings (App Review Guideline 5.1.1(v); Google Play, Account Deletion); without accounts, set `account: false` in `app`",
            );
        }
        if let Some(page) = self.page(&["delet", "account-delet", "data-delet"]) {
            if !self.has_contact(page) {
                self.miss(
                    need,
                    Some(page),
                    "the page about deleting an account has no email link",
                    "link to `company:email`, so that users without the app can ask for it (Google Play, Account Deletion)",
                );
            }
        } else if self.app.platforms.contains(&Platform::Android)
            && !privacy.is_some_and(|page| self.has_contact(page))
        {
            self.miss(
                need,
                None,
                "users cannot ask for the deletion of their account without the app",
                "add `pages/delete-account.md` (Google Play, Account Deletion); without accounts, set `account: false` in `app`",
            );
        }
    }

    fn check_terms_and_age(&mut self) {
        let (privacy, terms) = (page(self.site, "privacy"), page(self.site, "terms"));
        if terms.is_none() {
            self.miss(
                StoreNeed::Terms,
                None,
                "the app has no terms of service",
                "add `pages/terms.md` (App Review Guideline 3.1.2, for subscriptions)",
            );
        }
        let mut pages = [privacy, terms].into_iter().flatten();
        let states_age = pages.any(|page| states_an_age(&text_of(page, self.prepared)));
        let is_checked = self.is_read && !self.app.any_age;
        if is_checked && !states_age && (privacy.is_some() || terms.is_some()) {
            self.miss(
                StoreNeed::MinimumAge,
                terms.or(privacy),
                "neither the terms nor the privacy policy states a minimum age for the app",
                "state an age, for example `13 or older`, or set `any_age: true` in `app` (App Review Guideline 1.3; Google Play, Families)",
            );
        }
    }

    fn check_support(&mut self) {
        if page(self.site, "support").is_none() {
            self.miss(
                StoreNeed::Support,
                None,
                "the app has no support page",
                "add `pages/support.md` (App Review Guideline 1.5)",
            );
        }
        self.check_contact(
            StoreNeed::Support,
            &["support"],
            "the support page has no email link",
            "add a link to `company:email`, or a section with an email link (App Review Guideline 1.5)",
        );
    }
}

/// Returns the page whose path begins with a word: `/privacy`, `/privacypolicy`, `/privacy-policy`.
fn page<'a>(site: &'a Site, word: &str) -> Option<&'a Page> {
    site.pages
        .values()
        .map(AsRef::as_ref)
        .find(|page: &&Page| page.path[1..].starts_with(word))
}

/// Returns the texts of a page in lower case: its body, its front matter and its sections.
fn text_of(page: &Page, prepared: &PreparedTenant) -> String {
    let sections = prepared.content.formatted.get(&page.file);
    let formatted = page.formatted.iter().chain(sections.into_iter().flatten());
    let front = formatted.map(|text| text.text.as_str());
    front
        .chain(std::iter::once(page.body.as_str()))
        .collect::<Vec<_>>()
        .join("\n")
        .to_lowercase()
}

fn has_contact(page: &PageFacts) -> bool {
    page.links.iter().any(|link| link.starts_with("mailto:"))
}

/// Whether a text names an age: `13+`, `under 13`, `18 or older`, `at least 18`.
fn states_an_age(words: &str) -> bool {
    ["13", "16", "17", "18", "21"].iter().any(|age| {
        words.match_indices(age).any(|(at, _)| {
            let before: String = words[..at]
                .chars()
                .rev()
                .take(24)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect();
            let after: String = words[at + age.len()..].chars().take(24).collect();
            let is_number = !before
                .ends_with(|digit: char| digit.is_ascii_digit() || digit == '.' || digit == '$')
                && !after.starts_with(|digit: char| digit.is_ascii_digit());
            is_number
                && (after.starts_with('+')
                    || ["older", "over", "years", "year", "age"]
                        .iter()
                        .any(|word| after.contains(word))
                    || ["under", "at least", "age", "younger", "minimum"]
                        .iter()
                        .any(|word| before.contains(word)))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_a_number_near_words_of_age() {
        for text in [
            "you must be 18 or older",
            "children under 13 may not",
            "13+ only",
            "at least 16 years",
        ] {
            assert!(states_an_age(text), "{text}");
        }
        for text in [
            "$29.18 older",
            "2018",
            "section 13 of these terms",
            "call 1800 older",
        ] {
            assert!(!states_an_age(text), "{text}");
        }
    }
}
