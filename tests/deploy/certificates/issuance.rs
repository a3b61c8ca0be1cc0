//! Certificates from Pebble with the real binary.

use std::fs;
use std::process::Command;

use rowhouse_tests::binary;
use serde_json::{Value, json};

use crate::certificates::authority::{Authority, DOMAIN, all_valid, certificates, of};
use crate::support::{Rowhouse, run, tenant, wait_for};

#[test]
fn every_host_has_certificate_and_restart_orders_none() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    tenant(&tenants.join("shop"), "Shop", "hosts: [shop.example]\n");
    // The operator's setting for the domain does not change the tenant's own host.
    let mut command = authority.serve(&tenants);
    let mut server = Rowhouse::start_with(command.args(["--hsts", "subdomains"]));
    // The domain, `www.`, two tenants below the domain, and one tenant's own host.
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

    // A damaged file is the only certificate that is ordered again.
    let damaged = authority.stored_certificates().join("shop.example.pem");
    fs::write(&damaged, "-----BEGIN CERTIFICATE-----\nAA").expect("a file");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "the certificates of before"), 6);
    assert_eq!(authority.orders(), 7);
    check_operator_views(&authority, &server);

    // A removed host shows no certificate. A host that is added again needs no order.
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

/// Checks `certificates` and `probe --https` of the command line, and the metrics.
fn check_operator_views(authority: &Authority, server: &Rowhouse) {
    let admin = server.admin.to_string();
    let (all_good, said) = run(Command::new(binary()).args(["certificates", "--admin", &admin]));
    assert!(all_good && said.contains("shop.example  "), "{said}");
    let https = authority.https.to_string();
    let ask = |host: &str| {
        let mut command = Command::new(binary());
        command.args([
            "probe", "--admin", &admin, "--https", &https, "--host", host,
        ]);
        command
    };
    let probe = |host: &str| run(ask(host).arg("--root").arg(authority.root()));
    let (good, said) = probe(DOMAIN);
    assert!(good && said.contains("TLSv1_3 h2"), "{said}");
    let (good, said) = probe("stranger.example");
    assert!(!good && said.contains("stranger.example"), "{said}");
    // Default roots of browsers have not signed the certificate.
    let (good, said) = run(&mut ask(DOMAIN));
    assert!(!good && said.contains("UnknownIssuer"), "{said}");
    assert!(said.contains("with `--root`"), "{said}");
    // The log has a line for each order, and a line for its result.
    let log = server.program.log();
    for expected in ["ordering a certificate", "certificate issued"] {
        let of_shop = format!(r#""message":"{expected}","host":"shop.example""#);
        assert_eq!(log.matches(&of_shop).count(), 1, "{log}");
        assert_eq!(log.matches(expected).count(), 1, "{log}");
    }
    let (_, metrics) = server.get_admin("/metrics").expect("an answer");
    for expected in [
        r#"rowhouse_certificate_not_after_seconds{host="shop.example"} "#,
        // The only host that was ordered since startup.
        r#"rowhouse_certificate_last_try_seconds{host="shop.example"} "#,
        r#"rowhouse_tls_handshakes_total{version="1.3",result="full"} "#,
    ] {
        assert!(metrics.contains(expected), "{expected} in {metrics}");
    }
}

#[test]
fn host_that_points_elsewhere_reports_reason_and_delays_no_other_host() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    tenant(&tenants.join("lost"), "Lost", "");
    // No server listens at this address.
    authority.point_name("lost.studio.example", "127.0.0.9");
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
    // Pebble's result for a name whose machine does not respond.
    assert_eq!(line["error"]["kind"], "elsewhere", "{line}");
    let detail = line["error"]["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("127.0.0.9"), "{line}");
    // Both challenge types were tried, and nothing else until later.
    assert_eq!(authority.orders(), 3 + 2);
    let (_, text) = server.get_admin("/tenants").expect("an answer");
    let tenants_now: Value = serde_json::from_str(&text).expect("JSON");
    let told = &tenants_now[1]["certificates"][0]["error"]["kind"];
    assert_eq!(told, "elsewhere", "{text}");
    let (_, metrics) = server.get_admin("/metrics").expect("an answer");
    let failing = r#"rowhouse_certificate_failing{host="lost.studio.example",kind="elsewhere"} 1"#;
    assert!(metrics.contains(failing), "{metrics}");
    assert_eq!(server.program.end(), Some(0));

    authority.point_name("lost.studio.example", "127.0.0.1");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "the certificate of the name"), 4);
    assert_eq!(authority.orders(), 3 + 2 + 1);
}

#[test]
fn host_keeps_certificate_when_its_tenant_changes() {
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    tenant(&tenants.join("first"), "First", "hosts: [both.example]\n");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "certificates of all hosts"), 5);

    authority.drop_folder("second", "hosts: [both.example]\n");
    wait_for("the second tenant's own host", || {
        let (trusted, _) = authority.visit("second.studio.example");
        trusted.then_some(())
    });
    let (trusted, said) = authority.visit("both.example");
    assert!(trusted && said.contains("the house of First"), "{said}");
    assert_eq!(authority.orders(), 5 + 1);

    let away = authority.folder.path().join("away");
    fs::rename(tenants.join("first"), away).expect("a moved folder");
    wait_for("the host's new tenant", || {
        let (trusted, said) = authority.visit("both.example");
        assert!(trusted, "{said}");
        said.contains("the house of second").then_some(())
    });
    assert_eq!(all_valid(&mut server, "the same certificates"), 5);
    assert_eq!(authority.orders(), 5 + 1);
}

#[test]
fn preview_has_certificate_only_with_flag() {
    const PREVIEW: &str = "spring--shop.studio.example";
    let Some(authority) = Authority::start(&[], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    tenant(&tenants.join("shop"), "Shop", "");
    tenant(&tenants.join("shop@spring"), "Spring", "");
    let mut server = Rowhouse::start_with(&mut authority.serve(&tenants));
    assert_eq!(all_valid(&mut server, "certificates of live hosts"), 4);
    let (trusted, _) = authority.visit(PREVIEW);
    assert!(!trusted);
    assert_eq!(authority.orders(), 4);
    assert_eq!(server.program.end(), Some(0));

    let mut server = Rowhouse::start_with(authority.serve(&tenants).arg("--acme-previews"));
    let said = wait_for("the preview over HTTPS", || {
        let (trusted, said) = authority.visit(PREVIEW);
        trusted.then_some(said)
    });
    assert!(said.contains("the house of Spring"), "{said}");
    assert_eq!(all_valid(&mut server, "certificates of all hosts"), 5);
    assert_eq!(authority.orders(), 5);
}

#[test]
fn without_http_listener_tls_challenge_is_used() {
    let Some(authority) = Authority::start(&[("PEBBLE_WFE_NONCEREJECT", "20")], &json!({})) else {
        return;
    };
    let tenants = authority.tenants();
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let mut server = Rowhouse::start_with(&mut authority.serve_without_http(&tenants));
    assert_eq!(all_valid(&mut server, "certificates by TLS-ALPN-01"), 3);
    let (_, metrics) = server.get_admin("/metrics").expect("an answer");
    let challenge = r#"rowhouse_tls_handshakes_total{version="",result="challenge"} "#;
    let count = metrics
        .lines()
        .find_map(|line| line.strip_prefix(challenge));
    assert!(count.is_some_and(|count| count != "0"), "{metrics}");
}

#[test]
fn authority_that_is_down_or_lost_its_data_is_retried() {
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

    // Pebble is new and does not know the account.
    authority.open();
    authority.drop_folder("garden", "");
    wait_for("the certificate of a new account", || {
        (of(&server, "garden.studio.example")["state"] == "valid").then_some(())
    });
    assert!(
        server
            .program
            .log()
            .contains("CA does not know the account")
    );
}

#[test]
fn certificate_is_renewed_before_it_expires() {
    // In seconds.
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
    // Renewal is not repeated all the time.
    assert!(authority.orders() <= 3 * 3, "{}", authority.orders());
}

#[test]
fn two_hundred_new_hosts_get_certificates_despite_kill() {
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
    // Killed with orders in flight.
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
