//! `rowhouse export DIR`: the same bytes as files, for any static host.

use std::io::{IsTerminal as _, stderr};
use std::process::ExitCode;
use std::sync::Arc;

use jiff::Timestamp;

use crate::cli::{ExportArguments, StaticHost};
use crate::commands::authoring::check::as_text;
use crate::commands::output::{ERRORS, print, say};
use crate::commands::setup::registry;
use crate::commands::{memory, progress};
use crate::export::folder::ExportWriter;
use crate::export::rules::RuleCounts;
use crate::export::{Exported, Options, WebServer, export};
use content::report::{Report, Severity};
use server::admin::status::StatusBoard;

/// What Cloudflare Pages reads of `_headers`.
const HEADER_RULES: usize = 100;
/// What Cloudflare Pages reads of `_redirects`.
const REDIRECT_RULES: usize = 2_000;

/// What an export says that stops at errors.
const NOTHING_WRITTEN: &str =
    "nothing was written: correct them, or leave out what has them with `--despite-errors`";

/// Compiles all tenants and writes what would be served, with no more of them in memory than there is room for.
///
/// With an error nothing is written, unless the flags say so: what has one would be missing. An operator who says so gets what was requested, so that the command succeeds.
pub(crate) fn run(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let registry = registry(&arguments.content, arguments.caching.into(), None, false)?;
    let memory = arguments.memory.unwrap_or_else(memory::half);
    let mut registry = registry
        .without_compression()
        .serving()
        .with_memory(memory)
        .with_work_memory(memory::for_work(memory));
    let now = Timestamp::now();
    let board = Arc::new(StatusBoard::default());
    let snapshot = registry.reload(now)?;
    registry.set_served();
    if stderr().is_terminal() {
        board.replace(registry.status());
        progress::show(Arc::clone(&board));
    }
    let snapshot = registry.finish(&board, now).unwrap_or(snapshot);
    let mut errors = Report::default();
    let is_error = |severity| severity == Severity::Error;
    errors.extend(
        registry
            .report()
            .into_iter()
            .filter(|diagnostic| is_error(diagnostic.severity)),
    );
    if !errors.is_servable() {
        as_text(&errors, registry.status().tenants.len());
        if !arguments.despite_errors {
            say(NOTHING_WRITTEN);
            return Ok(ExitCode::from(ERRORS));
        }
    }
    let options = Options {
        compressed: arguments.compressed,
        not_found_rules: arguments.host == StaticHost::Netlify,
        server: match arguments.host {
            StaticHost::Caddy => Some(WebServer::Caddy),
            StaticHost::Nginx => Some(WebServer::Nginx),
            StaticHost::Any | StaticHost::Cloudflare | StaticHost::Netlify => None,
        },
    };
    let mut writer = ExportWriter::begin(&arguments.directory)?;
    let Exported { counts, left_out } = export(&registry, &snapshot, options, &mut writer)?;
    for one in &left_out {
        say(&format!("error: {one}"));
    }
    if !left_out.is_empty() && !arguments.despite_errors {
        say(NOTHING_WRITTEN);
        return Ok(ExitCode::from(ERRORS));
    }
    let over: Vec<String> = counts
        .iter()
        .filter_map(|(host, counts)| over_limits(host, *counts))
        .collect();
    if arguments.host == StaticHost::Cloudflare && !over.is_empty() {
        anyhow::bail!(
            "Cloudflare Pages would drop rules without a word: {}",
            over.join("; ")
        );
    }
    let done = writer.finish()?;
    for host in counts.keys() {
        print(&arguments.directory.join(host).display().to_string());
    }
    say(&format!(
        "exported {} for {} hosts: {} written, {} unchanged, {} removed",
        arguments.content.origin,
        counts.len(),
        done.written,
        done.unchanged,
        done.removed,
    ));
    if arguments.host == StaticHost::Any {
        for line in over {
            say(&format!("note: Cloudflare Pages would drop rules: {line}"));
        }
    }
    if let Some(next) = registry.next_change() {
        say(&format!(
            "note: a page comes or goes at {next}: export again then"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn over_limits(host: &str, counts: RuleCounts) -> Option<String> {
    let over = |count, limit, file: &str| {
        (count > limit).then(|| format!("`{host}/{file}` has {count} rules, more than {limit}"))
    };
    over(counts.headers, HEADER_RULES, "_headers")
        .or_else(|| over(counts.redirects, REDIRECT_RULES, "_redirects"))
}
