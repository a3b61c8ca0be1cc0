//! The engine and the themes contain no name of a customer: no tenant, company, town or section type.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the workspace").to_owned()
}

/// Returns the files below a folder that git tracks or would add.
fn files(folder: &str) -> Vec<String> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            folder,
        ])
        .current_dir(root())
        .output()
        .expect("git");
    assert!(output.status.success(), "git ls-files failed");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let there = text.lines().filter(|file| root().join(file).is_file());
    there.map(ToOwned::to_owned).collect()
}

/// Returns names that belong to tenants and themes: names of tenants, and the company's names and towns.
fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(root().join("tenants")).expect("the tenants") {
        let path = entry.expect("an entry").path();
        let Ok(manifest) = fs::read_to_string(path.join("tenant.yaml")) else {
            continue;
        };
        let id = path.file_name().expect("a name").to_string_lossy();
        names.insert(id.to_lowercase());
        let manifest: serde_json::Value = serde_saphyr::from_str(&manifest).expect("a manifest");
        let company = &manifest["company"];
        let towns = company["locations"].as_array().into_iter().flatten();
        let towns = towns.filter_map(|town| town.as_str()?.split(',').next());
        let words = [&company["name"], &company["legal_name"]].map(|name| name.as_str());
        for text in towns.chain(words.into_iter().flatten()) {
            names.insert(text.to_lowercase());
        }
    }
    names
}

/// Returns the part of a source file without tests.
fn program(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

#[test]
fn engine_names_no_tenant_company_town_or_section_type() {
    let names = names();
    assert!(
        names.contains("bluedoor") && names.contains("chicago"),
        "{names:?}"
    );
    let kinds: Vec<String> = fs::read_dir(root().join("themes/base/sections"))
        .expect("the kinds")
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| format!("\"{}\"", entry.file_name().to_string_lossy()))
        .collect();
    assert!(kinds.len() > 5, "{kinds:?}");
    let sources = files("engine").into_iter().filter(|file| {
        let is_test = ["/tests/", "/tests.rs", "/benches/", "/properties.rs"];
        file.ends_with(".rs") && !is_test.iter().any(|part| file.contains(part))
    });
    let mut found = Vec::new();
    for file in sources {
        let text = fs::read_to_string(root().join(&file)).expect("a source file");
        for (number, line) in program(&text).lines().enumerate() {
            let words = line.to_lowercase();
            let words: Vec<&str> = words
                .split(|character: char| !character.is_alphanumeric() && character != ' ')
                .collect();
            let names_one = names.iter().any(|name| {
                words
                    .iter()
                    .any(|part| format!(" {part} ").contains(&format!(" {name} ")))
            });
            let names_kind = kinds.iter().any(|kind| line.contains(kind.as_str()));
            if names_one || names_kind {
                found.push(format!("{file}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn base_theme_names_no_tenant_and_no_town() {
    let names = names();
    let found: Vec<String> = files("themes")
        .into_iter()
        .filter(|file| !file.ends_with(".woff2"))
        .flat_map(|file| {
            let text = fs::read_to_string(root().join(&file)).expect("a text");
            let words = text.to_lowercase();
            let words: BTreeSet<String> = words
                .split(|character: char| !character.is_alphanumeric())
                .map(ToOwned::to_owned)
                .collect();
            let own = names.iter().filter(|name| words.contains(name.as_str()));
            own.map(|name| format!("{file}: {name}"))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
