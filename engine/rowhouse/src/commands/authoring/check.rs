//! `rowhouse check`: errors and warnings in the tenants' folders.

use std::path::Path;
use std::process::ExitCode;

use annotate_snippets::Renderer;

use jiff::Timestamp;

use crate::cli::{CheckArguments, CheckFormat};
use crate::commands::authoring::live;
use crate::commands::authoring::sarif;
use crate::commands::output::{ERRORS, FAILED, counted, print, print_message};
use crate::commands::setup::registry;
use content::address::deployment::FILE;
use content::report::{Code, Diagnostic, Report, Severity, hint_for};
use release::store::UNKNOWN_RELEASE;
use render::CachePolicy;
use supervisor::{DeploymentConfig, PersistedState};

/// Checks all tenants, and prints the diagnostics of the named tenants. The exit code is 1 if a printed diagnostic is an error.
pub(crate) fn run(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    if let Some(code) = &arguments.explain {
        return Ok(explain(code));
    }
    let registry = registry(&arguments.content, CachePolicy::default(), None, false)?;
    let mut registry = registry.without_compression();
    registry.reload(Timestamp::now())?;
    let known: Vec<String> = registry
        .status()
        .tenants()
        .map(|tenant| tenant.id.to_string())
        .collect();
    if let Some(unknown) = arguments.names.iter().find(|name| !known.contains(name)) {
        let hint = hint_for(unknown, known.iter().map(String::as_str));
        print_message(&format!("error: unknown tenant `{unknown}`: {hint}"));
        return Ok(ExitCode::from(FAILED));
    }
    let pinned = arguments.state.as_deref();
    let pinned = pinned.map(|state| pinned_of(&known, state, registry.config()));
    let live = match arguments.live {
        true => live::diagnostics(arguments.server.admin, &registry.config().tenants)?,
        false => Vec::new(),
    };
    let all = registry.report().into_iter();
    let all = all.chain(pinned.into_iter().flatten()).chain(live);
    let mut report = Report::default();
    report.extend(all.filter(|diagnostic| concerns(diagnostic, arguments)));
    let report = report.sorted();
    match arguments.format {
        CheckFormat::Text => as_text(&report, known.len()),
        CheckFormat::Json => {
            let list: Vec<&Diagnostic> = report.iter().collect();
            print(&serde_json::to_string_pretty(&list)?);
        }
        CheckFormat::Sarif => print(&serde_json::to_string_pretty(&sarif::log(&report))?),
    }
    Ok(if report.is_servable() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(ERRORS)
    })
}

/// Returns a warning for each tenant that is pinned to a release.
fn pinned_of(tenants: &[String], state: &Path, config: &DeploymentConfig) -> Vec<Diagnostic> {
    let releases = PersistedState::reader(state, config);
    let pinned = tenants.iter().filter_map(|tenant| {
        let number = releases.pinned(tenant)?;
        let folder = config.tenants.join(tenant).display().to_string();
        let release = match number {
            UNKNOWN_RELEASE => "an unknown release".to_owned(),
            number => format!("release {number}"),
        };
        let message = format!("{release} is pinned; changes of this folder are not served");
        let hint = format!("run `rowhouse resume {tenant}` to serve the folder again");
        Some(Diagnostic::warning(Code::Pinned, folder, message).hint(hint))
    });
    pinned.collect()
}

/// Returns whether a diagnostic concerns one of the named tenants; without names, all tenants count. Themes and `deployment.yaml` concern every tenant.
fn concerns(diagnostic: &Diagnostic, arguments: &CheckArguments) -> bool {
    arguments.names.is_empty()
        || arguments.names.iter().any(|name| {
            let folder = arguments.content.tenants.join(name).display().to_string();
            diagnostic.file == folder || diagnostic.file.starts_with(&format!("{folder}/"))
        })
        || diagnostic.file == arguments.content.tenants.join(FILE).display().to_string()
        || !diagnostic
            .file
            .starts_with(&arguments.content.tenants.display().to_string())
}

/// Prints the explanation of a code.
fn explain(code: &str) -> ExitCode {
    let known = || Code::ALL.iter().map(|code| code.as_str());
    match Code::ALL.iter().find(|known| known.as_str() == code) {
        Some(code) => {
            print(&format!("{code}\n\n{}", code.explanation()));
            ExitCode::SUCCESS
        }
        None => {
            print_message(&format!(
                "error: unknown code `{code}`: {}",
                hint_for(code, known())
            ));
            ExitCode::from(FAILED)
        }
    }
}

/// Prints a report as a compiler would, with the counts in the last line.
pub(crate) fn as_text(report: &Report, tenants: usize) {
    let renderer = Renderer::styled();
    let mut is_list = false;
    for diagnostic in report.iter() {
        // A new tenant has about twenty of these, one line each.
        let is_line = diagnostic.code == Code::FillIn;
        if is_list && !is_line {
            print("");
        }
        is_list = is_line;
        let end = if is_line { "" } else { "\n" };
        print(&format!("{}{end}", diagnostic.render(&renderer)));
    }
    if is_list {
        print("");
    }
    if report
        .iter()
        .any(|diagnostic| diagnostic.code == Code::FillIn)
    {
        print("hint: replace each text marked `fill in` with your own, and remove the mark\n");
    }
    let count = |severity, noun| counted(report.count(severity), noun);
    print_message(&format!(
        "{}: {}, {}, {}",
        counted(tenants, "tenant"),
        count(Severity::Error, "error"),
        count(Severity::Warning, "warning"),
        count(Severity::Note, "note"),
    ));
}
