//! An unchanged tenant is not rendered again: a process with a state serves and reports the same as a process without one.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use content::report::Report;
use release::snapshot::{ContentEncoding, Resource};
use render::CachePolicy;
use render::Islands;
use rowhouse_tests::state;
use rowhouse_ui::Bundle;
use supervisor::{DeploymentConfig, PersistedState, Registry};

use crate::authoring::dev_mode::everything;
use crate::media::images::photo;
use crate::state::stateful_deployment::{RETENTION_LIMITS, StatefulDeployment};

#[test]
fn process_with_state_serves_same_bytes() {
    let deployment = StatefulDeployment::new();
    let process = Process::of(&deployment);
    let written = || {
        let versions = |table: &str| state::versions(&deployment.path("state"), table);
        let mut made = deployment.tables();
        made.retain(|table| table.starts_with("made."));
        made.into_iter()
            .map(|table| (versions(&table), table))
            .collect::<Vec<_>>()
    };
    assert_eq!(process.run(), 0, "a state that is empty");
    let before = written();
    // Tables of two tenants and of the themes; the islands' modules are compressed at build time.
    assert_eq!(before.len(), 3, "{before:?}");
    assert_eq!(process.run(), 2, "a state that is full");
    assert_eq!(
        written(),
        before,
        "nothing was worked out, so nothing is written"
    );
}

#[test]
fn changed_inputs_render_tenant_again() {
    let deployment = StatefulDeployment::new();
    deployment.write(
        "tenants/app/pages/soon.md",
        "---\ntitle: Soon\npublish: 2026-12-01T00:00:00Z\n---\nIt is there.\n",
    );
    let mut process = Process::of(&deployment);
    process.run();
    assert_eq!(process.run(), 2, "nothing changed");
    let edit = |path: &str, from: &str, to: &str| {
        let text = fs::read_to_string(deployment.path(path)).expect("a file");
        assert!(text.contains(from), "{path}: {text}");
        deployment.write(path, &text.replace(from, to));
    };
    edit("tenants/app/pages/terms.md", "title:", "title: The");
    assert_eq!(process.run(), 1, "a page of one of them");
    edit(
        "tenants/app/tenant.yaml",
        "aliases: [/apps/app]",
        "aliases: [/store]",
    );
    assert_eq!(process.run(), 1, "its addresses");
    edit("tenants/home/tenant.yaml", "post@", "mail@");
    assert_eq!(process.run(), 0, "what all pages say of the company");
    edit(
        "themes/base/theme.yaml",
        "name:",
        "# The theme of both.\nname:",
    );
    assert_eq!(process.run(), 0, "their theme");
    process.now = "2026-12-01T12:00:00Z";
    assert_eq!(process.run(), 1, "a page whose moment has come");
    process.now = "2027-06-01T12:00:00Z";
    assert_eq!(process.run(), 0, "the year");
    process.places.origin = "https://other.example".parse().expect("an origin");
    assert_eq!(process.run(), 0, "the domain");
    assert_eq!(process.run(), 2, "nothing changed");
    let state = state::deployments(&deployment.path("state"));
    fs::remove_dir_all(state[0].join("releases/app")).expect("removed");
    assert_eq!(process.run(), 1, "its pages are gone");
    assert_eq!(process.run(), 2, "nothing changed");
}

#[test]
fn unrequested_images_are_rendered_from_persisted_inputs() {
    let deployment = StatefulDeployment::new();
    let text = "---\ntitle: Hall\n---\n![The hall, seen from the door](hall.jpg)\n";
    deployment.write("tenants/app/pages/hall.md", text);
    fs::write(
        deployment.path("tenants/app/pages/hall.jpg"),
        photo(900, 600),
    )
    .expect("a file");
    let mut process = Process::of(&deployment);
    process.draws = false;
    assert_eq!(process.run(), 0);
    assert_eq!(process.run(), 2, "nothing is drawn, and nothing rendered");
    process.draws = true;
    assert_eq!(process.run(), 2, "it is drawn, and nothing rendered");
}

/// A process that starts, serves all pages and ends.
struct Process {
    places: DeploymentConfig,
    state: PathBuf,
    now: &'static str,
    /// Whether images are rendered.
    draws: bool,
}

impl Process {
    fn of(deployment: &StatefulDeployment) -> Self {
        Self {
            places: DeploymentConfig {
                tenants: deployment.path("tenants"),
                themes: Some(deployment.path("themes")),
                deployment: None,
                origin: "https://studio.example".parse().expect("an origin"),
                hsts: None,
                caching: CachePolicy::default(),
            },
            state: deployment.path("state"),
            now: "2026-11-21T12:00:00Z",
            draws: true,
        }
    }

    /// Runs with the state, and compares the result with a process without it. Returns the number of tenants that were not rendered.
    #[track_caller]
    fn run(&self) -> u64 {
        let kept = PersistedState::open(&self.state, &self.places, RETENTION_LIMITS);
        let (served, said, recalls) = self.served(Some(kept));
        let (anew, said_anew, _) = self.served(None);
        assert_eq!(said, said_anew);
        for ((name, bytes), (other, anew)) in served.iter().zip(&anew) {
            assert!(name == other && bytes == anew, "{name}");
        }
        assert_eq!(served.len(), anew.len());
        recalls
    }

    #[expect(clippy::type_complexity, reason = "said once")]
    fn served(
        &self,
        kept: Option<PersistedState>,
    ) -> (Vec<(String, Vec<(ContentEncoding, Vec<u8>)>)>, Report, u64) {
        let bundle = Bundle::embedded().expect("the islands");
        let islands = Arc::new(Islands::new(bundle, true));
        let mut registry = Registry::new(self.places.clone(), islands);
        if let Some(kept) = kept {
            registry = registry.with_persisted(kept);
        }
        let snapshot = registry.reload(self.now.parse().expect("a moment"));
        let snapshot = snapshot.expect("the folders");
        if self.draws {
            registry.render_images();
        }
        registry.persist();
        registry.finish_persisting();
        let resources = everything(&snapshot).into_iter();
        let bodies = resources.map(|(name, resource)| (name, codings(resource)));
        (
            bodies.collect(),
            registry.report(),
            registry.store_status().recalls,
        )
    }
}

/// Returns the bytes of a resource in every encoding.
fn codings(resource: &Resource) -> Vec<(ContentEncoding, Vec<u8>)> {
    match resource {
        Resource::Body(body) => {
            let variants = body.variants.iter();
            variants
                .map(|variant| {
                    (
                        variant.encoding,
                        variant.bytes.to_bytes().expect("bytes").to_vec(),
                    )
                })
                .collect()
        }
        Resource::Redirect(_) => Vec::new(),
    }
}
