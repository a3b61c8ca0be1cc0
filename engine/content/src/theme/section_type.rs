//! Section types. Each is a folder `sections/<kind>` of the theme with a template, a schema, a style and an example.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value as Json;

use super::data_schema::{CheckedData, DataSchema};
use super::file::{read_yaml, report_violations};
use crate::report::{Code, Diagnostic, Report};

/// The folder of the section types.
const FOLDER: &str = "sections/";

/// The schema parts that all section types of a theme share.
const COMMON: &str = "sections/common.yaml";

/// A section type.
#[derive(Debug)]
pub struct SectionType {
    /// The name of the section type and its folder.
    pub name: String,
    /// A description in one sentence.
    pub description: String,
    /// The schema of the section's data.
    pub shape: DataSchema,
    /// Whether search engines are told that `items` are questions with answers (<https://schema.org/FAQPage>).
    pub is_faq: bool,
    /// The example, if there is one.
    pub example: Option<CheckedData>,
}

impl SectionType {
    /// Returns the path of a file of a section type, for example `section.html`.
    #[must_use]
    pub fn file(name: &str, file: &str) -> String {
        format!("{FOLDER}{name}/{file}")
    }
}

/// Reads all section types among the files of a theme.
pub(super) fn read_all(
    label: &str,
    files: &BTreeMap<String, Bytes>,
    report: &mut Report,
) -> BTreeMap<String, Arc<SectionType>> {
    let common = files
        .get(COMMON)
        .and_then(|bytes| read_yaml(&format!("{label}/{COMMON}"), bytes, report))
        .map(|(_, node)| node.to_json());
    let names = files.keys().filter_map(|path| {
        let name = path.strip_prefix(FOLDER)?.strip_suffix("/section.html")?;
        (!name.contains('/')).then_some(name)
    });
    names
        .filter_map(|name| {
            Some((
                name.to_owned(),
                read(label, name, common.as_ref(), files, report)?,
            ))
        })
        .collect()
}

fn read(
    label: &str,
    name: &str,
    common: Option<&Json>,
    files: &BTreeMap<String, Bytes>,
    report: &mut Report,
) -> Option<Arc<SectionType>> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if !name.bytes().all(is_letter) || name.starts_with(|first: char| first.is_ascii_digit()) {
        let file = format!("{label}/{FOLDER}{name}");
        let message = format!("`{name}` is not a valid name of a section type");
        let diagnostic = Diagnostic::error(Code::BadSchema, file, message);
        report.push(
            diagnostic.hint("use lower-case letters, digits and `_`, and begin with a letter"),
        );
        return None;
    }
    let path = SectionType::file(name, "schema.yaml");
    let file = format!("{label}/{path}");
    let own = match files.get(&path) {
        Some(bytes) => read_yaml(&file, bytes, report)?.1.to_json(),
        None => {
            let message = format!("the section type `{name}` has no `schema.yaml`");
            let diagnostic = Diagnostic::error(Code::BadSchema, file, message);
            report.push(diagnostic.hint(
                "add a `schema.yaml` with a `description`, and with `properties` that have a type each",
            ));
            return None;
        }
    };
    let shape = match DataSchema::new(&own, common, Some(name)) {
        Ok(shape) => shape,
        Err(error) => {
            report.push(Diagnostic::error(Code::BadSchema, file, error.to_string()));
            return None;
        }
    };
    Some(Arc::new(SectionType {
        name: name.to_owned(),
        description: own["description"].as_str().unwrap_or_default().to_owned(),
        is_faq: own["structured_data"] == "FAQPage",
        example: example(label, name, &shape, files, report),
        shape,
    }))
}

fn example(
    label: &str,
    name: &str,
    shape: &DataSchema,
    files: &BTreeMap<String, Bytes>,
    report: &mut Report,
) -> Option<CheckedData> {
    let path = SectionType::file(name, "example.yaml");
    let file = format!("{label}/{path}");
    let (text, node) = read_yaml(&file, files.get(&path)?, report)?;
    match shape.check(&node, "the example") {
        Ok((data, _)) => Some(data),
        Err(problems) => {
            report_violations(&problems, &file, &text, report);
            None
        }
    }
}
