//! Tests of the changes that a watch reports, and of the number of watches.

use std::io;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// Waits for longer than a tick of the file system's clock.
fn wait_for_clock_tick() {
    std::thread::sleep(Duration::from_millis(50));
}

/// Returns the next changes, and updates the watches of the changed folders.
fn next(watch: &mut Watch, timeout: Duration) -> Option<FolderChanges> {
    let changes = watch.next(timeout)?;
    let _ = watch.refresh(&changes);
    Some(changes)
}

/// Returns a watch that has begun.
fn begin_watch(roots: Vec<PathBuf>) -> Watch {
    let mut watch = Watch::new(DetectionMethod::Notifications, roots);
    watch.begin();
    watch
}

/// Creates a folder of tenants with a page each, and a watch over the folder.
fn watch_tenants(names: &[&str], prepare: impl Fn(&Path)) -> (TempDir, PathBuf, Watch) {
    let root = TempDir::new().expect("a folder");
    let tenants = root.path().canonicalize().expect("a path").join("tenants");
    for name in names {
        write(&tenants, &format!("{name}/pages/index.md"), "first");
    }
    prepare(&tenants);
    wait_for_clock_tick();
    let watch = begin_watch(vec![tenants.clone()]);
    assert!(!watch.status().is_polling());
    (root, tenants, watch)
}

fn write(tenants: &Path, path: &str, text: &str) {
    let path = tenants.join(path);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

/// Waits until changes of all tenants in `wanted` are noticed.
fn wait_until_noticed(watch: &mut Watch, tenants: &Path, wanted: &[&str]) {
    let mut names = BTreeSet::new();
    let begin = Instant::now();
    while !wanted.iter().all(|name| names.contains(*name)) {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "only {names:?} of {wanted:?} are noticed"
        );
        if let Some(changes) = next(watch, Duration::from_millis(100)) {
            names.extend(changes.below(tenants).unwrap_or_default());
        }
    }
}

fn changes(paths: &[&str]) -> FolderChanges {
    FolderChanges {
        paths: paths.iter().map(PathBuf::from).collect(),
        affects_all: false,
    }
}

#[test]
fn changes_are_reported_by_first_name_below_root() {
    let both = changes(&["/t/a/pages/index.md", "/t/b", "/themes/base/x.css"]);
    let names = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    assert_eq!(both.below(Path::new("/t")), Some(names));
    assert_eq!(changes(&["/t"]).below(Path::new("/t")), None);
    assert_eq!(
        changes(&["/u"]).below(Path::new("/t")),
        Some(BTreeSet::new())
    );
}

#[test]
fn relative_root_matches_absolute_paths() {
    let here = std::env::current_dir().expect("a folder");
    let path = here.join("themes/base/theme.yaml");
    let changes = changes(&[&path.display().to_string()]);
    assert_eq!(
        changes.below(Path::new("themes")),
        Some(BTreeSet::from(["base".to_owned()]))
    );
}

#[test]
fn only_tenants_beyond_limit_of_watches_are_polled() {
    let (_root, tenants, mut watch) = watch_tenants(&["beyond", "within"], |_| ());
    let at = tenants.join("beyond/pages");
    // Simulates that the system refused the watch.
    let watcher = watch.watcher.as_mut().expect("notifications");
    watcher.unwatch(&at).expect("a watch");
    let at: Arc<Path> = at.into();
    let path = WatchedPath {
        at: Arc::clone(&at),
        shown: at,
    };
    let error = notify::Error::new(ErrorKind::MaxFilesWatch);
    watch.poll_unwatchable(&path, &error);
    assert!(watch.status().is_polling() && watch.watcher.is_some());
    write(&tenants, "within/pages/index.md", "second");
    wait_until_noticed(&mut watch, &tenants, &["within"]);
    write(&tenants, "beyond/pages/index.md", "second");
    wait_until_noticed(&mut watch, &tenants, &["beyond"]);
    // The watch is possible again, and the last update has set it.
    assert!(!watch.status().is_polling());
}

#[test]
fn target_of_link_outside_roots_is_elsewhere() {
    let roots = [Path::new("/t"), Path::new("/themes")];
    assert!(changes(&["/elsewhere/x"]).has_outside_paths(&roots));
    assert!(!changes(&["/t/a", "/themes/base"]).has_outside_paths(&roots));
}

#[test]
fn circular_links_and_links_out_of_tenant_need_no_watch() {
    let outside = TempDir::new().expect("a folder");
    for number in 0..50 {
        write(outside.path(), &format!("{number}/x"), "x");
    }
    let (_root, tenants, mut watch) = watch_tenants(&["bad", "good"], |tenants| {
        for name in ["l1", "l2", "l3"] {
            symlink(".", tenants.join("bad/pages").join(name)).expect("a link");
        }
        symlink("/", tenants.join("bad/root")).expect("a link");
        symlink(outside.path(), tenants.join("bad/outside")).expect("a link");
        symlink("/", tenants.join("root")).expect("a link");
        symlink(".", tenants.join("self")).expect("a link");
        for number in 0..50 {
            write(tenants, &format!("bad/.git/{number}/x"), "x");
        }
    });
    assert_eq!(watch.folders.count(), 4, "two tenants with their pages");
    let polled = watch.lock_polled().clone();
    assert_eq!(polled, [tenants.join("root"), tenants.join("self")].into());
    write(&tenants, "good/pages/index.md", "second");
    wait_until_noticed(&mut watch, &tenants, &["good"]);
    assert_eq!(poll::below(&[tenants], &PathProbe::default()).len(), 4);
}

#[test]
fn folder_that_cannot_be_watched_affects_only_its_tenant() {
    let (_root, tenants, mut watch) = watch_tenants(&["bad", "good"], |_| ());
    let at = tenants.join("bad/pages");
    // Simulates that the system refused the watch.
    let watcher = watch.watcher.as_mut().expect("notifications");
    watcher.unwatch(&at).expect("a watch");
    let error = io::Error::from(io::ErrorKind::PermissionDenied);
    let at: Arc<Path> = at.into();
    let path = WatchedPath {
        at: Arc::clone(&at),
        shown: at,
    };
    watch.poll_unwatchable(&path, &notify::Error::io(error));
    assert!(!watch.status().is_polling());
    write(&tenants, "good/pages/index.md", "second");
    wait_until_noticed(&mut watch, &tenants, &["good"]);
    write(&tenants, "bad/pages/index.md", "second");
    wait_until_noticed(&mut watch, &tenants, &["bad"]);
}

#[test]
fn tenant_is_polled_while_it_exceeds_a_limit() {
    let (_root, tenants, mut watch) = watch_tenants(&["bad", "good"], |tenants| {
        for number in 0..5_000 {
            std::fs::create_dir_all(tenants.join(format!("bad/many/{number}"))).expect("a folder");
        }
    });
    assert_eq!(watch.folders.count(), 2, "the folders of the other tenant");
    write(&tenants, "good/pages/index.md", "second");
    wait_until_noticed(&mut watch, &tenants, &["good"]);
    std::fs::remove_dir_all(tenants.join("bad/many")).expect("a removed folder");
    wait_until_noticed(&mut watch, &tenants, &["bad"]);
    while watch.folders.count() < 4 {
        wait_until_noticed(&mut watch, &tenants, &["bad"]);
    }
    assert!(watch.lock_polled().is_empty());
}

#[test]
fn change_of_folder_is_reported_for_all_tenants_that_link_to_it() {
    let outside = TempDir::new().expect("a folder");
    write(outside.path(), "release/pages/index.md", "first");
    let (_root, tenants, mut watch) = watch_tenants(&["one"], |tenants| {
        symlink("one", tenants.join("twin")).expect("a link");
        for name in ["a", "b"] {
            symlink(outside.path().join("release"), tenants.join(name)).expect("a link");
        }
    });
    write(&tenants, "one/pages/index.md", "second");
    wait_until_noticed(&mut watch, &tenants, &["one", "twin"]);
    write(outside.path(), "release/pages/index.md", "second");
    wait_until_noticed(&mut watch, &tenants, &["a", "b"]);
    std::fs::remove_file(tenants.join("a")).expect("a removed link");
    wait_until_noticed(&mut watch, &tenants, &["a"]);
    write(outside.path(), "release/pages/index.md", "third");
    wait_until_noticed(&mut watch, &tenants, &["b"]);
}

#[test]
fn new_moved_and_replaced_folders_are_watched() {
    let (_root, tenants, mut watch) = watch_tenants(&["app"], |_| ());
    write(&tenants, "app/assets/deep/er/x", "x");
    wait_until_noticed(&mut watch, &tenants, &["app"]);
    write(&tenants, "app/assets/deep/er/x", "y");
    wait_until_noticed(&mut watch, &tenants, &["app"]);
    std::fs::rename(tenants.join("app"), tenants.join("other")).expect("a renamed folder");
    wait_until_noticed(&mut watch, &tenants, &["app", "other"]);
    write(&tenants, "other/assets/deep/er/x", "z");
    wait_until_noticed(&mut watch, &tenants, &["other"]);
    for round in 0..3 {
        std::fs::remove_dir_all(tenants.join("other/pages")).expect("a removed folder");
        write(&tenants, "other/pages/index.md", "another");
        wait_until_noticed(&mut watch, &tenants, &["other"]);
        write(&tenants, "other/pages/index.md", &format!("round {round}"));
        wait_until_noticed(&mut watch, &tenants, &["other"]);
    }
}

#[test]
fn linked_file_is_watched_at_its_target() {
    let (_root, tenants, mut watch) = watch_tenants(&["app"], |tenants| {
        write(tenants, "app/.hidden/tenant.yaml", "first");
        symlink(".hidden/tenant.yaml", tenants.join("app/tenant.yaml")).expect("a link");
    });
    write(&tenants, "app/.hidden/tenant.yaml", "second");
    wait_until_noticed(&mut watch, &tenants, &["app"]);
}

#[test]
fn only_paths_that_changed_before_begin_are_reported_at_begin() {
    for method in [DetectionMethod::Notifications, DetectionMethod::Polling] {
        let root = TempDir::new().expect("a folder");
        let tenants = root.path().canonicalize().expect("a path").join("tenants");
        for name in ["a", "b", "c", "d"] {
            write(&tenants, &format!("{name}/pages/index.md"), "first");
        }
        let file = root.path().join("deployment.yaml");
        std::fs::write(&file, "").expect("a file");
        wait_for_clock_tick();
        let mut watch = Watch::new(method, vec![tenants.clone(), file.clone()]);
        wait_for_clock_tick();
        write(&tenants, "b/pages/index.md", "second");
        std::fs::remove_file(tenants.join("c/pages/index.md")).expect("a file");
        watch.begin();
        let changes = next(&mut watch, Duration::from_secs(20)).expect("changes");
        let names = ["b", "c"].map(ToOwned::to_owned).into();
        assert_eq!(changes.below(&tenants), Some(names), "{method:?}");
        assert!(!changes.affects_all && !changes.paths.contains(&file));
        watch.begin();
        assert_eq!(
            next(&mut watch, Duration::from_millis(200)),
            None,
            "changes are reported once"
        );
    }
}

#[test]
fn folders_and_files_that_are_added_during_begin_are_noticed() {
    let root = TempDir::new().expect("a folder");
    let tenants = root.path().canonicalize().expect("a path").join("tenants");
    let names: Vec<String> = (0..300).map(|number| number.to_string()).collect();
    for name in &names {
        write(&tenants, &format!("{name}/pages/index.md"), "first");
    }
    wait_for_clock_tick();
    let mut watch = Watch::new(DetectionMethod::Notifications, vec![tenants.clone()]);
    let writer = {
        let (tenants, names) = (tenants.clone(), names.clone());
        std::thread::spawn(move || {
            for name in names {
                write(&tenants, &format!("{name}/assets/deep/x"), "first");
            }
        })
    };
    watch.begin();
    writer.join().expect("a thread that ends");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    wait_until_noticed(&mut watch, &tenants, &names);
    for name in &names {
        write(&tenants, &format!("{name}/assets/deep/x"), "second");
    }
    wait_until_noticed(&mut watch, &tenants, &names);
}

#[test]
fn folder_removed_before_begin_is_reported() {
    let root = TempDir::new().expect("a folder");
    let tenants = root.path().canonicalize().expect("a path").join("tenants");
    write(&tenants, "a/pages/index.md", "first");
    wait_for_clock_tick();
    let mut watch = Watch::new(DetectionMethod::Notifications, vec![tenants.clone()]);
    wait_for_clock_tick();
    std::fs::remove_dir_all(tenants.join("a")).expect("a folder");
    watch.begin();
    let changes = next(&mut watch, Duration::from_secs(20)).expect("changes");
    assert_eq!(
        changes.below(&tenants),
        None,
        "all tenants are listed again"
    );
}

#[test]
fn poll_thread_ends_with_its_watch() {
    let watch = Watch::new(DetectionMethod::Off, Vec::new());
    let thread = poll::poll(
        watch.sender(),
        poll::DirectoryStamps::new(),
        poll::PolledStamps::new,
    );
    assert!(!thread.is_finished());
    drop(watch);
    thread.join().expect("a thread that ends");
}

#[test]
fn many_changes_of_tenant_are_attributed_to_that_tenant() {
    let (_root, tenants, mut watch) = watch_tenants(&["loud", "quiet"], |tenants| {
        symlink(tenants.join("loud/pages"), tenants.join("inner")).expect("a link");
    });
    let sender = watch.sender();
    for number in 0..100_000 {
        // The system names the folder by the path at which it is watched.
        let path = tenants.join(format!("inner/{number}.md"));
        sender.send(Notice::Path(path)).expect("a watch");
    }
    let changes = next(&mut watch, Duration::ZERO).expect("changes");
    let names = ["inner", "loud"].map(ToOwned::to_owned).into();
    assert_eq!(changes.below(&tenants), Some(names));
    assert!(
        !changes.affects_all && changes.paths.len() < 10,
        "{changes:?}"
    );
}
