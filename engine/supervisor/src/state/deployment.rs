//! The identity of a deployment, and the folder of its state within the directory of `--state`.
//!
//! A state belongs to a deployment, not to a path. Each folder has a label: its id, the origin, and the folder of tenants.
//! At startup the label decides which folder is used:
//!
//! 1. the same domain and the same folder of tenants;
//! 2. the same domain, with another folder of tenants: the folder was moved, or has another mount;
//! 3. the same folder of tenants, with another domain: the deployment has a new origin;
//! 4. no folder: a new one is made.
//!
//! Every laptop has the domain `localhost`. There the second rule needs a further sign: the former folder of tenants is gone.
//! Versions until 0.2 named a folder after the paths of tenants and themes. Such a folder is found by the third rule, and then gets a label.
//!
//! **Invariant:** reads labels only, and writes nothing.

use std::path::Path;
use std::time::SystemTime;

use release::store::{StateFolder, Store};
use sha2::{Digest, Sha256};
use tracing::{info, warn};

use crate::deployment_config::DeploymentConfig;

/// The number of hexadecimal digits of an id.
const ID_DIGITS: usize = 16;

/// The facts by which a deployment is found again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeploymentFacts {
    /// The origin; empty in a folder of a version until 0.2.
    origin: String,
    /// The domain of the origin.
    domain: String,
    /// The absolute path of the folder of tenants. Symbolic links are not resolved: a link that is switched to another release stays the same folder.
    tenants: String,
    /// The absolute path of the folder of themes, which versions until 0.2 need.
    themes: String,
}

/// A folder of the state, and the deployment that its label names.
#[derive(Debug, Clone)]
struct Candidate {
    name: String,
    owner: DeploymentFacts,
    used: SystemTime,
    /// Whether the folder of tenants of the label exists.
    has_tenants: bool,
}

/// The folder of a deployment's state.
#[derive(Debug)]
pub(crate) struct StateLocation {
    /// The name of the folder, which is the id of the deployment.
    pub(crate) name: String,
    /// The text that says whose state the folder has.
    pub(crate) label: String,
    /// The deployment that the folder was written for, if it exists.
    former: Option<DeploymentFacts>,
    /// The origins of other deployments in the directory.
    others: Vec<String>,
}

impl DeploymentFacts {
    pub(crate) fn of(places: &DeploymentConfig) -> Self {
        let absolute = |path: &Path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            path.display().to_string()
        };
        Self {
            origin: places.origin.to_string(),
            domain: places.origin.domain().to_owned(),
            tenants: absolute(&places.tenants),
            themes: places.themes.as_deref().map(absolute).unwrap_or_default(),
        }
    }

    /// Returns the text of the label.
    fn label(&self, id: &str) -> String {
        let Self {
            origin,
            domain,
            tenants,
            ..
        } = self;
        format!("id: {id}\norigin: {origin}\ndomain: {domain}\ntenants: {tenants}\n")
    }

    /// Parses a label. The folder of tenants is the last value, since a path may have line breaks.
    fn parse(label: &str) -> Option<Self> {
        let (_, rest) = label.strip_prefix("id: ")?.split_once("\norigin: ")?;
        let (origin, rest) = rest.split_once("\ndomain: ")?;
        let (domain, tenants) = rest.split_once("\ntenants: ")?;
        Some(Self {
            origin: origin.to_owned(),
            domain: domain.to_owned(),
            tenants: tenants.strip_suffix('\n')?.to_owned(),
            themes: String::new(),
        })
    }

    /// Parses the paths that versions until 0.2 wrote.
    fn parse_former(text: &str) -> Option<Self> {
        let (tenants, themes) = text.strip_suffix('\n')?.split_once('\n')?;
        Some(Self {
            origin: String::new(),
            domain: String::new(),
            tenants: tenants.to_owned(),
            themes: themes.to_owned(),
        })
    }

    /// Returns the `number`th id of a deployment with these paths. Two processes that start at the same time choose the same id, and share a lock.
    fn id(&self, number: usize) -> String {
        let mut text = format!("{}\n{}\n", self.tenants, self.themes);
        if number > 0 {
            text.push_str(&format!("{number}\n"));
        }
        let digits = Sha256::digest(text.as_bytes());
        let digits: String = digits.iter().map(|byte| format!("{byte:02x}")).collect();
        digits[..ID_DIGITS].to_owned()
    }

    /// Returns whether the domain is one of every machine, and so says nothing about the deployment.
    fn is_local(&self) -> bool {
        let is_loopback = |address: std::net::IpAddr| address.is_loopback();
        self.domain == "localhost"
            || self.domain.ends_with(".localhost")
            || self.domain.parse().is_ok_and(is_loopback)
    }

    /// Returns how well a folder fits this deployment, or `None` if it belongs to another.
    fn fit(&self, candidate: &Candidate) -> Option<u8> {
        let owner = &candidate.owner;
        let is_same_domain = owner.domain == self.domain;
        let is_same_folder = owner.tenants == self.tenants;
        match (is_same_domain, is_same_folder) {
            (true, true) => Some(4),
            (true, false) if !self.is_local() => Some(3),
            // Version 0.2.0 made a state for each pair of folders, so the state with the same themes is the former one.
            (false, true) if owner.themes == self.themes => Some(2),
            (false, true) => Some(1),
            (true, false) if !candidate.has_tenants => Some(0),
            // The label is damaged, and the name says the paths at the first startup.
            _ if owner.tenants.is_empty() && candidate.name == self.id(0) => Some(0),
            _ => None,
        }
    }

    /// Returns the folder of this deployment: the one that fits best and, of several, the one that was used last.
    fn choose<'c>(&self, candidates: &'c [Candidate]) -> Option<&'c Candidate> {
        let fits = candidates
            .iter()
            .filter_map(|candidate| Some((self.fit(candidate)?, candidate)));
        let best = fits.max_by_key(|(fit, candidate)| (*fit, candidate.used));
        best.map(|(_, candidate)| candidate)
    }
}

impl Candidate {
    /// Returns a folder with its owner, which is empty if the label is damaged.
    fn of(folder: StateFolder) -> Self {
        let labelled = folder.label.as_deref().and_then(DeploymentFacts::parse);
        let owner = labelled.or_else(|| DeploymentFacts::parse_former(&folder.former_label));
        let owner = owner.unwrap_or_default();
        Self {
            name: folder.name,
            has_tenants: Path::new(&owner.tenants).is_dir(),
            owner,
            used: folder.used,
        }
    }
}

/// Finds the folder of a deployment's state in `directory`.
pub(crate) fn locate(directory: &Path, places: &DeploymentConfig) -> StateLocation {
    let own = DeploymentFacts::of(places);
    let folders = Store::deployments(directory);
    let taken: Vec<String> = folders.iter().map(|folder| folder.name.clone()).collect();
    let candidates: Vec<Candidate> = folders.into_iter().map(Candidate::of).collect();
    let found = own.choose(&candidates);
    let free = || {
        let mut ids = (0..=taken.len()).map(|number| own.id(number));
        ids.find(|id| !taken.contains(id))
    };
    let name = found.map(|candidate| candidate.name.clone()).or_else(free);
    let name = name.unwrap_or_else(|| own.id(0));
    let others = candidates.iter().filter(|candidate| candidate.name != name);
    let others = others.map(|candidate| match &candidate.owner {
        owner if owner.origin.is_empty() => owner.tenants.clone(),
        owner if owner.domain == own.domain => format!("{} ({})", owner.origin, owner.tenants),
        owner => owner.origin.clone(),
    });
    StateLocation {
        label: own.label(&name),
        former: found.map(|candidate| candidate.owner.clone()),
        others: others.collect(),
        name,
    }
}

impl StateLocation {
    /// Logs a deployment that has moved or has a new origin, and a new state beside states of other deployments.
    pub(crate) fn log(&self, places: &DeploymentConfig) {
        let own = DeploymentFacts::of(places);
        let id = &self.name;
        match &self.former {
            None if self.others.is_empty() => {}
            None => warn!(
                id,
                origin = own.origin,
                tenants = own.tenants,
                others = self.others.join(" "),
                "no state of this deployment; starting without releases and pins"
            ),
            Some(former) if former.origin.is_empty() => {
                info!(id, "state of an earlier version adopted");
            }
            Some(former) if former.domain != own.domain => warn!(
                id,
                from = former.origin,
                to = own.origin,
                "the origin has changed; using the state of the same folder of tenants"
            ),
            Some(former) if former.tenants != own.tenants => info!(
                id,
                from = former.tenants,
                to = own.tenants,
                "the folder of tenants has moved; using the state of the same origin"
            ),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn deployment(domain: &str, tenants: &str) -> DeploymentFacts {
        DeploymentFacts {
            origin: format!("https://{domain}"),
            domain: domain.to_owned(),
            tenants: tenants.to_owned(),
            themes: String::new(),
        }
    }

    fn candidate(name: &str, owner: DeploymentFacts) -> Candidate {
        Candidate {
            name: name.to_owned(),
            owner,
            used: SystemTime::UNIX_EPOCH,
            has_tenants: true,
        }
    }

    fn chosen<'c>(own: &DeploymentFacts, candidates: &'c [Candidate]) -> Option<&'c str> {
        own.choose(candidates)
            .map(|candidate| candidate.name.as_str())
    }

    #[test]
    fn label_is_parsed_as_written() {
        let own = deployment("studio.example", "/srv/a\nb: c");
        assert_eq!(DeploymentFacts::parse(&own.label("id")), Some(own));
        for damaged in ["", "id: x", "/srv/tenants\n\n", "id: x\norigin: y\n"] {
            assert_eq!(DeploymentFacts::parse(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn moved_folder_or_new_origin_is_the_same_deployment() {
        let own = deployment("studio.example", "/new");
        let moved = candidate("moved", deployment("studio.example", "/old"));
        let renamed = candidate("renamed", deployment("before.example", "/new"));
        let same = candidate("same", own.clone());
        let other = candidate("other", deployment("other.example", "/other"));
        let all = [other.clone(), renamed.clone(), moved, same];
        assert_eq!(chosen(&own, &all), Some("same"));
        assert_eq!(chosen(&own, &all[..3]), Some("moved"));
        assert_eq!(chosen(&own, &all[..2]), Some("renamed"));
        assert_eq!(chosen(&own, &all[..1]), None);
    }

    #[test]
    fn local_domain_is_the_same_deployment_only_without_the_former_folder() {
        let own = deployment("localhost", "/new");
        let mut project = candidate("project", deployment("localhost", "/old"));
        assert_eq!(chosen(&own, std::slice::from_ref(&project)), None);
        project.has_tenants = false;
        assert_eq!(chosen(&own, &[project]), Some("project"));
    }

    #[test]
    fn state_of_a_former_version_is_found_by_its_paths() {
        let own = DeploymentFacts {
            themes: "/themes".to_owned(),
            ..deployment("studio.example", "/tenants")
        };
        let former = |text| DeploymentFacts::parse_former(text).expect("two paths");
        let mut late = candidate("late", former("/tenants\n/other\n"));
        late.used += Duration::from_secs(1);
        let exact = candidate("exact", former("/tenants\n/themes\n"));
        assert_eq!(chosen(&own, &[exact, late.clone()]), Some("exact"));
        assert_eq!(chosen(&own, &[late]), Some("late"));
        let elsewhere = candidate("elsewhere", former("/elsewhere\n/themes\n"));
        assert_eq!(chosen(&own, &[elsewhere]), None);
    }

    #[test]
    fn folder_with_a_damaged_label_is_found_by_its_name() {
        let own = deployment("studio.example", "/tenants");
        let damaged = candidate(&own.id(0), DeploymentFacts::default());
        let other = candidate("other", DeploymentFacts::default());
        assert_eq!(chosen(&own, &[other, damaged]), Some(&*own.id(0)));
    }

    #[test]
    fn of_two_folders_that_fit_equally_the_last_used_is_chosen() {
        let own = deployment("studio.example", "/new");
        let early = candidate("early", deployment("studio.example", "/a"));
        let mut late = candidate("late", deployment("studio.example", "/b"));
        late.used += Duration::from_secs(1);
        assert_eq!(chosen(&own, &[late, early]), Some("late"));
    }
}
