//! Checks the site of an app for the requirements of app stores.
//!
//! Only tenants whose manifest has an `app` are checked. All findings are warnings, so the site is still served.
//! The rules are from Apple's App Review Guidelines and Google Play's Developer Program Policies; each hint names its rule.

use std::collections::BTreeMap;

use crate::compile::prepared_tenant::PreparedTenant;
use crate::lints::page_facts::PageFacts;
use content::report::{Code, Diagnostic};
use content::tenant::{MANIFEST, Page, Site};

/// Returns a warning for each thing that a review would reject. `seen`: the facts of the rendered pages.
pub(super) fn check(
    site: &Site,
    prepared: &PreparedTenant,
    seen: &BTreeMap<String, PageFacts>,
) -> Vec<Diagnostic> {
    if site.manifest.app.is_none() {
        return Vec::new();
    }
    // The content of texts is checked in English only.
    let is_read = site.manifest.language.as_str().split('-').next() == Some("en");
    let text_of = |page: &Page| text_of(page, prepared);
    let privacy = page(site, "privacy");
    let terms = page(site, "terms");
    let support = page(site, "support");
    let mut found = Vec::new();
    let mut miss = |page: Option<&Page>, message: &str, hint: &str| {
        let file = page.map_or(MANIFEST, |page| page.file.as_str());
        found.push(
            Diagnostic::warning(Code::StoreReadiness, site.name_of(file), message).hint(hint),
        );
    };
    match privacy {
        None => miss(
            None,
            "the app has no privacy policy",
            "add `pages/privacy.md` (App Review Guideline 5.1.1(i); Google Play, User Data)",
        ),
        Some(page) => {
            if page.front.updated.is_none() {
                miss(
                    privacy,
                    "the privacy policy has no date",
                    "add the date as `updated:` (Google Play, User Data: a policy is dated and current)",
                );
            }
            let words = text_of(page);
            if is_read && (!words.contains("delet") || !words.contains("settings")) {
                miss(
                    privacy,
                    "the privacy policy does not say where users delete their account",
                    "say that users delete their account in the app, under Settings (App Review Guideline 5.1.1(v); Google Play, Account Deletion)",
                );
            }
        }
    }
    if terms.is_none() {
        miss(
            None,
            "the app has no terms of service",
            "add `pages/terms.md` (App Review Guideline 3.1.2, for subscriptions)",
        );
    }
    match support {
        None => miss(
            None,
            "the app has no support page",
            "add `pages/support.md` (App Review Guideline 1.5)",
        ),
        Some(page) if (seen.get(&page.path)).is_some_and(|seen| !has_contact(seen)) => miss(
            support,
            "the support page has no email link",
            "add a link to `company:email`, or a section with an email link (App Review Guideline 1.5)",
        ),
        Some(_) => {}
    }
    let ages = [privacy, terms]
        .into_iter()
        .flatten()
        .any(|page| states_an_age(&text_of(page)));
    if is_read && !ages && (privacy.is_some() || terms.is_some()) {
        miss(
            terms.or(privacy),
            "neither the terms nor the privacy policy states a minimum age for the app",
            "state an age, for example `13 or older` (App Review Guideline 1.3; Google Play, Families)",
        );
    }
    found
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
