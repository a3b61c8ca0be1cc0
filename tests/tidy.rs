//! The repository tests itself: its crates, its module docs, its top level.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates of the engine, and what of each other they may know.
const CRATES: [(&str, &[&str]); 5] = [
    ("content", &[]),
    ("release", &[]),
    ("render", &["content", "release"]),
    ("server", &["release"]),
    ("rowhouse", &["content", "release", "render", "server"]),
];

/// Everything that may stand at the top of the repository, apart from names that begin with a dot.
const TOP_LEVEL: [&str; 13] = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "deploy",
    "engine",
    "tenants",
    "tests",
    "themes",
    "ui",
];

/// The longest that a source file may be before it is more than one thing.
const LONGEST: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace")
        .to_owned()
}

/// The files that git knows or would take.
fn files() -> Vec<String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git");
    assert!(output.status.success(), "git ls-files failed");
    String::from_utf8(output.stdout)
        .expect("UTF-8")
        .lines()
        .filter(|file| root().join(file).is_file())
        .map(ToOwned::to_owned)
        .collect()
}

fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Cargo holds what is not named here; this holds that nobody names more.
#[test]
fn arrows_between_crates_point_one_way() {
    for (own, known) in CRATES {
        let manifest = text(&format!("engine/{own}/Cargo.toml"));
        for (other, _) in CRATES {
            let is_named = manifest
                .lines()
                .any(|line| line.split([' ', '.', '=']).next() == Some(other));
            assert!(
                !is_named || known.contains(&other),
                "`{own}` may not know `{other}`"
            );
        }
    }
    let folders = fs::read_dir(root().join("engine")).expect("the engine's folder");
    let folders: BTreeSet<String> = folders
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let crates = CRATES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(folders, crates, "each folder of the engine is a crate");
}

#[test]
fn every_source_says_why_it_is_there() {
    let silent: Vec<String> = files()
        .into_iter()
        .filter(|file| {
            let opening: &[&str] = match file.rsplit_once('.').map(|(_, extension)| extension) {
                Some("rs") => &["//!"],
                Some("ts" | "tsx" | "mjs" | "css") => &["/**", "/*", "//"],
                Some("html") if file.starts_with("themes/") && file.contains("/components/") => {
                    &["{#"]
                }
                _ => return false,
            };
            let text = text(file);
            !opening
                .iter()
                .any(|opening| text.trim_start().starts_with(opening))
        })
        .collect();
    assert!(
        silent.is_empty(),
        "no module documentation at the top of:\n{}",
        silent.join("\n")
    );
}

#[test]
fn a_source_is_one_thing() {
    let long: Vec<String> = files()
        .into_iter()
        .filter(|file| {
            [".rs", ".ts", ".tsx", ".mjs", ".css", ".html"]
                .iter()
                .any(|end| file.ends_with(end))
        })
        .filter_map(|file| {
            let lines = text(&file).lines().count();
            (lines > LONGEST).then(|| format!("{file}: {lines} lines"))
        })
        .collect();
    assert!(
        long.is_empty(),
        "longer than {LONGEST} lines:\n{}",
        long.join("\n")
    );
}

#[test]
fn the_top_level_gains_no_name() {
    let strangers: BTreeSet<String> = files()
        .iter()
        .filter_map(|file| file.split('/').next().map(ToOwned::to_owned))
        .filter(|name| !name.starts_with('.') && !TOP_LEVEL.contains(&name.as_str()))
        .collect();
    assert!(strangers.is_empty(), "not in the design: {strangers:?}");
}

#[test]
fn every_folder_of_the_top_level_has_a_readme_of_one_screen() {
    for folder in TOP_LEVEL.iter().filter(|name| root().join(name).is_dir()) {
        let lines = text(&format!("{folder}/README.md")).lines().count();
        assert!(
            (5..=60).contains(&lines),
            "{folder}/README.md has {lines} lines"
        );
    }
}
