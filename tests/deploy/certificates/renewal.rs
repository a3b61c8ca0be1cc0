//! Renewal at the time that the authority suggests (ARI, RFC 9773), over HTTP. Debian's Pebble lacks ARI, so the proxy in front of Pebble provides it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer as _, ParsedExtension, X509Certificate};

use crate::certificates::acme_proxy::{AcmeRequest, AcmeResponse, Record, start_proxy};
use crate::certificates::authority::{Authority, DOMAIN, all_valid, of};
use crate::support::{Rowhouse, tenant, wait_for};

const PATH: &str = "/renewal-info/";

/// The authority's suggestions for renewal.
#[derive(Debug, Default)]
struct Renewal {
    /// The identifier of the certificate that must be renewed at once.
    at_once: Mutex<String>,
    /// Whether the authority says that the certificate of the next order was replaced already.
    replaced_already: AtomicBool,
}

impl Renewal {
    fn answer(&self, question: &AcmeRequest, pass: &dyn Fn() -> AcmeResponse) -> AcmeResponse {
        if let Some(identifier) = question.target.strip_prefix(PATH) {
            let (start, end) = match *self.at_once.lock().expect("a word") == identifier {
                true => ("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"),
                false => ("2100-01-01T00:00:00Z", "2100-01-02T00:00:00Z"),
            };
            let window = json!({ "suggestedWindow": { "start": start, "end": end } });
            return AcmeResponse::json(200, "retry-after: 1\r\n", &window);
        }
        let replaces = question.ordered().is_some() && question.payload["replaces"].is_string();
        if replaces && self.replaced_already.swap(false, Relaxed) {
            return AcmeResponse::problem(409, "alreadyReplaced", "it is replaced", "");
        }
        let mut reply = pass();
        if question.target == "/dir" {
            let mut directory = reply.value();
            let nonce = directory["newNonce"].as_str().expect("a URL");
            let here = nonce.rsplit_once('/').expect("a path").0;
            directory["renewalInfo"] = format!("{here}{}", PATH.trim_end_matches('/')).into();
            reply.body = directory.to_string().into_bytes();
        }
        reply
    }
}

/// Returns the identifier of a certificate (RFC 9773, section 4.1): the key of its issuer, and its serial number.
fn identifier(file: &Path) -> String {
    let pem = fs::read(file).expect("a certificate");
    let chain = CertificateDer::from_pem_slice(&pem).expect("a certificate");
    let (_, certificate) = X509Certificate::from_der(&chain).expect("a certificate");
    let mut extensions = certificate.extensions().iter();
    let key = extensions.find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(found) => found.key_identifier.as_ref(),
        _ => None,
    });
    let coded = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let (key, number) = (key.expect("a key's id").0, certificate.raw_serial());
    format!("{}.{}", coded(key), coded(number))
}

#[test]
fn renewal_follows_authority() {
    // In seconds: the first request for renewal information comes within a hundredth of this time.
    let validity = json!({ "certificateValidityPeriod": 300 });
    let Some(mut authority) = Authority::start(&[], &validity) else {
        return;
    };
    let renewal = Arc::new(Renewal::default());
    let rule = Arc::clone(&renewal);
    let record = start_proxy(
        &mut authority,
        Box::new(move |question, pass| rule.answer(question, pass)),
    );
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    tenant(&tenants.join("shop"), "Shop", "");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "the first certificates"), 4);
    // A new certificate is not checked for a minute, but after a restart it is.
    assert_eq!(server.program.end(), Some(0));
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));

    let file = |host: &str| authority.stored_certificates().join(format!("{host}.pem"));
    let first = identifier(&file(DOMAIN));
    for host in [DOMAIN, "www.studio.example", "shop.studio.example"] {
        let asked = format!("{PATH}{}", identifier(&file(host)));
        wait_for("a question about each certificate", || {
            server.program.must_run();
            was_requested(&record, &asked).then_some(())
        });
    }
    assert_eq!(orders(&record).len(), 4, "renewal is not due");

    renewal.replaced_already.store(true, Relaxed);
    renewal.at_once.lock().expect("a word").clone_from(&first);
    wait_for("another certificate", || {
        server.program.must_run();
        (identifier(&file(DOMAIN)) != first).then_some(())
    });
    assert_eq!(of(&server, DOMAIN)["state"], "valid");
    // One order with `replaces`, which the authority refuses, and one without. The other hosts are not due.
    let renewed: Vec<(Option<String>, Value)> = orders(&record)
        .iter()
        .skip(4)
        .map(|order| {
            let host = order.ordered().map(ToOwned::to_owned);
            (host, order.payload["replaces"].clone())
        })
        .collect();
    let host = Some(DOMAIN.to_owned());
    assert_eq!(renewed, [(host.clone(), first.into()), (host, Value::Null)]);
    // The new certificate has its own identifier, and is also checked.
    let asked = format!("{PATH}{}", identifier(&file(DOMAIN)));
    wait_for("a question about the new certificate", || {
        was_requested(&record, &asked).then_some(())
    });
}

fn was_requested(record: &Record, target: &str) -> bool {
    let all = record.all();
    all.iter()
        .any(|question| question.method == "GET" && question.target == target)
}

fn orders(record: &Record) -> Vec<AcmeRequest> {
    let mut all = record.all();
    all.retain(|question| question.ordered().is_some());
    all
}
