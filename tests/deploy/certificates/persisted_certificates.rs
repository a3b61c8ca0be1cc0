//! The folder of certificates on a disk that is full, read-only or has lost its data.

use std::fs;
use std::os::unix::fs::symlink;

use rowhouse_tests::BadDisk;
use serde_json::{Value, json};

use crate::certificates::authority::{Authority, DOMAIN, all_valid, of};
use crate::support::{Rowhouse, tenant, wait_for};

/// A tenant's host.
const SHOP: &str = "shop.studio.example";

#[test]
fn certificate_is_served_although_its_file_cannot_be_written() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    // Runs once to create the authority's own folder.
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    all_valid(&mut server, "the first certificates");
    assert_eq!(server.program.end(), Some(0));
    let kept = authority.stored_certificates();
    for host in ["shop", "app"] {
        tenant(&tenants.join(host), host, "");
    }
    // A file is written under a temporary name first. One of these names links to a full device, which fails once; the other blocks as long as it exists.
    symlink("/dev/full", kept.join(".shop.studio.example.pem.new")).expect("a link");
    let in_the_way = kept.join(".app.studio.example.pem.new");
    fs::create_dir(&in_the_way).expect("a folder");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(
        all_valid(&mut server, "certificates in spite of the disk"),
        5
    );
    let line = wait_for("the error of the disk", || {
        let line = of(&server, "app.studio.example");
        line["error"].is_object().then_some(line)
    });
    assert_eq!(line["error"]["kind"], "storage", "{line}");
    let (trusted, said) = authority.visit("app.studio.example");
    assert!(trusted && said.ends_with("200 HTTP/2"), "{said}");
    let log = server.program.log();
    assert!(log.contains("No space left on device"), "{log}");

    // With room on the disk, the certificate is written without another order.
    let orders = authority.orders();
    fs::remove_dir(&in_the_way).expect("room");
    authority.drop_folder("garden", "");
    for host in ["shop", "app", "garden"] {
        wait_for("the kept certificates", || {
            let line = of(&server, &format!("{host}.studio.example"));
            let is_kept = kept.join(format!("{host}.studio.example.pem")).exists();
            (is_kept && line["error"].is_null()).then_some(())
        });
    }
    assert_eq!(authority.orders(), orders + 1);
}

#[test]
fn certificates_are_served_although_disk_is_full() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let kept_before = store_three_certificates(&authority);
    let Some(disk) = BadDisk::full(&authority.certificates()) else {
        return;
    };
    tenant(&authority.tenants().join("shop"), "Shop", "");
    let mut server = start_with_bad_disk(&authority, &disk, kept_before, "No space left on device");
    // The certificate of a host that is removed and added again is in memory only.
    let (here, away) = (
        authority.tenants().join("shop"),
        authority.folder.path().join("away"),
    );
    for (from, to, is_served) in [(&here, &away, false), (&away, &here, true)] {
        fs::rename(from, to).expect("a moved folder");
        wait_for("a host that leaves and comes back", || {
            (authority.visit(SHOP).0 == is_served).then_some(())
        });
    }

    // With room on the disk, the certificate is written without another order.
    let orders = authority.orders();
    disk.free_space(server.program.id());
    authority.drop_folder("garden", "");
    let kept = authority.stored_certificates().join(format!("{SHOP}.pem"));
    let kept = disk.path_for_process(server.program.id()).join(
        kept.strip_prefix(authority.certificates())
            .expect("a file below it"),
    );
    wait_for("the kept certificate", || {
        server.program.must_run();
        let line = of(&server, SHOP);
        (kept.exists() && line["error"].is_null()).then_some(())
    });
    wait_for("the last certificate", || {
        (of(&server, "garden.studio.example")["state"] == "valid").then_some(())
    });
    assert_eq!(authority.orders(), orders + 1);
}

#[test]
fn certificates_are_served_although_disk_is_read_only() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let kept_before = store_three_certificates(&authority);
    let Some(disk) = BadDisk::read_only(&authority.certificates()) else {
        return;
    };
    tenant(&authority.tenants().join("shop"), "Shop", "");
    let server = start_with_bad_disk(&authority, &disk, kept_before, "Read-only file system");
    let log = server.program.log();
    let told = "cannot write to the folder for certificates";
    assert!(log.contains(told), "{log}");
}

/// Starts and ends a server that stores three certificates. Returns the number of orders.
fn store_three_certificates(authority: &Authority) -> usize {
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "the first certificates"), 3);
    assert_eq!(server.program.end(), Some(0));
    authority.orders()
}

/// Starts a server that has the stored certificates, and reports the one that cannot be stored with the reason.
fn start_with_bad_disk(
    authority: &Authority,
    disk: &BadDisk,
    orders: usize,
    why: &str,
) -> Rowhouse {
    let command = authority.serve(&authority.tenants());
    let mut server = Rowhouse::start_with(&mut disk.command_like(&command));
    assert_eq!(
        all_valid(&mut server, "certificates in spite of the disk"),
        4
    );
    for host in [DOMAIN, SHOP] {
        let (trusted, said) = authority.visit(host);
        assert!(trusted && said.ends_with("200 HTTP/2"), "{host}: {said}");
    }
    // Stored certificates are not ordered again.
    let log = server.program.log();
    assert_eq!(authority.orders(), orders + 1, "{log}");
    assert!(log.contains(why), "{log}");
    let (_, text) = server.get_admin("/tenants").expect("an answer");
    let tenants: Value = serde_json::from_str(&text).expect("JSON");
    let error = &tenants[1]["certificates"][0]["error"];
    assert_eq!(error["kind"], "storage", "{text}");
    let detail = error["detail"].as_str().unwrap_or_default();
    assert!(detail.contains(why), "{text}");
    let (_, metrics) = server.get_admin("/metrics").expect("an answer");
    let failing = format!(r#"rowhouse_certificate_failing{{host="{SHOP}",kind="storage"}} 1"#);
    assert!(metrics.contains(&failing), "{metrics}");
    server
}

#[test]
fn unwritable_folder_is_reported_at_startup_and_affects_no_site() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let folder = authority.folder.path().join("no-folder");
    fs::write(&folder, "").expect("a file");
    let mut command = authority.serve(&tenants);
    let mut server = Rowhouse::start_with(command.arg("--certificates").arg(&folder));
    let log = server.program.log();
    let told = "cannot write to the folder for certificates";
    assert!(log.contains(told), "{log}");
    assert_eq!(
        all_valid(&mut server, "certificates in spite of the disk"),
        3
    );
    let (trusted, said) = authority.visit(DOMAIN);
    assert!(trusted && said.ends_with("200 HTTP/2"), "{said}");
}

#[test]
fn lost_account_and_damaged_certificate_are_replaced() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "the first certificates"), 3);
    assert_eq!(server.program.end(), Some(0));
    let kept = authority.stored_certificates();
    let certificate = kept.join(format!("{DOMAIN}.pem"));
    let half = fs::read(&certificate).expect("a certificate");
    fs::write(&certificate, &half[..half.len() / 2]).expect("a file");
    fs::write(kept.join("account.json"), "{\"credentials\": 1").expect("a file");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "certificates again"), 3);
    assert_eq!(authority.orders(), 4);
    let log = server.program.log();
    assert!(log.contains("persisted ACME account is damaged"), "{log}");
    let account = fs::read_to_string(kept.join("account.json")).expect("an account");
    assert!(serde_json::from_str::<serde_json::Value>(&account).is_ok());
}
