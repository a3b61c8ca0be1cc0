//! Tests of the cost of a change among many tenants, and of readings that outlive the process.

use std::fs;
use std::ops::Range;
use std::path::Path;

use tempfile::TempDir;

use release::store::RetentionLimits;
use render::CachePolicy;
use render::Islands;
use rowhouse_ui::Bundle;

use super::*;
use crate::deployment_config::DeploymentConfig;
use crate::runner::reload_loop::report;

fn write_page(tenants: &Path, tenant: usize, text: &str) {
    let pages = tenants.join(format!("t{tenant}/pages"));
    fs::create_dir_all(&pages).unwrap();
    let page = format!("---\ntitle: Page\ndescription: A page.\n---\n\n{text}\n");
    fs::write(pages.join("index.md"), page).unwrap();
}

fn write_tenants(tenants: &Path, numbers: Range<usize>) {
    for tenant in numbers {
        write_page(tenants, tenant, "The text.");
        let manifest = format!("name: Tenant {tenant}\ndescription: A tenant.\n");
        fs::write(tenants.join(format!("t{tenant}/tenant.yaml")), manifest).unwrap();
    }
}

fn config(tenants: &Path) -> DeploymentConfig {
    DeploymentConfig {
        tenants: tenants.to_owned(),
        themes: None,
        deployment: None,
        origin: "https://studio.example".parse().unwrap(),
        hsts: None,
        caching: CachePolicy::default(),
    }
}

fn registry(config: DeploymentConfig) -> Registry {
    let islands = Islands::new(Bundle::embedded().unwrap(), true);
    Registry::new(config, Arc::new(islands))
}

/// The tables of the state after a process that has read all folders, in the order of their names.
struct TablesAfterReading {
    read: Vec<String>,
    rendered: Vec<String>,
}

impl TablesAfterReading {
    fn of(folder: &TempDir) -> Self {
        let config = config(&folder.path().join("tenants"));
        let keep = RetentionLimits {
            releases: 1,
            bytes: 1 << 30,
        };
        let persisted = PersistedState::open(&folder.path().join("state"), &config, keep);
        let store = Arc::clone(persisted.store());
        // The threads of the process before may hold its store for a while.
        while store.claim().is_err() {
            thread::sleep(POLL_INTERVAL);
        }
        let registry = registry(config).with_persisted(persisted).serving();
        let mut registry = registry.with_memory(1 << 30);
        registry.reload(Timestamp::now()).unwrap();
        drop(registry);
        store.finish();
        Self {
            read: store.tables("read.tenant."),
            rendered: store.tables("good.tenant."),
        }
    }
}

/// A change of one tenant.
#[derive(Clone, Copy)]
enum Change {
    SavedPage,
    AddedFolder,
    RemovedFolder,
}

/// Counts the allocations on the loop's thread from a change until its snapshot is reported, among `count` tenants. The list of folders is not counted.
fn allocations_of(change: Change, count: usize) -> u64 {
    let folder = TempDir::new().unwrap();
    let tenants = folder.path().join("tenants");
    write_tenants(&tenants, 0..count);
    let mut registry = registry(config(&tenants)).serving().without_compression();
    let (board, now) = (StatusBoard::default(), Timestamp::now());
    registry.reload(now).unwrap();
    // A busy machine may exceed the time limit of a job, which is retried later.
    let is_complete = |registry: &Registry| {
        let mut tenants = registry.catalog.tenants.values();
        tenants.all(|tenant| tenant.compiled().is_some())
    };
    while registry.finish(&board, now).is_none() || !is_complete(&registry) {
        thread::sleep(POLL_INTERVAL);
    }
    memory::measure(&mut registry, now);

    let mut allocations = 0;
    let mut run = |work: &mut dyn FnMut()| {
        allocations += allocation_counter::measure(work).count_total;
    };
    let (id, is_survey) = match change {
        Change::SavedPage => ("t0".to_owned(), false),
        Change::AddedFolder => (format!("t{count}"), true),
        Change::RemovedFolder => ("t1".to_owned(), true),
    };
    let compiled = |registry: &Registry| {
        let tenant = registry.catalog.tenants.get(id.as_str());
        tenant.and_then(|tenant| tenant.compiled().cloned())
    };
    let before = compiled(&registry);
    match change {
        Change::SavedPage => write_page(&tenants, 0, "Another text."),
        Change::AddedFolder => write_tenants(&tenants, count..count + 1),
        Change::RemovedFolder => fs::remove_dir_all(tenants.join(&id)).unwrap(),
    }
    let event = match is_survey {
        true => {
            let survey = registry.survey_request(false).run();
            let outcome = registry.apply_survey(survey, Some(BTreeSet::new()), now);
            Event::Surveyed(outcome.unwrap())
        }
        false => Event::Requested(ReloadScope::Tenant(id.clone())),
    };
    run(&mut || registry.handle(event.clone(), now));
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let mut snapshot = None;
        run(&mut || snapshot = registry.advance(&mut NoEnvironment, now));
        let Some(snapshot) = snapshot else {
            assert!(Instant::now() < until, "no snapshot of the change");
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        run(&mut || {
            report(&registry, &board, &registry.publisher.changes);
            registry.report_published(Duration::ZERO, now);
            write::persist_shared(&mut registry);
            memory::measure(&mut registry, now);
            drop(order::order(&mut registry));
        });
        let known = registry.catalog.tenants.len();
        assert_eq!(board.current().tenants.len(), known);
        assert_eq!(snapshot.traffic.len(), known);
        let after = compiled(&registry);
        let is_same = match (&before, &after) {
            (Some(before), Some(after)) => Arc::ptr_eq(before, after),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            return allocations;
        }
    }
}

fn check_cost(change: Change) {
    let (few, many) = (allocations_of(change, 4), allocations_of(change, 100));
    assert!(
        many < few * 3 / 2 + 100,
        "{few} allocations among 4 tenants, {many} among 100"
    );
}

#[test]
fn saved_page_costs_the_same_among_few_tenants_and_among_many() {
    check_cost(Change::SavedPage);
}

#[test]
fn added_folder_costs_the_same_among_few_tenants_and_among_many() {
    check_cost(Change::AddedFolder);
}

#[test]
fn removed_folder_costs_the_same_among_few_tenants_and_among_many() {
    check_cost(Change::RemovedFolder);
}

#[test]
fn reading_is_persisted_before_any_page_is_rendered_and_goes_with_its_folder() {
    // The folders of fewer tenants stay open in memory.
    const COUNT: usize = 260;
    let folder = TempDir::new().unwrap();
    let tenants = folder.path().join("tenants");
    write_tenants(&tenants, 0..COUNT);
    // A file that has just changed may change again without a new time.
    thread::sleep(Duration::from_millis(100));
    let TablesAfterReading { read, rendered } = TablesAfterReading::of(&folder);
    assert_eq!(read.len(), COUNT);
    let removed = read.iter().find(|id| !rendered.contains(id)).unwrap();
    fs::remove_dir_all(tenants.join(removed)).unwrap();
    let read = TablesAfterReading::of(&folder).read;
    assert_eq!(read.len(), COUNT - 1);
    assert!(!read.contains(removed));
}
