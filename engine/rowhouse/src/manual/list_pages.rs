//! Metrics, errors, addresses and limits, from the lists of the crates that have them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use content::name::reserved;
use content::report::Code;
use content::source;
use content::tenant::manifest::{MOST_ALIASES, MOST_HOSTS};
use content::tenant::{LARGEST_TEXT, MAX_TENANT_NODES, MOST_PAGES};
use content::yaml::MAX_FILE_NODES;
use server::metric_list;

use super::markdown::{definition, prose};
use super::page::{ManualError, Page};
use supervisor::replaced;

/// All of them.
pub(super) fn all() -> Result<Vec<Page>, ManualError> {
    Ok(vec![
        metrics(&metric_list::text()?),
        errors(),
        addresses(),
        limits(),
    ])
}

/// A family of metrics, as the OpenMetrics text describes it.
#[derive(Default)]
struct Family {
    help: String,
    kind: String,
    labels: BTreeSet<String>,
}

fn metrics(text: &str) -> Page {
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
        "`/metrics` of [the admin listener](/reference/admin) has these, in the OpenMetrics text format. The number of series follows from the tenants alone: what names no known host is counted as the tenant `_unknown`, and what known hosts answer for no tenant as `_shared`.\n\n",
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
        "Every metric of rowhouse with its type, its labels and what it counts or measures, for Prometheus and its like.",
        body,
    )
}

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

fn errors() -> Page {
    let mut body = String::from(
        "Each error and warning of `rowhouse check`, of the log and of `/tenants` has a code that stays. An error keeps a tenant's last good pages in place; with a warning it is served. `rowhouse check --explain CODE` prints the same words.\n\n",
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
        "Every code of an error, a warning or a note that rowhouse reports, with what it means and what to do about it.",
        body,
    )
}

fn addresses() -> Page {
    let part = reserved::sitemap_part(1);
    let all: [(&str, &str); 15] = [
        (
            reserved::ROBOTS,
            "What robots may fetch (RFC 9309), and where the sitemap is. On every host.",
        ),
        (
            reserved::SITEMAP,
            "The pages of a host that search engines should know, or the index of its parts. A host that is not canonical sends on to the canonical one.",
        ),
        (
            &part,
            "A part of a sitemap that is too large for one file, counted from 1.",
        ),
        (
            reserved::SECURITY,
            "Where to report a weakness (RFC 9116): the company's `email`. On every host.",
        ),
        (
            reserved::FAVICON,
            "The icon that browsers ask for unasked, drawn from the tenant's icon.",
        ),
        (
            reserved::TOUCH_ICON,
            "The icon that phones ask for unasked: a redirect to the drawn one.",
        ),
        (
            reserved::WEB_MANIFEST,
            "The web manifest, with name, colours and icons. Below every address of a tenant.",
        ),
        (
            reserved::FEED,
            "An Atom feed (RFC 4287) below a collection's path, where the collection says `feed: true`: `/blog/feed.xml`.",
        ),
        (
            reserved::SEARCH,
            "The index of a tenant's pages, at most 50 KB, where its manifest says `search: true`. Below every address of the tenant.",
        ),
        (
            reserved::APPLE_ASSOCIATION,
            "Which links open in the tenant's app for Apple's systems (`app.apple`). On the tenant's own hosts.",
        ),
        (
            reserved::ASSET_LINKS,
            "Which links open in the tenant's app for Android (`app.android`). On the tenant's own hosts.",
        ),
        (
            reserved::APP_ADS,
            "Who may sell advertising in the app (`app.ads`). On the tenant's own hosts.",
        ),
        (
            reserved::ASSETS,
            "Files with a hash in their name: scripts, fonts, pictures in their sizes, social images, icons. They never change, so caches keep them for a year.",
        ),
        (
            "/_gallery",
            "With `serve --dev` only: every kind of section of the tenant's theme.",
        ),
        (
            "/.rowhouse/events",
            "With `serve --dev` only: what open pages are told of changes.",
        ),
    ];
    let mut body = String::from(
        "The engine makes these beside the pages. No tenant can claim one of them, neither as a page nor as an alias nor as a redirect, and every path with a segment that begins with a dot is the engine's, too. Other names below `/.well-known/` are free for [`files`](/reference/manifest#files) of a manifest.\n\n",
    );
    for (path, meaning) in all {
        body += &definition(&format!("`{path}`"), meaning);
    }
    body += "## Addresses of a tenant\n\n| address | when |\n|---|---|\n| `<id>.<domain>` | always |\n| `<domain>/<id>` | always |\n| `<domain>` | with `root: true` |\n| `www.<domain>` | a redirect to `<domain>` |\n| each of `hosts` | where `deployment.yaml` lists it, or is not there |\n| `<domain>` and each of `aliases` | the same |\n\nOne of them is canonical: `canonical` of the manifest says which. The others name it, and search engines keep it alone. Any other host gets 421 and nobody's page.\n";
    page(
        "addresses",
        "Addresses that the engine makes",
        "Every path that the engine answers by itself beside the pages of a tenant, and every address at which a tenant answers.",
        body,
    )
}

fn limits() -> Page {
    let limits = source::Limits::default();
    let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
    let rows = [
        ("bytes of one file of a tenant", mebibytes(limits.file)),
        ("bytes of a tenant's folder", mebibytes(limits.total)),
        ("files of a tenant", limits.files.to_string()),
        ("folders of a tenant", limits.folders.to_string()),
        (
            "names in all its folders, hidden ones too",
            limits.entries.to_string(),
        ),
        ("folders within folders", limits.depth.to_string()),
        ("pages of a tenant", MOST_PAGES.to_string()),
        (
            "bytes of a page or a manifest",
            mebibytes(LARGEST_TEXT as u64),
        ),
        (
            "keys and values of a manifest, a page's front matter or another YAML file",
            MAX_FILE_NODES.to_string(),
        ),
        (
            "keys and values of a tenant's manifest and pages",
            MAX_TENANT_NODES.to_string(),
        ),
        ("`hosts` of a tenant", MOST_HOSTS.to_string()),
        ("`aliases` of a tenant", MOST_ALIASES.to_string()),
    ];
    let mut body = String::from(
        "One tenant can never hurt the others, so that what it brings has limits. More is the error [`too-large`](/reference/errors#too-large). What clients may use is set by [the flags of `serve`](/reference/commands#serve-limits).\n\n| what | at most |\n|---|---:|\n",
    );
    for (what, most) in rows {
        let _ = writeln!(body, "| {what} | {most} |");
    }
    body += "\n## Work in progress\n\nReading and rendering share the memory that [`--memory` of `serve`](/reference/commands#serve) leaves them. A tenant that needs more than all of it is the error [`too-large`](/reference/errors#too-large). Work that does not fit at the moment waits, and light work passes it.\n\n## Replaced files\n\nA page that was opened before a change may still ask for the files of that time. [`--keep-assets` of `serve`](/reference/commands#serve) says for how long they stay, and these limits how many. The oldest go first.\n\n| what | of a tenant | of all |\n|---|---:|---:|\n";
    for (what, of_one, of_all) in [
        (
            "replaced files",
            replaced::MAX_FILES_OF_ONE.to_string(),
            replaced::MAX_FILES_OF_ALL.to_string(),
        ),
        (
            "bytes of those in memory",
            mebibytes(replaced::OF_ONE),
            mebibytes(replaced::OF_ALL),
        ),
        (
            "bytes of those that are too large for memory",
            mebibytes(replaced::LARGE_OF_ONE),
            mebibytes(replaced::LARGE_OF_ALL),
        ),
    ] {
        let _ = writeln!(body, "| {what} | {of_one} | {of_all} |");
    }
    body += "\nWith `--state`, files that are too large for memory take at most half of `--state-size`.\n";
    page(
        "limits",
        "Limits",
        "How large a tenant's folder, its files and its lists may be before rowhouse reports an error and keeps what was served.",
        body,
    )
}

fn page(name: &str, title: &str, description: &str, body: String) -> Page {
    Page {
        name: name.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        body,
    }
}
