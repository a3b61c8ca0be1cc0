//! `rowhouse export DIR`: the same bytes as files, for any static host.

use std::process::ExitCode;

use jiff::Timestamp;

use super::check::as_text;
use super::{MISTAKES, estate, print, say};
use crate::cli::{ExportArguments, StaticHost};
use crate::export::rules::Counts;
use crate::export::{Options, folder, plan};
use content::report::{Report, Severity};

/// What Cloudflare Pages reads of `_headers`.
const HEADER_RULES: usize = 100;
/// What Cloudflare Pages reads of `_redirects`.
const REDIRECT_RULES: usize = 2_000;

/// Compiles all tenants and writes what would be served.
///
/// With a mistake nothing is written, unless the flags say so: what has one would be missing.
pub(super) fn run(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let mut estate = estate(&arguments.content, arguments.caching, None, false)?;
    let now = Timestamp::now();
    let snapshot = estate.reload(now)?;
    let mut mistakes = Report::default();
    let is_mistake = |severity| severity == Severity::Mistake;
    mistakes.extend(
        estate
            .report()
            .into_iter()
            .filter(|diagnostic| is_mistake(diagnostic.severity)),
    );
    let is_whole = mistakes.is_servable();
    if !is_whole {
        as_text(&mistakes, estate.status().tenants.len());
        if !arguments.despite_mistakes {
            say(
                "nothing was written: correct them, or leave out what has them with `--despite-mistakes`",
            );
            return Ok(ExitCode::from(MISTAKES));
        }
    }
    estate.draw();
    let plan = plan(
        &snapshot,
        Options {
            compressed: arguments.compressed,
            not_found_rules: arguments.host == StaticHost::Netlify,
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
    if let Some(next) = estate.next_change(now) {
        say(&format!(
            "note: a page comes or goes at {next}: export again then"
        ));
    }
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(MISTAKES)
    })
}

fn over_limits(host: &str, counts: Counts) -> Option<String> {
    let over = |count, limit, file: &str| {
        (count > limit).then(|| format!("`{host}/{file}` has {count} rules, more than {limit}"))
    };
    over(counts.headers, HEADER_RULES, "_headers")
        .or_else(|| over(counts.redirects, REDIRECT_RULES, "_redirects"))
}
