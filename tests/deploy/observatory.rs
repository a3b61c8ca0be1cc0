//! What Mozilla's HTTP Observatory looks for (npm `@mdn/mdn-http-observatory`), on every host of the six sites: with all of it a site has 130 points and an A+.
//!
//! The program itself is not run here, since it asks the internet and brings two hundred packages; CONTRIBUTING.md says how to run it.

use std::collections::BTreeMap;

use rowhouse_tests::{reserved_address, workspace};
use serde_json::Value;
use tempfile::TempDir;

use crate::http;
use crate::support::{Rowhouse, wait_for};
use crate::tls::{Signer, visit};

/// Half a year, in seconds: what it wants of HSTS.
const HALF_A_YEAR: u64 = 15_768_000;

/// The fields of an answer by lower-case name, and its status.
fn head(answer: &str) -> (u16, BTreeMap<String, String>) {
    let head = answer.split("\r\n\r\n").next().unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    (status.unwrap_or_default(), fields.collect())
}

#[test]
fn every_host_has_what_the_observatory_wants() {
    let folder = TempDir::new().expect("a folder");
    let signer = Signer::new();
    let files = signer.write(folder.path());
    let (secure, redirect) = (reserved_address(), reserved_address());
    let mut command = files.serve(&workspace().join("tenants"));
    command
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .args(["--https", &secure.to_string()])
        .args(["--http-redirect", &redirect.to_string()]);
    let server = Rowhouse::start_with(&mut command);
    let hosts: Vec<Value> = wait_for("the hosts", || {
        let (_, text) = server.operator("/certificates")?;
        serde_json::from_str(&text).ok()
    });
    assert!(hosts.len() > 6, "{hosts:?}");
    let config = signer.visitor();
    let mut pages = 0;
    for line in &hosts {
        assert_eq!(line["state"], "valid", "{line}");
        let host = line["host"].as_str().expect("a host");
        let (answer, _) = visit(secure, &config, host, "/").expect("an answer");
        let (status, fields) = head(&answer);
        // Some lead to the domain, which has the rest.
        let is_page = status != 308;
        assert!(!is_page || status == 200, "{host}: {status}");
        pages += usize::from(is_page);
        let field = |name: &str| fields.get(name).map_or("", String::as_str);
        assert_eq!(field("set-cookie"), "", "{host}");
        assert_eq!(field("access-control-allow-origin"), "", "{host}");
        if is_page {
            // What else is in the policy is the suite's (`headers`).
            let age = field("strict-transport-security").strip_prefix("max-age=");
            let age = age.and_then(|age| age.split(';').next()?.parse::<u64>().ok());
            assert!(age >= Some(HALF_A_YEAR), "{host}: {fields:?}");
            let policy = field("content-security-policy");
            assert!(
                policy.starts_with("default-src 'none'; "),
                "{host}: {policy}"
            );
            assert!(
                policy.contains("frame-ancestors 'none'"),
                "{host}: {policy}"
            );
            assert!(!policy.contains("unsafe"), "{host}: {policy}");
            assert_eq!(field("x-content-type-options"), "nosniff", "{host}");
            assert_eq!(field("cross-origin-resource-policy"), "same-site", "{host}");
            let referrer = field("referrer-policy");
            assert_eq!(referrer, "strict-origin-when-cross-origin", "{host}");
        }
        leads_to_https(redirect, host);
    }
    assert!(pages >= 6, "{pages}");
}

/// The first step from HTTP is to HTTPS at the same host, and needs no other.
fn leads_to_https(redirect: std::net::SocketAddr, host: &str) {
    let mut visitor = http::Visitor::connect(redirect).expect("a connection");
    let (status, location) = visitor.lead(host, "/").expect("an answer");
    assert_eq!((status, location), (308, format!("https://{host}/")));
}
