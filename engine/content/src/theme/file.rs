//! Reads the YAML files of a theme and reports their errors.

use crate::report::{Code, Diagnostic, Report};
use crate::schema::Violation;
use crate::yaml::{self, Node};

/// Reads a YAML file. Reports an error and returns `None` if it is not valid.
pub(super) fn read_yaml(file: &str, bytes: &[u8], report: &mut Report) -> Option<(String, Node)> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        report.push(Diagnostic::error(
            Code::NotUtf8,
            file,
            "the file is not UTF-8",
        ));
        return None;
    };
    match yaml::parse(text, 1) {
        Ok(node) => Some((text.to_owned(), node)),
        Err(error) => {
            report.push(error.diagnostic(file, text));
            None
        }
    }
}

/// Reports violations of a schema in a file.
pub(super) fn report_violations(
    problems: &[Violation],
    file: &str,
    text: &str,
    report: &mut Report,
) {
    for problem in problems {
        let diagnostic = Diagnostic::error(problem.code, file, problem.message.clone())
            .at(problem.position, text);
        report.push(Diagnostic {
            hint: problem.hint.clone(),
            ..diagnostic
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_error_of_theme_has_hint() {
        let mut report = Report::default();
        assert!(read_yaml("theme.yaml", b"name: Plain: a theme\n", &mut report).is_none());
        let first = report.iter().next().expect("an error");
        assert!(first.hint.is_some(), "{first:?}");
    }
}
