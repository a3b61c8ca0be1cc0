//! Pebble (Let's Encrypt's test authority) with its resolver, and helpers that read the program's certificates.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rowhouse_tests::{binary, reserved_address};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Program, Rowhouse, is_there, run, tenant, wait_for, wait_until};

/// The domain of these tests, which only Pebble's resolver knows.
pub(crate) const DOMAIN: &str = "studio.example";

/// Pebble, its resolver, and the ports at which Pebble validates a host.
pub(crate) struct Authority {
    pub(crate) folder: TempDir,
    pub(crate) directory: SocketAddr,
    /// The address that the program uses: Pebble, or a proxy in front of Pebble.
    pub(crate) front: SocketAddr,
    management: SocketAddr,
    dns: SocketAddr,
    resolver_management: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) https: SocketAddr,
    variables: Vec<(&'static str, &'static str)>,
    pebble: Option<Program>,
    _resolver: Program,
}

impl Authority {
    /// Starts both programs, or returns `None` if they are not installed.
    pub(crate) fn start(variables: &[(&'static str, &'static str)], more: &Value) -> Option<Self> {
        let mut authority = Self::prepare(variables, more)?;
        authority.open();
        Some(authority)
    }

    /// Starts the resolver only; Pebble does not respond yet.
    pub(crate) fn prepare(
        variables: &[(&'static str, &'static str)],
        more: &Value,
    ) -> Option<Self> {
        let programs = ["pebble", "pebble-challtestsrv", "curl"];
        if !programs.iter().all(|program| is_there(program)) {
            return None;
        }
        let folder = TempDir::new().expect("a folder");
        own_certificate(folder.path());
        let (directory, management) = (reserved_address(), reserved_address());
        let (http, https) = (reserved_address(), reserved_address());
        let (dns, resolver_management) = (reserved_address(), reserved_address());
        let mut settings = json!({
            "listenAddress": directory.to_string(),
            "managementListenAddress": management.to_string(),
            "certificate": folder.path().join("cert.pem"),
            "privateKey": folder.path().join("key.pem"),
            "httpPort": http.port(),
            "tlsPort": https.port(),
        });
        let settings_map = settings.as_object_mut().expect("an object");
        settings_map.extend(more.as_object().expect("an object").clone());
        let settings = json!({ "pebble": settings });
        fs::write(folder.path().join("config.json"), settings.to_string()).expect("a file");
        let resolver = Program::start(
            Command::new("pebble-challtestsrv")
                .args([
                    "-defaultIPv6",
                    "",
                    "-http01",
                    "",
                    "-https01",
                    "",
                    "-tlsalpn01",
                    "",
                ])
                .args(["-dns01", &dns.to_string()])
                .args(["-management", &resolver_management.to_string()]),
        );
        Some(Self {
            folder,
            directory,
            front: directory,
            management,
            dns,
            resolver_management,
            http,
            https,
            variables: variables.to_vec(),
            pebble: None,
            _resolver: resolver,
        })
    }

    /// Starts Pebble. A restarted Pebble has forgotten everything, also accounts.
    pub(crate) fn open(&mut self) {
        self.pebble = None;
        let pebble = Program::start(
            Command::new("pebble")
                .arg("-config")
                .arg(self.folder.path().join("config.json"))
                .args(["-dnsserver", &self.dns.to_string()])
                .env("PEBBLE_VA_NOSLEEP", "1")
                // A rejected nonce would be requested again, and count twice.
                .env("PEBBLE_WFE_NONCEREJECT", "0")
                // With many orders at once, Pebble's search for reusable authorizations can deadlock: other requests take
                // its two locks in the opposite order.
                .env("PEBBLE_AUTHZREUSE", "0")
                .envs(self.variables.iter().copied()),
        );
        let pebble = self.pebble.insert(pebble);
        let (root, minica) = (
            self.folder.path().join("root.pem"),
            self.folder.path().join("minica.pem"),
        );
        wait_for("Pebble's root", || {
            pebble.must_run();
            let url = format!("https://{}/roots/0", self.management);
            let (there, said) = run(Command::new("curl")
                .args(["--silent", "--show-error", "--noproxy", "*", "--cacert"])
                .arg(&minica)
                .arg(url));
            there.then(|| fs::write(&root, said).expect("a file"))
        });
    }

    /// Makes the program use a proxy in front of Pebble.
    pub(crate) fn use_proxy(&mut self, front: SocketAddr) {
        self.front = front;
    }

    /// Returns the root certificate that browsers of the test trust.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// Returns the number of orders that Pebble has got.
    pub(crate) fn orders(&self) -> usize {
        let log = self.pebble.as_ref().expect("a running Pebble").log();
        log.matches("POST /order-plz").count()
    }

    /// Points a name at an address from now on.
    pub(crate) fn point_name(&self, host: &str, address: &str) {
        let data = json!({ "host": format!("{host}."), "addresses": [address] }).to_string();
        // Without `clear-a`, the old address stays, too.
        for what in ["clear-a", "add-a"] {
            let url = format!("http://{}/{what}", self.resolver_management);
            wait_for("the resolver", || {
                let (done, _) = run(Command::new("curl")
                    .args(["--silent", "--fail", "--noproxy", "*", "--data", &data])
                    .arg(&url));
                done.then_some(())
            });
        }
    }

    /// Returns the command of a server that gets its certificates here.
    pub(crate) fn serve(&self, tenants: &Path) -> Command {
        let mut command = self.serve_without_http(tenants);
        command.args(["--http-redirect", &self.http.to_string()]);
        command
    }

    /// Returns the same command, but the authority can validate by TLS only.
    pub(crate) fn serve_without_http(&self, tenants: &Path) -> Command {
        let mut command = Command::new(binary());
        command
            .arg("serve")
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .arg("--tenants")
            .arg(tenants)
            .args([
                "--origin",
                &format!("https://{DOMAIN}:{}", self.https.port()),
            ])
            .args(["--https", &self.https.to_string()])
            .args(["--acme-contact", "ops@studio.example"])
            .args(["--acme-directory", &format!("https://{}/dir", self.front)])
            .arg("--acme-root")
            .arg(self.folder.path().join("minica.pem"))
            .arg("--state")
            .arg(self.folder.path().join("state"));
        command
    }

    /// Requests a host as a browser that trusts only this authority. The last line of the output is status and version.
    pub(crate) fn visit(&self, host: &str) -> (bool, String) {
        let port = self.https.port();
        run(Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--include",
                "--max-time",
                "10",
                "--http2",
            ])
            .args(["--noproxy", "*", "--cacert"])
            .arg(self.root())
            .args(["--resolve", &format!("{host}:{port}:127.0.0.1")])
            .args(["--write-out", "\n%{http_code} HTTP/%{http_version}"])
            .arg(format!("https://{host}:{port}/")))
    }

    /// Returns the folder of certificates, which is below the state.
    pub(crate) fn certificates(&self) -> PathBuf {
        self.folder.path().join("state/certificates")
    }

    /// Returns the folder of this authority in it.
    pub(crate) fn stored_certificates(&self) -> PathBuf {
        let mut folders = fs::read_dir(self.certificates()).expect("a folder");
        folders.next().expect("a folder").expect("a folder").path()
    }

    pub(crate) fn tenants(&self) -> PathBuf {
        self.folder.path().join("tenants")
    }

    pub(crate) fn drop_folder(&self, name: &str, more: &str) {
        let beside = self.folder.path().join("beside").join(name);
        tenant(&beside, name, more);
        fs::rename(beside, self.tenants().join(name)).expect("a moved folder");
    }
}

/// Makes the certificate of Pebble's own listener, signed by a new authority.
fn own_certificate(folder: &Path) {
    let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // The name must differ from that of the issuer; otherwise the certificate counts as self-signed.
    let name = &mut parameters.distinguished_name;
    name.push(DnType::CommonName, "Authority of the test");
    let key = KeyPair::generate().expect("a key");
    let issuer = CertifiedIssuer::self_signed(parameters, key).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let parameters = CertificateParams::new(names).expect("names");
    let certificate = parameters.signed_by(&key, &issuer).expect("a certificate");
    for (file, text) in [
        ("minica.pem", issuer.pem()),
        ("cert.pem", certificate.pem()),
        ("key.pem", key.serialize_pem()),
    ] {
        fs::write(folder.join(file), text).expect("a file");
    }
}

/// Returns the state of each host's certificate.
pub(crate) fn certificates(server: &Rowhouse) -> Vec<Value> {
    let (status, text) = server.get_admin("/certificates").expect("an answer");
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

pub(crate) fn of(server: &Rowhouse, host: &str) -> Value {
    let all = certificates(server);
    let found = all.into_iter().find(|line| line["host"] == host);
    found.unwrap_or_default()
}

/// Waits until every host has a certificate, and returns their number.
pub(crate) fn all_valid(server: &mut Rowhouse, what: &str) -> usize {
    wait_until(|| {
        server.program.must_run();
        let all = certificates(server);
        let missing: Vec<&Value> = (all.iter())
            .filter(|line| line["state"] != "valid")
            .collect();
        match missing.is_empty() {
            true => Ok(all.len()),
            false => Err(format!("{what}: {missing:#?}")),
        }
    })
}
