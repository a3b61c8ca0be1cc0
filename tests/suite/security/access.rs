//! Protected tenants: without a valid credential no address, method, file or encoding shows anything, and an error in `deployment.yaml` opens no tenant.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowhouse_tests::{Answer, TestServer, binary, copy, fixture, state};
use tempfile::TempDir;

/// A word that only the protected tenant has.
const SECRET: &str = "Zanzibar";
const FILE: &str = "tenants/deployment.yaml";
const TIMEOUT: Duration = Duration::from_secs(60);
const METHODS: [&str; 7] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND",
];

/// A deployment whose tenant `app` is protected.
struct Protected {
    folder: TempDir,
    rules: String,
    /// The value of `Authorization`.
    credential: String,
}

impl Protected {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        for part in ["tenants", "themes"] {
            copy(&fixture("sites").join(part), &folder.path().join(part));
        }
        let token = run(folder.path(), &["token", "client", "--tenant", "app"]);
        assert!(token.status.success());
        let printed = String::from_utf8(token.stdout).expect("a text");
        let line = printed
            .lines()
            .find_map(|line| line.strip_prefix("token: "));
        let token = line.expect("a token");
        let lines = &printed[printed.find("access:").expect("the lines")..];
        assert!(!lines.contains(token), "the file has the hash only");
        let claims = "    aliases: [/apps/app]\n    hosts: [client.localhost, client.example]\n";
        let protected = Self {
            rules: format!("root: home\n{lines}\n{claims}").replace("\n\n", "\n"),
            credential: format!("Basic {}", STANDARD.encode(format!("client:{token}"))),
            folder,
        };
        protected.write(
            "tenants/app/tenant.yaml",
            "name: Zanzibar\ndescription: Zanzibar is a secret until spring, and nobody may read it.\nhosts: [client.localhost, client.example]\naliases: [/apps/app]\n",
        );
        protected.write(
            "tenants/app/pages/secret.md",
            "---\ntitle: Zanzibar\naliases: [/hidden]\n---\n[Sheet](../assets/sheet.txt)\n",
        );
        protected.write(
            "tenants/app/assets/sheet.txt",
            &format!("{SECRET}\n").repeat(400),
        );
        protected.write(FILE, &protected.rules);
        protected
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn serve(&self, flags: &[&str]) -> TestServer {
        TestServer::start(self.folder.path(), flags)
    }

    fn allowed(&self, server: &TestServer, host: &str, path: &str) -> Answer {
        self.allowed_with(server, host, path, &[])
    }

    fn allowed_with(
        &self,
        server: &TestServer,
        host: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        let fields = [&[("authorization", &*self.credential)], fields].concat();
        server.request("GET", host, path, &fields)
    }
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(binary())
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program")
}

/// Returns each address of the protected tenant as a host and a prefix.
fn addresses(server: &TestServer) -> [(String, &'static str); 4] {
    let domain = server.domain();
    [
        (domain.clone(), "/app"),
        (domain.clone(), "/apps/app"),
        (format!("app.{domain}"), ""),
        (domain.replace("localhost", "client.localhost"), ""),
    ]
}

/// Returns the address of the file in the page.
fn sheet(page: &Answer) -> String {
    let text = page.text();
    let end = text.find(".txt\"").expect("the file") + 4;
    let start = text[..end].rfind('"').expect("a quote") + 1;
    text[start..end].to_owned()
}

fn assert_shows_nothing(answer: &Answer, status: u16, what: &str) {
    assert_eq!(answer.status, status, "{what}: {}", answer.text());
    assert!(!answer.text().contains(SECRET), "{what}");
    assert_eq!(answer.header("cache-control"), "no-store", "{what}");
    assert_eq!(answer.header("x-robots-tag"), "noindex", "{what}");
    for absent in [
        "etag",
        "content-range",
        "cache-tag",
        "link",
        "content-encoding",
    ] {
        assert_eq!(answer.header(absent), "", "{what}: {absent}");
    }
}

fn wait(server: &TestServer, what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(
            begin.elapsed() < TIMEOUT,
            "timeout: {what}: {}",
            server.log()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_address_path_and_method_needs_the_credential() {
    let protected = Protected::new();
    let server = protected.serve(&[]);
    for (host, prefix) in addresses(&server) {
        let page = protected.allowed(&server, &host, &format!("{prefix}/secret"));
        assert_eq!(page.status, 200, "{host}{prefix}");
        assert!(page.text().contains(SECRET));
        assert_eq!(page.header("cache-control"), "private, no-cache");
        assert_eq!(page.header("x-robots-tag"), "noindex");
        let file = sheet(&page);
        let answer = protected.allowed(&server, &host, &file);
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (200, "private, no-cache")
        );
        // Before any visitor with the credential requested it.
        let markdown = format!("{prefix}/secret.md");
        assert_shows_nothing(&server.get(&host, &markdown), 401, &markdown);
        let markdown = protected.allowed(&server, &host, &markdown);
        assert!(markdown.text().contains("[Sheet]"), "{}", markdown.text());
        assert_eq!(markdown.header("cache-control"), "private, no-cache");
        let missing = protected.allowed(&server, &host, &format!("{prefix}/missing"));
        assert_eq!(missing.status, 404);
        let hidden = protected.allowed(&server, &host, &format!("{prefix}/secret/"));
        assert_eq!(
            (hidden.status, hidden.header("cache-control")),
            (308, "private, no-cache")
        );
        let paths = [
            "",
            "/",
            "/secret",
            "/secret/",
            "/secret.md",
            "/hidden",
            "/missing",
            "/missing.png",
            "/terms",
            "/robots.txt",
            "/sitemap.xml",
            "/feed.xml",
            "/search.json",
            "/favicon.ico",
            "/.well-known/security.txt",
            "/%73ecret",
            "/assets/none.css",
        ];
        let paths = paths.map(|path| format!("{prefix}{path}"));
        for path in paths
            .iter()
            .filter(|path| path.starts_with('/'))
            .chain([&file])
        {
            for method in METHODS {
                let answer = server.request(method, &host, path, &[]);
                let what = format!("{method} {host}{path}");
                assert_shows_nothing(&answer, 401, &what);
                let realm = format!("Basic realm=\"{prefix}/\", charset=\"UTF-8\"");
                assert_eq!(answer.header("www-authenticate"), realm, "{what}");
            }
        }
        let etag = page.header("etag").to_owned();
        for (path, field, value, status) in [
            ("/secret", "if-none-match", &*etag, 304),
            ("/secret", "if-none-match", "*", 304),
            ("/secret", "accept-encoding", "br", 200),
            ("/secret", "accept-encoding", "gzip", 200),
            (&file[prefix.len()..], "range", "bytes=0-9", 206),
        ] {
            let path = format!("{prefix}{path}");
            let answer = server.request("GET", &host, &path, &[(field, value)]);
            assert_shows_nothing(&answer, 401, &format!("{field}: {value}"));
            let answer = protected.allowed_with(&server, &host, &path, &[(field, value)]);
            assert_eq!(answer.status, status, "{field}: {value}");
            assert_eq!(answer.header("cache-control"), "private, no-cache");
        }
    }
    // Other tenants are as public as before.
    let about = server.get(&server.domain(), "/about");
    assert_eq!((about.status, about.header("www-authenticate")), (200, ""));
    assert_ne!(about.header("cache-control"), "private, no-cache");
}

#[test]
fn wrong_credentials_are_refused_and_limited_per_client() {
    let protected = Protected::new();
    let server = protected.serve(&["--access-log", "json"]);
    let host = format!("app.{}", server.domain());
    let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
    // Fields that are not credentials count as none.
    for field in [
        "Basic",
        "Basic !",
        "Bearer abc",
        &protected.credential.replace("Basic", "Digest"),
    ] {
        let answer = server.request("GET", &host, "/secret", &[("authorization", field)]);
        assert_shows_nothing(&answer, 401, field);
    }
    let twice = [("authorization", &*protected.credential); 2];
    assert_shows_nothing(
        &server.request("GET", &host, "/secret", &twice),
        401,
        "twice",
    );
    assert_eq!(protected.allowed(&server, &host, "/secret").status, 200);
    for number in 0..10 {
        let wrong = basic(&format!("client:guess-{number}"));
        let answer = server.request("GET", &host, "/secret", &[("authorization", &wrong)]);
        assert_shows_nothing(&answer, 401, &wrong);
    }
    let limited = protected.allowed(&server, &host, "/secret");
    assert_shows_nothing(&limited, 429, "after ten attempts");
    let seconds: u64 = limited.header("retry-after").parse().expect("seconds");
    assert!((1..=6).contains(&seconds), "{seconds}");
    // A visitor who has not tried is still asked.
    assert_shows_nothing(&server.get(&host, "/secret"), 401, "without a credential");
    let log = server.log();
    let (_, credential) = protected.credential.split_once(' ').expect("a scheme");
    for secret in [credential, "authorization", "guess-"] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

#[test]
fn http2_needs_the_credential() {
    let protected = Protected::new();
    let server = protected.serve(&[]);
    let url = format!("http://app.{}/secret", server.domain());
    let curl = |fields: &[&str]| {
        let mut command = Command::new("curl");
        command.args([
            "-s",
            "--http2-prior-knowledge",
            "-w",
            "\n%{http_version} %{http_code}",
        ]);
        for field in fields {
            command.args(["-H", field]);
        }
        let output = command.arg(&url).output().expect("curl");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(curl(&[]), "401 Unauthorized\n\n2 401");
    let allowed = curl(&[&format!("authorization: {}", protected.credential)]);
    assert!(
        allowed.contains(SECRET) && allowed.ends_with("2 200"),
        "{allowed}"
    );
}

#[test]
fn replaced_file_needs_the_credential() {
    let protected = Protected::new();
    let server = protected.serve(&[]);
    let host = format!("app.{}", server.domain());
    let before = sheet(&protected.allowed(&server, &host, "/secret"));
    protected.write("tenants/app/assets/sheet.txt", "Another Zanzibar\n");
    wait(&server, "the new file", || {
        sheet(&protected.allowed(&server, &host, "/secret")) != before
    });
    assert_eq!(protected.allowed(&server, &host, &before).status, 200);
    assert_shows_nothing(&server.get(&host, &before), 401, &before);
    for prefix in ["/app", "/apps/app"] {
        let path = format!("{prefix}{before}");
        assert_eq!(
            protected.allowed(&server, &server.domain(), &path).status,
            200
        );
        assert_shows_nothing(&server.get(&server.domain(), &path), 401, &path);
    }
}

#[test]
fn other_tenants_do_not_list_a_protected_tenant() {
    let protected = Protected::new();
    protected.write(FILE, &protected.rules.replace("    access: [client]\n", ""));
    let server = protected.serve(&[]);
    let get = |path: &str| server.get(&server.domain(), path).text();
    // A link that an author wrote stays on the page `/`.
    let is_listed = || {
        [
            get("/about").contains("href=\"/app\""),
            get("/sitemap.xml").contains("/app<"),
        ]
    };
    assert_eq!(is_listed(), [true, true]);
    protected.write(FILE, &protected.rules);
    wait(&server, "the protection", || is_listed() == [false, false]);
    let host = format!("app.{}", server.domain());
    assert_shows_nothing(&server.get(&host, "/secret"), 401, "protected later");
    protected.write(FILE, &protected.rules.replace("    access: [client]\n", ""));
    wait(&server, "the end of the protection", || {
        is_listed() == [true, true]
    });
    let page = server.get(&host, "/secret");
    assert_eq!((page.status, page.header("x-robots-tag")), (200, ""));
}

#[test]
fn broken_or_removed_deployment_file_opens_nothing() {
    let protected = Protected::new();
    let server = protected.serve(&[]);
    let host = format!("app.{}", server.domain());
    let ready = || server.get_admin("/readyz").text();
    let home = || server.get(&server.domain(), "/").status;
    for broken in [
        "access: [",
        "access: {}\ntenants: {app: {access: [client]}}\n",
        &protected.rules.replace("access: [client]", "access:"),
        &protected.rules.replace("access: [client]", "access: []"),
        &protected
            .rules
            .replace("access: [client]", "acess: [client]"),
        &protected.rules.replace("token_sha256: ", "token_sha256: 0"),
    ] {
        protected.write(FILE, broken);
        wait(&server, broken, || {
            ready().contains("the last valid file stays in force")
        });
        assert_shows_nothing(&server.get(&host, "/secret"), 401, broken);
        assert_eq!(
            protected.allowed(&server, &host, "/secret").status,
            200,
            "{broken}"
        );
        assert_eq!(home(), 200);
        protected.write(FILE, &protected.rules);
        wait(&server, "a valid file", || !ready().contains("alarm"));
    }
    // The file may protect a tenant that is added while the file has errors.
    protected.write(FILE, "access: [");
    wait(&server, "an error", || {
        ready().contains("a tenant that is added answers 503")
    });
    protected.write("tenants/late/tenant.yaml", "name: Zanzibar\n");
    protected.write("tenants/late/pages/index.md", "---\ntitle: Zanzibar\n---\n");
    let late = format!("late.{}", server.domain());
    wait(&server, "the new tenant", || {
        server.get(&late, "/").status != 421
    });
    assert_shows_nothing(&server.get(&late, "/"), 503, "a new tenant");
    // A removed file leaves no credential that is certain to be current.
    fs::remove_file(protected.path(FILE)).expect("a file");
    wait(&server, "a closed tenant", || {
        server.get(&host, "/secret").status == 503
    });
    assert_shows_nothing(
        &protected.allowed(&server, &host, "/secret"),
        503,
        "removed",
    );
    assert_eq!(server.get(&host, "/secret").header("retry-after"), "30");
    assert!(
        ready().contains("the protected tenant `app` answers 503"),
        "{}",
        ready()
    );
    assert_eq!(home(), 200);
    protected.write(FILE, &protected.rules);
    wait(&server, "the file", || {
        protected.allowed(&server, &host, "/secret").status == 200
    });
    wait(&server, "the new tenant", || {
        server.get(&late, "/").status == 200
    });
}

#[test]
fn half_written_deployment_file_opens_nothing() {
    let protected = Protected::new();
    let server = protected.serve(&[]);
    let host = format!("app.{}", server.domain());
    let status = || server.get(&host, "/secret").status;
    assert_eq!(status(), 401);
    let lines: Vec<&str> = protected.rules.split_inclusive('\n').collect();
    // A slow writer: the beginning of the file is there for longer than the program waits for other files.
    for lines_written in 0..lines.len() {
        protected.write(FILE, &lines[..lines_written].concat());
        for _ in 0..12 {
            std::thread::sleep(Duration::from_millis(25));
            let answer = server.get(&host, "/secret");
            let what = format!("after {lines_written} lines");
            assert!(
                matches!(answer.status, 401 | 503),
                "{what}: {}",
                answer.status
            );
            assert!(!answer.text().contains(SECRET), "{what}");
        }
    }
    protected.write(FILE, &protected.rules);
    wait(&server, "the complete file", || {
        protected.allowed(&server, &host, "/secret").status == 200
    });
    assert_eq!(status(), 401);
    // A file that stays as it is opens the tenant.
    protected.write(FILE, lines[0]);
    wait(&server, "the end of the protection", || status() == 200);
}

#[test]
fn misspelt_entry_closes_the_site_that_it_may_mean() {
    let protected = Protected::new();
    let misspelt = protected.rules.replace("  app:", "  appp:");
    assert_ne!(misspelt, protected.rules);
    let misspelt = misspelt.replace("    aliases: [/apps/app]\n", "");
    let misspelt = misspelt.replace("    hosts: [client.localhost, client.example]\n", "");
    protected.write(FILE, &misspelt);
    let check = run(protected.folder.path(), &["check"]);
    let report = String::from_utf8_lossy(&check.stdout).into_owned();
    assert_eq!(check.status.code(), Some(1), "{report}");
    assert!(report.contains("error[unknown-tenant]: unknown tenant `appp`: this entry protects no site\n --> tenants/deployment.yaml:"), "{report}");
    assert!(
        report.contains("did you mean `app`? Until the name is correct, `app` answers 503"),
        "{report}"
    );
    let server = protected.serve(&[]);
    let host = format!("app.{}", server.domain());
    let secret = || protected.allowed(&server, &host, "/secret");
    assert_shows_nothing(&secret(), 503, "from the first response");
    let path = server.get(&server.domain(), "/app/secret");
    assert_shows_nothing(&path, 503, "below the domain");
    assert_eq!(server.get(&server.domain(), "/").status, 200);
    let ready = || server.get_admin("/readyz").text();
    assert!(
        ready().contains("unknown tenant `appp`") && ready().contains("`app` answers 503"),
        "{}",
        ready()
    );
    // A tenant that is added is closed from its first response.
    protected.write("tenants/appa/tenant.yaml", "name: Zanzibar\n");
    protected.write("tenants/appa/pages/index.md", "---\ntitle: Zanzibar\n---\n");
    let added = format!("appa.{}", server.domain());
    wait(&server, "the new tenant", || {
        server.get(&added, "/").status != 421
    });
    assert_shows_nothing(&server.get(&added, "/"), 503, "a new tenant");
    let listed = misspelt.replace("tenants:", "tenants:\n  appa: {}");
    protected.write(FILE, &listed);
    wait(&server, "a tenant with an entry", || {
        server.get(&added, "/").status == 200
    });
    assert_shows_nothing(&secret(), 503, "the other tenant");
    protected.write(FILE, &protected.rules);
    wait(&server, "the correct name", || secret().status == 200);
    assert_shows_nothing(&server.get(&host, "/secret"), 401, "protected");
    assert!(!ready().contains("alarm"), "{}", ready());
    // The entry of a removed tenant closes no other site, and raises no alarm.
    fs::remove_dir_all(protected.path("tenants/app")).expect("a folder");
    wait(&server, "the removal", || secret().status != 200);
    assert_eq!(server.get(&added, "/").status, 200);
    assert!(!ready().contains("unknown tenant"), "{}", ready());
}

#[test]
fn entry_that_is_near_no_tenant_is_a_warning() {
    let protected = Protected::new();
    let rules = protected.rules.replace("  app:", "  app: {}\n  elsewhere:");
    let rules = rules.replace("    aliases: [/apps/app]\n", "");
    let rules = rules.replace("    hosts: [client.localhost, client.example]\n", "");
    protected.write(FILE, &rules);
    let check = run(protected.folder.path(), &["check"]);
    let report = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(
        report.contains(
            "warning[unknown-tenant]: unknown tenant `elsewhere`: this entry protects no site"
        ),
        "{report}"
    );
    let server = protected.serve(&[]);
    let host = format!("app.{}", server.domain());
    assert_eq!(server.get(&host, "/secret").status, 200);
    let ready = server.get_admin("/readyz").text();
    assert!(!ready.contains("unknown tenant"), "{ready}");
}

#[test]
fn first_startup_with_broken_file_closes_every_tenant() {
    for flags in [&[][..], &["--deployment", "missing.yaml"]] {
        let protected = Protected::new();
        protected.write(FILE, "access: [");
        let server = protected.serve(flags);
        for (host, prefix) in addresses(&server).into_iter().take(3) {
            let path = format!("{prefix}/secret");
            let answer = protected.allowed(&server, &host, &path);
            assert!(
                matches!(answer.status, 503 | 404),
                "{host}{path}: {}",
                answer.status
            );
            assert!(!answer.text().contains(SECRET));
        }
        let home = server.get(&format!("home.{}", server.domain()), "/");
        assert_shows_nothing(&home, 503, "home");
        let ready = server.get_admin("/readyz").text();
        assert!(ready.contains("every tenant answers 503"), "{ready}");
    }
}

/// Runs a server until the state names the protected tenant.
fn run_until_persisted(protected: &Protected, flags: &[&str]) {
    let mut server = protected.serve(flags);
    let begin = Instant::now();
    while !state::has_words(&protected.path("state"), "access", "app") {
        assert!(begin.elapsed() < TIMEOUT, "timeout: the state");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn restart_with_state_remembers_protected_tenants() {
    let protected = Protected::new();
    let flags = ["--state", "state"];
    run_until_persisted(&protected, &flags);

    protected.write(FILE, "access: [");
    let mut server = protected.serve(&flags);
    let host = format!("app.{}", server.domain());
    assert_shows_nothing(&server.get(&host, "/secret"), 401, "the last valid file");
    assert_eq!(protected.allowed(&server, &host, "/secret").status, 200);
    assert_eq!(server.get(&server.domain(), "/").status, 200);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));

    fs::remove_file(protected.path(FILE)).expect("a file");
    for _ in 0..2 {
        let mut server = protected.serve(&flags);
        let host = format!("app.{}", server.domain());
        assert_shows_nothing(
            &protected.allowed(&server, &host, "/secret"),
            503,
            "no file",
        );
        assert_eq!(server.get(&server.domain(), "/").status, 200);
        let ready = server.get_admin("/readyz").text();
        assert!(
            ready.contains("the file does not exist, and it protected tenants"),
            "{ready}"
        );
        server.signal("TERM");
        assert_eq!(server.wait(), Some(0));
    }
    // A valid file without the protection opens the tenant once it was unchanged for a while: it may be the beginning of another.
    protected.write(FILE, "root: home\ntenants: {}\n");
    let server = protected.serve(&flags);
    let host = format!("app.{}", server.domain());
    let secret = || server.get(&host, "/secret");
    assert_shows_nothing(&secret(), 503, "at the start");
    assert_eq!(server.get(&server.domain(), "/").status, 200);
    wait(&server, "the end of the protection", || {
        secret().status == 200
    });
}

#[test]
fn half_written_deployment_file_at_startup_opens_nothing() {
    let protected = Protected::new();
    let flags = ["--state", "state"];
    run_until_persisted(&protected, &flags);

    protected.write(FILE, "root: home\n");
    let server = protected.serve(&flags);
    let host = format!("app.{}", server.domain());
    assert_shows_nothing(&server.get(&host, "/secret"), 401, "half a file");
    assert_eq!(protected.allowed(&server, &host, "/secret").status, 200);
    protected.write(FILE, &protected.rules);
    // Longer than the time after which the half would count.
    for _ in 0..120 {
        std::thread::sleep(Duration::from_millis(25));
        assert_shows_nothing(&server.get(&host, "/secret"), 401, "the complete file");
    }
}

#[test]
fn credential_is_not_accepted_over_plain_http() {
    let protected = Protected::new();
    let origin = "http://studio.example";
    let server = protected.serve(&["--origin", origin]);
    for host in ["app.studio.example", "client.example"] {
        assert_shows_nothing(&protected.allowed(&server, host, "/secret"), 403, host);
        assert_shows_nothing(&server.get(host, "/secret"), 403, host);
    }
    assert_eq!(
        protected
            .allowed(&server, "client.localhost", "/secret")
            .status,
        200
    );
    let ready = server.get_admin("/readyz").text();
    assert!(ready.contains("protected tenants answer 403"), "{ready}");
    drop(server);

    // A proxy in front of the server ends TLS.
    let server = protected.serve(&["--origin", "https://studio.example"]);
    let host = "app.studio.example";
    assert_eq!(protected.allowed(&server, host, "/secret").status, 200);
    assert_shows_nothing(&server.get(host, "/secret"), 401, host);
    drop(server);

    let key = rcgen::KeyPair::generate().expect("a key");
    let names = ["studio.example".to_owned()];
    let parameters = rcgen::CertificateParams::new(names).expect("a name");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    protected.write("certificate.pem", &certificate.pem());
    protected.write("key.pem", &key.serialize_pem());
    let https = [
        "--origin",
        "https://studio.example",
        "--https",
        "127.0.0.1:0",
        "--certificate",
        "certificate.pem",
        "--certificate-key",
        "key.pem",
    ];
    let server = protected.serve(&https);
    let answer = protected.allowed(&server, host, "/secret?a=b");
    assert_shows_nothing(&answer, 307, host);
    let location = answer.header("location");
    assert!(
        location.starts_with("https://app.studio.example"),
        "{location}"
    );
    assert!(location.ends_with("/secret?a=b"), "{location}");
}

#[test]
fn export_leaves_protected_tenants_out() {
    let protected = Protected::new();
    let output = run(
        protected.folder.path(),
        &["export", "out", "--origin", "https://studio.example"],
    );
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{messages}");
    let warning = "warning: the protected tenant `app` is not exported";
    assert_eq!(messages.matches(warning).count(), 1, "{messages}");
    let out = protected.path("out");
    assert!(out.join("studio.example/about.html").is_file());
    for absent in [
        "app.studio.example",
        "client.example",
        "studio.example/app",
        "studio.example/apps",
    ] {
        assert!(!out.join(absent).exists(), "{absent}");
    }
    let found = Command::new("grep")
        .arg("-rl")
        .arg(SECRET)
        .arg(&out)
        .output();
    assert_eq!(String::from_utf8_lossy(&found.expect("grep").stdout), "");
}
