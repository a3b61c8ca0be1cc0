//! The cards of the company's sites, which the pages of all tenants may show. A card is rendered again when its site or theme changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use content::report::guard::guard;
use content::tenant::Site;
use content::tenant::manifest::CompanySite;
use render::Templates;
use render::{SiteCard, card};

/// The inputs of a card: the content and the theme of a tenant.
type CardSource = (Arc<Site>, Arc<Templates>);

/// The last cards with their inputs, by tenant.
#[derive(Debug, Default)]
pub(crate) struct SiteCardCache {
    known: BTreeMap<String, (CardSource, SiteCard)>,
}

impl SiteCardCache {
    /// Returns the cards of the company's sites, and renders changed cards again. A site without a valid tenant or theme has no source.
    pub(crate) fn update(
        &mut self,
        sites: Vec<(CompanySite, Option<CardSource>)>,
    ) -> Vec<SiteCard> {
        let before = std::mem::take(&mut self.known);
        let same = |one: &CardSource, other: &CardSource| {
            Arc::ptr_eq(&one.0, &other.0) && Arc::ptr_eq(&one.1, &other.1)
        };
        let mut cards = Vec::with_capacity(sites.len());
        for (CompanySite { tenant, name }, source) in sites {
            let Some(source) = source else {
                cards.push(card(&tenant, &name, None));
                continue;
            };
            let known = before
                .get(&tenant)
                .filter(|(old, card)| same(old, &source) && card.name == name);
            let made =
                known.map_or_else(|| make(&tenant, &name, &source), |(_, card)| card.clone());
            cards.push(made.clone());
            self.known.insert(tenant, (source, made));
        }
        cards
    }
}

/// Renders a card. If that panics, returns a card without content; the build of the tenant reports the error.
fn make(tenant: &str, name: &str, (site, templates): &CardSource) -> SiteCard {
    let make = || card(tenant, name, Some((site, templates)));
    guard("card", tenant, tenant, make).unwrap_or_else(|_| card(tenant, name, None))
}
