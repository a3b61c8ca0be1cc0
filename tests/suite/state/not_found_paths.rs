//! The requested paths without a page: their counts survive a restart.

use rowhouse_tests::TestServer;

use crate::state::stateful_deployment::StatefulDeployment;

/// Returns the time since which the console counts the missing paths of `app`.
fn counted_since(server: &TestServer) -> String {
    let page = server.get_admin("/sites/app").text();
    let since = page.split_once("Counted since ");
    let since = since.and_then(|(_, rest)| rest.split_once(". To redirect"));
    let (since, _) = since.unwrap_or_else(|| panic!("{page}"));
    since.to_owned()
}

/// Returns the number of requests for a path that the console shows.
fn requests_for(server: &TestServer, path: &str) -> u64 {
    let page = server.get_admin("/sites/app").text();
    let end = format!("×</span> <code class=\"path\">{path}</code>");
    let count = page.split_once(&end).and_then(|(before, _)| {
        let (_, count) = before.rsplit_once('>')?;
        count.parse().ok()
    });
    count.unwrap_or(0)
}

#[test]
fn missing_paths_survive_a_restart_and_say_since_when_they_count() {
    let deployment = StatefulDeployment::new();
    let mut server = deployment.serve();
    for _ in 0..3 {
        let answer = server.get(&server.domain(), "/app/nowhere");
        assert_eq!(answer.status, 404);
    }
    assert_eq!(requests_for(&server, "/nowhere"), 3);
    let since = counted_since(&server);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0), "{}", server.log());

    let server = deployment.serve();
    assert_eq!(requests_for(&server, "/nowhere"), 3);
    assert_eq!(counted_since(&server), since);
    let answer = server.get(&server.domain(), "/app/nowhere");
    assert_eq!(answer.status, 404);
    assert_eq!(requests_for(&server, "/nowhere"), 4);
    assert!(server.get_admin("/").text().contains("/nowhere"));
}
