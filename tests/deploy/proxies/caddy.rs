//! `deploy/caddy/Caddyfile` without changes: a new folder is served over HTTPS, and an unknown host gets no certificate.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rowhouse_tests::reserved_address;
use tempfile::TempDir;

use crate::support::{Program, Rowhouse, is_there, place, run, tenant, wait_for};

/// Caddy on free ports in front of a server with one tenant.
struct CaddyServer {
    folder: TempDir,
    rowhouse: Rowhouse,
    caddy: Program,
    https: SocketAddr,
    http: SocketAddr,
}

impl CaddyServer {
    fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let tenants = folder.path().join("tenants");
        tenant(&tenants.join("home"), "Home", "root: true\n");
        let (http, https) = (reserved_address(), reserved_address());
        let rowhouse = Rowhouse::start(&tenants, &format!("https://localhost:{}", https.port()));
        let caddy = Program::start(
            Command::new("caddy")
                .args(["run", "--adapter", "caddyfile", "--config"])
                .arg(place("caddy/Caddyfile"))
                .env("HOME", folder.path())
                .env("XDG_DATA_HOME", folder.path().join("data"))
                .env("XDG_CONFIG_HOME", folder.path().join("config"))
                .env("CADDY_ADMIN", reserved_address().to_string())
                .env("CADDY_HTTP_PORT", http.port().to_string())
                .env("CADDY_HTTPS_PORT", https.port().to_string())
                .env("CADDY_ASK", rowhouse.admin.to_string())
                .env("CADDY_UPSTREAMS", rowhouse.visitors.to_string()),
        );
        let mut server = Self {
            folder,
            rowhouse,
            caddy,
            https,
            http,
        };
        wait_for("Caddy's own authority", || {
            server.caddy.must_run();
            server.authority().is_file().then_some(())
        });
        // Caddy orders a certificate during the first handshake, valid from the current second. The clock of curl is
        // coarser and may be behind, so curl may reject the certificate for some milliseconds.
        wait_for("a certificate that is valid to curl too", || {
            server.secure("localhost", &[]).0.then_some(())
        });
        server
    }

    /// Returns the root certificate of Caddy's own authority.
    fn authority(&self) -> PathBuf {
        self.folder
            .path()
            .join("data/caddy/pki/authorities/local/root.crt")
    }

    /// Requests a page. The last line of the output is the status and the version of HTTP.
    fn curl(&self, url: &str, host: &str, port: u16, more: &[&str]) -> (bool, String) {
        run(Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "30", "--http2"])
            .args(["--noproxy", "*", "--cacert"])
            .arg(self.authority())
            .args(["--resolve", &format!("{host}:{port}:127.0.0.1")])
            .args(["--write-out", "\n%{http_code} HTTP/%{http_version}"])
            .args(more)
            .arg(url))
    }

    fn secure(&self, host: &str, more: &[&str]) -> (bool, String) {
        let port = self.https.port();
        self.curl(&format!("https://{host}:{port}/"), host, port, more)
    }

    fn drop_folder(&self, from: &Path, name: &str) {
        let to = self.folder.path().join("tenants").join(name);
        std::fs::rename(from, to).expect("a moved folder");
    }
}

#[test]
fn new_folder_is_served_over_https_and_unknown_host_gets_no_certificate() {
    if !is_there("caddy") || !is_there("curl") {
        return;
    }
    let server = CaddyServer::start();
    let (content, said) = server.secure("localhost", &[]);
    assert!(
        content && said.contains("the house of Home"),
        "{said}\n{}",
        server.caddy.log()
    );
    assert!(said.ends_with("200 HTTP/2"), "{said}");

    let (content, said) = server.secure("garden.localhost", &[]);
    assert!(!content, "no tenant has the host yet: {said}");

    let beside = server.folder.path().join("garden");
    tenant(&beside, "Garden", "");
    server.drop_folder(&beside, "garden");
    let said = wait_for("the new host over https", || {
        let (content, said) = server.secure("garden.localhost", &[]);
        content.then_some(said)
    });
    assert!(said.contains("the house of Garden"), "{said}");
    assert!(said.ends_with("200 HTTP/2"), "{said}");

    let (content, said) = server.secure("stranger.localhost", &[]);
    assert!(!content, "{said}");
    assert!(said.contains("alert"), "the handshake is refused: {said}");
    let files = run(Command::new("find").arg(server.folder.path().join("data"))).1;
    assert!(
        files.contains("garden.localhost") && !files.contains("stranger"),
        "{files}"
    );
}

#[test]
fn caddy_redirects_to_https_and_sets_request_id() {
    if !is_there("caddy") || !is_there("curl") {
        return;
    }
    let server = CaddyServer::start();
    let port = server.http.port();
    let (content, said) = server.curl(
        &format!("http://localhost:{port}/"),
        "localhost",
        port,
        &["--head"],
    );
    assert!(
        content && said.contains("308") && said.contains("https://localhost"),
        "{said}"
    );

    let name = "x-request-id: chosen-by-the-visitor";
    let (content, said) = server.secure("localhost", &["--include", "--header", name]);
    assert!(content, "{said}");
    let given = said
        .lines()
        .find_map(|line| line.strip_prefix("x-request-id: "))
        .expect("a request id");
    assert!(given.len() >= 32 && !given.contains("chosen"), "{given}");
    wait_for("the line of that request", || {
        server.rowhouse.program.log().contains(given).then_some(())
    });
}

#[test]
fn internet_variables_give_valid_configuration() {
    if !is_there("caddy") {
        return;
    }
    let (content, said) = run(Command::new("caddy")
        .args(["validate", "--adapter", "caddyfile", "--config"])
        .arg(place("caddy/Caddyfile"))
        .env("CADDY_CERTIFICATES", "email ops@studio.example")
        .env("CADDY_UPSTREAMS", "10.0.0.11:8080 10.0.0.12:8080")
        .env("CADDY_ASK", "10.0.0.11:8081"));
    assert!(content && said.contains("Valid configuration"), "{said}");
    let (content, said) = run(Command::new("caddy")
        .args(["fmt", "--diff"])
        .arg(place("caddy/Caddyfile")));
    assert!(content, "`caddy fmt` would change the file: {said}");
}
