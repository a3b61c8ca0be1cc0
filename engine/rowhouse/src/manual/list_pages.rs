//! The reference of metrics, errors, addresses and limits, from the lists of their crates.
//!
//! **Invariant:** has no list of codes, metrics or flags of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};
use content::name::reserved;
use content::report::Code;
use content::source;
use content::tenant::manifest::{MAX_ALIASES, MAX_HOSTS, MAX_REDIRECTS};
use content::tenant::{MAX_PAGE_BYTES, MAX_PAGES, MAX_TENANT_NODES};
use content::yaml::MAX_FILE_NODES;
use server::metrics::metric_list;

use super::markdown::{definition, prose};
use super::page::{ManualError, ReferencePage};
use crate::cli::Cli;
use supervisor::replaced;

/// Returns all pages.
pub(super) fn all() -> Result<Vec<ReferencePage>, ManualError> {
    Ok(vec![
        metrics(&metric_list::text()?),
        errors(),
        addresses(),
        limits(),
    ])
}

/// A metric family of the OpenMetrics text.
#[derive(Default)]
struct Family {
    help: String,
    kind: String,
    labels: BTreeSet<String>,
}

/// Returns the page of metrics from their OpenMetrics text.
fn metrics(text: &str) -> ReferencePage {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), Some(help)) => {
                families.entry(name.to_owned()).or_default().help = help.to_owned();
            }
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                families.entry(name.to_owned()).or_default().kind = kind.to_owned();
            }
            _ => {
                let family = families
                    .iter_mut()
                    .rev()
                    .find(|(name, _)| line.starts_with(*name));
                if let (Some((_, family)), Some((_, rest))) = (family, line.split_once('{')) {
                    family.labels.extend(label_names(rest));
                }
            }
        }
    }
    let mut body = String::from(
        "`/metrics` of [the admin listener](/reference/admin) has these metrics in the OpenMetrics text format. Clients cannot add series: requests for an unknown host count for the tenant `_unknown`, and requests for files of all tenants for `_shared`.\n\n",
    );
    for (name, family) in &families {
        // Samples of a counter end in `_total` (OpenMetrics, section 5.1).
        let sample = match family.kind.as_str() {
            "counter" => format!("{name}_total"),
            _ => name.clone(),
        };
        let labels: Vec<String> = family
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!(" Labels: {}.", labels.join(", ")),
        };
        let help = prose(family.help.trim_end_matches('.'));
        let meaning = format!("{help}. *{}.*{labels}", kind_name(&family.kind));
        body += &definition(&format!("`{sample}`"), &meaning);
    }
    page(
        "metrics",
        "Metrics",
        "Every metric of rowhouse for Prometheus, with its type, its labels and its meaning.",
        body,
    )
}

/// Returns the names of the labels of a sample, without `le` of histograms.
fn label_names(rest: &str) -> impl Iterator<Item = String> {
    let labels = rest.split('}').next().unwrap_or_default();
    let names = labels.split(',').filter_map(|pair| pair.split_once('='));
    names
        .map(|(name, _)| name.to_owned())
        .filter(|name| name != "le")
}

fn kind_name(kind: &str) -> &str {
    match kind {
        "counter" => "Counter",
        "gauge" => "Gauge",
        "histogram" => "Histogram",
        other => other,
    }
}

fn errors() -> ReferencePage {
    let mut body = String::from(
        "Each error and warning of `rowhouse check`, of the log and of `/tenants` has a code that does not change. A tenant with an error keeps its last valid pages. A warning has no effect on the pages. `rowhouse check --explain CODE` prints the text below.\n\n",
    );
    let mut codes: Vec<&Code> = Code::ALL.iter().collect();
    codes.sort_by_key(|code| code.as_str());
    for code in codes {
        let explanation = prose(code.explanation());
        let _ = write!(body, "## `{code}` {{#{code}}}\n\n{explanation}\n\n");
    }
    page(
        "errors",
        "Errors and warnings",
        "Every code of an error, a warning or a note that rowhouse reports, with its meaning and the fix.",
        body,
    )
}

fn addresses() -> ReferencePage {
    let part = reserved::sitemap_part(1);
    let all: [(&str, &str); 15] = [
        (
            reserved::ROBOTS,
            "The rules for robots (RFC 9309), with the address of the sitemap. On every host.",
        ),
        (
            reserved::SITEMAP,
            "The sitemap of a host, or the index of its parts. A host that is not canonical redirects to the canonical host.",
        ),
        (
            &part,
            "A part of a sitemap that is too large for one file, numbered from 1.",
        ),
        (
            reserved::SECURITY,
            "The contact for vulnerability reports (RFC 9116): the company's `email`. On every host. Absent without a company profile.",
        ),
        (
            reserved::FAVICON,
            "The icon that browsers request by default, rendered from the tenant's icon.",
        ),
        (
            reserved::TOUCH_ICON,
            "The icon that phones request by default: a redirect to the rendered icon.",
        ),
        (
            reserved::WEB_MANIFEST,
            "The web manifest, with name, colours and icons. Below every address of a tenant, and below each language: `/de/site.webmanifest`.",
        ),
        (
            reserved::FEED,
            "An Atom feed (RFC 4287) below the path of a collection with `feed: true`, such as `/blog/feed.xml`.",
        ),
        (
            reserved::SEARCH,
            "The search index of a tenant with `search: true` in its manifest, at most 50 KB. Below every address of the tenant, and below each language: `/de/search.json`.",
        ),
        (
            reserved::APPLE_ASSOCIATION,
            "The links that open in the tenant's app on Apple's systems (`app.apple`). On the tenant's own hosts.",
        ),
        (
            reserved::ASSET_LINKS,
            "The links that open in the tenant's app on Android (`app.android`). On the tenant's own hosts.",
        ),
        (
            reserved::APP_ADS,
            "The authorised sellers of advertising in the app (`app.ads`). On the tenant's own hosts.",
        ),
        (
            reserved::ASSETS,
            "Files with a hash in their name: scripts, fonts, images in all sizes, social images, icons. These files never change, so caches keep them for a year.",
        ),
        (
            "/_gallery",
            "With `serve --dev` only: every section type of the tenant's theme.",
        ),
        (
            "/.rowhouse/events",
            "With `serve --dev` only: the events that reload open pages.",
        ),
    ];
    let mut body = String::from(
        "The engine serves these addresses. No tenant can claim such an address as a page, an alias or a redirect. Every path with a segment that begins with a dot belongs to the engine as well. Other names below `/.well-known/` are free for [`files`](/reference/manifest#files) of a manifest.\n\n",
    );
    for (path, meaning) in all {
        body += &definition(&format!("`{path}`"), meaning);
    }
    body += "## Addresses of a tenant\n\n| address | when |\n|---|---|\n| `<id>.<domain>` | always |\n| `<domain>/<id>` | always |\n| `<domain>` | with `root: true` |\n| `www.<domain>` | a redirect to `<domain>` |\n| each of `hosts` | if `deployment.yaml` lists the host, or does not exist |\n| `<domain>` and each of `aliases` | if `deployment.yaml` lists the alias, or does not exist |\n\nA [preview](/guides/previews), the folder `<id>@<label>`, has one address: the host `<label>--<id>.<domain>`.\n\nOne address is canonical, as `canonical` of the manifest says. The other addresses name the canonical address, so that search engines list only that address. Any other host gets 421 and no tenant's page.\n";
    page(
        "addresses",
        "Addresses that the engine makes",
        "Every path that the engine serves besides the pages of a tenant, and every address of a tenant.",
        body,
    )
}

/// A limit: its subject and its value.
type LimitRow = (&'static str, String);

fn limits() -> ReferencePage {
    let limits = source::FolderLimits::default();
    let mut body = String::from(
        "A tenant, a client or a command that reaches a limit cannot affect other tenants. A tenant that exceeds a limit gets the error [`too-large`](/reference/errors#too-large), and its last valid pages stay.\n\n## A tenant\n\n",
    );
    body += &table(&of_a_tenant(&limits));
    body +=
        "\n## Clients\n\nEach limit is a flag of [`serve`](/reference/commands#serve-limits).\n\n";
    body += &clients();
    body += "\n## Rendering\n\n";
    body += &table(&[
        ("time to render a tenant's page", "10 s".to_owned()),
        (
            "time that a request waits for a page to be rendered",
            "10 s, then 503".to_owned(),
        ),
        (
            "time for a folder to be read, if its file system does not respond",
            "10 s".to_owned(),
        ),
        ("pixels of an image", "50,000,000".to_owned()),
        ("entries of a feed", "50".to_owned()),
        ("bytes of `/search.json`", "50,000".to_owned()),
        (
            "listed findings of one kind in a file",
            "50; the rest is counted".to_owned(),
        ),
    ]);
    body += "\nReading and rendering share the memory that [`--memory` of `serve`](/reference/commands#serve) leaves for them. A tenant that needs more than all of this memory gets the error [`too-large`](/reference/errors#too-large). Work that does not fit at the moment waits, and smaller work passes it. [Sizing](/reference/sizing) has the figures.\n";
    body += "\n## Replaced files\n\nA page that was opened before a change may still request the old files. [`--keep-assets` of `serve`](/reference/commands#serve) says how long these files are served. Beyond these limits, the oldest files are deleted first.\n\n";
    body += &replaced_files();
    body += "\nWith `--state`, files that are too large for memory take at most half of `--state-size`.\n\n## Operators\n\n";
    body += &table(&[
        ("connections of the admin listener", "64".to_owned()),
        (
            "bytes of `deployment.yaml`, of a token, certificate or key file",
            "1 MiB".to_owned(),
        ),
        (
            "paths without a page that the console lists for a tenant",
            "32".to_owned(),
        ),
        (
            "tenants with their own charts in the console",
            "1,024".to_owned(),
        ),
        (
            "rules of `_headers`, of `_redirects`, and of `_redirects` with `*`, with `export --for cloudflare`",
            "100, 2,000 and 100".to_owned(),
        ),
    ]);
    page(
        "limits",
        "Limits",
        "All limits of rowhouse in one place, for tenants, clients, rendering, replaced files and operators, with the flags that change them.",
        body,
    )
}

fn of_a_tenant(limits: &source::FolderLimits) -> Vec<LimitRow> {
    vec![
        ("bytes of one file", mebibytes(limits.file)),
        ("bytes of all files", mebibytes(limits.total)),
        (
            "bytes of one video, sound, document or archive in `assets/`",
            mebibytes(limits.large_file),
        ),
        (
            "bytes of all videos, sounds, documents and archives",
            mebibytes(limits.large_total),
        ),
        ("files", thousands(limits.files)),
        ("folders", thousands(limits.folders)),
        ("folders within folders", thousands(limits.depth)),
        (
            "names in all folders, including hidden names",
            thousands(limits.entries),
        ),
        ("pages", thousands(MAX_PAGES)),
        (
            "bytes of a page or a manifest",
            mebibytes(MAX_PAGE_BYTES as u64),
        ),
        (
            "keys and values of one YAML file",
            thousands(MAX_FILE_NODES),
        ),
        (
            "keys and values of all YAML of a tenant",
            thousands(MAX_TENANT_NODES),
        ),
        ("`hosts`", thousands(MAX_HOSTS)),
        ("`aliases` of a tenant", thousands(MAX_ALIASES)),
        ("`aliases` of a page", thousands(16)),
        ("`redirects`", thousands(MAX_REDIRECTS)),
        ("`downloads`", thousands(100)),
        ("`files`", "100 of 64 KiB".to_owned()),
    ]
}

/// Returns a table of the flags of `serve` that limit clients, with their defaults.
fn clients() -> String {
    let mut program = Cli::command();
    program.build();
    let serve = program.find_subcommand("serve");
    let flags = serve.into_iter().flat_map(Command::get_arguments);
    let flags = flags.filter(|flag| {
        let id = flag.get_id().as_str();
        flag.get_help_heading() == Some("Limits") || id.contains("handshake") || id == "grace"
    });
    let mut text = String::from("| flag | limits | default |\n|---|---|---:|\n");
    for flag in flags {
        let name = flag.get_long().unwrap_or_default();
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        let help = prose(help.split(" [default").next().unwrap_or_default());
        let default = flag.get_default_values().first();
        let default = default.map(|default| default.display().to_string());
        let default = default.unwrap_or_default();
        let _ = writeln!(text, "| `--{name}` | {help} | {default} |");
    }
    text
}

fn replaced_files() -> String {
    let mut text = String::from("| limit on | of a tenant | of all |\n|---|---:|---:|\n");
    for (what, of_one, of_all) in [
        (
            "replaced files",
            replaced::MAX_FILES_PER_TENANT.to_string(),
            replaced::MAX_FILES.to_string(),
        ),
        (
            "bytes of replaced files in memory",
            mebibytes(replaced::MAX_BYTES_PER_TENANT),
            mebibytes(replaced::MAX_BYTES),
        ),
        (
            "bytes of replaced files that are too large for memory",
            mebibytes(replaced::MAX_LARGE_BYTES_PER_TENANT),
            mebibytes(replaced::MAX_LARGE_BYTES),
        ),
    ] {
        let _ = writeln!(text, "| {what} | {of_one} | {of_all} |");
    }
    text
}

fn table(limits: &[LimitRow]) -> String {
    let mut text = String::from("| limit on | maximum |\n|---|---:|\n");
    for (what, most) in limits {
        let _ = writeln!(text, "| {what} | {most} |");
    }
    text
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Returns a number with commas between groups of three digits.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn page(name: &str, title: &str, description: &str, body: String) -> ReferencePage {
    ReferencePage {
        name: name.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        body,
    }
}
