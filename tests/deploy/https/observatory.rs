//! The criteria of Mozilla's HTTP Observatory (npm `@mdn/mdn-http-observatory`), on every host of the six sites. With all of them a site has 130 points and an A+.
//!
//! The Observatory itself has two hundred packages, so it runs only with `ROWHOUSE_LONG`.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use rowhouse_tests::{is_long, reserved_address, workspace};
use serde_json::Value;
use tempfile::TempDir;

use crate::http;
use crate::support::{Rowhouse, run, wait_for};
use crate::tls::{Signer, visit};

/// Half a year in seconds, the least value that the Observatory accepts for HSTS.
const HALF_A_YEAR: u64 = 15_768_000;

/// The version with these criteria.
const PACKAGE: &str = "@mdn/mdn-http-observatory@1.4.8";

/// Makes Node resolve names of the test to this machine, at the ports of the server.
const ROUTE: &str = r"const net = require('node:net');
const { HTTP_PORT, HTTPS_PORT } = process.env;
const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...given) {
  const options = Array.isArray(given[0]) ? given[0][0] : given[0];
  if (/\.example$/.test(options?.host ?? '')) {
    options.servername ??= options.host;
    options.port = Number(options.port) === 443 ? HTTPS_PORT : HTTP_PORT;
    options.host = '127.0.0.1';
  }
  return connect.apply(this, given);
};
";

/// Returns the status and the header fields, by lower-case name.
fn head(answer: &str) -> (u16, BTreeMap<String, String>) {
    let head = answer.split("\r\n\r\n").next().unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    (status.unwrap_or_default(), fields.collect())
}

#[test]
fn every_host_meets_criteria_of_observatory() {
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
        let (_, text) = server.get_admin("/certificates")?;
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
        // Some hosts redirect to the domain, which has the other fields.
        let is_page = status != 308;
        assert!(!is_page || status == 200, "{host}: {status}");
        pages += usize::from(is_page);
        let field = |name: &str| fields.get(name).map_or("", String::as_str);
        assert_eq!(field("set-cookie"), "", "{host}");
        assert_eq!(field("access-control-allow-origin"), "", "{host}");
        let age = field("strict-transport-security").strip_prefix("max-age=");
        let age = age.and_then(|age| age.split(';').next()?.parse::<u64>().ok());
        assert!(age >= Some(HALF_A_YEAR), "{host}: {fields:?}");
        if is_page {
            // The suite (`headers`) tests the rest of the policy.
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
        check_redirect_to_https(redirect, host);
    }
    assert!(pages >= 6, "{pages}");
    if is_long() {
        fs::write(folder.path().join("root.pem"), signer.root()).expect("a file");
        let hosts = hosts.iter().filter_map(|line| line["host"].as_str());
        scan(folder.path(), hosts, secure, redirect);
    }
}

/// Checks that HTTP redirects to HTTPS at the same host first.
fn check_redirect_to_https(redirect: SocketAddr, host: &str) {
    let mut visitor = http::Visitor::connect(redirect).expect("a connection");
    let (status, location) = visitor.redirect_of(host, "/").expect("an answer");
    assert_eq!((status, location), (308, format!("https://{host}/")));
}

/// Returns the Observatory's own result for each host.
fn scan<'h>(
    folder: &Path,
    hosts: impl Iterator<Item = &'h str>,
    secure: SocketAddr,
    redirect: SocketAddr,
) {
    // Its scripts download the list of preloaded hosts, which has no host of the test.
    let (installed, said) = run(Command::new("npm")
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund"])
        .arg("--prefix")
        .arg(folder)
        .arg(PACKAGE));
    assert!(installed, "{said}");
    let package = folder.join("node_modules/@mdn/mdn-http-observatory");
    fs::write(package.join("conf/hsts-preload.json"), "{}").expect("a file");
    fs::write(folder.join("route.cjs"), ROUTE).expect("a file");
    for host in hosts {
        let output = Command::new("node")
            .arg("--require")
            .arg(folder.join("route.cjs"))
            .arg(package.join("src/scan.js"))
            .arg(host)
            .env("NODE_EXTRA_CA_CERTS", folder.join("root.pem"))
            .env("HTTP_PORT", redirect.port().to_string())
            .env("HTTPS_PORT", secure.port().to_string())
            .output()
            .expect("node");
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let scan = &found["scan"];
        assert_eq!(scan["grade"], "A+", "{host}: {found:#}");
        assert!(scan["score"].as_u64() >= Some(130), "{host}: {found:#}");
    }
}
