//! Compiles the tenants that changed, or stands in with what was good before the process began.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use rayon::prelude::*;

use super::Estate;
use super::kept::Kept;
use super::slow::{self, Job, SlowLane};
use super::tenant::MadeFrom;
use super::themes::Themes;
use crate::address::Assignment;
use crate::compile::link::Street;
use crate::compile::template::Templates;
use crate::compile::{Compiled, Inputs};
use crate::name::TenantId;
use crate::report::{Code, Diagnostic, Report, hint_for};
use crate::snapshot::Snapshot;
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
        let slow = self.slow.as_ref().map(SlowLane::jobs);
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
            tenant.tried.clone_from(&first);
            if let (Some(slow), Some(made_from)) = (&slow, &first)
                && slow::is_slow(tenant, made_from)
            {
                let job = Job {
                    id: id.clone(),
                    made_from: made_from.clone(),
                };
                tenant.is_under_way = slow.send(job).is_ok();
                return;
            }
            let begin = Instant::now();
            let (compiled, report) = match &first {
                Some(first) => first.compile(),
                None => (None, unknown_theme(&site, themes.names())),
            };
            let stand_in = match &compiled {
                None if tenant.compiled.is_none() => last_good.find(id, &site, &attempt),
                _ => None,
            };
            tenant.conclude(report, begin.elapsed());
            match (compiled, first) {
                (Some(compiled), Some(first)) => tenant.replace(compiled, first),
                _ => stand_in.into_iter().for_each(|(compiled, made_from)| {
                    tenant.replace(compiled, made_from);
                }),
            }
        });
    }

    /// Takes what was compiled aside, and gives the snapshot that has it; `None` when nothing was, or all of it is obsolete.
    pub(super) fn take_slow(&mut self) -> Option<Snapshot> {
        let street = self.street.clone()?;
        let done = self.slow.as_ref()?.done();
        let mut is_new = false;
        for done in done {
            let Job { id, made_from } = done.job;
            let Some(tenant) = self.tenants.get_mut(&id) else {
                continue;
            };
            if !tenant
                .tried
                .as_ref()
                .is_some_and(|tried| tried.is(&made_from))
            {
                continue;
            }
            is_new = true;
            tenant.conclude(done.report, done.took);
            if let Some(compiled) = done.compiled {
                tenant.replace(compiled, made_from);
            }
        }
        is_new.then(|| self.renew(&street))
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
            let good = Arc::new(kept.site(id, &site.label)?);
            Some(good.at(self.now, self.drafts))
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
