//! Variables and files that `deploy/` names exist, and each folder has a README of one screen.

use std::collections::BTreeSet;
use std::process::Command;

use rowhouse_tests::binary;

use crate::support::{between, files, place, run, text, words};

/// Variables with that prefix that the program does not read: one is for its build, and Kubernetes sets the other.
const OTHERS: [&str; 2] = ["ROWHOUSE_UI_DIST", "ROWHOUSE_PORT"];

#[test]
fn serve_reads_every_variable() {
    let (_, help) = run(Command::new(binary()).args(["serve", "--help"]));
    // The value of a secret variable is not shown.
    let variables = between(&help, "[env: ", "]").into_iter();
    let known: BTreeSet<&str> = variables
        .filter_map(|shown| shown.split('=').next())
        .collect();
    assert!(known.contains("ROWHOUSE_TENANTS"), "{help}");
    for file in files("") {
        for variable in words(&text(&file), "ROWHOUSE_") {
            assert!(
                known.contains(&*variable) || OTHERS.contains(&&*variable),
                "deploy/{file} names {variable}, which `serve` does not read"
            );
        }
    }
}

#[test]
fn every_folder_has_short_readme() {
    let readmes: Vec<String> = files("")
        .into_iter()
        .filter(|file| file.ends_with("README.md"))
        .collect();
    for file in files("") {
        let Some((folder, _)) = file.split_once('/') else {
            continue;
        };
        assert!(readmes.contains(&format!("{folder}/README.md")), "{folder}");
        assert!(
            text("README.md").contains(&format!("]({folder}/README.md)")),
            "{folder}"
        );
    }
    for readme in readmes {
        let lines = text(&readme).lines().count();
        assert!(
            (5..=60).contains(&lines),
            "deploy/{readme} has {lines} lines"
        );
    }
}

#[test]
fn every_page_has_valid_links() {
    for page in files("").iter().filter(|file| file.ends_with(".md")) {
        for link in between(&text(page), "](", ")") {
            let target = link.split('#').next().unwrap_or_default();
            if !target.contains("://") && !target.is_empty() {
                let from = place(page);
                let target = from.parent().expect("a folder").join(target);
                assert!(target.exists(), "deploy/{page} links to {link}");
            }
        }
    }
}
