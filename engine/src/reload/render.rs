//! Compiles the tenants that changed, or stands in with what was good before the process began.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use rayon::prelude::*;

use super::Estate;
use super::kept::Kept;
use super::tenant::MadeFrom;
use super::themes::Themes;
use crate::address::Assignment;
use crate::compile::link::Street;
use crate::compile::template::Templates;
use crate::compile::{Compiled, Inputs};
use crate::name::TenantId;
use crate::report::{Code, Diagnostic, Report, hint_for};
use crate::tenant::{MANIFEST, Site};

impl Estate {
    /// Compiles every tenant whose content, addresses, theme or company profile is not what it was at the last attempt.
    pub(super) fn compile(
        &mut self,
        assignment: &Assignment,
        street: &Arc<Street>,
        now: Timestamp,
    ) {
        let (themes, islands) = (&self.themes, &self.islands);
        let last_good = LastGood {
            kept: self.kept.as_ref(),
            themes,
            now,
            drafts: islands.dev.is_some(),
        };
        self.tenants.par_iter_mut().for_each(|(id, tenant)| {
            let Some(site) = tenant.site.clone() else {
                return;
            };
            let attempt = |site: Arc<Site>, templates| MadeFrom {
                site,
                addresses: assignment.addresses.get(id).cloned().unwrap_or_default(),
                inputs: Inputs {
                    street: Arc::clone(street),
                    templates,
                    islands: Arc::clone(islands),
                    memo: Arc::clone(&tenant.kept.memo),
                },
            };
            let templates = themes.get(&site.manifest.theme);
            let first = templates.map(|templates| attempt(Arc::clone(&site), templates));
            if let (Some(first), Some(tried)) = (&first, &tenant.tried)
                && tried.is(first)
            {
                return;
            }
            tenant.kept.memo.begin();
            let begin = Instant::now();
            let (compiled, report) = match &first {
                Some(first) => first.compile(),
                None => (None, unknown_theme(&site, themes.names())),
            };
            tenant.compiled_in = begin.elapsed();
            let stand_in = match &compiled {
                None if tenant.compiled.is_none() => last_good.find(id, &site, &attempt),
                _ => None,
            };
            tenant.result = report;
            let conflicts = assignment.conflicts.get(id).cloned();
            tenant.result.extend(conflicts.unwrap_or_default());
            tenant.tried.clone_from(&first);
            match (compiled, first) {
                (Some(compiled), Some(first)) => tenant.replace(compiled, first),
                _ => stand_in.into_iter().for_each(|(compiled, made_from)| {
                    tenant.replace(compiled, made_from);
                }),
            }
        });
    }
}

/// What was good before the process began.
struct LastGood<'a> {
    kept: Option<&'a Kept>,
    themes: &'a Themes,
    now: Timestamp,
    drafts: bool,
}

impl LastGood<'_> {
    /// The newest content with the newest theme that can be compiled together.
    fn find(
        &self,
        id: &TenantId,
        site: &Arc<Site>,
        attempt: &impl Fn(Arc<Site>, Arc<Templates>) -> MadeFrom,
    ) -> Option<(Compiled, MadeFrom)> {
        let kept = self.kept?;
        let good_site = || {
            let good = kept.site(id, &site.label)?;
            Some(Arc::new(good.at(self.now, self.drafts)))
        };
        let candidates: [&dyn Fn() -> Option<MadeFrom>; 3] = [
            &|| {
                let templates = self.themes.good(&site.manifest.theme, kept)?;
                Some(attempt(Arc::clone(site), templates))
            },
            &|| {
                let site = good_site()?;
                let templates = self.themes.get(&site.manifest.theme)?;
                Some(attempt(site, templates))
            },
            &|| {
                let site = good_site()?;
                let templates = self.themes.good(&site.manifest.theme, kept)?;
                Some(attempt(site, templates))
            },
        ];
        candidates.iter().find_map(|candidate| {
            let made_from = candidate()?;
            Some((made_from.compile().0?, made_from))
        })
    }
}

fn unknown_theme<'a>(site: &Site, themes: impl Iterator<Item = &'a str> + Clone) -> Report {
    let theme = &site.manifest.theme;
    let (message, hint) = if themes.clone().any(|known| known == theme.as_str()) {
        (
            format!("the theme `{theme}` has mistakes and was never good"),
            format!("mend what is reported of `themes/{theme}`"),
        )
    } else {
        (
            format!("there is no theme `{theme}`"),
            hint_for(theme, themes),
        )
    };
    let mut report = Report::default();
    report
        .push(Diagnostic::mistake(Code::UnknownTheme, site.name_of(MANIFEST), message).hint(hint));
    report
}
