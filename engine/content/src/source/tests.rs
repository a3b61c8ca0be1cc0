//! Folders with cycles of links, links to the outside, and changes during the read.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, Mode, RenameFlags, mkfifoat, renameat_with};
use tempfile::TempDir;

use super::*;

/// Creates a folder `app` with a manifest and an icon, inside a temporary folder.
fn app() -> (TempDir, PathBuf) {
    let root = TempDir::new().expect("a folder");
    let app = root.path().join("app");
    write(&app.join("tenant.yaml"), "name: App\n");
    write(&app.join("assets/icon.svg"), "<svg/>");
    (root, app)
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// Returns the paths of the files read, and the diagnostics with their codes and files.
fn read_app(app: &Path) -> (Vec<String>, Vec<String>) {
    let (folder, report) = read(app, "app", FolderLimits::default(), None);
    let report = report.sorted();
    let diagnostics = report.iter().map(|diagnostic| {
        format!(
            "{} {}: {}",
            diagnostic.code, diagnostic.file, diagnostic.message
        )
    });
    (folder.files.into_keys().collect(), diagnostics.collect())
}

const FILES: [&str; 2] = ["assets/icon.svg", "tenant.yaml"];

#[test]
fn three_links_to_the_folder_itself_are_walked_once() {
    let (_root, app) = app();
    for name in ["l1", "l2", "l3"] {
        symlink(".", app.join("assets").join(name)).expect("a link");
    }
    let tree = walk(&app, "app", FolderLimits::default(), &Activity::default());
    assert_eq!(tree.folders.len(), 2, "{:?}", tree.folders);
    let (files, diagnostics) = read_app(&app);
    assert_eq!(files, FILES);
    let expected = ["l1", "l2", "l3"].map(|name| {
        format!("folder-twice app/assets/{name}: the symbolic link points to a folder that is already read as `app/assets`")
    });
    assert_eq!(diagnostics, expected);
}

#[test]
fn circular_links_are_not_followed_endlessly() {
    let (_root, app) = app();
    symlink("two", app.join("one")).expect("a link");
    symlink("one", app.join("two")).expect("a link");
    symlink("..", app.join("assets/up")).expect("a link");
    symlink("../assets/up/assets/icon.svg", app.join("assets/long.svg")).expect("a link");
    let (files, diagnostics) = read_app(&app);
    assert_eq!(files, ["assets/icon.svg", "assets/long.svg", "tenant.yaml"]);
    assert_eq!(diagnostics.len(), 3, "{diagnostics:?}");
    assert!(
        diagnostics[0].starts_with(
            "folder-twice app/assets/up: the symbolic link points to the entire folder"
        ),
        "{diagnostics:?}"
    );
    assert!(
        diagnostics[1]
            .starts_with("unreadable app/one: the file or folder cannot be read: Too many levels"),
        "{diagnostics:?}"
    );
}

#[test]
fn real_folder_wins_over_links_to_it() {
    let (_root, app) = app();
    write(&app.join("m/page.md"), "words");
    for name in ["a", "z"] {
        symlink("m", app.join(name)).expect("a link");
    }
    let (files, diagnostics) = read_app(&app);
    assert_eq!(files, ["assets/icon.svg", "m/page.md", "tenant.yaml"]);
    assert_eq!(diagnostics.len(), 2, "{diagnostics:?}");
    assert!(
        diagnostics
            .iter()
            .all(|diagnostic| diagnostic.ends_with("as `app/m`"))
    );
}

#[test]
fn content_outside_the_folder_is_not_listed() {
    let (root, app) = app();
    write(&root.path().join("outside/secret.md"), "secret");
    symlink("/", app.join("root")).expect("a link");
    symlink("../outside", app.join("outside")).expect("a link");
    symlink("../../outside/secret.md", app.join("assets/secret.md")).expect("a link");
    symlink("nowhere", app.join("dangling")).expect("a link");
    let tree = walk(&app, "app", FolderLimits::default(), &Activity::default());
    assert_eq!(tree.folders.len(), 2, "{:?}", tree.folders);
    let (files, diagnostics) = read_app(&app);
    assert_eq!(files, FILES);
    let codes: Vec<&str> = diagnostics
        .iter()
        .map(|diagnostic| &diagnostic[..12])
        .collect();
    assert_eq!(
        codes,
        [
            "foreign-syml",
            "unreadable a",
            "foreign-syml",
            "foreign-syml"
        ]
    );
}

#[test]
fn absolute_link_may_point_within_the_folder() {
    let (root, app) = app();
    symlink(app.join("assets/icon.svg"), app.join("assets/again.svg")).expect("a link");
    symlink(app.join("assets/../../outside.md"), app.join("out.md")).expect("a link");
    write(&root.path().join("outside.md"), "secret");
    let (files, diagnostics) = read_app(&app);
    assert_eq!(
        files,
        ["assets/again.svg", "assets/icon.svg", "tenant.yaml"]
    );
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    // Through the path of a release that is itself a link.
    let link = root.path().join("current");
    symlink(&app, &link).expect("a link");
    symlink(link.join("assets/icon.svg"), app.join("assets/third.svg")).expect("a link");
    let (folder, _) = read(&link, "current", FolderLimits::default(), None);
    assert!(folder.files.contains_key("assets/third.svg"));
}

#[test]
fn links_of_a_config_map_are_followed() {
    let (_root, app) = app();
    write(&app.join("..2026_11_22/pages/index.md"), "first");
    write(&app.join("..2026_11_22/more.yaml"), "more");
    symlink("..2026_11_22", app.join("..data")).expect("a link");
    symlink("..data/pages", app.join("pages")).expect("a link");
    symlink("..data/more.yaml", app.join("more.yaml")).expect("a link");
    let (files, diagnostics) = read_app(&app);
    assert_eq!(
        files,
        [
            "assets/icon.svg",
            "more.yaml",
            "pages/index.md",
            "tenant.yaml"
        ]
    );
    assert_eq!(diagnostics, [""; 0]);
}

#[test]
fn exceeded_folder_limit_is_one_error() {
    let (_root, app) = app();
    for name in 0..30 {
        write(&app.join(format!("many/{name}/x")), "x");
    }
    let whole = FolderLimits::default();
    for (limits, words) in [
        (
            FolderLimits {
                folders: 10,
                ..whole
            },
            "more than 10 folders",
        ),
        (FolderLimits { files: 10, ..whole }, "more than 10 files"),
        (
            FolderLimits {
                entries: 40,
                ..whole
            },
            "more than 40 entries",
        ),
        (FolderLimits { total: 20, ..whole }, "more than 20 bytes"),
    ] {
        let (folder, report) = read(&app, "app", limits, None);
        let diagnostics: Vec<&Diagnostic> = report.iter().collect();
        assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
        assert!(diagnostics[0].message.contains(words), "{diagnostics:?}");
        assert!(diagnostics[0].file == "app" && folder.files.is_empty());
    }
}

#[test]
fn errors_of_a_folder_are_limited() {
    let (_root, app) = app();
    for number in 0..1_000 {
        symlink("/", app.join(format!("link-{number}"))).expect("a link");
    }
    let (files, diagnostics) = read_app(&app);
    assert_eq!(diagnostics.len(), 101);
    assert!(
        diagnostics
            .iter()
            .any(|diagnostic| diagnostic.contains("the rest of the folder is not checked"))
    );
    assert!(files.is_empty());
}

#[test]
fn hidden_folders_are_not_listed() {
    let (_root, app) = app();
    for number in 0..200 {
        write(&app.join(format!(".git/{number}/x")), "x");
    }
    let limits = FolderLimits {
        entries: 100,
        ..FolderLimits::default()
    };
    let tree = walk(&app, "app", limits, &Activity::default());
    assert!(!tree.is_cut && tree.folders.len() == 2);
}

#[test]
fn name_that_is_not_utf8_is_an_error() {
    let (_root, app) = app();
    write(&app.join(OsStr::from_bytes(b"caf\xe9.md")), "words");
    let (files, diagnostics) = read_app(&app);
    assert_eq!(files, FILES);
    assert_eq!(
        diagnostics,
        ["not-utf8 app/caf\u{fffd}.md: the name is not UTF-8"]
    );
}

#[test]
fn link_to_a_folder_that_contains_it_is_refused() {
    let (root, _app) = app();
    for (name, target) in [("root", "/"), ("self", "."), ("up", "..")] {
        let link = root.path().join(name);
        symlink(target, &link).expect("a link");
        let tree = walk(&link, name, FolderLimits::default(), &Activity::default());
        assert!(tree.folders.is_empty() && tree.files.is_empty());
        let diagnostics: Vec<&Diagnostic> = tree.report.iter().collect();
        assert!(
            diagnostics.len() == 1 && diagnostics[0].code == Code::FolderTwice,
            "{diagnostics:?}"
        );
    }
}

#[test]
fn two_links_to_one_folder_both_have_its_content() {
    let (root, app) = app();
    for name in ["one", "two"] {
        let link = root.path().join(name);
        symlink(&app, &link).expect("a link");
        assert_eq!(read_app(&link), (FILES.map(str::to_owned).to_vec(), vec![]));
    }
}

#[test]
fn broken_entry_does_not_hide_other_entries() {
    let (root, _app) = app();
    symlink("gone", root.path().join("dangling")).expect("a link");
    symlink("loop", root.path().join("loop")).expect("a link");
    write(&root.path().join("README.md"), "words");
    let names: Vec<String> = list(root.path()).expect("a list").into_keys().collect();
    assert_eq!(names, ["app", "dangling", "loop"]);
    let (_, diagnostics) = read_app(&root.path().join("dangling"));
    assert_eq!(
        diagnostics,
        [
            "unreadable app: the file or folder cannot be read: No such file or directory (os error 2)"
        ]
    );
}

#[test]
fn file_without_size_or_growing_is_read_up_to_its_limit() {
    let (_root, app) = app();
    write(&app.join("assets/large.bin"), &"x".repeat(2_000));
    let limits = FolderLimits {
        file: 1_000,
        ..FolderLimits::default()
    };
    let (folder, report) = read(&app, "app", limits, None);
    assert!(!folder.files.contains_key("assets/large.bin"));
    let text = format!("{report:?}");
    assert!(text.contains("the limit of a file is 1000"), "{text}");
    #[cfg(target_os = "linux")]
    {
        // All files there report size 0, and some are long.
        let (folder, _) = read(Path::new("/proc/self/net"), "net", limits, None);
        assert!(folder.files.values().all(|bytes| bytes.len() <= 1_000));
    }
}

/// Reads a folder repeatedly while `race` changes it, and passes each result to `check`.
fn while_racing(
    race: impl Fn() + Send + 'static,
    app: &Path,
    mut check: impl FnMut(&Folder) -> bool,
) {
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    let racer = std::thread::spawn(move || {
        while !ends.load(Ordering::Relaxed) {
            race();
        }
    });
    let begin = Instant::now();
    let (mut rounds, mut seen) = (0, 0);
    while begin.elapsed() < Duration::from_millis(2_500) {
        let (folder, _) = read(app, "app", FolderLimits::default(), None);
        seen += usize::from(check(&folder));
        rounds += 1;
    }
    is_over.store(true, Ordering::Relaxed);
    racer.join().expect("the racer");
    assert!(rounds > 20 && seen > 0, "{rounds} rounds, {seen} seen");
}

#[test]
fn file_exchanged_with_a_link_never_shows_outside_content() {
    let (root, app) = app();
    let (file, link) = (app.join("page.md"), app.join(".link"));
    write(&file, "own");
    write(&root.path().join("secret.md"), "secret");
    symlink(root.path().join("secret.md"), &link).expect("a link");
    let race = move || {
        renameat_with(CWD, &file, CWD, &link, RenameFlags::EXCHANGE).expect("an exchange");
    };
    while_racing(race, &app, |folder| {
        let page = folder.files.get("page.md");
        assert!(page.is_none_or(|page| page == "own"), "{page:?}");
        page.is_some()
    });
}

#[test]
fn folder_exchanged_with_a_link_never_shows_outside_content() {
    let (root, app) = app();
    let (pages, link) = (app.join("pages"), app.join(".link"));
    write(&pages.join("page.md"), "own");
    write(&root.path().join("outside/page.md"), "secret");
    symlink(root.path().join("outside"), &link).expect("a link");
    let race = move || {
        renameat_with(CWD, &pages, CWD, &link, RenameFlags::EXCHANGE).expect("an exchange");
    };
    while_racing(race, &app, |folder| {
        let page = folder.files.get("pages/page.md");
        assert!(page.is_none_or(|page| page == "own"), "{page:?}");
        page.is_some()
    });
}

#[test]
fn file_exchanged_with_a_fifo_does_not_block() {
    let (_root, app) = app();
    let (file, pipe) = (app.join("page.md"), app.join(".pipe"));
    write(&file, "own");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let race = move || {
        renameat_with(CWD, &file, CWD, &pipe, RenameFlags::EXCHANGE).expect("an exchange");
    };
    while_racing(race, &app, |folder| folder.files.contains_key("page.md"));
}

/// Returns a large file with the given content file and length.
fn large_file(file: fs::File, length: u64) -> LargeSourceFile {
    LargeSourceFile {
        file: Arc::new(file),
        length,
        digest: [7; 32],
        blocks: Arc::new([]),
        stamp: None,
    }
}

#[test]
fn unchanged_large_file_is_not_read_again() {
    let (_root, app) = app();
    let film = app.join("assets/film.mp4");
    let text = "x".repeat(40);
    write(&film, &text);
    let limits = FolderLimits {
        file: 30,
        ..FolderLimits::default()
    };
    let taken = std::cell::Cell::new(0);
    let take = |file: fs::File, length| {
        taken.set(taken.get() + 1);
        Ok(large_file(file, length))
    };
    let read = |known: &Folder, now| {
        let tree = walk(&app, "app", limits, &Activity::default());
        tree.read(Some(&take), (&known.large, now)).0
    };
    let later = SystemTime::now() + Duration::from_secs(3_600);
    let first = read(&Folder::default(), later);
    write(&app.join("tenant.yaml"), "name: Other\n");
    let second = read(&first, later);
    assert_eq!(taken.get(), 1);
    assert_eq!(second.large["assets/film.mp4"].length, 40);
    // Another file with the same length and time.
    let modified = fs::metadata(&film).and_then(|film| film.modified());
    let modified = modified.expect("a time");
    let other = app.join("other");
    write(&other, &text);
    let file = fs::File::options().write(true).open(&other);
    let set = file.and_then(|file| file.set_modified(modified));
    set.expect("a time");
    fs::rename(&other, &film).expect("renamed");
    let third = read(&second, later);
    assert_eq!(taken.get(), 2);
    // A file that changed just before the read may look the same after the next change.
    read(&third, modified);
    assert_eq!(taken.get(), 3);
}

#[test]
fn only_media_and_archives_may_be_too_large_for_memory() {
    let (_root, app) = app();
    for name in [
        "assets/film.MP4",
        "assets/photo.jpg",
        "film.mp4",
        "assets/huge.zip",
    ] {
        write(&app.join(name), &"x".repeat(40));
    }
    write(&app.join("assets/huge.zip"), &"x".repeat(90));
    write(&app.join("assets/small.mp4"), "x");
    let limits = FolderLimits {
        file: 30,
        large_file: 80,
        ..FolderLimits::default()
    };
    let copy_large = |file: fs::File, length| Ok(large_file(file, length));
    let (folder, report) = read(&app, "app", limits, Some(&copy_large));
    assert_eq!(folder.large["assets/film.MP4"].length, 40);
    assert!(!folder.files.contains_key("assets/film.MP4"));
    assert_eq!(folder.files["assets/small.mp4"], "x");
    let report = report.sorted();
    let diagnostics: Vec<&Diagnostic> = report.iter().collect();
    assert_eq!(diagnostics.len(), 3, "{diagnostics:?}");
    for (name, most) in [
        ("assets/huge.zip", 80),
        ("assets/photo.jpg", 30),
        ("film.mp4", 30),
    ] {
        let words = format!("the limit of a file is {most}");
        assert!(
            report
                .iter()
                .any(|diagnostic| diagnostic.file == format!("app/{name}")
                    && diagnostic.message.contains(&words)),
            "{diagnostics:?}"
        );
    }
    let (_, report) = read(&app, "app", limits, None);
    assert_eq!(report.iter().count(), 4);
}

#[test]
fn added_removed_and_replaced_files_have_changed() {
    let hashes = |files: &[(&str, &str)]| {
        let files = files.iter();
        let file = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned().into());
        Folder {
            files: files.map(file).collect(),
            ..Folder::default()
        }
        .hashes()
    };
    let before = hashes(&[("gone", "1"), ("other", "1"), ("same", "1")]);
    let now = hashes(&[("new", "1"), ("other", "2"), ("same", "1")]);
    let paths: Vec<&String> = now.changed_since(&before).collect();
    assert_eq!(paths, ["gone", "new", "other"]);
    assert_ne!(now.fingerprint(), before.fingerprint());
    assert_eq!(before.changed_since(&before).count(), 0);
}

/// Returns the stamp of a folder as computed one hour from now.
fn stamp(app: &Path) -> Option<FolderStamp> {
    let later = SystemTime::now() + Duration::from_secs(3_600);
    walk(app, "app", FolderLimits::default(), &Activity::default()).stamp(later)
}

#[test]
fn stamp_changes_even_if_size_and_time_do_not() {
    let (_root, app) = app();
    symlink("icon.svg", app.join("assets/link.svg")).expect("a link");
    let page = app.join("tenant.yaml");
    let before = stamp(&app);
    assert!(before.is_some());
    assert_eq!(stamp(&app), before, "nothing changed");
    let modified = fs::metadata(&page)
        .expect("a file")
        .modified()
        .expect("a time");
    let as_before = |path: &Path| {
        let file = File::options().write(true).open(path).expect("a file");
        file.set_modified(modified).expect("a time");
    };
    let mut seen = vec![before];
    let mut differs = |what: &str| {
        let now = stamp(&app);
        assert!(now.is_some() && !seen.contains(&now), "{what}");
        seen.push(now);
    };
    write(&page, "name: Bpp\n");
    as_before(&page);
    differs("other words in the same file");
    write(&app.join(".new"), "name: Cpp\n");
    as_before(&app.join(".new"));
    fs::rename(app.join(".new"), &page).expect("a file");
    differs("another file in its place");
    fs::rename(app.join("assets/icon.svg"), app.join("assets/logo.svg")).expect("a file");
    symlink("logo.svg", app.join("assets/new.svg")).expect("a link");
    fs::rename(app.join("assets/new.svg"), app.join("assets/link.svg")).expect("a link");
    differs("another name");
    write(&app.join("assets/more.svg"), "<svg/>");
    differs("one more file");
    symlink("more.svg", app.join("assets/new.svg")).expect("a link");
    fs::rename(app.join("assets/new.svg"), app.join("assets/link.svg")).expect("a link");
    differs("a link to another file");
    fs::remove_file(app.join("assets/logo.svg")).expect("a file");
    differs("one file less");
}

#[test]
fn recently_written_or_unreadable_folder_has_no_stamp() {
    let (_root, app) = app();
    let written = fs::metadata(app.join("assets/icon.svg")).and_then(|file| file.modified());
    let now = walk(&app, "app", FolderLimits::default(), &Activity::default())
        .stamp(written.expect("a time"));
    assert_eq!(now, None, "it may be written again within the same tick");
    assert!(stamp(&app).is_some());
    symlink("/etc/hostname", app.join("assets/foreign")).expect("a link");
    assert_eq!(stamp(&app), None);
}

#[test]
fn files_that_changed_within_the_window_are_recent() {
    let (_root, app) = app();
    let tree = walk(&app, "app", FolderLimits::default(), &Activity::default());
    let (now, window) = (SystemTime::now(), Duration::from_secs(60));
    let recent = tree.recent_files(now, window);
    assert_eq!(recent.len(), tree.files.len());
    let length = fs::metadata(app.join("assets/icon.svg"))
        .expect("a file")
        .len();
    assert_eq!(recent["assets/icon.svg"].length, length);
    assert!(tree.recent_files(now + 2 * window, window).is_empty());
    assert_eq!(tree.last_byte("assets/missing"), None);
}
