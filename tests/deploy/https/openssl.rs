//! TLS as clients other than rustls see it: versions, suites, groups, renegotiation, tickets and alerts, tested by `openssl s_client` like `testssl.sh`, and by Node.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use rowhouse_tests::reserved_address;
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::support::{Rowhouse, is_there, one_of, run, tenant};
use crate::tls::{DOMAIN, Signer};

/// The suites of TLS 1.2 with an ECDSA key that have forward secrecy and authentication (RFC 9325, section 4.2).
const OLDER_SUITES: [&str; 3] = [
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
];

/// Every suite of OpenSSL, however weak, so that a refusal comes from the server.
const WEAKEST: &str = "ALL:eNULL:@SECLEVEL=0";

struct Site {
    folder: TempDir,
    address: SocketAddr,
    _server: Rowhouse,
}

impl Site {
    fn start() -> Option<Self> {
        if !is_there("openssl") {
            return None;
        }
        let folder = TempDir::new().expect("a folder");
        let tenants = folder.path().join("tenants");
        tenant(&tenants.join("home"), "Home", "root: true\n");
        let signer = Signer::new();
        fs::write(folder.path().join("root.pem"), signer.root()).expect("a file");
        let files = signer.write(folder.path());
        let address = reserved_address();
        let mut command = files.serve(&tenants);
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        let server = Rowhouse::start_with(command.args(["--https", &address.to_string()]));
        Some(Self {
            folder,
            address,
            _server: server,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a client that trusts only the root, with lines to send and options.
    fn ask(&self, lines: &str, wishes: &[&str]) -> (bool, String) {
        let input = NamedTempFile::new().expect("a file");
        fs::write(input.path(), lines).expect("a file");
        run(Command::new("openssl")
            .args(["s_client", "-connect", &self.address.to_string()])
            .arg("-CAfile")
            .arg(self.file("root.pem"))
            .args(["-verify_return_error", "-verify_hostname", DOMAIN])
            .args(wishes)
            .stdin(input.reopen().expect("a file")))
    }

    /// Runs a client for the domain that sends nothing.
    fn greet(&self, wishes: &[&str]) -> (bool, String) {
        self.ask("", &[&["-servername", DOMAIN], wishes].concat())
    }
}

#[test]
fn versions_and_suites_follow_recommendations() {
    let Some(site) = Site::start() else {
        return;
    };
    for old in ["-tls1", "-tls1_1"] {
        let (done, said) = site.greet(&[old, "-cipher", WEAKEST]);
        // The server refuses, and not the client itself.
        assert!(!done && said.contains("SSL alert number"), "{old}: {said}");
    }
    let (listed, all) = run(Command::new("openssl").args(["ciphers", "-s", "-tls1_2", WEAKEST]));
    assert!(listed, "{all}");
    let all: Vec<&str> = all.trim().split(':').collect();
    assert!(all.len() > 20, "{all:?}");
    let is_taken = |suite: &&&str| {
        let suite = format!("{suite}:@SECLEVEL=0");
        site.greet(&["-tls1_2", "-cipher", &suite]).0
    };
    let mut taken: Vec<&str> = all.iter().filter(is_taken).copied().collect();
    taken.sort_unstable();
    assert_eq!(taken, OLDER_SUITES);
    for (suite, expected) in [
        ("TLS_AES_128_GCM_SHA256", true),
        ("TLS_AES_256_GCM_SHA384", true),
        ("TLS_CHACHA20_POLY1305_SHA256", true),
        ("TLS_AES_128_CCM_SHA256", false),
    ] {
        let (done, said) = site.greet(&["-tls1_3", "-ciphersuites", suite]);
        assert_eq!(done, expected, "{suite}: {said}");
        assert!(!done || said.contains("Verification: OK"), "{said}");
    }
    // The suite that a client with a choice gets.
    let (_, said) = site.greet(&["-tls1_2"]);
    for expected in ["Secure Renegotiation IS supported", "Compression: NONE"] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
}

#[test]
fn groups_follow_recommendations() {
    let Some(site) = Site::start() else {
        return;
    };
    for (group, expected) in [("X25519", true), ("P-256", true), ("ffdhe2048", false)] {
        let (done, said) = site.greet(&["-tls1_3", "-groups", group]);
        assert_eq!(done, expected, "{group}: {said}");
        assert!(
            done || said.contains("alert handshake failure"),
            "{group}: {said}"
        );
    }
}

/// Requests the domain's first page with Node, with given groups and versions: by a full handshake, and by one with the ticket of the first.
const VISITS: &str = r"
const [port, root, host, groups, version] = process.argv.slice(1);
const { connect } = require('node:tls');
const ca = require('node:fs').readFileSync(root);
function visit(session) {
  return new Promise((done) => {
    const found = { answer: '' };
    const socket = connect({
      host: '127.0.0.1', port, ca, session, servername: host,
      ecdhCurve: groups, minVersion: version, maxVersion: version,
    }, () => {
      found.version = socket.getProtocol();
      found.resumed = socket.isSessionReused();
      socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    });
    socket.on('session', (kept) => { session = kept; });
    socket.on('data', (data) => { found.answer += data; });
    socket.on('error', (error) => { found.error = error.message; });
    socket.on('close', () => done([found, session]));
  });
}
visit().then(async ([full, session]) => {
  const [resumed] = await visit(session);
  console.log(JSON.stringify([full, resumed]));
});
";

/// Returns a Node with OpenSSL 3.5 or later, which has the hybrid groups.
fn recent_node() -> Option<&'static str> {
    let is_recent = |program: &&&str| {
        let version = Command::new(program)
            .args(["-p", "process.versions.openssl"])
            .output();
        let version = version.map_or_else(|_| Vec::new(), |output| output.stdout);
        let version = String::from_utf8_lossy(&version).into_owned();
        let mut numbers = version
            .split('.')
            .map_while(|part| part.parse::<u32>().ok());
        (numbers.next(), numbers.next()) >= (Some(3), Some(5))
    };
    let names = ["node", "node24"];
    let found = names.iter().find(is_recent).copied();
    found.or_else(|| one_of(&["node24"]))
}

#[test]
fn node_agrees_on_post_quantum_group_and_resumes() {
    let (Some(node), Some(site)) = (recent_node(), Site::start()) else {
        return;
    };
    let visits = |groups: &str, version: &str| -> Value {
        let (done, said) = run(Command::new(node)
            .args(["-e", VISITS, &site.address.port().to_string()])
            .arg(site.file("root.pem"))
            .args([DOMAIN, groups, version]));
        assert!(done, "{said}");
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    };
    // The client offers nothing else, so a success means that this group was agreed on.
    for (groups, version) in [("X25519MLKEM768", "TLSv1.3"), ("X25519:P-256", "TLSv1.2")] {
        let visits = visits(groups, version);
        for (visit, is_resumed) in [(&visits[0], false), (&visits[1], true)] {
            assert_eq!(visit["version"], version, "{visits}");
            assert_eq!(visit["resumed"], is_resumed, "{visits}");
            let answer = visit["answer"].as_str().unwrap_or_default();
            assert!(answer.starts_with("HTTP/1.1 200"), "{visits}");
        }
    }
    // The client does not fall back by itself: the server does not support this group.
    let refused = visits("SecP384r1MLKEM1024", "TLSv1.3");
    let error = refused[0]["error"].as_str().unwrap_or_default();
    assert!(error.contains("handshake failure"), "{refused}");
}

#[test]
fn connection_is_not_renegotiated_and_is_resumed_by_ticket() {
    let Some(site) = Site::start() else {
        return;
    };
    let (_, said) = site.ask("R\n", &["-servername", DOMAIN, "-tls1_2"]);
    assert!(said.contains("RENEGOTIATING"), "{said}");
    assert!(said.contains("no renegotiation"), "{said}");

    let request = format!("GET / HTTP/1.1\r\nhost: {DOMAIN}\r\nconnection: close\r\n\r\n");
    for version in ["-tls1_2", "-tls1_3"] {
        let kept = site.file(&format!("session{version}"));
        let kept = kept.to_str().expect("a path");
        let visit = |what: &str| {
            let wishes = ["-servername", DOMAIN, version, "-ign_eof", what, kept];
            let (done, said) = site.ask(&request, &wishes);
            assert!(done && said.contains("HTTP/1.1 200"), "{version}: {said}");
            said
        };
        assert!(visit("-sess_out").contains("New, TLSv1"), "{version}");
        let said = visit("-sess_in");
        assert!(said.contains("Reused, TLSv1"), "{version}: {said}");
    }
}

#[test]
fn unknown_host_gets_no_certificate() {
    let Some(site) = Site::start() else {
        return;
    };
    // The certificate covers the first name, and no tenant claims it.
    let names = ["stranger.studio.example", "stranger.example"];
    let named = names.map(|name| vec!["-servername", name]);
    for wishes in named.into_iter().chain([vec!["-noservername"]]) {
        for version in ["-tls1_2", "-tls1_3"] {
            let (done, said) = site.ask("", &[&wishes[..], &[version]].concat());
            assert!(!done, "{wishes:?}: {said}");
            assert!(said.contains("unrecognized name"), "{wishes:?}: {said}");
            assert!(
                said.contains("no peer certificate available"),
                "{wishes:?}: {said}"
            );
        }
    }
}
