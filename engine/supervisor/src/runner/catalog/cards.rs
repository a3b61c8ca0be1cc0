//! What pages of all sites may show of each site of the company, made anew when that site or its theme changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use content::report::guard::guard;
use content::tenant::Site;
use content::tenant::manifest::CompanySite;
use render::Templates;
use render::{Card, card};

/// What a card is made from: a tenant's content and its theme.
type CardSource = (Arc<Site>, Arc<Templates>);

/// The cards of before, by tenant.
#[derive(Debug, Default)]
pub(crate) struct SiteCards {
    known: BTreeMap<String, (CardSource, Card)>,
}

impl SiteCards {
    /// The cards of the company's sites. A tenant that is not there, or has no theme, has no source.
    pub(crate) fn renew(&mut self, sites: Vec<(CompanySite, Option<CardSource>)>) -> Vec<Card> {
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

/// A drawing that the program fails at is its tenant's business, which is told of it when it is rendered.
fn make(tenant: &str, name: &str, (site, templates): &CardSource) -> Card {
    let make = || card(tenant, name, Some((site, templates)));
    guard("card", tenant, tenant, make).unwrap_or_else(|_| card(tenant, name, None))
}
