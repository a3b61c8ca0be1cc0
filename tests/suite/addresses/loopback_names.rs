//! Visitors on the machine of the server, who type another of its names than that of `--origin`.

use rowhouse_tests::{TestServer, fixture};

#[test]
fn other_names_of_this_machine_redirect_to_the_origin() {
    let server = TestServer::start(&fixture("sites"), &[]);
    let (domain, port) = (server.domain(), server.visitors.port());
    for host in ["127.0.0.1", "[::1]", "127.0.0.2"] {
        let answer = server.get(&format!("{host}:{port}"), "/app/terms?from=home");
        let location = format!("http://{domain}/app/terms?from=home");
        assert_eq!(
            (answer.status, answer.header("location")),
            (307, &*location)
        );
        // Another program may have this port tomorrow.
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    for host in ["192.168.1.5", "nobody.localhost", "0.0.0.0"] {
        let answer = server.get(&format!("{host}:{port}"), "/");
        assert_eq!(answer.status, 421, "{host}");
    }
    assert_eq!(server.get(&domain, "/app/terms").status, 200);
}

#[test]
fn public_origin_is_not_revealed_to_requests_for_loopback_addresses() {
    let flags = ["--origin", "https://studio.example"];
    let server = TestServer::start(&fixture("sites"), &flags);
    for host in ["127.0.0.1", "[::1]", "localhost"] {
        let answer = server.get(host, "/");
        assert_eq!(answer.status, 421, "{host}");
        assert!(!answer.text().contains("studio.example"), "{host}");
    }
}
