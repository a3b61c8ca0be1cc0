//! Every metric of the dashboard and the alerts exists in a running server, with its labels. An alert with a wrong name never fires.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use rcgen::{CertificateParams, KeyPair};
use rowhouse_tests::binary;
use tempfile::TempDir;

use crate::http;
use crate::monitoring::{alert_rules, dashboard};
use crate::support::{Rowhouse, tenant, wait_for};

/// Metrics with the names of their labels.
type Metrics = BTreeMap<String, BTreeSet<String>>;

/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["instance", "job"];

/// Returns the rowhouse metrics that a text names, as an expression or an exposition.
fn metrics(text: &str) -> Metrics {
    let mut found = Metrics::new();
    for (start, _) in text.match_indices("rowhouse_") {
        let rest = &text[start..];
        let end = rest
            .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
            .unwrap_or(rest.len());
        let labels = found.entry(rest[..end].to_owned()).or_default();
        let Some((matchers, _)) = rest[end..]
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'))
        else {
            continue;
        };
        for matcher in matchers.split("\",") {
            let name = matcher.split(['=', '!']).next().unwrap_or_default();
            labels.insert(name.trim().to_owned());
        }
    }
    found
}

#[test]
fn parser_of_expressions_finds_metrics_and_labels() {
    let found =
        metrics("sum(rate(rowhouse_a_total{status=\"5xx\",tenant!~\"_.*\"}[5m])) / rowhouse_b > 1");
    let names: Vec<(&str, Vec<&str>)> = found
        .iter()
        .map(|(name, labels)| (&**name, labels.iter().map(|label| &**label).collect()))
        .collect();
    assert_eq!(
        names,
        [
            ("rowhouse_a_total", vec!["status", "tenant"]),
            ("rowhouse_b", vec![])
        ]
    );
}

/// Starts a server with a certificate, whose expiry is a metric.
fn with_https(tenants: &Path, folder: &Path) -> Rowhouse {
    let key = KeyPair::generate().expect("a key");
    let names = CertificateParams::new(vec!["studio.example".to_owned()]).expect("names");
    let certificate = names.self_signed(&key).expect("a certificate");
    let files = [
        ("chain.pem", certificate.pem()),
        ("key.pem", key.serialize_pem()),
    ];
    let [chain, key] = files.map(|(name, text)| {
        let path = folder.join(name);
        fs::write(&path, text).expect("a file");
        path
    });
    Rowhouse::start_with(
        Command::new(binary())
            .args(["serve", "--origin", "https://studio.example"])
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(["--https", "127.0.0.1:0", "--access-log", "json"])
            .args(["--alert-webhook", "http://127.0.0.1:9/"])
            .arg("--state")
            .arg(folder.join("state"))
            .arg("--tenants")
            .arg(tenants)
            .arg("--certificate")
            .arg(chain)
            .arg("--certificate-key")
            .arg(key),
    )
}

#[test]
fn running_server_has_every_used_metric() {
    let folder = TempDir::new().expect("a folder");
    tenant(&folder.path().join("home"), "Home", "root: true\n");
    tenant(&folder.path().join("broken"), "Broken", "rooot: true\n");
    let secure = TempDir::new().expect("a folder");
    let server = with_https(folder.path(), secure.path());
    for (host, path, status) in [
        ("studio.example", "/", 200),
        ("studio.example", "/nothing", 404),
        ("stranger.example", "/", 421),
    ] {
        let answer = http::ask(server.visitors, host, path).expect("an answer");
        assert_eq!(answer.0, status, "{host}{path}");
    }
    // A request is counted after its last byte is sent.
    let exposed = wait_for("all requests to be counted", || {
        let (_, text) = server.get_admin("/metrics")?;
        text.contains("rowhouse_http_requests_total{tenant=\"_unknown\"")
            .then_some(text)
    });
    let samples: String = exposed
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| [line, "\n"])
        .collect();
    let exposed = metrics(&samples);

    let mut asked: Vec<(String, String)> = alert_rules::expressions();
    asked.extend(dashboard::expressions());
    assert!(asked.len() > 30, "{} expressions", asked.len());
    let mut wrong = BTreeSet::new();
    for (who, expression) in asked {
        let named = metrics(&expression);
        assert!(
            !named.is_empty() || expression.contains("up{"),
            "{who}: {expression}"
        );
        for (name, labels) in named {
            let Some(known) = exposed.get(&name) else {
                wrong.insert(format!("{who}: there is no metric `{name}`"));
                continue;
            };
            for label in labels {
                if !known.contains(&label) && !ADDED.contains(&&*label) {
                    wrong.insert(format!("{who}: `{name}` has no label `{label}`"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
