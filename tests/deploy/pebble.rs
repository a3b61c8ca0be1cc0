//! Certificates from an authority: Pebble, which is Let's Encrypt's for tests, with its resolver, against the real binary.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rowhouse_tests::{binary, reserved_address};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Program, Rowhouse, is_there, run, tenant, wait_for};

/// The domain of all tests here, which only Pebble's resolver knows.
const DOMAIN: &str = "studio.example";

/// Pebble, its resolver, and the ports at which it looks for a name.
struct Authority {
    folder: TempDir,
    directory: SocketAddr,
    management: SocketAddr,
    dns: SocketAddr,
    resolver_management: SocketAddr,
    http: SocketAddr,
    https: SocketAddr,
    variables: Vec<(&'static str, &'static str)>,
    pebble: Option<Program>,
    _resolver: Program,
}

impl Authority {
    /// Both programs, where they are there.
    fn start(variables: &[(&'static str, &'static str)], more: &Value) -> Option<Self> {
        let mut authority = Self::prepare(variables, more)?;
        authority.open();
        Some(authority)
    }

    /// The same, and Pebble does not answer yet.
    fn prepare(variables: &[(&'static str, &'static str)], more: &Value) -> Option<Self> {
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
    fn open(&mut self) {
        self.pebble = None;
        let pebble = Program::start(
            Command::new("pebble")
                .arg("-config")
                .arg(self.folder.path().join("config.json"))
                .args(["-dnsserver", &self.dns.to_string()])
                .env("PEBBLE_VA_NOSLEEP", "1")
                // A question that is asked again would count twice.
                .env("PEBBLE_WFE_NONCEREJECT", "0")
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

    /// What browsers of the test trust.
    fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// How many orders it was given.
    fn orders(&self) -> usize {
        let log = self.pebble.as_ref().expect("a running Pebble").log();
        log.matches("POST /order-plz").count()
    }

    /// Where a name leads from now on.
    fn lead(&self, host: &str, address: &str) {
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
    fn serve(&self, tenants: &Path) -> Command {
        let mut command = self.serve_without_http(tenants);
        command.args(["--http-redirect", &self.http.to_string()]);
        command
    }

    /// The same, and the authority can only look by TLS.
    fn serve_without_http(&self, tenants: &Path) -> Command {
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
            .args([
                "--acme-directory",
                &format!("https://{}/dir", self.directory),
            ])
            .arg("--acme-root")
            .arg(self.folder.path().join("minica.pem"))
            .arg("--state")
            .arg(self.folder.path().join("state"));
        command
    }

    /// What a browser gets that trusts nobody else: the last line is status and version.
    fn visit(&self, host: &str) -> (bool, String) {
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

    /// The files of certificates below the state.
    fn kept(&self) -> PathBuf {
        let below = self.folder.path().join("state/certificates");
        let mut folders = fs::read_dir(below).expect("a folder");
        folders.next().expect("a folder").expect("a folder").path()
    }

    fn tenants(&self) -> PathBuf {
        self.folder.path().join("tenants")
    }

    fn drop_folder(&self, name: &str, more: &str) {
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
fn certificates(server: &Rowhouse) -> Vec<Value> {
    let (status, text) = server.operator("/certificates").expect("an answer");
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

fn of(server: &Rowhouse, host: &str) -> Value {
    let all = certificates(server);
    let found = all.into_iter().find(|line| line["host"] == host);
    found.unwrap_or_default()
}

/// Waits until every host has a certificate: their number.
fn all_valid(server: &mut Rowhouse, what: &str) -> usize {
    wait_for(what, || {
        server.program.must_run();
        let all = certificates(server);
        all.iter()
            .all(|line| line["state"] == "valid")
            .then_some(all.len())
    })
}

#[test]
fn every_host_has_a_certificate_and_a_restart_orders_none() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    tenant(&tenants.join("shop"), "Shop", "hosts: [shop.example]\n");
    // What operators say of the domain says nothing about a tenant's own host.
    let mut command = authority.serve(&tenants);
    let mut server = Rowhouse::start_with(command.args(["--hsts", "subdomains"]));
    // The domain, `www.`, two tenants below it, and one's own.
    assert_eq!(all_valid(&mut server, "certificates of all hosts"), 5);
    assert_eq!(authority.orders(), 5);
    for (host, expected) in [
        (DOMAIN, "the house of Home"),
        ("www.studio.example", "308 HTTP/2"),
        ("shop.studio.example", "the house of Shop"),
        ("shop.example", "the house of Shop"),
    ] {
        let (trusted, said) = authority.visit(host);
        assert!(trusted && said.contains(expected), "{host}: {said}");
        let binds_all = said.contains("includeSubDomains");
        assert_eq!(binds_all, host == DOMAIN, "{host}: {said}");
    }
    let (trusted, said) = authority.visit("stranger.studio.example");
    assert!(!trusted && said.contains("unrecognized name"), "{said}");

    authority.drop_folder("garden", "");
    let said = wait_for("the new host over HTTPS", || {
        let (trusted, said) = authority.visit("garden.studio.example");
        trusted.then_some(said)
    });
    assert!(said.contains("the house of garden"), "{said}");
    assert!(said.ends_with("200 HTTP/2"), "{said}");
    assert_eq!(authority.orders(), 6);
    assert_eq!(server.program.end(), Some(0));

    // One file is damaged meanwhile: it is the only one that is asked for again.
    let damaged = authority.kept().join("shop.example.pem");
    fs::write(&damaged, "-----BEGIN CERTIFICATE-----\nAA").expect("a file");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "the certificates of before"), 6);
    assert_eq!(authority.orders(), 7);
    operators_see_them(&authority, &server);

    // A host that leaves shows nobody's certificate, and one that comes back needs no order.
    let (here, away) = (tenants.join("garden"), authority.folder.path().join("away"));
    fs::rename(&here, &away).expect("a moved folder");
    wait_for("a host that left", || {
        let (trusted, _) = authority.visit("garden.studio.example");
        (!trusted).then_some(())
    });
    fs::rename(&away, &here).expect("a moved folder");
    wait_for("a host that came back", || {
        let (trusted, _) = authority.visit("garden.studio.example");
        trusted.then_some(())
    });
    assert_eq!(authority.orders(), 7);
}

/// `certificates` and `probe --https` of the command line, and the metrics.
fn operators_see_them(authority: &Authority, server: &Rowhouse) {
    let admin = server.operators.to_string();
    let (all_good, said) = run(Command::new(binary()).args(["certificates", "--admin", &admin]));
    assert!(all_good && said.contains("shop.example  "), "{said}");
    let https = authority.https.to_string();
    let probe = |host: &str| {
        let mut command = Command::new(binary());
        command.args([
            "probe", "--admin", &admin, "--https", &https, "--host", host,
        ]);
        run(command.arg("--root").arg(authority.root()))
    };
    let (good, said) = probe(DOMAIN);
    assert!(good && said.contains("TLSv1_3 h2"), "{said}");
    let (good, said) = probe("stranger.example");
    assert!(!good && said.contains("stranger.example"), "{said}");
    let (_, metrics) = server.operator("/metrics").expect("an answer");
    for expected in [
        r#"rowhouse_certificate_not_after_seconds{host="shop.example"} "#,
        r#"rowhouse_tls_handshakes_total{version="1.3",result="full"} "#,
    ] {
        assert!(metrics.contains(expected), "{expected} in {metrics}");
    }
}

#[test]
fn a_name_that_does_not_lead_here_holds_up_nobody_and_says_why() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    tenant(&tenants.join("lost"), "Lost", "");
    // Nobody listens there.
    authority.lead("lost.studio.example", "127.0.0.9");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    let line = wait_for("a failure and the others' certificates", || {
        server.program.must_run();
        let others = certificates(&server);
        let others = others
            .iter()
            .filter(|line| line["state"] == "valid")
            .count();
        let line = of(&server, "lost.studio.example");
        let waits = line["next_try"].as_u64() > line["last_try"].as_u64().map(|last| last + 60);
        (others == 3 && waits).then_some(line)
    });
    // What Pebble says of a name whose machine shows nothing.
    assert_eq!(line["error"]["kind"], "elsewhere", "{line}");
    let detail = line["error"]["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("127.0.0.9"), "{line}");
    // Both ways were tried, and nothing else until later.
    assert_eq!(authority.orders(), 3 + 2);
    let (_, text) = server.operator("/tenants").expect("an answer");
    let tenants_now: Value = serde_json::from_str(&text).expect("JSON");
    let told = &tenants_now[1]["certificates"][0]["error"]["kind"];
    assert_eq!(told, "elsewhere", "{text}");
    let (_, metrics) = server.operator("/metrics").expect("an answer");
    let failing = r#"rowhouse_certificate_failing{host="lost.studio.example",kind="elsewhere"} 1"#;
    assert!(metrics.contains(failing), "{metrics}");
    assert_eq!(server.program.end(), Some(0));

    authority.lead("lost.studio.example", "127.0.0.1");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "the certificate of the name"), 4);
    assert_eq!(authority.orders(), 3 + 2 + 1);
}

#[test]
fn without_a_listener_for_http_the_name_itself_shows_the_proof() {
    let Some(authority) = Authority::start(&[("PEBBLE_WFE_NONCEREJECT", "20")], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let mut server = Rowhouse::start_with(&mut authority.serve_without_http(&tenants));
    assert_eq!(all_valid(&mut server, "certificates by TLS-ALPN-01"), 3);
    let (_, metrics) = server.operator("/metrics").expect("an answer");
    let challenge = r#"rowhouse_tls_handshakes_total{version="",result="challenge"} "#;
    let count = metrics
        .lines()
        .find_map(|line| line.strip_prefix(challenge));
    assert!(count.is_some_and(|count| count != "0"), "{metrics}");
}

#[test]
fn an_authority_that_is_down_or_forgets_everything_is_asked_again() {
    let Some(mut authority) = Authority::prepare(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    wait_for("a failure of the authority", || {
        (of(&server, DOMAIN)["error"]["kind"] == "authority").then_some(())
    });
    authority.open();
    assert_eq!(all_valid(&mut server, "certificates once it is up"), 3);

    // Pebble keeps nothing: the account is unknown to it now.
    authority.open();
    authority.drop_folder("garden", "");
    wait_for("the certificate of a new account", || {
        (of(&server, "garden.studio.example")["state"] == "valid").then_some(())
    });
    assert!(
        server
            .program
            .log()
            .contains("does not know the account any more")
    );
}

#[test]
fn a_certificate_is_renewed_before_it_ends() {
    // Seconds.
    let Some(authority) = Authority::start(&[], &json!({ "certificateValidityPeriod": 30 })) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    all_valid(&mut server, "the first certificates");
    let first = of(&server, DOMAIN)["not_after"].as_u64().expect("an end");
    wait_for("another certificate", || {
        let line = of(&server, DOMAIN);
        assert_eq!(line["state"], "valid", "{line}");
        (line["not_after"].as_u64() > Some(first)).then_some(())
    });
    // Neither all the time.
    assert!(authority.orders() <= 3 * 3, "{}", authority.orders());
}

#[test]
fn two_hundred_folders_at_once_and_an_end_in_the_middle() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    all_valid(&mut server, "the first certificates");
    for number in 0..200 {
        tenant(&tenants.join(format!("app-{number}")), "App", "");
    }
    let valid = |server: &Rowhouse| {
        let all = certificates(server);
        all.iter().filter(|line| line["state"] == "valid").count()
    };
    wait_for("some of them", || (valid(&server) > 40).then_some(()));
    // Killed, with orders under way.
    drop(server);
    let before = authority.orders();
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "all of them"), 203);
    assert!(
        authority.orders() < 203 + 40,
        "{before} {}",
        authority.orders()
    );
}
