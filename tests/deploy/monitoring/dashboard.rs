//! `deploy/grafana/rowhouse.json`: its queries parse, its panels do not overlap, and all used variables exist.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{between, is_there, text, tool};

/// The number of columns of a dashboard.
const COLUMNS: u64 = 24;

fn dashboard() -> Value {
    serde_json::from_str(&text("grafana/rowhouse.json")).expect("JSON")
}

fn panels(dashboard: &Value) -> &[Value] {
    dashboard["panels"].as_array().expect("panels")
}

/// Returns each panel's title and expression, as Grafana has them.
pub(crate) fn expressions() -> Vec<(String, String)> {
    let dashboard = dashboard();
    let mut found = Vec::new();
    for panel in panels(&dashboard) {
        let title = panel["title"].as_str().expect("a title");
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("text");
            found.push((format!("panel `{title}`"), expression.to_owned()));
        }
    }
    found
}

#[test]
fn promtool_parses_every_query() {
    if !is_there("promtool") {
        return;
    }
    // Replaces the variables as Grafana does. JSON is valid YAML.
    let rules: Vec<Value> = expressions()
        .iter()
        .enumerate()
        .map(|(number, (_, expression))| {
            let expression = expression.replace("$__rate_interval", "1m");
            json!({"record": format!("query_{number}"), "expr": expression})
        })
        .collect();
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("rules.json");
    let groups = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    fs::write(&file, groups.to_string()).expect("a file");
    let (content, said) = tool("promtool", &["check", "rules", &file.display().to_string()]);
    assert!(content, "{said}");
}

#[test]
fn dashboard_defines_every_variable() {
    let dashboard = dashboard();
    let mut known: BTreeSet<&str> = dashboard["templating"]["list"]
        .as_array()
        .expect("variables")
        .iter()
        .map(|variable| variable["name"].as_str().expect("a name"))
        .collect();
    known.insert("__rate_interval");
    for (who, expression) in expressions() {
        for rest in expression.split('$').skip(1) {
            let end = rest
                .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
                .unwrap_or(rest.len());
            assert!(known.contains(&rest[..end]), "{who}: ${}", &rest[..end]);
        }
    }
    let all = text("grafana/rowhouse.json");
    let sources: BTreeSet<&str> = between(&all, "\"uid\": \"${", "}").into_iter().collect();
    assert_eq!(sources, BTreeSet::from(["datasource"]));
}

#[test]
fn panels_have_unique_titles_and_numbers_and_do_not_overlap() {
    let dashboard = dashboard();
    let (mut numbers, mut titles) = (BTreeSet::new(), BTreeSet::new());
    let mut cells = BTreeSet::new();
    for panel in panels(&dashboard) {
        let title = panel["title"].as_str().expect("a title");
        assert!(titles.insert(title), "two panels `{title}`");
        assert!(
            numbers.insert(panel["id"].as_u64().expect("a number")),
            "{title}"
        );
        let side = |name: &str| panel["gridPos"][name].as_u64().expect("a number");
        let (x, y, w, h) = (side("x"), side("y"), side("w"), side("h"));
        assert!(x + w <= COLUMNS, "{title} is too wide");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(
                cells.insert(cell),
                "{title} covers another panel at {cell:?}"
            );
        }
    }
}
