//! The folder for certificates when the disk is full, takes nothing, or has lost what it had.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::authority::{Authority, DOMAIN, all_valid, of};
use crate::support::{Rowhouse, run, tenant, wait_for};

#[test]
fn a_disk_that_takes_nothing_costs_no_visitor_a_certificate() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    // Once, for the folder that is the authority's own.
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    all_valid(&mut server, "the first certificates");
    assert_eq!(server.program.end(), Some(0));
    let kept = authority.kept();
    for host in ["shop", "app"] {
        tenant(&tenants.join(host), host, "");
    }
    // A file is written beside its place. One of these goes to a device that is full, which ends with the first try; the other is in the way for as long as it stands.
    symlink("/dev/full", kept.join(".shop.studio.example.pem.new")).expect("a link");
    let in_the_way = kept.join(".app.studio.example.pem.new");
    fs::create_dir(&in_the_way).expect("a folder");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "certificates all the same"), 5);
    let line = wait_for("what the disk says", || {
        let line = of(&server, "app.studio.example");
        line["error"].is_object().then_some(line)
    });
    assert_eq!(line["error"]["kind"], "storage", "{line}");
    let (trusted, said) = authority.visit("app.studio.example");
    assert!(trusted && said.ends_with("200 HTTP/2"), "{said}");
    let log = server.program.log();
    assert!(log.contains("No space left on device"), "{log}");

    // When there is room again, it is written without another order.
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
fn a_folder_that_cannot_be_written_is_said_at_the_start() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let folder = authority.folder.path().join("read-only");
    fs::write(&folder, "").expect("a file");
    let mut command = authority.serve(&tenants);
    let (started, said) = run(command.arg("--certificates").arg(&folder));
    assert!(!started, "{said}");
    assert!(
        said.contains("cannot write to the folder for certificates"),
        "{said}"
    );
    assert_eq!(authority.orders(), 0);
}

#[test]
fn a_lost_account_and_a_damaged_certificate_are_made_anew() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "the first certificates"), 3);
    assert_eq!(server.program.end(), Some(0));
    let kept = authority.kept();
    let certificate = kept.join(format!("{DOMAIN}.pem"));
    let half = fs::read(&certificate).expect("a certificate");
    fs::write(&certificate, &half[..half.len() / 2]).expect("a file");
    fs::write(kept.join("account.json"), "{\"credentials\": 1").expect("a file");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "certificates again"), 3);
    assert_eq!(authority.orders(), 4);
    let log = server.program.log();
    assert!(
        log.contains("the account that was kept is damaged"),
        "{log}"
    );
    let account = fs::read_to_string(kept.join("account.json")).expect("an account");
    assert!(serde_json::from_str::<serde_json::Value>(&account).is_ok());
}
