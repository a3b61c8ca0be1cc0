//! The archive of a release (`.ci/dist`): two builds of the same files, in two folders, give the same bytes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rowhouse_tests::{is_long, workspace};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::run;

/// A fixed time for files with a build time (`SOURCE_DATE_EPOCH`).
const EPOCH: &str = "1700000000";

/// The commit of the build, since the copied folders have no repository.
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// The lowest optimisation: the same build steps in a tenth of the time.
const QUICK_PROFILE: [(&str, &str); 3] = [
    ("CARGO_PROFILE_DIST_LTO", "off"),
    ("CARGO_PROFILE_DIST_OPT_LEVEL", "0"),
    ("CARGO_PROFILE_DIST_CODEGEN_UNITS", "64"),
];

/// Copies the files of the repository into a folder.
fn copy(folder: &Path) {
    fs::create_dir(folder).expect("a folder");
    let mut list = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(workspace())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git");
    let files = list.stdout.take().expect("a list");
    let mut pack = Command::new("tar")
        .args(["--create", "--files-from=-"])
        .current_dir(workspace())
        .stdin(files)
        .stdout(Stdio::piped())
        .spawn()
        .expect("tar");
    let (unpacked, said) = run(Command::new("tar")
        .args(["--extract", "--directory"])
        .arg(folder)
        .stdin(pack.stdout.take().expect("an archive")));
    assert!(unpacked, "{said}");
    assert!(list.wait().expect("git").success());
    assert!(pack.wait().expect("tar").success());
}

/// Builds the archive in a copy of the repository, and returns the folder of the unpacked archive.
fn build(folder: &Path) -> PathBuf {
    let (made, said) = run(Command::new(folder.join(".ci/dist"))
        .env("SOURCE_DATE_EPOCH", EPOCH)
        .env("ROWHOUSE_COMMIT", COMMIT)
        .env_remove("RUSTFLAGS")
        .envs(QUICK_PROFILE));
    assert!(made, "{said}");
    let out = folder.join("target/archive");
    let names = fs::read_dir(out).expect("a folder");
    let mut folders = names
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir());
    folders.next().expect("what is in the archive")
}

#[test]
fn two_builds_give_the_same_complete_archive() {
    if !is_long() {
        return;
    }
    let scratch = TempDir::new().expect("a folder");
    // The names differ in length, so that a path in the program would move the bytes after it.
    let folders = ["one", "another-of-two"].map(|name| scratch.path().join(name));
    let built = folders.each_ref().map(|folder| {
        copy(folder);
        build(folder)
    });
    let [first, second] = built.each_ref().map(|folder| {
        let mut name = folder.clone().into_os_string();
        name.push(".tar.gz.sha256");
        fs::read_to_string(name).expect("a checksum")
    });
    assert_eq!(first, second);

    let folder = &built[0];
    let (checked, said) = run(Command::new("sha256sum")
        .arg("--check")
        .arg(format!("{}.tar.gz.sha256", folder.display()))
        .current_dir(folder.parent().expect("a folder")));
    assert!(checked, "{said}");
    let program = fs::read(folder.join("rowhouse")).expect("the program");
    let program = String::from_utf8_lossy(&program);
    needs_no_later_system_than_it_says(folder, &program);
    let here = scratch.path().to_str().expect("a path");
    assert!(!program.contains(here), "a path of this machine");
    assert_complete(folder);
}

/// The C library of the image's base (`deploy/container/Containerfile`), Debian 12.
const BASE: (u32, u32) = (2, 36);

/// On Linux, checks that the archive and `CONTRIBUTING.md` name the C library that the program needs, and that the image has it.
fn needs_no_later_system_than_it_says(folder: &Path, program: &str) {
    let told = fs::read_to_string(folder.join("NEEDS.txt")).expect("what it needs");
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return;
    }
    let versions = program.split("GLIBC_").skip(1).filter_map(|rest| {
        let digits = |text: &str| -> Option<u32> {
            let end = text.find(|sign: char| !sign.is_ascii_digit());
            text[..end.unwrap_or(text.len())].parse().ok()
        };
        let (major, minor) = rest.split_once('.')?;
        Some((major.parse::<u32>().ok()?, digits(minor)?))
    });
    let (major, minor) = versions.max().expect("the names of versions");
    assert!((major, minor) <= BASE, "{major}.{minor}");
    let needs = format!("glibc {major}.{minor} or later");
    assert_eq!(told, format!("Linux with {needs}\n"));
    let guide = fs::read_to_string(workspace().join("CONTRIBUTING.md")).expect("the guide");
    assert!(guide.contains(&needs), "{needs}");
}

fn assert_complete(folder: &Path) {
    let read = |file: &str| fs::read_to_string(folder.join(file)).expect(file);
    let (_, version) = run(Command::new(folder.join("rowhouse")).arg("--version"));
    assert!(version.contains("(0123456789ab)"), "{version}");
    let (_, help) = run(Command::new(folder.join("rowhouse")).arg("--help"));
    let commands = help.split("Commands:\n").nth(1).expect("commands");
    let commands: BTreeSet<String> = commands
        .lines()
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .map(|command| format!("rowhouse-{command}.1"))
        .chain(["rowhouse.1".to_owned()])
        .collect();
    let pages = fs::read_dir(folder.join("man")).expect("manual pages");
    let pages: BTreeSet<String> = pages
        .map(|page| page.expect("a page").file_name().into_string())
        .collect::<Result<_, _>>()
        .expect("names");
    assert_eq!(pages, commands);
    for shell in ["rowhouse.bash", "_rowhouse", "rowhouse.fish"] {
        assert!(read(&format!("completions/{shell}")).contains("acme-contact"));
    }
    assert_eq!(
        read("LICENSE"),
        fs::read_to_string(workspace().join("LICENSE")).expect("the licence")
    );
    let licences = read("LICENSES.txt");
    for expected in [
        "Apache License",
        "MIT License",
        "\n  rustls ",
        "\n  tera ",
        "\nreact/LICENSE",
        "OFL",
    ] {
        assert!(licences.contains(expected), "{expected}");
    }
    let parts: Value = serde_json::from_str(&read("rowhouse.cdx.json")).expect("JSON");
    assert_eq!(parts["bomFormat"], "CycloneDX");
    let parts = parts["components"].as_array().expect("components");
    for expected in ["rustls", "tera", "rquickjs"] {
        assert!(
            parts.iter().any(|part| part["name"] == expected),
            "{expected}"
        );
    }
}
