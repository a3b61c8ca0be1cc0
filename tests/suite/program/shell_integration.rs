//! The command line for people and shells: the greeting on a terminal, completions, man pages.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{binary, fixture, run, stderr, stdout, workspace};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The timeout of a step on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// `rowhouse serve` whose stderr is a terminal.
struct OnTerminal {
    child: Child,
    output: Receiver<Vec<u8>>,
    text: String,
}

impl OnTerminal {
    fn start(folder: &Path, variables: &[(&str, &str)]) -> Self {
        let leader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&leader).expect("its permission");
        unlockpt(&leader).expect("its other side");
        let name = ptsname(&leader, Vec::new()).expect("its name");
        let open = || {
            let name = name.to_str().expect("a path");
            OpenOptions::new().read(true).write(true).open(name)
        };
        let child = Command::new(binary())
            .current_dir(folder)
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(open().expect("the terminal"))
            .spawn()
            .expect("a started server");
        let (sender, output) = channel();
        let mut leader = File::from(leader);
        thread::spawn(move || {
            let mut piece = [0; 4096];
            // Linux returns an error when the last process has closed the terminal.
            while let Ok(length @ 1..) = leader.read(&mut piece) {
                if sender.send(piece[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            output,
            text: String::new(),
        }
    }

    /// Returns the output up to and including `words`.
    fn until(&mut self, words: &str) -> &str {
        let end = Instant::now() + TIMEOUT;
        while !self.text.contains(words) {
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(piece) => self.text += &String::from_utf8_lossy(&piece),
                Err(error) => panic!("no `{words}` ({error}):\n{}", self.text),
            }
        }
        &self.text
    }

    /// Sends an interrupt like Ctrl-C.
    fn interrupt(&mut self) -> ExitStatus {
        let id = self.child.id().to_string();
        let kill = Command::new("kill").args(["-s", "INT", &id]).status();
        assert!(kill.expect("kill").success());
        self.until("drained");
        self.child.wait().expect("an end")
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // The program may have ended by itself, as the test expects.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn greeting_lists_sites_and_ctrl_c_ends_server() {
    let mut server = OnTerminal::start(&fixture("sites"), &[("NO_COLOR", "1")]);
    let text = server.until("Ctrl-C");
    assert!(!text.contains('\u{1b}'), "NO_COLOR is set:\n{text}");
    for words in [
        concat!("rowhouse ", env!("CARGO_PKG_VERSION"), "  ready in "),
        "http://localhost:8080/app",
        "http://app.localhost:8080",
        "Listening  127.0.0.1:",
        "Console    http://localhost:",
    ] {
        assert!(text.contains(words), "`{words}` is not in\n{text}");
    }
    let admin = text.split_once("Console    http://").expect("an address").1;
    let admin = admin.split('/').next().expect("an address");
    let probe = run(&workspace(), &["probe", "--admin", admin]);
    assert!(probe.status.success(), "{}", stderr(&probe));
    assert!(!text.contains("INFO"), "no log stands before it:\n{text}");
    assert_eq!(server.interrupt().code(), Some(0));
}

#[test]
fn greeting_has_colours_and_first_error_of_site() {
    let mut server = OnTerminal::start(&fixture("errors/unknown-key"), &[]);
    let text = server.until("Ctrl-C");
    assert!(text.contains("\u{1b}["), "{text}");
    for words in [
        "not served",
        "5 errors",
        "tenants/sample/pages/index.md:3:1: ",
    ] {
        assert!(text.contains(words), "`{words}` is not in\n{text}");
    }
}

/// Returns a command's own flags and those of its subcommands, from its help.
fn listed(arguments: &[&str], start: &str) -> BTreeSet<String> {
    let help = stdout(&run(&workspace(), &[arguments, &["--help"]].concat()));
    let first_word = |line: &str| {
        let word = line.trim_start().split([' ', ',']).next()?.to_owned();
        word.starts_with(start).then_some(word)
    };
    let lines = help.lines();
    if start.is_empty() {
        let commands = lines.skip_while(|line| *line != "Commands:").skip(1);
        return commands
            .take_while(|line| !line.is_empty())
            .filter_map(first_word)
            .collect();
    }
    lines
        .filter(|line| line.starts_with("      --"))
        .filter_map(first_word)
        .collect()
}

#[test]
fn completions_and_man_pages_have_every_command_and_flag() {
    let commands = listed(&[], "");
    assert!(
        commands.contains("serve") && commands.len() > 8,
        "{commands:?}"
    );
    let mut flags = listed(&[], "--");
    assert!(flags.contains("--tenants") && flags.len() > 20, "{flags:?}");
    for command in commands.iter().filter(|command| *command != "help") {
        let own = listed(&[command], "--");
        let page = stdout(&run(&workspace(), &["man", command])).replace('\\', "");
        assert!(page.contains(&format!("rowhouse-{command}")), "{page}");
        for flag in &own {
            assert!(page.contains(flag.as_str()), "man {command}: {flag}");
        }
        flags.extend(own);
    }
    let page = stdout(&run(&workspace(), &["man"])).replace('\\', "");
    for command in &commands {
        assert!(
            page.contains(&format!("rowhouse-{command}")),
            "man: {command}"
        );
    }
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&run(&workspace(), &["completions", shell]));
        for word in commands.iter().chain(&flags) {
            // Fish writes `-l tenants`.
            let word = match shell {
                "fish" => word.trim_start_matches('-'),
                _ => word,
            };
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let stranger = run(&workspace(), &["man", "srve"]);
    assert_eq!(stranger.status.code(), Some(2), "{}", stderr(&stranger));
}

#[test]
fn address_in_use_is_reported_with_its_flag() {
    let socket = TcpListener::bind("127.0.0.1:0").expect("an address");
    let taken = socket.local_addr().expect("an address").to_string();
    let free = "127.0.0.1:0";
    for (flag, flags) in [
        ("--listen", vec!["--listen", &taken, "--admin", free]),
        ("--admin", vec!["--listen", free, "--admin", &taken]),
        ("--https", vec!["--listen", free, "--https", &taken]),
        (
            "--http-redirect",
            vec!["--listen", free, "--https", free, "--http-redirect", &taken],
        ),
    ] {
        let flags: Vec<&str> = [&["serve"], &*flags].concat();
        let output = run(&fixture("sites"), &flags);
        assert_eq!(output.status.code(), Some(2), "{flag}");
        let wanted = format!("cannot use the address of `{flag}`: cannot listen on `{taken}`");
        let text = stderr(&output);
        assert!(text.contains(&wanted), "{text}");
        assert!(
            text.contains("replace a running rowhouse with `--takeover`"),
            "{text}"
        );
    }
}
