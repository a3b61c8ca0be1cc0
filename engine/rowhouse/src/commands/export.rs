//! `rowhouse export DIR`: the same bytes as files, for any static host.

use std::process::ExitCode;

use jiff::Timestamp;

use super::check::as_text;
use super::output::{ERRORS, print, say};
use super::setup::registry;
use crate::cli::{ExportArguments, StaticHost};
use crate::export::rules::Counts;
use crate::export::{Options, WebServer, folder, plan};
use content::report::{Report, Severity};

/// What Cloudflare Pages reads of `_headers`.
const HEADER_RULES: usize = 100;
/// What Cloudflare Pages reads of `_redirects`.
const REDIRECT_RULES: usize = 2_000;

/// Compiles all tenants and writes what would be served.
///
/// With an error nothing is written, unless the flags say so: what has one would be missing.
pub(super) fn run(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let mut registry = registry(&arguments.content, arguments.caching.into(), None, false)?;
    if !arguments.compressed {
        registry = registry.without_codings();
    }
    let now = Timestamp::now();
    let snapshot = registry.reload(now)?;
    let mut errors = Report::default();
    let is_error = |severity| severity == Severity::Error;
    errors.extend(
        registry
            .report()
            .into_iter()
            .filter(|diagnostic| is_error(diagnostic.severity)),
    );
    let is_whole = errors.is_servable();
    if !is_whole {
        as_text(&errors, registry.status().tenants.len());
        if !arguments.despite_errors {
            say(
                "nothing was written: correct them, or leave out what has them with `--despite-errors`",
            );
            return Ok(ExitCode::from(ERRORS));
        }
    }
    registry.draw();
    if arguments.compressed {
        registry.improve();
    }
    let plan = plan(
        &snapshot,
        Options {
            compressed: arguments.compressed,
            not_found_rules: arguments.host == StaticHost::Netlify,
            server: match arguments.host {
                StaticHost::Caddy => Some(WebServer::Caddy),
                StaticHost::Nginx => Some(WebServer::Nginx),
                StaticHost::Any | StaticHost::Cloudflare | StaticHost::Netlify => None,
            },
        },
    )?;
    let over: Vec<String> = plan
        .counts
        .iter()
        .filter_map(|(host, counts)| over_limits(host, *counts))
        .collect();
    if arguments.host == StaticHost::Cloudflare && !over.is_empty() {
        anyhow::bail!(
            "Cloudflare Pages would drop rules without a word: {}",
            over.join("; ")
        );
    }
    let done = folder::write(&arguments.directory, &plan.files)?;
    for host in plan.counts.keys() {
        print(&arguments.directory.join(host).display().to_string());
    }
    say(&format!(
        "exported {} for {} hosts: {} written, {} unchanged, {} removed",
        arguments.content.origin,
        plan.counts.len(),
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
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(ERRORS)
    })
}

fn over_limits(host: &str, counts: Counts) -> Option<String> {
    let over = |count, limit, file: &str| {
        (count > limit).then(|| format!("`{host}/{file}` has {count} rules, more than {limit}"))
    };
    over(counts.headers, HEADER_RULES, "_headers")
        .or_else(|| over(counts.redirects, REDIRECT_RULES, "_redirects"))
}
