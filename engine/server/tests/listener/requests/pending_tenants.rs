//! Requests for a tenant that is not rendered yet: only these requests wait.

use crate::sample;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::wire::{Reply, Server, get};
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version};
use release::snapshot::{HostEntry, HostRoutes, Mount, Resource, Slot, Snapshot};
use server::response::respond::{RequestHead, respond};
use server::snapshot_store::RequestedAddress;

const HOST: &str = "late.example";

fn open() -> Arc<Mount> {
    Arc::new(Mount {
        pages: Slot::default(),
        ..sample::mount("late", "", &[])
    })
}

/// Returns the sample snapshot with one more tenant.
fn with(mount: Option<Arc<Mount>>) -> Snapshot {
    let mut snapshot = sample::snapshot();
    snapshot.is_partial = mount.as_ref().is_some_and(|mount| mount.pages.is_open());
    if let Some(mount) = mount {
        let routes = HostRoutes {
            root: Some(mount),
            ..HostRoutes::default()
        };
        let entry = HostEntry::Site(Arc::new(routes));
        snapshot.hosts.insert(HOST.into(), entry);
    }
    snapshot
}

/// Starts a server whose mount is not rendered, and a request that waits for the mount. Returns the notices to the supervisor.
fn waiting(mount: &Arc<Mount>) -> (Server, Receiver<String>, thread::JoinHandle<Reply>) {
    let server = Server::start();
    server.snapshots.replace(with(Some(Arc::clone(mount))));
    let (say, wanted) = channel();
    let say = Mutex::new(say);
    server.snapshots.on_notice(move |what| {
        let _ = say.lock().unwrap().send(format!("{what:?}"));
    });
    let mut socket = server.connect();
    let asked = thread::spawn(move || {
        use std::io::Write as _;
        socket.write_all(get("/terms", HOST).as_bytes()).unwrap();
        Reply::read(&mut socket)
    });
    assert_eq!(wanted.recv().unwrap(), "Pages(\"late\")");
    (server, wanted, asked)
}

#[test]
fn request_waits_for_its_tenant_and_other_requests_do_not() {
    let mount = open();
    let (server, _wanted, asked) = waiting(&mount);
    let other = server.ask(&get("/about", "studio.example"));
    assert_eq!(other.status, 200);
    assert!(!asked.is_finished());
    let made = sample::mount("late", "", &["/terms"]);
    mount.pages.fill(made.pages.into_inner());
    let reply = asked.join().unwrap();
    let text = sample::text("late", "", "/terms");
    assert_eq!((reply.status, &*reply.body), (200, text.as_bytes()));
}

#[test]
fn request_for_a_dormant_tenant_waits_and_is_unavailable_if_the_tenant_does_not_wake() {
    let server = Server::start();
    server
        .snapshots
        .set_dormant_lookup(|address| match address {
            RequestedAddress::Host(HOST, _) => Some("late".into()),
            RequestedAddress::Prefix("studio.example", "/late/terms") => Some("later".into()),
            _ => None,
        });
    let (say, wanted) = channel();
    let say = Mutex::new(say);
    server.snapshots.on_notice(move |what| {
        let _ = say.lock().unwrap().send(format!("{what:?}"));
    });
    let ask = |path: &'static str, host: &'static str| {
        let mut socket = server.connect();
        // Longer than the server lets the request wait.
        let limit = Some(Duration::from_secs(30));
        socket.set_read_timeout(limit).unwrap();
        thread::spawn(move || {
            use std::io::Write as _;
            socket.write_all(get(path, host).as_bytes()).unwrap();
            Reply::read(&mut socket)
        })
    };
    let asked = ask("/terms", HOST);
    assert_eq!(wanted.recv().unwrap(), "Dormant(\"late\")");
    // Other requests are answered meanwhile.
    let unknown = server.ask(&get("/terms", "unknown.example"));
    assert_eq!(unknown.status, 421);
    assert_eq!(server.ask(&get("/about", "studio.example")).status, 200);
    assert_eq!(server.ask(&get("/missing", "studio.example")).status, 404);
    let below = ask("/late/terms", "studio.example");
    assert!(wanted.iter().any(|notice| notice == "Dormant(\"later\")"));
    assert!(!asked.is_finished() && !below.is_finished());
    let mount = Arc::new(sample::mount("late", "", &["/terms"]));
    server.snapshots.replace(with(Some(mount)));
    assert_eq!(asked.join().unwrap().status, 200);
    let reply = below.join().unwrap();
    assert_eq!(
        (reply.status, reply.header("retry-after")),
        (503, Some("1"))
    );
}

#[test]
fn request_waits_for_an_image_unless_it_has_a_substitute() {
    let slot = Arc::<Slot<Resource>>::default();
    let mut snapshot = with(None);
    let mount = Arc::new(sample::mount("drawn", "", &["/", "/assets/there.png"]));
    let pictures = ["/assets/social.png", "/assets/there.png"];
    let routes = HostRoutes {
        root: Some(mount),
        images: pictures
            .map(|path| (path.into(), Arc::clone(&slot)))
            .into_iter()
            .collect(),
        ..HostRoutes::default()
    };
    let entry = HostEntry::Site(Arc::new(routes));
    snapshot.hosts.insert(HOST.into(), entry);
    let server = Server::start();
    server.snapshots.replace(snapshot);
    let (say, wanted) = channel();
    let say = Mutex::new(say);
    server.snapshots.on_notice(move |what| {
        let _ = say.lock().unwrap().send(format!("{what:?}"));
    });
    assert_eq!(server.ask(&get("/assets/there.png", HOST)).status, 200);
    assert_eq!(server.ask(&get("/assets/none.png", HOST)).status, 404);
    assert!(wanted.try_recv().is_err(), "a request waited");
    let mut socket = server.connect();
    let asked = thread::spawn(move || {
        use std::io::Write as _;
        socket
            .write_all(get("/assets/social.png", HOST).as_bytes())
            .unwrap();
        Reply::read(&mut socket)
    });
    assert_eq!(wanted.recv().unwrap(), "Image(\"drawn\")");
    assert_eq!(
        server.ask(&get("/", HOST)).status,
        200,
        "other requests do not wait"
    );
    assert!(!asked.is_finished());
    let drawn = sample::mount("drawn", "", &["/"]).pages.into_inner();
    let drawn = Arc::clone(&drawn.unwrap().resources["/"]);
    slot.fill(Arc::into_inner(drawn));
    assert_eq!(asked.join().unwrap().status, 200);
    assert_eq!(server.ask(&get("/assets/social.png", HOST)).status, 200);
}

#[test]
fn waiting_request_is_answered_from_a_newer_snapshot() {
    let (server, _wanted, asked) = waiting(&open());
    let made = sample::mount("late", "", &["/terms"]);
    server.snapshots.replace(with(Some(Arc::new(made))));
    assert_eq!(asked.join().unwrap().status, 200);
    let (server, _wanted, asked) = waiting(&open());
    server.snapshots.replace(with(None));
    assert_eq!(asked.join().unwrap().status, 421, "the host is gone");
}

#[test]
fn tenant_that_is_not_rendered_is_unavailable() {
    let snapshot = with(Some(open()));
    let headers = HeaderMap::from_iter([(http::header::HOST, HeaderValue::from_static(HOST))]);
    for method in [Method::GET, Method::POST] {
        let uri = Uri::from_static("/terms");
        let head = RequestHead::new(&method, &uri, Version::HTTP_11, &headers, false);
        let answer = respond(&snapshot, &head);
        let status = answer.response.status();
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{method}");
        assert_eq!(answer.response.headers()[RETRY_AFTER], "1");
    }
}

#[test]
fn client_that_closes_its_write_side_gets_the_response() {
    use std::io::{Read as _, Write as _};
    use std::net::Shutdown;
    let mount = open();
    let server = Server::start();
    server.snapshots.replace(with(Some(Arc::clone(&mount))));
    let (say, wanted) = channel();
    let say = Mutex::new(say);
    server.snapshots.on_notice(move |_| {
        let _ = say.lock().unwrap().send(());
    });
    let mut socket = server.connect();
    socket.write_all(get("/terms", HOST).as_bytes()).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    wanted.recv().unwrap();
    // The close has arrived by the time another request is answered.
    assert_eq!(server.ask(&get("/about", "studio.example")).status, 200);
    let made = sample::mount("late", "", &["/terms"]);
    mount.pages.fill(made.pages.into_inner());
    let reply = Reply::read(&mut socket);
    let text = sample::text("late", "", "/terms");
    assert_eq!((reply.status, &*reply.body), (200, text.as_bytes()));
    // The connection ends with the response, since no further request can come.
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    // A connection with no request, or half of one, ends as well.
    for half in ["", "GET /terms HTTP/1.1\r\nhost: "] {
        let mut socket = server.connect();
        socket.write_all(half.as_bytes()).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        socket.read_to_end(&mut rest).unwrap();
    }
}
