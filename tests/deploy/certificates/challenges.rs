//! Challenges: one type fails and the other succeeds, or none is needed.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use serde_json::json;

use crate::certificates::acme_proxy::start_proxy;
use crate::certificates::authority::{Authority, DOMAIN, all_valid};
use crate::support::{Rowhouse, tenant};

#[test]
fn failed_challenge_is_followed_by_other_type() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    // The authority cannot validate by HTTP here.
    let mut command = authority.serve_without_http(&tenants);
    let mut server = Rowhouse::start_with(command.args(["--http-redirect", "127.0.0.1:0"]));
    assert_eq!(all_valid(&mut server, "certificates by the other way"), 3);
    let log = server.program.log();
    let count = |words: &str| log.matches(words).count();
    assert_eq!(count(r#""kind":"unreachable""#), 3, "{log}");
    for way in [r#""challenge":"Http""#, r#""challenge":"TlsAlpn""#] {
        assert_eq!(count(way), 3, "{way}: {log}");
    }
    assert_eq!(count("certificate issued"), 3, "{log}");
    let (trusted, said) = authority.visit(DOMAIN);
    assert!(trusted && said.ends_with("200 HTTP/2"), "{said}");
}

#[test]
fn valid_authorization_is_reused_and_new_contact_is_sent() {
    let reuse = [("PEBBLE_AUTHZREUSE", "100")];
    let Some(mut authority) = Authority::start(&reuse, &json!({})) else {
        return;
    };
    let record = start_proxy(&mut authority, Box::new(|_, pass| pass()));
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let folder = authority.folder.path().join("certificates");
    let serve = |contact: &str| {
        let known = authority.serve(&tenants);
        let mut command = Command::new(known.get_program());
        for argument in known.get_args() {
            let is_contact = argument == "ops@studio.example";
            command.arg(if is_contact {
                OsStr::new(contact)
            } else {
                argument
            });
        }
        Rowhouse::start_with(command.arg("--certificates").arg(&folder))
    };
    let mut server = serve("ops@studio.example");
    assert_eq!(all_valid(&mut server, "the first certificates"), 3);
    assert_eq!(server.program.end(), Some(0));
    assert!(
        !authority.certificates().exists(),
        "the other folder is used"
    );

    let below = fs::read_dir(&folder).expect("a folder").next();
    let below = below
        .expect("an authority's folder")
        .expect("an entry")
        .path();
    let mut lost = 0;
    for entry in fs::read_dir(&below).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension() == Some(OsStr::new("pem")) {
            fs::remove_file(path).expect("a removed file");
            lost += 1;
        }
    }
    assert_eq!(lost, 3);
    // The authority could not find these hosts now.
    for host in [DOMAIN, "www.studio.example", "home.studio.example"] {
        authority.point_name(host, "127.0.0.9");
    }
    let mut server = serve("night@studio.example");
    assert_eq!(all_valid(&mut server, "certificates without a look"), 3);
    assert_eq!(authority.orders(), 3 + 3);
    let told = record.all();
    let told = told.iter().map(|question| &question.payload["contact"]);
    let told: Vec<_> = told.filter(|contact| contact.is_array()).collect();
    assert_eq!(told.first(), Some(&&json!(["mailto:ops@studio.example"])));
    assert_eq!(told.last(), Some(&&json!(["mailto:night@studio.example"])));
}
