//! `deploy/prometheus/`: the rules are valid, each alert has a test and a line in the runbook, and the scrape configurations find the pods.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{is_there, text, tool, yaml};

/// Returns the name and the rule of each alert.
fn alerts() -> Vec<(String, Value)> {
    let rules = yaml("prometheus/rules.yml").remove(0);
    rules["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules").clone())
        .map(|rule| (rule["alert"].as_str().expect("a name").to_owned(), rule))
        .collect()
}

/// Returns the name and the expression of each alert.
pub(crate) fn expressions() -> Vec<(String, String)> {
    alerts()
        .into_iter()
        .map(|(name, rule)| (name, rule["expr"].as_str().expect("text").to_owned()))
        .collect()
}

#[test]
fn promtool_accepts_rules_and_their_tests() {
    if !is_there("promtool") {
        return;
    }
    for arguments in [
        ["check", "rules", "prometheus/rules.yml"],
        ["check", "config", "prometheus/prometheus.yml"],
        ["test", "rules", "prometheus/tests.yml"],
    ] {
        let (content, said) = tool("promtool", &arguments);
        assert!(content, "{said}");
    }
}

#[test]
fn every_alert_has_tests_and_runbook() {
    let tests = yaml("prometheus/tests.yml").remove(0);
    let (mut firing, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for test in tests["tests"].as_array().expect("tests") {
        for case in test["alert_rule_test"].as_array().expect("cases") {
            let name = case["alertname"].as_str().expect("a name").to_owned();
            let fires = case.get("exp_alerts").is_some();
            if fires { &mut firing } else { &mut silent }.insert(name);
        }
    }
    let names: BTreeSet<String> = alerts().into_iter().map(|(name, _)| name).collect();
    assert_eq!(firing, names);
    assert_eq!(silent, names);
    let readme = text("prometheus/README.md");
    let explained: BTreeSet<String> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `Rowhouse"))
        .filter_map(|line| line.split_once('`'))
        .map(|(name, _)| format!("Rowhouse{name}"))
        .collect();
    assert_eq!(explained, names);
}

#[test]
fn every_alert_has_severity_and_place() {
    for (name, rule) in alerts() {
        let severity = rule["labels"]["severity"].as_str().expect("a severity");
        assert!(
            ["critical", "warning", "info"].contains(&severity),
            "{name}"
        );
        let summary = rule["annotations"]["summary"].as_str().expect("a summary");
        let says_where = ["{{ $labels.instance }}", "{{ $labels.tenant }}"];
        assert!(
            says_where.iter().any(|label| summary.contains(label)),
            "{name}"
        );
    }
}

#[test]
fn scrape_configurations_find_admin_port() {
    let machines = yaml("prometheus/prometheus.yml").remove(0);
    let cluster = yaml("prometheus/kubernetes.yml").remove(0);
    for configuration in [&machines, &cluster] {
        assert_eq!(configuration["rule_files"][0], "rules.yml");
        assert_eq!(configuration["scrape_configs"][0]["job_name"], "rowhouse");
    }
    let target = &machines["scrape_configs"][0]["static_configs"][0]["targets"][0];
    let service = text("systemd/rowhouse.service");
    let address = target.as_str().expect("an address");
    assert!(service.contains(&format!("ROWHOUSE_ADMIN={address}\n")));

    let deployment = yaml("kubernetes/base/deployment.yaml").remove(0);
    let namespace = yaml("kubernetes/base/namespace.yaml").remove(0);
    let job = &cluster["scrape_configs"][0];
    let label = &deployment["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"];
    let ports = deployment["spec"]["template"]["spec"]["containers"][0]["ports"]
        .as_array()
        .expect("ports");
    let (name, port) = job["relabel_configs"][0]["regex"]
        .as_str()
        .and_then(|regex| regex.split_once(';'))
        .expect("a name and a port");
    assert_eq!(label, name);
    assert!(ports.iter().any(|one| one["name"] == port), "{port}");
    let searched = &job["kubernetes_sd_configs"][0]["namespaces"]["names"][0];
    assert_eq!(searched, &namespace["metadata"]["name"]);
}
