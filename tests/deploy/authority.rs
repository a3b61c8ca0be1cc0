//! Pebble, which is Let's Encrypt's authority for tests, with its resolver, and how the program stands with it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rowhouse_tests::{binary, reserved_address};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Program, Rowhouse, is_there, run, tenant, wait_for, wait_until};

/// The domain of all tests here, which only Pebble's resolver knows.
pub(crate) const DOMAIN: &str = "studio.example";

/// Pebble, its resolver, and the ports at which it looks for a name.
pub(crate) struct Authority {
    pub(crate) folder: TempDir,
    pub(crate) directory: SocketAddr,
    /// Whom the program asks: Pebble, or who stands before it.
    front: SocketAddr,
    management: SocketAddr,
    dns: SocketAddr,
    resolver_management: SocketAddr,
    http: SocketAddr,
    pub(crate) https: SocketAddr,
    variables: Vec<(&'static str, &'static str)>,
    pebble: Option<Program>,
    _resolver: Program,
}

impl Authority {
    /// Both programs, where they are there.
    pub(crate) fn start(variables: &[(&'static str, &'static str)], more: &Value) -> Option<Self> {
        let mut authority = Self::prepare(variables, more)?;
        authority.open();
        Some(authority)
    }

    /// The same, and Pebble does not answer yet.
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

    /// Starts Pebble. What it knew before it has forgotten, accounts, too.
    pub(crate) fn open(&mut self) {
        self.pebble = None;
        let pebble = Program::start(
            Command::new("pebble")
                .arg("-config")
                .arg(self.folder.path().join("config.json"))
                .args(["-dnsserver", &self.dns.to_string()])
                .env("PEBBLE_VA_NOSLEEP", "1")
                // A question that is asked again would count twice.
                .env("PEBBLE_WFE_NONCEREJECT", "0")
                // Its search for an authorization that it may use again takes two locks, and other requests take them the
                // other way round: with many orders at once it can wait for itself for good.
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

    /// Has the program ask somebody else, who stands before Pebble.
    pub(crate) fn ask_at(&mut self, front: SocketAddr) {
        self.front = front;
    }

    /// What browsers of the test trust.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// How many orders it was given.
    pub(crate) fn orders(&self) -> usize {
        let log = self.pebble.as_ref().expect("a running Pebble").log();
        log.matches("POST /order-plz").count()
    }

    /// Where a name leads from now on.
    pub(crate) fn lead(&self, host: &str, address: &str) {
        let data = json!({ "host": format!("{host}."), "addresses": [address] }).to_string();
        // It would go on naming the address of before, too.
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

    /// The command of a server that has its certificates from here.
    pub(crate) fn serve(&self, tenants: &Path) -> Command {
        let mut command = self.serve_without_http(tenants);
        command.args(["--http-redirect", &self.http.to_string()]);
        command
    }

    /// The same, and the authority can only look by TLS.
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

    /// What a browser gets that trusts nobody else: the last line is status and version.
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

    /// The folder for certificates, which is below the state.
    pub(crate) fn certificates(&self) -> PathBuf {
        self.folder.path().join("state/certificates")
    }

    /// This authority's folder there.
    pub(crate) fn kept(&self) -> PathBuf {
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

/// The certificate of Pebble's own listener, of an authority that is made for it.
fn own_certificate(folder: &Path) {
    let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // A name of its own: what is signed by a name like its own passes for self-signed.
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

/// How it stands with each host.
pub(crate) fn certificates(server: &Rowhouse) -> Vec<Value> {
    let (status, text) = server.operator("/certificates").expect("an answer");
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

pub(crate) fn of(server: &Rowhouse, host: &str) -> Value {
    let all = certificates(server);
    let found = all.into_iter().find(|line| line["host"] == host);
    found.unwrap_or_default()
}

/// Waits until every host has a certificate: their number.
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
