//! Certificates of operators: visitors notice neither a replaced certificate nor a replaced process.

use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use rowhouse_tests::{binary, reserved_address};
use tempfile::TempDir;

use crate::http;
use crate::support::{Program, Rowhouse, run, tenant, wait_for};
use crate::tls::{DOMAIN, Files, Signer, visit};

/// The number of replacements.
const REPLACEMENTS: usize = 3;

/// Visitors who send requests until the load ends: the number of responses, and the failures.
#[derive(Debug, Default)]
struct Visits {
    over: AtomicBool,
    answered: AtomicUsize,
}

impl Visits {
    fn repeat(&self, visit: impl Fn() -> std::io::Result<()>) -> Vec<String> {
        let mut failures = Vec::new();
        while !self.over.load(Relaxed) && failures.len() < 10 {
            match visit() {
                Ok(()) => {
                    self.answered.fetch_add(1, Relaxed);
                }
                Err(error) => failures.push(error.to_string()),
            }
        }
        failures
    }

    fn wait_for_more(&self, count: usize) {
        let until = self.answered.load(Relaxed) + count;
        wait_for("more answers", || {
            (self.over.load(Relaxed) || self.answered.load(Relaxed) >= until).then_some(())
        });
    }
}

/// Ends the visits when dropped, also after a failure; otherwise the threads could not be joined.
struct EndOnDrop<'a>(&'a Visits);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Relaxed);
    }
}

fn check_status(answer: &str, status: &str) -> std::io::Result<()> {
    match answer.starts_with(status) {
        true => Ok(()),
        false => Err(std::io::Error::other(format!("no {status}: {answer:.200}"))),
    }
}

#[test]
fn files_replaced_under_load_fail_no_handshake() {
    let folder = TempDir::new().expect("a folder");
    let tenants = folder.path().join("tenants");
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let signer = Signer::new();
    let files = signer.write(folder.path());
    let address = reserved_address();
    let mut command = files.serve(&tenants);
    command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let server = Rowhouse::start_with(command.args(["--https", &address.to_string()]));
    let config = signer.visitor();
    let shown = || {
        let (answer, shown) = visit(address, &config, DOMAIN, "/").expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        shown
    };
    let visits = Visits::default();
    let failures: Vec<String> = thread::scope(|scope| {
        let _ending = EndOnDrop(&visits);
        let visitors = [(); 2].map(|()| {
            scope.spawn(|| {
                visits.repeat(|| {
                    let (answer, _) = visit(address, &config, DOMAIN, "/")?;
                    check_status(&answer, "HTTP/1.1 200")
                })
            })
        });
        for _ in 0..REPLACEMENTS {
            visits.wait_for_more(20);
            let before = shown();
            replace(&signer, &files);
            wait_for("the new certificate", || (shown() != before).then_some(()));
        }
        visits.wait_for_more(20);
        visits.over.store(true, Relaxed);
        let failures = visitors.map(|visitor| visitor.join().expect("a visitor"));
        failures.concat()
    });
    assert!(
        failures.is_empty(),
        "{failures:?}\n{}",
        server.program.log()
    );
    assert!(visits.answered.load(Relaxed) > REPLACEMENTS * 20);
}

/// Replaces both files in the worst way: one after the other, each written in place in two parts.
fn replace(signer: &Signer, files: &Files) {
    let (chain, key) = signer.sign();
    for (path, text) in [(&files.certificate, chain), (&files.key, key)] {
        fs::write(path, &text[..text.len() / 2]).expect("a file");
        thread::yield_now();
        fs::write(path, text).expect("a file");
    }
}

#[test]
fn each_host_gets_certificate_of_its_file() {
    let folder = TempDir::new().expect("a folder");
    let tenants = folder.path().join("tenants");
    tenant(&tenants.join("home"), "Home", "root: true\n");
    tenant(&tenants.join("shop"), "Shop", "hosts: [shop.example]\n");
    let signer = Signer::new();
    let own = folder.path().join("own");
    fs::create_dir(&own).expect("a folder");
    let of_shop = signer.sign_for(vec!["shop.example".to_owned()]);
    let all = [signer.write(folder.path()), Files::write(&own, of_shop)];
    let serve = || {
        let mut command = Command::new(binary());
        command
            .args(["serve", "--origin", &format!("https://{DOMAIN}")])
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .arg("--tenants")
            .arg(&tenants);
        command
    };
    let mut by_flags = serve();
    for files in &all {
        by_flags.arg("--certificate").arg(&files.certificate);
        by_flags.arg("--certificate-key").arg(&files.key);
    }
    let mut by_variables = serve();
    let list = |paths: [&Path; 2]| paths.map(|path| path.display().to_string()).join(",");
    let paths = all.each_ref();
    by_variables.env(
        "ROWHOUSE_CERTIFICATE",
        list(paths.map(|files| &*files.certificate)),
    );
    by_variables.env(
        "ROWHOUSE_CERTIFICATE_KEY",
        list(paths.map(|files| &*files.key)),
    );
    let config = signer.visitor();
    for mut command in [by_flags, by_variables] {
        let address = reserved_address();
        let _server = Rowhouse::start_with(command.args(["--https", &address.to_string()]));
        let shown = [
            (DOMAIN, "the house of Home"),
            ("shop.studio.example", "the house of Shop"),
            ("shop.example", "the house of Shop"),
        ]
        .map(|(host, words)| {
            // The client verifies the certificate for the host.
            let (answer, shown) = visit(address, &config, host, "/").expect("an answer");
            assert!(answer.contains(words), "{host}: {answer}");
            shown
        });
        assert!(shown[0] == shown[1] && shown[1] != shown[2]);
    }

    let mut uneven = serve();
    uneven.args(["--https", "127.0.0.1:0", "--certificate"]);
    uneven.arg(&all[0].certificate).arg("--certificate");
    uneven.arg(&all[1].certificate).arg("--certificate-key");
    let (started, said) = run(uneven.arg(&all[0].key));
    assert!(
        !started && said.contains("each `--certificate` needs its `--certificate-key`"),
        "{said}"
    );
}

/// Runs a program with the sockets of its standard input and output as descriptors 3 and 4 (`sd_listen_fds(3)`).
const HAND_OVER: &str = r#"exec 3<&0 4>&1 0</dev/null 1>/dev/null; LISTEN_FDS=2 LISTEN_FDNAMES=https:http-redirect LISTEN_PID=$$ exec "$@""#;

#[test]
fn restart_refuses_no_connection_at_either_port() {
    let folder = TempDir::new().expect("a folder");
    let tenants = folder.path().join("tenants");
    tenant(&tenants.join("home"), "Home", "root: true\n");
    let signer = Signer::new();
    let files = signer.write(folder.path());
    let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a socket"));
    let [secure, redirect] = sockets
        .each_ref()
        .map(|socket| socket.local_addr().expect("an address"));
    let admin = reserved_address();
    let start = || {
        let serve = files.serve(&tenants);
        let mut command = Command::new("sh");
        command.args(["-c", HAND_OVER, "sh"]).arg(binary());
        command.args(serve.get_args());
        command.args(["--admin", &admin.to_string()]);
        let [input, output] = sockets
            .each_ref()
            .map(|socket| OwnedFd::from(socket.try_clone().expect("a socket")));
        let mut program = Program::start_between(&mut command, input, output);
        wait_for("a ready server", || {
            program.must_run();
            let ready = http::ask(admin, "localhost", "/readyz");
            ready.filter(|(status, said)| *status == 200 && !said.contains("pending"))
        });
        program
    };
    let mut running = start();
    let config = signer.visitor();
    let over_tls = || {
        let (answer, _) = visit(secure, &config, DOMAIN, "/")?;
        check_status(&answer, "HTTP/1.1 200")
    };
    let led = || {
        let (status, to) = http::Visitor::connect(redirect)?.redirect_of(DOMAIN, "/")?;
        match (status, &*to) {
            (308, "https://studio.example/") => Ok(()),
            answer => Err(std::io::Error::other(format!("{answer:?}"))),
        }
    };
    let visits = Visits::default();
    let failures: Vec<String> = thread::scope(|scope| {
        let _ending = EndOnDrop(&visits);
        let visitors = [
            scope.spawn(|| visits.repeat(over_tls)),
            scope.spawn(|| visits.repeat(over_tls)),
            scope.spawn(|| visits.repeat(led)),
        ];
        for _ in 0..2 {
            visits.wait_for_more(50);
            assert_eq!(running.end(), Some(0), "{}", running.log());
            running = start();
        }
        visits.wait_for_more(50);
        visits.over.store(true, Relaxed);
        let failures = visitors.map(|visitor| visitor.join().expect("a visitor"));
        failures.concat()
    });
    assert!(failures.is_empty(), "{failures:?}\n{}", running.log());
}
