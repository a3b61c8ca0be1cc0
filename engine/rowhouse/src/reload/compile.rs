//! Compiles the tenants that changed, or stands in with what was good before the process began.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::lifecycle::Finished;
use super::persisted::kept_site;
use super::registry::Registry;
use super::tenant::{MadeFrom, failure};
use super::work::{Attempt, Done};
use super::workers::{Job, Kind, Wait};
use content::address::Assignment;
use content::name::TenantId;
use content::report::guard::guard;
use content::report::{Code, Diagnostic, Report, hint_for};
use content::tenant::{MANIFEST, Site};
use render::link::Deployment;
use render::template::Templates;
use render::{Inputs, Progress};

/// How long one page may take to be rendered. Themes are trusted, and the slowest page takes a fraction of a second.
const LIMIT: Duration = Duration::from_secs(10);

impl Registry {
    /// Hands over every tenant whose content, addresses, theme or company profile is not what it was at the last attempt.
    pub(super) fn compile(
        &mut self,
        assignment: &Assignment,
        deployment: &Arc<Deployment>,
        now: Timestamp,
    ) {
        let mut jobs = Vec::new();
        let mut without_theme = Vec::new();
        for (id, tenant) in &mut self.tenants {
            let Some(site) = tenant.site.clone() else {
                continue;
            };
            let Some(templates) = self.themes.get(&site.manifest.theme) else {
                tenant.lifecycle.stop();
                let report = unknown_theme(&site, self.themes.names());
                tenant.conclude(report, Duration::ZERO);
                if tenant.compiled().is_none() {
                    without_theme.push((id.clone(), site));
                }
                continue;
            };
            let made_from = MadeFrom {
                site,
                addresses: assignment.addresses.get(id).cloned().unwrap_or_default(),
                inputs: Inputs {
                    deployment: Arc::clone(deployment),
                    templates,
                    islands: Arc::clone(&self.islands),
                    cache: Arc::clone(&tenant.persisted.cache),
                    progress: Arc::default(),
                },
            };
            if !tenant.lifecycle.begin(&made_from) {
                continue;
            }
            tenant.persisted.cache.begin();
            let watched = made_from.clone();
            jobs.push(Job {
                id: id.clone(),
                kind: Kind::Compile,
                watchdog: Some(Box::new(move || endless(&watched))),
                work: Box::new(move || {
                    let begin = Instant::now();
                    let (compiled, report) = made_from.compile();
                    Done::Compiled(Box::new(Attempt {
                        made_from,
                        compiled,
                        report,
                        took: begin.elapsed(),
                    }))
                }),
            });
        }
        for (id, site) in without_theme {
            let addresses = assignment.addresses.get(&id).cloned().unwrap_or_default();
            jobs.extend(self.stand_in(&id, &site, addresses, deployment, now));
        }
        self.workers.hand_over(jobs);
    }

    /// Takes what was done, and waits for more as far as `wait` says. Whether anything came, and whether a folder was among it, which may change what others are.
    pub(super) fn take_done(&mut self, wait: Wait, now: Timestamp) -> (bool, bool) {
        let (mut is_new, mut is_read) = (false, false);
        while let Some((id, done)) = self.workers.next(wait) {
            match done {
                Done::Read(number, read) => {
                    is_read |= read.is_some();
                    self.take_reading(&id, number, read, now);
                }
                Done::Compiled(attempt) => self.take_attempt(&id, *attempt, now),
                Done::StandIn(stand_in) => {
                    let tenant = self.tenants.get_mut(&id);
                    let absent = tenant.filter(|tenant| tenant.compiled().is_none());
                    if let (Some(tenant), Some(stand_in)) = (absent, stand_in) {
                        let (compiled, made_from) = *stand_in;
                        tenant.replace_files(&compiled, now);
                        tenant.lifecycle.stand_in(made_from, Arc::new(compiled));
                    }
                }
            }
            is_new = true;
        }
        (is_new, is_read)
    }

    /// Takes a tenant that was compiled, unless it is another one by now.
    fn take_attempt(&mut self, id: &TenantId, attempt: Attempt, now: Timestamp) {
        let made_from = attempt.made_from;
        let tenant = self.tenants.get_mut(id);
        let Some(tenant) = tenant.filter(|tenant| tenant.lifecycle.awaits(&made_from)) else {
            return;
        };
        tenant.conclude(attempt.report, attempt.took);
        if let Some(compiled) = &attempt.compiled {
            tenant.replace_files(compiled, now);
        }
        let compiled = attempt.compiled.map(Arc::new);
        if tenant.lifecycle.finish(made_from.clone(), compiled) == Finished::NeedsStandIn {
            let MadeFrom {
                site,
                addresses,
                inputs,
            } = made_from;
            let job = self.stand_in(id, &site, addresses, &inputs.deployment, now);
            self.workers.hand_over(job.into_iter().collect());
        }
    }

    /// A job that compiles the newest content with the newest theme that can be, of what was good before the process began.
    fn stand_in(
        &self,
        id: &TenantId,
        site: &Arc<Site>,
        addresses: Vec<content::address::Address>,
        deployment: &Arc<Deployment>,
        now: Timestamp,
    ) -> Option<Job<Done>> {
        let persisted = self.persisted.as_ref()?;
        let tenant = self.tenants.get(id)?;
        let theme = &site.manifest.theme;
        let (themes, drafts) = (Arc::clone(&self.themes.good), self.is_dev());
        let (state, theme) = (Arc::clone(persisted.state()), theme.clone());
        let (id, site, deployment) = (id.clone(), Arc::clone(site), Arc::clone(deployment));
        let (islands, cache) = (
            Arc::clone(&self.islands),
            Arc::clone(&tenant.persisted.cache),
        );
        let templates = self.themes.get(&theme);
        let progress = Arc::<Progress>::default();
        let watched = Arc::clone(&progress);
        let attempt = move |site: Arc<Site>, templates: Arc<Templates>| {
            let made_from = MadeFrom {
                site,
                addresses: addresses.clone(),
                inputs: Inputs {
                    deployment: Arc::clone(&deployment),
                    templates,
                    islands: Arc::clone(&islands),
                    cache: Arc::clone(&cache),
                    progress: Arc::clone(&progress),
                },
            };
            Some((made_from.compile().0?, made_from))
        };
        let name = id.clone();
        let find = move || {
            let good_theme = || themes.get(&theme);
            let good_site = || {
                let good = Arc::new(kept_site(&state, &id, &site.label)?);
                Some(good.at(now, drafts))
            };
            good_theme()
                .and_then(|good| attempt(Arc::clone(&site), good))
                .or_else(|| attempt(good_site()?, templates?))
                .or_else(|| attempt(good_site()?, good_theme()?))
                .map(Box::new)
        };
        Some(Job {
            id: name.clone(),
            kind: Kind::Compile,
            watchdog: Some(Box::new(move || {
                watched.give_up_after(LIMIT).map(|_| Done::StandIn(None))
            })),
            work: Box::new(move || {
                let found = guard("kept", name.as_str(), MANIFEST, find);
                Done::StandIn(found.ok().flatten())
            }),
        })
    }
}

/// What comes of a tenant of which a page has been rendered for longer than [`LIMIT`]; nothing where none has.
fn endless(made_from: &MadeFrom) -> Option<Done> {
    let (path, template) = made_from.inputs.progress.give_up_after(LIMIT)?;
    let site = &made_from.site;
    let page = site.pages.get(&path);
    let page = page.map_or_else(
        || "an error page".to_owned(),
        |page| format!("`{}`", site.name_of(&page.file)),
    );
    let diagnostic = Diagnostic::error(
        Code::TemplateFailed,
        format!("{}/{template}", made_from.inputs.templates.theme.label),
        format!(
            "rendering {page} did not end within {} seconds and was given up",
            LIMIT.as_secs()
        ),
    );
    let hint = "look for loops within loops, and for lists that grow with every turn";
    Some(Done::Compiled(Box::new(Attempt {
        made_from: made_from.clone(),
        compiled: None,
        report: failure(diagnostic.hint(hint)),
        took: LIMIT,
    })))
}

fn unknown_theme<'a>(site: &Site, themes: impl Iterator<Item = &'a str> + Clone) -> Report {
    let theme = &site.manifest.theme;
    let (message, hint) = if themes.clone().any(|known| known == theme.as_str()) {
        (
            format!("the theme `{theme}` has errors, so that no page can be rendered"),
            format!("mend what is reported of `themes/{theme}`"),
        )
    } else {
        (
            format!("there is no theme `{theme}`"),
            hint_for(theme, themes),
        )
    };
    let mut report = Report::default();
    report.push(Diagnostic::error(Code::UnknownTheme, site.name_of(MANIFEST), message).hint(hint));
    report
}
