//! `rowhouse releases`, `diff`, `rollback` and `resume`: what a running server keeps of a tenant, and which of it is served.
//!
//! **Invariant:** knows no folder; whatever it prints comes from the server's admin listener. That is shown without control characters, since file names and pages may hold any.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::builder::styling::{AnsiColor, Style};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::cli::{
    AdminTokenFlag, DiffArguments, ListFormat, ReleasesArguments, ResumeArguments,
    RollbackArguments, RunningServer,
};
use crate::commands::operations::admin_client::ask;
use crate::commands::operations::admin_token;
use crate::commands::output::{ERRORS, print, say};
use server::admin::COMMAND;
use server::admin::control::{Change, PageChange, Refusal, ReleaseLine, RolledBack};

/// For each step of a question. The server itself gives up a little earlier.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

/// So many files are named as a release's cause; the others are counted.
const MAX_CAUSES: usize = 3;

const HEADING: Style = Style::new().bold();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

/// Prints the releases of a tenant that the server keeps, newest first.
pub(crate) fn list(arguments: &ReleasesArguments) -> anyhow::Result<ExitCode> {
    let tenant = &arguments.tenant;
    let target = format!("/tenants/{tenant}/releases");
    let asked: Result<Vec<ReleaseLine>, _> = question(arguments.server, "GET", &target, "")?;
    Ok(match asked {
        Err(refusal) => refused(&refusal),
        Ok(releases) => {
            match arguments.format {
                ListFormat::Json => print(&serde_json::to_string_pretty(&releases)?),
                ListFormat::Text if releases.is_empty() => {
                    say(&format!("no release of `{tenant}` is kept yet"));
                }
                ListFormat::Text => {
                    print(table(&releases, &TimeZone::system()).trim_end());
                }
            }
            ExitCode::SUCCESS
        }
    })
}

/// Prints what changed between two releases.
pub(crate) fn diff(arguments: &DiffArguments) -> anyhow::Result<ExitCode> {
    let numbers = [("from", arguments.from), ("to", arguments.to)];
    let query: Vec<String> = numbers
        .iter()
        .filter_map(|(name, number)| number.map(|number| format!("{name}={number}")))
        .collect();
    let target = format!("/tenants/{}/diff?{}", arguments.tenant, query.join("&"));
    let asked: Result<Vec<PageChange>, _> = question(arguments.server, "GET", &target, "")?;
    Ok(match asked {
        Err(refusal) => refused(&refusal),
        Ok(changes) => {
            if changes.is_empty() {
                say("nothing changed");
            }
            for change in &changes {
                print(described(change).trim_end());
            }
            ExitCode::SUCCESS
        }
    })
}

/// Has an earlier release served.
pub(crate) fn roll_back(arguments: &RollbackArguments) -> anyhow::Result<ExitCode> {
    let tenant = &arguments.tenant;
    let target = match arguments.release {
        None => format!("/tenants/{tenant}/rollback"),
        Some(number) => format!("/tenants/{tenant}/rollback?release={number}"),
    };
    let asked: Result<RolledBack, _> = command(arguments.server, &arguments.token, &target)?;
    Ok(match asked {
        Err(refusal) => refused(&refusal),
        Ok(RolledBack { release }) => {
            say(&format!(
                "release {release} of `{tenant}` is served, whatever changes in its folder; `rowhouse resume {tenant}` follows the folder again"
            ));
            ExitCode::SUCCESS
        }
    })
}

/// Has the tenant's folder followed again.
pub(crate) fn resume(arguments: &ResumeArguments) -> anyhow::Result<ExitCode> {
    let tenant = &arguments.tenant;
    let target = format!("/tenants/{tenant}/resume");
    let asked: Result<IgnoredAny, _> = command(arguments.server, &arguments.token, &target)?;
    Ok(match asked {
        Err(refusal) => refused(&refusal),
        Ok(_) => {
            say(&format!("`{tenant}` follows its folder again"));
            ExitCode::SUCCESS
        }
    })
}

/// What the server answers to what changes something.
fn command<T: DeserializeOwned>(
    server: RunningServer,
    token: &AdminTokenFlag,
    target: &str,
) -> anyhow::Result<Result<T, Refusal>> {
    let mut fields = format!("{COMMAND}: 1\r\n");
    if let Some(token) = admin_token::read(token)? {
        fields.push_str(&format!("authorization: Bearer {}\r\n", token.trim()));
    }
    question(server, "POST", target, &fields)
}

/// What the server answers, or why it refuses. `fields` are whole lines.
///
/// # Errors
/// When no server is reached, or what answers is none of ours.
fn question<T: DeserializeOwned>(
    server: RunningServer,
    method: &str,
    target: &str,
    fields: &str,
) -> anyhow::Result<Result<T, Refusal>> {
    let admin = server.admin;
    let answer = ask(admin, method, target, fields, STEP_TIMEOUT).map_err(|error| {
        anyhow!(
            "no server answers at `{admin}` ({error}): start it with `rowhouse serve --state DIR`, or name its admin address with `--admin`"
        )
    })?;
    let strange = || {
        format!(
            "what answers at `{admin}` is no admin listener of this version of rowhouse (status {})",
            answer.status
        )
    };
    match answer.status {
        200 => Ok(Ok(serde_json::from_str(&answer.text).with_context(strange)?)),
        503 => Ok(Err(Refusal {
            error: "the server is busy: it may still do what was asked".to_owned(),
        })),
        _ => Ok(Err(
            serde_json::from_str(&answer.text).map_err(|_| anyhow!(strange()))?
        )),
    }
}

fn refused(refusal: &Refusal) -> ExitCode {
    say(&format!("error: {}", shown(&refusal.error)));
    ExitCode::from(ERRORS)
}

/// A line for each release under a heading, with times as they are in `zone`.
fn table(releases: &[ReleaseLine], zone: &TimeZone) -> String {
    let rows = releases.iter().map(|release| {
        let mark = match (release.is_served, release.is_pinned) {
            (true, true) => "served, held",
            (true, false) => "served",
            (false, true) => "held",
            (false, false) => "",
        };
        let columns = [
            release.number.to_string(),
            moment(release.at, zone),
            release.pages.to_string(),
            mark.to_owned(),
        ];
        (columns, cause(&release.cause))
    });
    let heading = ["release", "since", "pages", ""].map(ToOwned::to_owned);
    let all: Vec<_> = [(heading, "cause".to_owned())]
        .into_iter()
        .chain(rows)
        .collect();
    let width = |column: usize| {
        let widths = all.iter().map(|(columns, _)| columns[column].len());
        widths.max().unwrap_or(0)
    };
    let [number, since, pages, mark] = [0, 1, 2, 3].map(width);
    let mut text = String::new();
    for (row, (columns, cause)) in all.iter().enumerate() {
        let [one, two, three, four] = columns;
        let line = format!("{one:>number$}  {two:since$}  {three:>pages$}  {four:mark$}  {cause}");
        let line = line.trim_end();
        text.push_str(&match row {
            0 => format!("{HEADING}{line}{HEADING:#}\n"),
            _ => format!("{line}\n"),
        });
    }
    text
}

/// Date and time in `zone`, to the second.
fn moment(seconds: u64, zone: &TimeZone) -> String {
    let moment = i64::try_from(seconds).map(Timestamp::from_second);
    match moment {
        Ok(Ok(moment)) => moment
            .to_zoned(zone.clone())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string(),
        _ => format!("{seconds} s"),
    }
}

/// The files that had changed, or as many as fit.
fn cause(files: &[String]) -> String {
    let (named, others) = files.split_at(files.len().min(MAX_CAUSES));
    let named = shown(&named.join(", "));
    match others.len() {
        0 => named,
        others => format!("{named} and {others} more"),
    }
}

/// A changed path, with its difference indented.
fn described(change: &PageChange) -> String {
    let word = match change.change {
        Change::Added => "added",
        Change::Removed => "removed",
        Change::Changed => "changed",
    };
    let mut text = format!("{HEADING}{word} {}{HEADING:#}\n", shown(&change.path));
    for line in change.text.lines() {
        let line = shown(line);
        let style = match line.chars().next() {
            Some('+') => ADDED,
            Some('-') => REMOVED,
            _ => Style::new(),
        };
        text.push_str(&format!("    {style}{line}{style:#}\n"));
    }
    text
}

/// A text that cannot do anything to a terminal.
fn shown(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn release(number: u64, cause: &[&str]) -> ReleaseLine {
        ReleaseLine {
            number,
            at: 1_700_000_000,
            cause: cause.iter().map(ToString::to_string).collect(),
            pages: 12,
            is_served: number == 9,
            is_pinned: number == 9,
        }
    }

    #[test]
    fn releases_stand_in_columns_with_local_times() {
        let releases = [
            release(10, &["a", "b", "c", "d", "e"]),
            release(9, &["pages/\u{1b}[31m.md"]),
            release(8, &[]),
        ];
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        assert_eq!(
            plain(&table(&releases, &zone)),
            "\
release  since                pages                cause
     10  2023-11-14 23:13:20     12                a, b, c and 2 more
      9  2023-11-14 23:13:20     12  served, held  pages/\u{fffd}[31m.md
      8  2023-11-14 23:13:20     12
"
        );
        assert_eq!(moment(u64::MAX, &zone), format!("{} s", u64::MAX));
    }

    #[test]
    fn a_difference_is_indented_and_coloured() {
        let change = PageChange {
            path: "/terms".to_owned(),
            change: Change::Changed,
            text: " <p>\n-a\n+b\u{7}\n".to_owned(),
        };
        let text = described(&change);
        assert_eq!(
            plain(&text),
            "changed /terms\n     <p>\n    -a\n    +b\u{fffd}\n"
        );
        assert!(text.contains("\u{1b}[32m+b"), "{text:?}");
    }

    /// Answers one request, and returns what was asked.
    fn server(answer: &'static str) -> (RunningServer, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let admin = listener.local_addr().unwrap();
        let thread = thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                socket.read_exact(&mut byte).unwrap();
                asked.push(byte[0]);
            }
            socket.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(asked).unwrap()
        });
        (RunningServer { admin }, thread)
    }

    #[test]
    fn a_command_comes_as_one_that_no_web_page_sends() {
        let (admin, thread) = server("HTTP/1.1 200 OK\r\n\r\n{\"release\":3}");
        let target = "/tenants/app/rollback?release=3";
        let none = AdminTokenFlag {
            admin_token_file: None,
        };
        let answer: RolledBack = command(admin, &none, target).unwrap().unwrap();
        assert_eq!(answer.release, 3);
        assert_eq!(
            thread.join().unwrap(),
            format!(
                "POST {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-rowhouse-command: 1\r\n\r\n"
            )
        );
    }

    #[test]
    fn a_command_brings_the_token_and_a_question_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        let token = AdminTokenFlag {
            admin_token_file: Some(file.clone()),
        };
        let (admin, thread) = server("HTTP/1.1 200 OK\r\n\r\n{\"release\":3}");
        let _: RolledBack = command(admin, &token, "/x").unwrap().unwrap();
        let asked = thread.join().unwrap();
        assert!(
            asked.contains("\r\nauthorization: Bearer 0123456789abcdef\r\n"),
            "{asked}"
        );
        std::fs::write(&file, "short").unwrap();
        let error = command::<RolledBack>(admin, &token, "/x").unwrap_err();
        assert!(format!("{error:#}").contains("at least 16"), "{error:#}");
    }

    #[test]
    fn a_refusal_is_told_from_a_server_that_is_none_of_ours() {
        let ask = |answer| {
            let (admin, _thread) = server(answer);
            question::<RolledBack>(admin, "POST", "/x", "")
        };
        let refusal = ask("HTTP/1.1 409 Conflict\r\n\r\n{\"error\":\"nothing is kept\"}").unwrap();
        assert_eq!(refusal.unwrap_err().error, "nothing is kept");
        let busy = ask("HTTP/1.1 503 Service Unavailable\r\n\r\n").unwrap();
        assert!(busy.unwrap_err().error.contains("busy"));
        for strange in [
            "HTTP/1.1 404 Not Found\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nhello",
        ] {
            let error = ask(strange).unwrap_err().to_string();
            assert!(
                error.contains("no admin listener of this version"),
                "{error}"
            );
        }
        let error = ask("").unwrap_err().to_string();
        assert!(
            error.starts_with("no server answers at `127.0.0.1:"),
            "{error}"
        );
    }
}
