//! Sets `ROWHOUSE_VERSION`, the text of `rowhouse --version`: the version, with the commit in parentheses if it is known.
//!
//! The commit comes from the variable `ROWHOUSE_COMMIT`, otherwise from the repository whose root is the workspace.
//! The profiles `dev` and `test` do not look at the repository. Otherwise every commit would compile this crate and all tests again.

#![allow(
    clippy::print_stdout,
    reason = "Cargo reads instructions from stdout; a test includes this file"
)]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number of digits of a commit's hash in the version.
const HASH_DIGITS: usize = 12;

/// The fewest digits that Git accepts as the abbreviation of a hash.
const MIN_HASH_DIGITS: usize = 4;

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let repository = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../..");
    let named = variable("ROWHOUSE_COMMIT");
    // Cargo calls every profile that inherits from `release` so, `dist` too.
    let found = match variable("PROFILE").as_str() {
        "release" if named.is_empty() => commit_of(&repository),
        _ => None,
    };
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ROWHOUSE_COMMIT");
    for file in found.iter().flat_map(|commit| &commit.files) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let hash = found.map_or(named, |commit| commit.hash);
    let version = version(&variable("CARGO_PKG_VERSION"), &hash);
    println!("cargo::rustc-env=ROWHOUSE_VERSION={version}");
}

/// Returns the text of `--version`: `0.1.0 (fc1059fca37b)`, or without parentheses if `hash` is not a hash.
pub(crate) fn version(package: &str, hash: &str) -> String {
    let is_hash =
        hash.len() >= MIN_HASH_DIGITS && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
    match is_hash {
        true => format!("{package} ({})", &hash[..hash.len().min(HASH_DIGITS)]),
        false => package.to_owned(),
    }
}

/// The current commit of a repository.
pub(crate) struct Commit {
    pub(crate) hash: String,
    /// The files of Git that change with the current commit.
    pub(crate) files: Vec<PathBuf>,
}

/// Returns the current commit of the repository with its root at `root`; nothing without a repository, a commit or Git.
pub(crate) fn commit_of(root: &Path) -> Option<Commit> {
    // An unpacked archive may be in the repository of another project.
    if !root.join(".git").exists() {
        return None;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(root)
            .output();
        let output = output.ok().filter(|output| output.status.success())?;
        let text = String::from_utf8(output.stdout).ok()?;
        Some(text.trim().to_owned())
    };
    let hash = git(&["rev-parse", "HEAD"])?;
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    // A branch without a file of its own is in `packed-refs`.
    let names = ["HEAD", "logs/HEAD", "packed-refs"].into_iter();
    let names = names.chain(branch.as_deref());
    let files = names.filter_map(|name| git(&["rev-parse", "--git-path", name]));
    let files = files.map(|file| root.join(file));
    Some(Commit {
        hash,
        // Cargo would run the script at every build for a file that does not exist.
        files: files.filter(|file| file.exists()).collect(),
    })
}
