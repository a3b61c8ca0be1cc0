//! `rowhouse publish` and `rowhouse unpublish`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;

use bucket::probe::probe;
use bucket::run;
use bucket::store::{Bucket, Change, random_nonce};
use content::address::deployment::FILE;
use content::report::{Code, Diagnostic, Report, Severity, hint_for};
use content::source::{self, is_folder};
use fleet::key::{DEPLOYMENT, ObjectKey, THEMES};
use fleet::pointer::Pointer;
use fleet::publish::{Outcome, Publication};
use render::CachePolicy;
use supervisor::Registry;

use super::folder::{PackedContent, pack, read_folder};
use super::{author, block_on, failure, local_time, open, refusal};
use crate::cli::fleet::UnpublishArguments;
use crate::cli::{ContentFlags, ListFormat, PublishArguments};
use crate::commands::authoring::check::as_text;
use crate::commands::output::{CONFLICT, ERRORS, FAILED, print, print_message};
use crate::commands::setup::{registry, themes_folder};

/// The limit on the size of `deployment.yaml`, in bytes. The server has the same limit.
const MAX_DEPLOYMENT_BYTES: u64 = 1 << 20;

/// The outcome of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum LineResult {
    Published,
    Unchanged,
    Errors,
    Conflict,
}

/// A line of the output.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    result: LineResult,
    /// The current version in the store. `None` if it was not read.
    version: Option<u64>,
    /// The hosts at which visitors reach the tenant.
    hosts: Vec<String>,
    /// The errors that prevent the publication.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Diagnostic>,
    /// The publisher that was first.
    #[serde(skip_serializing_if = "Option::is_none")]
    winner: Option<Winner>,
}

/// The publisher of a version.
#[derive(Debug, Serialize)]
struct Winner {
    author: String,
    at: String,
}

/// One publication after another, to the same store by the same author.
struct Session {
    bucket: Bucket,
    author: String,
    expect: Option<u64>,
}

/// Publishes tenants, themes and `deployment.yaml`.
pub(crate) fn publish(arguments: &PublishArguments) -> anyhow::Result<ExitCode> {
    if arguments.expect.is_some() && arguments.names.len() != 1 {
        anyhow::bail!("`--expect` is the version of one tenant: name the tenant");
    }
    let session = Session {
        bucket: open(&arguments.store.store)?,
        author: author(&arguments.author),
        expect: arguments.expect,
    };
    let registry = registry(&arguments.content, CachePolicy::default(), None, false)?;
    let mut registry = registry.without_compression();
    registry.reload(Timestamp::now())?;
    let places = places(&arguments.content, &registry);
    let known = || places.keys().map(String::as_str);
    if let Some(unknown) = arguments
        .names
        .iter()
        .find(|name| !places.contains_key(*name))
    {
        let hint = hint_for(unknown, known());
        print_message(&format!("error: unknown tenant `{unknown}`: {hint}"));
        return Ok(ExitCode::from(FAILED));
    }
    let is_named = |name: &String| arguments.names.is_empty() || arguments.names.contains(name);
    let mut report = registry.report();
    let tenants = &arguments.content.tenants;
    let mut is_probed = false;
    let mut lines = Vec::new();
    let mut named: Vec<_> = places.iter().filter(|(name, _)| is_named(name)).collect();
    // Tenants need the themes and the addresses.
    named.sort_by_key(|(name, _)| ![THEMES, DEPLOYMENT].contains(&name.as_str()));
    for (name, path) in named {
        let mut line = Line {
            name: name.clone(),
            result: LineResult::Errors,
            version: None,
            hosts: hosts(&registry, name),
            errors: Vec::new(),
            winner: None,
        };
        let has_errors = report
            .iter()
            .any(|diagnostic| prevents(diagnostic, tenants, name));
        let files = match has_errors {
            true => None,
            false => read(name, path)
                .map_err(|unreadable| report.extend(unreadable))
                .ok(),
        };
        if let Some(files) = files {
            if !is_probed {
                session.refuse_unfit_store()?;
                is_probed = true;
            }
            session.publish(&mut line, pack(files)?)?;
        }
        let of_line = report.iter().cloned();
        line.errors = of_line
            .filter(|diagnostic| prevents(diagnostic, tenants, name))
            .collect();
        if arguments.format == ListFormat::Text {
            print(&line.to_text());
        }
        lines.push(line);
    }
    if arguments.format == ListFormat::Json {
        print(&serde_json::to_string_pretty(&lines)?);
        return Ok(exit_code(&lines));
    }
    let prevented = |diagnostic: &Diagnostic| {
        lines
            .iter()
            .any(|line| prevents(diagnostic, tenants, &line.name))
    };
    let mut errors = Report::default();
    errors.extend(report.into_iter().filter(prevented));
    if !errors.is_servable() {
        as_text(&errors, lines.len());
    }
    Ok(exit_code(&lines))
}

/// Withdraws a tenant.
pub(crate) fn unpublish(arguments: &UnpublishArguments) -> anyhow::Result<ExitCode> {
    let session = Session {
        bucket: open(&arguments.store.store)?,
        author: author(&arguments.author),
        expect: arguments.expect,
    };
    let key = ObjectKey::pointer(arguments.tenant.as_str());
    let current = block_on(session.bucket.get(&key, None))?;
    if current.map_err(|error| failure(&session.bucket, error))? == Change::Missing {
        print_message(&format!(
            "error: `{}` was never published to `{}`",
            arguments.tenant,
            session.bucket.address()
        ));
        return Ok(ExitCode::from(FAILED));
    }
    let mut line = Line {
        name: arguments.tenant.to_string(),
        result: LineResult::Errors,
        version: None,
        hosts: Vec::new(),
        errors: Vec::new(),
        winner: None,
    };
    session.publish(&mut line, PackedContent::default())?;
    print(&line.to_text());
    Ok(exit_code(&[line]))
}

impl Session {
    /// Probes a store to which nothing was published yet. Later publications rely on the first.
    fn refuse_unfit_store(&self) -> anyhow::Result<()> {
        let head = block_on(self.bucket.get(&ObjectKey::head(), None))?;
        if head.map_err(|error| failure(&self.bucket, error))? == Change::Missing {
            let probed = block_on(probe(&self.bucket, &random_nonce()))?;
            probed.map_err(|error| refusal(&self.bucket, error))?;
        }
        Ok(())
    }

    /// Publishes content, and writes the outcome to the line.
    fn publish(&self, line: &mut Line, content: PackedContent) -> anyhow::Result<()> {
        let publication = Publication {
            tenant: line.name.clone(),
            content: content.hashes,
            expected: self.expect,
            at: u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default(),
            author: self.author.clone(),
        };
        let ended = run::publish(&self.bucket, publication, &content.uploads, random_nonce());
        let outcome = block_on(ended)?.map_err(|error| {
            let hint = "the tenant may be published or not; publishing again is safe";
            failure(&self.bucket, error).context(format!("cannot publish `{}`; {hint}", line.name))
        })?;
        match outcome {
            Outcome::Published(version) => {
                line.result = LineResult::Published;
                line.version = Some(version);
            }
            Outcome::Unchanged(version) => {
                line.result = LineResult::Unchanged;
                line.version = Some(version);
            }
            Outcome::Conflict(pointer) => {
                line.result = LineResult::Conflict;
                line.version = Some(pointer.version());
                line.winner = winner(&pointer);
            }
            Outcome::Damaged(key) => anyhow::bail!(
                "`{}`: the object `{key}` is not of this version of the program: run `rowhouse store check`",
                self.bucket.address()
            ),
            Outcome::Unavailable => anyhow::bail!(
                "cannot publish `{}`: too many requests had no answer: publish again, which is safe",
                line.name
            ),
        }
        Ok(())
    }
}

impl Line {
    /// Returns the line as people read it.
    fn to_text(&self) -> String {
        let name = &self.name;
        let version = self.version.unwrap_or_default();
        match (self.result, &self.winner) {
            (LineResult::Published, _) if self.hosts.is_empty() => {
                format!("{name}  version {version}")
            }
            (LineResult::Published, _) => {
                format!("{name}  version {version}  {}", self.hosts.join(" "))
            }
            (LineResult::Unchanged, _) => format!("{name}  version {version}  unchanged"),
            (LineResult::Errors, _) => format!("{name}  errors; left as it is"),
            (LineResult::Conflict, Some(winner)) => format!(
                "{name}  conflict: version {version} is of {} by {}; left as it is",
                winner.at, winner.author
            ),
            (LineResult::Conflict, None) => {
                format!("{name}  conflict: no version yet; left as it is")
            }
        }
    }
}

fn winner(pointer: &Pointer) -> Option<Winner> {
    (pointer.version() > 0).then(|| Winner {
        author: pointer.author.clone(),
        at: local_time(pointer.at),
    })
}

fn exit_code(lines: &[Line]) -> ExitCode {
    let has = |result| lines.iter().any(|line| line.result == result);
    match (has(LineResult::Conflict), has(LineResult::Errors)) {
        (true, _) => ExitCode::from(CONFLICT),
        (false, true) => ExitCode::from(ERRORS),
        (false, false) => ExitCode::SUCCESS,
    }
}

/// Returns the path of each name that can be published.
fn places(content: &ContentFlags, registry: &Registry) -> BTreeMap<String, PathBuf> {
    let status = registry.status();
    let tenants = status.tenants().map(|tenant| tenant.id.to_string());
    let mut places: BTreeMap<String, PathBuf> = tenants
        .map(|id| (id.clone(), content.tenants.join(id)))
        .collect();
    if let Some(themes) = themes_folder(content.themes.as_deref()) {
        places.insert(THEMES.to_owned(), themes);
    }
    let within = || content.tenants.join(FILE);
    let deployment = content.deployment.clone().unwrap_or_else(within);
    if deployment.is_file() {
        places.insert(DEPLOYMENT.to_owned(), deployment);
    }
    places
}

/// Returns the hosts of a tenant.
fn hosts(registry: &Registry, name: &str) -> Vec<String> {
    let status = registry.status();
    let tenant = status.tenants.get(name);
    tenant.map_or_else(Vec::new, |tenant| tenant.hosts.to_vec())
}

/// Reads the files of a tenant, of all themes (`theme/file`), or `deployment.yaml`.
fn read(name: &str, path: &Path) -> Result<BTreeMap<String, Bytes>, Report> {
    match name {
        DEPLOYMENT => {
            let text = source::text(path, MAX_DEPLOYMENT_BYTES).map_err(report_of)?;
            let text = Bytes::from(text.unwrap_or_default());
            Ok(BTreeMap::from([(FILE.to_owned(), text)]))
        }
        THEMES => {
            let mut files = BTreeMap::new();
            let themes = source::list(path).map_err(|error| {
                let label = path.display().to_string();
                report_of(Diagnostic::error(
                    Code::Unreadable,
                    label,
                    error.to_string(),
                ))
            })?;
            for (theme, folder) in themes {
                if is_folder(&folder) {
                    files.extend(read_folder(&folder, &format!("{theme}/"))?);
                }
            }
            Ok(files)
        }
        _ => read_folder(path, ""),
    }
}

fn report_of(diagnostic: Diagnostic) -> Report {
    let mut report = Report::default();
    report.push(diagnostic);
    report
}

/// Returns whether a diagnostic is an error that prevents the publication of a name. Errors in themes and in `deployment.yaml` concern all names.
fn prevents(diagnostic: &Diagnostic, tenants: &Path, name: &str) -> bool {
    let within = Path::new(&diagnostic.file).strip_prefix(tenants).ok();
    let tenant = within.and_then(|path| path.components().next());
    let tenant = tenant.map(|part| part.as_os_str());
    diagnostic.severity == Severity::Error
        && tenant.is_none_or(|tenant| tenant == name || tenant == FILE)
}
