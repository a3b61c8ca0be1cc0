//! `rowhouse releases`, `diff`, `rollback` and `resume`: the releases of a tenant on a running server.
//!
//! **Invariant:** knows no folder. Everything that it prints comes from the admin listener, without control characters: file names and pages may have any.

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
use crate::commands::operations::admin_client::{ask, no_server};
use crate::commands::operations::admin_token;
use crate::commands::output::{ERRORS, print, print_message};
use content::name::TenantId;
use server::admin::COMMAND;
use server::admin::control::{ChangeKind, PageChange, Refusal, ReleaseLine, RollbackResponse};

/// The timeout of each step. The server itself times out a little earlier.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of files or paths that are named in a line. Further names are counted.
const MAX_CAUSES: usize = 3;

const HEADING: Style = Style::new().bold();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

/// Returns the tenant of this name.
///
/// # Errors
/// Fails for the names of what all tenants of a fleet share. A server has no releases of them.
fn on_server(name: &str) -> anyhow::Result<TenantId> {
    TenantId::new(name).map_err(|_| {
        anyhow!("`{name}` has versions in the bucket of a fleet only: add `--store URL`")
    })
}

/// Prints the releases of a tenant, newest first.
pub(crate) fn list(arguments: &ReleasesArguments) -> anyhow::Result<ExitCode> {
    let tenant = on_server(&arguments.tenant)?;
    let target = format!("/tenants/{tenant}/releases");
    let response: Result<Vec<ReleaseLine>, _> = request(arguments.server, "GET", &target, "")?;
    Ok(match response {
        Err(refusal) => refused(&refusal),
        Ok(releases) => {
            match arguments.format {
                ListFormat::Json => print(&serde_json::to_string_pretty(&releases)?),
                ListFormat::Text if releases.is_empty() => {
                    print_message(&format!("`{tenant}` has no releases yet"));
                }
                ListFormat::Text => {
                    print(table(&releases, &TimeZone::system()).trim_end());
                    if !releases.iter().any(|release| release.is_served) {
                        print_message(&format!(
                            "`{tenant}` is not served, because its folder was removed: `rowhouse restore {tenant}` serves it again"
                        ));
                    }
                }
            }
            ExitCode::SUCCESS
        }
    })
}

/// Prints the changes between two releases.
pub(crate) fn diff(arguments: &DiffArguments) -> anyhow::Result<ExitCode> {
    let numbers = [("from", arguments.from), ("to", arguments.to)];
    let query: Vec<String> = numbers
        .iter()
        .filter_map(|(name, number)| number.map(|number| format!("{name}={number}")))
        .collect();
    let tenant = on_server(&arguments.tenant)?;
    let target = format!("/tenants/{tenant}/diff?{}", query.join("&"));
    let response: Result<Vec<PageChange>, _> = request(arguments.server, "GET", &target, "")?;
    Ok(match response {
        Err(refusal) => refused(&refusal),
        Ok(changes) => {
            if changes.is_empty() {
                print_message("nothing changed");
            }
            print_changes(&changes, arguments.all);
            ExitCode::SUCCESS
        }
    })
}

/// Prints changes. Unless `shows_metadata`, those of metadata are one line at the end.
pub(in crate::commands) fn print_changes(changes: &[PageChange], shows_metadata: bool) {
    let is_described = |change: &&PageChange| shows_metadata || !change.is_metadata();
    for change in changes.iter().filter(is_described) {
        print(described(change, shows_metadata).trim_end());
    }
    if !shows_metadata && let Some(line) = metadata_line(changes) {
        print(&line);
    }
}

/// Returns the line about metadata that is not shown; `None` if no metadata differ.
fn metadata_line(changes: &[PageChange]) -> Option<String> {
    let with_metadata = changes.iter().filter(|change| !change.metadata.is_empty());
    let paths: Vec<String> = with_metadata.map(|change| change.path.clone()).collect();
    let number = match paths.len() {
        0 => return None,
        1 => "1 path".to_owned(),
        number => format!("{number} paths"),
    };
    Some(format!(
        "{HEADING}metadata of {number}{HEADING:#} ({}): shown by `--all`",
        cause(&paths)
    ))
}

/// Rolls a tenant back to an earlier release.
pub(crate) fn roll_back(arguments: &RollbackArguments) -> anyhow::Result<ExitCode> {
    let tenant = on_server(&arguments.tenant)?;
    let target = match arguments.release {
        None => format!("/tenants/{tenant}/rollback"),
        Some(number) => format!("/tenants/{tenant}/rollback?release={number}"),
    };
    let response: Result<RollbackResponse, _> =
        command(arguments.server, &arguments.token, &target)?;
    Ok(match response {
        Err(refusal) => refused(&refusal),
        Ok(RollbackResponse { release }) => {
            print_message(&format!(
                "release {release} of `{tenant}` is served and pinned: changes of the folder have no effect until `rowhouse resume {tenant}`"
            ));
            ExitCode::SUCCESS
        }
    })
}

/// Serves the tenant's folder again.
pub(crate) fn resume(arguments: &ResumeArguments) -> anyhow::Result<ExitCode> {
    let tenant = on_server(&arguments.tenant)?;
    let target = format!("/tenants/{tenant}/resume");
    let response: Result<IgnoredAny, _> = command(arguments.server, &arguments.token, &target)?;
    Ok(match response {
        Err(refusal) => refused(&refusal),
        Ok(_) => {
            print_message(&format!("the folder of `{tenant}` is served again"));
            ExitCode::SUCCESS
        }
    })
}

/// Sends a request that changes something, with the token if there is one.
pub(super) fn command<T: DeserializeOwned>(
    server: RunningServer,
    token: &AdminTokenFlag,
    target: &str,
) -> anyhow::Result<Result<T, Refusal>> {
    let mut fields = format!("{COMMAND}: 1\r\n");
    if let Some(token) = admin_token::read(token)? {
        fields.push_str(&format!("authorization: Bearer {}\r\n", token.trim()));
    }
    request(server, "POST", target, &fields)
}

/// Sends a request and returns the parsed response, or the refusal of the server. `fields` are header lines, each with its line end.
///
/// # Errors
/// Fails if no server responds, or the response is not from this version of rowhouse.
pub(super) fn request<T: DeserializeOwned>(
    server: RunningServer,
    method: &str,
    target: &str,
    fields: &str,
) -> anyhow::Result<Result<T, Refusal>> {
    let admin = server.admin;
    let response = ask(admin, method, target, fields, STEP_TIMEOUT)
        .map_err(|error| anyhow!(no_server(admin, &error, "rowhouse serve --state DIR")))?;
    let foreign = || {
        format!(
            "the response of `{admin}` is not from an admin listener of this version of rowhouse (status {})",
            response.status
        )
    };
    match response.status {
        200 => Ok(Ok(
            serde_json::from_str(&response.text).with_context(foreign)?
        )),
        503 => Ok(Err(Refusal {
            error: "the server is busy, and may still run the command".to_owned(),
        })),
        _ => Ok(Err(
            serde_json::from_str(&response.text).map_err(|_| anyhow!(foreign()))?
        )),
    }
}

pub(super) fn refused(refusal: &Refusal) -> ExitCode {
    print_message(&format!("error: {}", without_controls(&refusal.error)));
    ExitCode::from(ERRORS)
}

/// Returns a table with a line for each release, with times in `zone`.
fn table(releases: &[ReleaseLine], zone: &TimeZone) -> String {
    let rows = releases.iter().map(|release| {
        let mark = match (release.is_served, release.is_pinned) {
            (true, true) => "served, pinned",
            (true, false) => "served",
            (false, true) => "pinned",
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

/// Returns date and time in `zone`, to the second. `seconds` are those since 1970.
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

/// Returns the names of files or paths, up to [`MAX_CAUSES`] of them.
fn cause(files: &[String]) -> String {
    let (named, others) = files.split_at(files.len().min(MAX_CAUSES));
    let named = without_controls(&named.join(", "));
    match others.len() {
        0 => named,
        others => format!("{named} and {others} more"),
    }
}

/// Returns a changed path with its indented diff.
fn described(change: &PageChange, shows_metadata: bool) -> String {
    let word = match change.change {
        ChangeKind::Added => "added",
        ChangeKind::Removed => "removed",
        ChangeKind::Changed => "changed",
    };
    let mut text = format!(
        "{HEADING}{word} {}{HEADING:#}\n",
        without_controls(&change.path)
    );
    push_diff(&mut text, &change.text);
    if shows_metadata && !change.metadata.is_empty() {
        text.push_str(&format!("  {HEADING}metadata{HEADING:#}\n"));
        push_diff(&mut text, &change.metadata);
    }
    text
}

/// Adds the lines of a diff, indented and coloured.
fn push_diff(text: &mut String, diff: &str) {
    for line in diff.lines() {
        let line = without_controls(line);
        let style = match line.chars().next() {
            Some('+') => ADDED,
            Some('-') => REMOVED,
            _ => Style::new(),
        };
        text.push_str(&format!("    {style}{line}{style:#}\n"));
    }
}

/// Replaces control characters, which a terminal would interpret.
pub(super) fn without_controls(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Removes the styles of a text.
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
    fn releases_are_in_columns_with_local_times() {
        let releases = [
            release(10, &["a", "b", "c", "d", "e"]),
            release(9, &["pages/\u{1b}[31m.md"]),
            release(8, &[]),
        ];
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        assert_eq!(
            plain(&table(&releases, &zone)),
            "\
release  since                pages                  cause
     10  2023-11-14 23:13:20     12                  a, b, c and 2 more
      9  2023-11-14 23:13:20     12  served, pinned  pages/\u{fffd}[31m.md
      8  2023-11-14 23:13:20     12
"
        );
        assert_eq!(moment(u64::MAX, &zone), format!("{} s", u64::MAX));
    }

    #[test]
    fn diff_is_indented_and_coloured() {
        let change = PageChange {
            path: "/terms".to_owned(),
            change: ChangeKind::Changed,
            text: " One.\n-a\n+b\u{7}\n".to_owned(),
            metadata: "-<p class=a>\n".to_owned(),
        };
        let text = described(&change, false);
        let shown = "changed /terms\n     One.\n    -a\n    +b\u{fffd}\n";
        assert_eq!(plain(&text), shown);
        assert!(text.contains("\u{1b}[32m+b"), "{text:?}");
        assert_eq!(
            plain(&described(&change, true)),
            format!("{shown}  metadata\n    -<p class=a>\n")
        );
    }

    #[test]
    fn metadata_of_all_paths_is_one_line() {
        let change = |path: &str, text: &str, metadata: &str| PageChange {
            path: path.to_owned(),
            change: ChangeKind::Changed,
            text: text.to_owned(),
            metadata: metadata.to_owned(),
        };
        let shown = change("/", "+a\n", "");
        assert_eq!(metadata_line(std::slice::from_ref(&shown)), None);
        let both = change("/b", "+a\n", "+<p>\n");
        let line = metadata_line(&[shown.clone(), both.clone()]).unwrap();
        assert_eq!(plain(&line), "metadata of 1 path (/b): shown by `--all`");
        let names = ["/c", "/d", "/e\u{7}"];
        let unseen = names.map(|path| change(path, "", "-<p>\n"));
        let all = [&[shown, both][..], &unseen].concat();
        assert_eq!(
            plain(&metadata_line(&all).unwrap()),
            "metadata of 4 paths (/b, /c, /d and 1 more): shown by `--all`"
        );
    }

    /// Responds to one request. The thread returns the request.
    fn server(response: &'static str) -> (RunningServer, thread::JoinHandle<String>) {
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
            socket.write_all(response.as_bytes()).unwrap();
            String::from_utf8(asked).unwrap()
        });
        (RunningServer { admin }, thread)
    }

    #[test]
    fn command_has_a_field_that_no_web_page_sends() {
        let (admin, thread) = server("HTTP/1.1 200 OK\r\n\r\n{\"release\":3}");
        let target = "/tenants/app/rollback?release=3";
        let none = AdminTokenFlag {
            admin_token_file: None,
        };
        let answer: RollbackResponse = command(admin, &none, target).unwrap().unwrap();
        assert_eq!(answer.release, 3);
        assert_eq!(
            thread.join().unwrap(),
            format!(
                "POST {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-rowhouse-command: 1\r\n\r\n"
            )
        );
    }

    #[test]
    fn command_has_the_token() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        let token = AdminTokenFlag {
            admin_token_file: Some(file.clone()),
        };
        let (admin, thread) = server("HTTP/1.1 200 OK\r\n\r\n{\"release\":3}");
        let _: RollbackResponse = command(admin, &token, "/x").unwrap().unwrap();
        let asked = thread.join().unwrap();
        assert!(
            asked.contains("\r\nauthorization: Bearer 0123456789abcdef\r\n"),
            "{asked}"
        );
        std::fs::write(&file, "short").unwrap();
        let error = command::<RollbackResponse>(admin, &token, "/x").unwrap_err();
        assert!(format!("{error:#}").contains("at least 16"), "{error:#}");
    }

    #[test]
    fn refusal_differs_from_the_response_of_another_program() {
        let ask = |response| {
            let (admin, _thread) = server(response);
            request::<RollbackResponse>(admin, "POST", "/x", "")
        };
        let refusal = ask("HTTP/1.1 409 Conflict\r\n\r\n{\"error\":\"no release\"}").unwrap();
        assert_eq!(refusal.unwrap_err().error, "no release");
        let busy = ask("HTTP/1.1 503 Service Unavailable\r\n\r\n").unwrap();
        assert!(busy.unwrap_err().error.contains("busy"));
        for foreign in [
            "HTTP/1.1 404 Not Found\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nhello",
        ] {
            let error = ask(foreign).unwrap_err().to_string();
            assert!(
                error.contains("not from an admin listener of this version"),
                "{error}"
            );
        }
        let error = ask("").unwrap_err().to_string();
        assert!(
            error.starts_with("no server responds at `127.0.0.1:"),
            "{error}"
        );
    }
}
