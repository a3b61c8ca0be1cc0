//! Certificates that are replaced before their time: by an operator, or because their files are lost or damaged.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rowhouse_tests::binary;
use serde_json::json;

use crate::certificates::authority::{Authority, DOMAIN, all_valid, of};
use crate::support::{Rowhouse, tenant, wait_for};

const SHOP: &str = "shop.studio.example";

/// Starts a server that has had its three certificates for longer than the minute within which no host is ordered twice: it read them from files.
fn serve(authority: &Authority) -> Rowhouse {
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    tenant(&tenants.join("shop"), "Shop", "");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    all_valid(&mut server, "the first certificates");
    assert_eq!(server.program.end(), Some(0));
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    all_valid(&mut server, "the stored certificates");
    server
}

fn renew(server: &Rowhouse, host: &str) -> (Option<i32>, String) {
    let command = ["certificates", "renew", host, "--admin"];
    let output: Output = Command::new(binary())
        .args(command)
        .arg(server.admin.to_string())
        .output()
        .expect("rowhouse");
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

fn read(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok();
    text.filter(|text| text.trim_end().ends_with("-----END PRIVATE KEY-----"))
}

#[test]
fn operator_renews_certificate_of_one_host() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let server = serve(&authority);
    let kept = authority.stored_certificates();
    let file = |host: &str| read(&kept.join(format!("{host}.pem")));
    let (before, other) = (file(SHOP), file(DOMAIN));
    let orders = authority.orders();
    let (code, said) = renew(&server, "SHOP.studio.example.");
    assert_eq!(code, Some(0), "{said}\n{}", server.program.log());
    let expected = format!("`{SHOP}` has a new certificate, which expires in ");
    assert!(said.contains(&expected), "{said}");
    assert!(file(SHOP).is_some() && file(SHOP) != before);
    assert_eq!(file(DOMAIN), other);
    assert_eq!(authority.orders(), orders + 1);
    let (trusted, shown) = authority.visit(SHOP);
    assert!(trusted && shown.ends_with("200 HTTP/2"), "{shown}");

    for (host, why) in [
        (SHOP, "the CA limits how often it issues a certificate"),
        ("nobody.example", "no site has the host `nobody.example`"),
    ] {
        let (code, said) = renew(&server, host);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(authority.orders(), orders + 1);
}

#[test]
fn failed_renewal_says_why_and_when_the_next_try_is() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let server = serve(&authority);
    // Nothing listens at this address.
    authority.point_name(SHOP, "127.0.0.9");
    let (code, said) = renew(&server, SHOP);
    assert_eq!(code, Some(1), "{said}");
    let expected = format!("no new certificate for `{SHOP}` yet: ");
    assert!(said.contains(&expected), "{said}");
    assert!(
        said.contains("next try in ") || said.contains("next try is due"),
        "{said}"
    );
    assert_eq!(of(&server, SHOP)["state"], "valid", "the old one stays");
}

#[test]
fn removed_and_damaged_files_are_replaced_without_restart() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let mut server = serve(&authority);
    let kept = authority.stored_certificates();
    let files = [DOMAIN, SHOP].map(|host| kept.join(format!("{host}.pem")));
    let before = files.each_ref().map(|file| read(file).expect("a file"));
    let orders = authority.orders();
    fs::remove_file(&files[0]).expect("a removed file");
    fs::write(&files[1], &before[1][..before[1].len() / 2]).expect("a damaged file");
    wait_for("new certificates", || {
        server.program.must_run();
        // The old certificates are served meanwhile.
        for host in [DOMAIN, SHOP] {
            assert_eq!(of(&server, host)["state"], "valid");
        }
        let now = files.each_ref().map(|file| read(file));
        let are_new = now
            .iter()
            .zip(&before)
            .all(|(now, before)| now.as_ref().is_some_and(|now| now != before));
        are_new.then_some(())
    });
    assert_eq!(authority.orders(), orders + 2);
    for host in [DOMAIN, SHOP] {
        let (trusted, shown) = authority.visit(host);
        assert!(trusted && shown.ends_with("200 HTTP/2"), "{shown}");
    }

    // The file of a backup is served again, without an order.
    fs::write(&files[1], &before[1]).expect("a file");
    wait_for("the file of the backup", || {
        let log = server.program.log();
        log.contains("certificate file changed").then_some(())
    });
    assert_eq!(authority.orders(), orders + 2);
}

#[test]
fn removed_account_is_rotated_by_the_next_order() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let server = serve(&authority);
    let account = authority.stored_certificates().join("account.json");
    // The server uses its account from now on.
    let (code, said) = renew(&server, DOMAIN);
    assert_eq!(code, Some(0), "{said}");
    let before = fs::read_to_string(&account).expect("an account");
    fs::remove_file(&account).expect("a removed account");
    let (code, said) = renew(&server, SHOP);
    assert_eq!(code, Some(0), "{said}\n{}", server.program.log());
    let after = fs::read_to_string(&account).expect("a new account");
    assert_ne!(before, after);
}

#[test]
fn hosts_without_certificate_are_in_readyz_with_their_next_try() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let mut server = serve(&authority);
    let (_, text) = server.get_admin("/readyz").expect("an answer");
    assert!(!text.contains("certificate"), "{text}");
    // Nothing listens at this address.
    authority.point_name("away.studio.example", "127.0.0.9");
    authority.drop_folder("away", "");
    wait_for("the reason", || {
        server.program.must_run();
        let (status, text) = server.get_admin("/readyz").expect("an answer");
        assert_eq!(status, 200, "{text}");
        let line = text
            .lines()
            .find(|line| line.starts_with("certificate: away.studio.example: missing: "))?;
        line.contains(", next try in ").then_some(())
    });
    let (_, metrics) = server.get_admin("/metrics").expect("an answer");
    assert!(
        metrics.contains("rowhouse_certificates_missing 1"),
        "{metrics}"
    );
}
