//! An authority that is slow, limits orders, sends wrong data, or requires an external account.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use rowhouse_tests::binary;
use serde_json::{Value, json};

use crate::certificates::acme_proxy::{AcmeRequest, AcmeResponse, start_proxy};
use crate::certificates::authority::{Authority, DOMAIN, all_valid, certificates, of};
use crate::support::{Rowhouse, run, tenant, wait_for};

const SHOP: &str = "shop.studio.example";

/// Returns the hosts with a valid certificate.
fn valid(server: &Rowhouse) -> Vec<String> {
    let all = certificates(server);
    let all = all.iter().filter(|line| line["state"] == "valid");
    all.filter_map(|line| Some(line["host"].as_str()?.to_owned()))
        .collect()
}

/// Runs `check --live`, and returns the exit code and the output.
fn check_live(authority: &Authority, server: &Rowhouse) -> (Option<i32>, String) {
    let output = Command::new(binary())
        .args(["check", "--live", "--admin", &server.admin.to_string()])
        .args(["--origin", &format!("https://{DOMAIN}:8443"), "--tenants"])
        .arg(authority.tenants())
        .output()
        .expect("rowhouse");
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn order_without_response_delays_no_other_host() {
    let Some(mut authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let record = start_proxy(
        &mut authority,
        Box::new(|question, pass| {
            if question.ordered() == Some(SHOP) {
                // Longer than the test and the program's timeouts.
                sleep(Duration::from_secs(3600));
            }
            // All other requests are slow, too.
            sleep(Duration::from_millis(100));
            pass()
        }),
    );
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    tenant(&tenants.join("shop"), "Shop", "");
    tenant(&tenants.join("app"), "App", "");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    wait_for("the others' certificates", || {
        server.program.must_run();
        (valid(&server).len() == 4).then_some(())
    });
    let line = of(&server, SHOP);
    assert_eq!(
        (&line["state"], &line["ordering"]),
        (&"missing".into(), &true.into())
    );
    assert_eq!(record.orders(SHOP).len(), 1);
    // An order in flight is not an error.
    let (code, said) = check_live(&authority, &server);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("warning[certificate]: `shop.studio.example`"),
        "{said}"
    );
    // The order does not delay the shutdown.
    assert_eq!(server.program.end(), Some(0));
}

#[test]
fn rate_limit_of_authority_is_respected() {
    let Some(mut authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let busy = Mutex::new(true);
    let record = start_proxy(
        &mut authority,
        Box::new(move |question, pass| {
            if question.target == "/dir" && std::mem::take(&mut *busy.lock().expect("a word")) {
                return AcmeResponse::problem(503, "serverInternal", "busy", "retry-after: 3\r\n");
            }
            match question.ordered() {
                Some(SHOP) => {
                    let detail = "too many certificates already issued for studio.example";
                    AcmeResponse::problem(429, "rateLimited", detail, "retry-after: 7200\r\n")
                }
                _ => pass(),
            }
        }),
    );
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    tenant(&tenants.join("shop"), "Shop", "");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    let line = wait_for("a limit, and the others' certificates", || {
        server.program.must_run();
        let line = of(&server, SHOP);
        (valid(&server).len() == 3 && line["error"]["kind"] == "rate-limited").then_some(line)
    });
    let all = record.all();
    let mut directory = all.iter().filter(|question| question.target == "/dir");
    let [first, second] = [(); 2].map(|()| directory.next().expect("a question").at);
    let pause = second.duration_since(first);
    assert!(pause >= Duration::from_secs(3), "{pause:?}");
    // Both are whole seconds since 1970.
    let (last, next) = (line["last_try"].as_u64(), line["next_try"].as_u64());
    assert!(next >= last.map(|last| last + 7200 - 1), "{line}");
    assert_eq!(record.orders(SHOP).len(), 1);

    let (code, said) = check_live(&authority, &server);
    assert_eq!(code, Some(1), "{said}");
    for expected in [
        "error[certificate]: `shop.studio.example` has no certificate: rate-limited: ",
        "too many certificates already issued for studio.example",
        "tenants/shop",
        "1 error",
    ] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
    let (_, metrics) = server.get_admin("/metrics").expect("an answer");
    let failing =
        r#"rowhouse_certificate_failing{host="shop.studio.example",kind="rate-limited"} 1"#;
    assert!(metrics.contains(failing), "{metrics}");
    server.program.end();
    let (code, said) = check_live(&authority, &server);
    assert_eq!(code, Some(2), "no response: {said}");
}

/// An authority that sends one wrong response for each host, once.
#[derive(Debug, Default)]
struct WrongAuthority {
    /// Hosts that got their wrong response.
    told: Mutex<BTreeSet<String>>,
    /// The number of the order that gets the certificate of another host.
    order: Mutex<String>,
    /// The URL of that certificate.
    certificate: Mutex<String>,
}

impl WrongAuthority {
    fn answer(
        &self,
        question: &AcmeRequest,
        pass: &dyn Fn() -> AcmeResponse,
        other: &[u8],
    ) -> AcmeResponse {
        let word = |word: &Mutex<String>| word.lock().expect("a word").clone();
        if question.target == word(&self.certificate) && !question.target.is_empty() {
            self.certificate.lock().expect("a word").clear();
            return AcmeResponse {
                body: other.to_vec(),
                ..pass()
            };
        }
        let mut reply = pass();
        let order = word(&self.order);
        if !order.is_empty()
            && question.target.ends_with(&order)
            && let Some(url) = reply.value()["certificate"].as_str()
        {
            let path = url.splitn(4, '/').nth(3).expect("a path");
            *self.certificate.lock().expect("a word") = format!("/{path}");
            self.order.lock().expect("a word").clear();
        }
        let Some(host) = question.ordered() else {
            return reply;
        };
        let label = host.split('.').next().unwrap_or_default();
        if !self.told.lock().expect("a word").insert(host.to_owned()) {
            return reply;
        }
        match label {
            "nonsense" => reply.body = b"<html>Welcome!</html>".to_vec(),
            "endless" => reply.body.resize(2 * 1024 * 1024, b' '),
            // A URL without HTTPS.
            "clear" => {
                let text = String::from_utf8(reply.body).expect("JSON");
                reply.body = text.replace("https://", "http://").into_bytes();
            }
            "empty" => {
                let mut order = reply.value();
                order["authorizations"] = json!([]);
                reply.body = order.to_string().into_bytes();
            }
            "other" => {
                let url = reply.field("location").expect("the order's URL");
                let number = url.rsplit('/').next().unwrap_or_default();
                *self.order.lock().expect("a word") = number.to_owned();
            }
            _ => {}
        }
        reply
    }
}

#[test]
fn wrong_response_of_authority_is_rejected_and_retried() {
    let Some(mut authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let liar = WrongAuthority::default();
    let other = std::fs::read(authority.folder.path().join("cert.pem")).expect("a certificate");
    start_proxy(
        &mut authority,
        Box::new(move |question, pass| liar.answer(question, pass, &other)),
    );
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let lies = ["nonsense", "endless", "clear", "empty", "other"];
    for lie in lies {
        tenant(&tenants.join(lie), lie, "");
    }
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    let mut seen: BTreeMap<String, Value> = BTreeMap::new();
    wait_for("certificates in the end", || {
        server.program.must_run();
        for line in certificates(&server) {
            let host = line["host"].as_str().unwrap_or_default();
            if line["error"].is_object() {
                seen.insert(host.to_owned(), line["error"].clone());
            }
        }
        (valid(&server).len() == 3 + lies.len()).then_some(())
    });
    for lie in lies {
        let error = seen.get(&format!("{lie}.{DOMAIN}"));
        let error = error.unwrap_or_else(|| panic!("{lie} was believed: {seen:?}"));
        assert_eq!(error["kind"], "authority", "{lie}: {error}");
        let (trusted, said) = authority.visit(&format!("{lie}.{DOMAIN}"));
        assert!(trusted && said.ends_with("200 HTTP/2"), "{said}");
    }
}

#[test]
fn external_account_is_bound() {
    let key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let Some(authority) = Authority::start(
        &[],
        &json!({
            "externalAccountBindingRequired": true,
            "externalAccountMACKeys": { "kid-1": key },
        }),
    ) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let serve = |more: &[&str]| Rowhouse::start_with(authority.serve(&tenants).args(more));
    let wrong = ["--acme-eab-kid", "kid-1", "--acme-eab-key", "d3Jvbmc"];
    for flags in [&[][..], &wrong] {
        let mut server = serve(flags);
        let error = wait_for("a refused account", || {
            server.program.must_run();
            let line = of(&server, DOMAIN);
            line["error"].is_object().then(|| line["error"].clone())
        });
        assert_eq!(error["kind"], "account", "{flags:?}: {error}");
        assert_eq!(server.program.end(), Some(0));
    }
    let mut server = serve(&["--acme-eab-kid", "kid-1", "--acme-eab-key", key]);
    assert_eq!(all_valid(&mut server, "certificates of that account"), 3);
    assert_eq!(server.program.end(), Some(0));
    // An invalid key is reported at startup, and its value is not shown.
    let mut command = authority.serve(&tenants);
    command.args(["--acme-eab-kid", "kid-1", "--acme-eab-key", "no key!"]);
    let (started, said) = run(&mut command);
    assert!(!started && said.contains("--acme-eab-key"), "{said}");
    assert!(!said.contains("no key!"), "{said}");
}
