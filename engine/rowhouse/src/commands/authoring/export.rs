//! `rowhouse export DIR`: the bytes that would be served, as files for a static host.

use std::io::{IsTerminal as _, stderr};
use std::process::ExitCode;
use std::sync::Arc;

use jiff::Timestamp;

use crate::cli::{ExportArguments, StaticHost};
use crate::commands::authoring::check::as_text;
use crate::commands::output::{ERRORS, print, print_message};
use crate::commands::setup::registry;
use crate::commands::{memory, progress};
use crate::export::folder::ExportWriter;
use crate::export::rules::RuleCounts;
use crate::export::{ExportOptions, ExportOutcome, WebServer, export};
use content::report::{Report, Severity};
use server::admin::status::StatusBoard;

/// The number of rules of `_headers` that Cloudflare Pages reads.
const MAX_HEADER_RULES: usize = 100;
/// The number of rules of `_redirects` that Cloudflare Pages reads.
const MAX_REDIRECT_RULES: usize = 2_000;

/// The number of rules of `_redirects` with a `*` that Cloudflare Pages reads.
const MAX_WILDCARD_RULES: usize = 100;

/// The message of an export that stops at errors.
const NOTHING_WRITTEN: &str =
    "nothing was written: correct the errors, or export the other tenants with `--despite-errors`";

/// Renders all tenants within the memory limit and writes them as files. Previews are left out: a static host cannot end them, and their errors must not stop the export.
///
/// If a tenant has errors, nothing is written, since its pages would be missing. With `--despite-errors`, the other tenants are written and the exit code is 0.
pub(crate) fn run(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let registry = registry(&arguments.content, arguments.caching.into(), None, false)?;
    let memory = arguments.memory.unwrap_or_else(memory::half);
    let mut registry = registry
        .without_compression()
        .without_previews()
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
            print_message(NOTHING_WRITTEN);
            return Ok(ExitCode::from(ERRORS));
        }
    }
    let options = ExportOptions {
        compressed: arguments.compressed,
        not_found_rules: arguments.host == StaticHost::Netlify,
        server: match arguments.host {
            StaticHost::Caddy => Some(WebServer::Caddy),
            StaticHost::Nginx => Some(WebServer::Nginx),
            StaticHost::Any | StaticHost::Cloudflare | StaticHost::Netlify => None,
        },
    };
    let mut writer = ExportWriter::begin(&arguments.directory)?;
    let ExportOutcome {
        counts,
        left_out,
        protected,
        differences,
    } = export(&registry, &snapshot, options, &mut writer)?;
    for tenant in &left_out {
        print_message(&format!("error: {tenant}"));
    }
    if !left_out.is_empty() && !arguments.despite_errors {
        print_message(NOTHING_WRITTEN);
        return Ok(ExitCode::from(ERRORS));
    }
    let over: Vec<String> = counts
        .iter()
        .filter_map(|(host, counts)| over_limits(host, *counts))
        .collect();
    if arguments.host == StaticHost::Cloudflare && !over.is_empty() {
        anyhow::bail!(
            "Cloudflare Pages would silently ignore rules: {}",
            over.join("; ")
        );
    }
    for tenant in &protected {
        print_message(&format!(
            "warning: the protected tenant `{tenant}` is not exported: a static host would show it to everyone. Serve it with `rowhouse serve`, or remove its `access` from the deployment file"
        ));
    }
    let summary = writer.finish()?;
    for host in counts.keys() {
        print(&arguments.directory.join(host).display().to_string());
    }
    print_message(&format!(
        "exported {} for {} hosts: {} written, {} unchanged, {} removed",
        arguments.content.origin,
        counts.len(),
        summary.written,
        summary.unchanged,
        summary.removed,
    ));
    if arguments.host == StaticHost::Any {
        for line in over {
            print_message(&format!(
                "note: Cloudflare Pages would ignore rules: {line}"
            ));
        }
    }
    for difference in differences {
        print_message(&format!("note: {difference}"));
    }
    if let Some(next) = registry.next_change() {
        print_message(&format!(
            "note: a page appears or expires at {next}: export again at that time"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a message if a host has more rules than Cloudflare Pages reads.
fn over_limits(host: &str, counts: RuleCounts) -> Option<String> {
    let over = |count, limit, file: &str| {
        (count > limit).then(|| format!("`{host}/{file}` has {count} rules, more than {limit}"))
    };
    over(counts.headers, MAX_HEADER_RULES, "_headers")
        .or_else(|| over(counts.redirects, MAX_REDIRECT_RULES, "_redirects"))
        .or_else(|| {
            let (count, limit) = (counts.wildcards, MAX_WILDCARD_RULES);
            let message =
                || format!("`{host}/_redirects` has {count} rules with `*`, more than {limit}");
            (count > limit).then(message)
        })
}
