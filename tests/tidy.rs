//! The repository tests itself: its layers, its module docs, its top level.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The layers of the engine, as its crate documentation lists them. A module may only name modules of lower layers.
const LAYERS: [&[&str]; 8] = [
    &["name", "report"],
    &["source", "state", "yaml"],
    &["schema", "watch"],
    &["snapshot", "tenant"],
    &["address", "theme"],
    &["compile", "export", "serve"],
    &["cli", "reload"],
    &["commands"],
];

/// Everything that may stand at the top of the repository, apart from names that begin with a dot.
const TOP_LEVEL: [&str; 10] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
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

#[test]
fn arrows_point_down() {
    let layer_of: BTreeMap<&str, usize> = LAYERS
        .iter()
        .enumerate()
        .flat_map(|(layer, modules)| modules.iter().map(move |module| (*module, layer)))
        .collect();
    let mut wrong = Vec::new();
    for file in files()
        .iter()
        .filter(|file| file.starts_with("engine/src/") && file.ends_with(".rs"))
    {
        let inner = file.trim_start_matches("engine/src/");
        let module = inner
            .split('/')
            .next()
            .expect("a segment")
            .trim_end_matches(".rs");
        if matches!(module, "lib" | "main") {
            continue;
        }
        let layer = layer_of
            .get(module)
            .unwrap_or_else(|| panic!("{file}: the module `{module}` is in no layer"));
        for target in named_modules(&text(file)) {
            if target != module
                && layer_of
                    .get(target.as_str())
                    .is_none_or(|other| other >= layer)
            {
                wrong.push(format!(
                    "{file}: `{module}` may not name `{target}`: arrows point down only"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The modules that a source names after `crate::`, alone or in braces.
fn named_modules(source: &str) -> BTreeSet<String> {
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = BTreeSet::new();
    for (start, _) in code.match_indices("crate::") {
        // A longer word that ends in `crate` is no path of this crate.
        if code[..start]
            .ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == '$')
        {
            continue;
        }
        let rest = &code[start + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(inner) => inner
                .split('}')
                .next()
                .unwrap_or_default()
                .split(',')
                .collect(),
            None => vec![rest],
        };
        for name in names {
            let name: String = name
                .trim()
                .chars()
                .take_while(|character| character.is_alphanumeric() || *character == '_')
                .collect();
            found.insert(name);
        }
    }
    found
}

#[test]
fn the_reader_of_arrows_sees_them() {
    let found = named_modules(
        "use crate::{serve, name::X};\nfn f() { crate::cli::g(); $crate::no!(); }\n// crate::comment\n",
    );
    assert_eq!(
        found.into_iter().collect::<Vec<_>>(),
        ["cli", "name", "serve"]
    );
}

#[test]
fn the_crate_documentation_lists_every_layer() {
    let documentation = text("engine/src/lib.rs");
    for module in LAYERS.iter().flat_map(|modules| modules.iter()) {
        assert!(
            documentation.contains(&format!("[`{module}`]")),
            "`{module}` is not in the list of layers"
        );
        assert!(
            documentation.contains(&format!("pub mod {module};")),
            "`{module}` is no module"
        );
    }
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
