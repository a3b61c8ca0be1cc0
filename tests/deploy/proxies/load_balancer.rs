//! HAProxy as a load balancer that passes TCP on and names the visitor by the PROXY protocol.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use rowhouse_tests::reserved_address;
use tempfile::TempDir;

use crate::support::{Program, Rowhouse, is_there, run, tenant, wait_for};
use crate::tls::{DOMAIN, Signer};

#[test]
fn load_balancer_names_visitor_in_both_proxy_protocol_versions() {
    if !["haproxy", "curl"].iter().all(|program| is_there(program)) {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let tenants = folder.path().join("tenants");
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let signer = Signer::new();
    let root = folder.path().join("root.pem");
    fs::write(&root, signer.root()).expect("a file");
    let [secure, first, second] = [(); 3].map(|()| reserved_address());
    let mut command = signer.write(folder.path()).serve(&tenants);
    command
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .args(["--https", &secure.to_string()])
        .args(["--access-log", "json", "--log-addresses"])
        .args(["--proxy-protocol", "--trusted-proxy", "127.0.0.1"]);
    let server = Rowhouse::start_with(&mut command);
    let settings = folder.path().join("haproxy.cfg");
    let passes = |name: &str, at: SocketAddr, how: &str| {
        format!("listen {name}\n  bind {at}\n  server rowhouse {secure} {how}\n")
    };
    fs::write(
        &settings,
        [
            "defaults\n  mode tcp\n  timeout connect 10s\n  timeout client 30s\n  timeout server 30s\n",
            &passes("first", first, "send-proxy"),
            &passes("second", second, "send-proxy-v2"),
        ]
        .concat(),
    )
    .expect("a file");
    let mut haproxy = Program::start(Command::new("haproxy").arg("-db").arg("-f").arg(&settings));

    // Connects from an address of this machine, which the access log names.
    let visit = |at: SocketAddr, from: &str| {
        let port = at.port();
        run(Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "30"])
            .args(["--noproxy", "*", "--interface", from, "--cacert"])
            .arg(&root)
            .args(["--resolve", &format!("{DOMAIN}:{port}:127.0.0.1")])
            .args(["--write-out", "\n%{http_code} HTTP/%{http_version}"])
            .arg(format!("https://{DOMAIN}:{port}/")))
    };
    for (at, from) in [
        (first, "127.0.0.2"),
        (second, "127.0.0.3"),
        // An untrusted client needs no PROXY header, and its header is not used.
        (secure, "127.0.0.4"),
    ] {
        let said = wait_for("an answer", || {
            haproxy.must_run();
            let (trusted, said) = visit(at, from);
            trusted.then_some(said)
        });
        assert!(said.ends_with("200 HTTP/2"), "{said}");
        let named = format!(r#""visitor":"{from}""#);
        wait_for("its line", || {
            let log = server.program.log();
            log.contains(&named).then_some(())
        });
    }
    // A trusted proxy that names no visitor is misconfigured, and gets no response.
    let (trusted, said) = visit(secure, "127.0.0.1");
    assert!(!trusted, "{said}");
}
