//! A report as SARIF 2.1.0 (OASIS Static Analysis Results Interchange Format), which code hosts show beside the lines.
//!
//! **Invariant:** has the same diagnostics as the other formats of `check`.

use serde_json::{Value as Json, json};

use content::report::{Code, Diagnostic, Report, Severity};

/// Returns a SARIF log with one run.
pub(crate) fn log(report: &Report) -> Json {
    let rules: Vec<Json> = Code::ALL
        .iter()
        .map(|code| json!({"id": code.as_str(), "shortDescription": {"text": code.explanation()}}))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "rowhouse",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": report.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn result(diagnostic: &Diagnostic) -> Json {
    let message = match &diagnostic.hint {
        Some(hint) => format!("{} (hint: {hint})", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let mut location = json!({"artifactLocation": {"uri": diagnostic.file}});
    if let Some(place) = diagnostic.position {
        location["region"] = json!({
            "startLine": place.line,
            "startColumn": place.column,
            "endColumn": place.column + place.length,
        });
    }
    json!({
        "ruleId": diagnostic.code.as_str(),
        "ruleIndex": Code::ALL.iter().position(|code| *code == diagnostic.code),
        "level": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        "message": {"text": message},
        "locations": [{"physicalLocation": location}],
    })
}
