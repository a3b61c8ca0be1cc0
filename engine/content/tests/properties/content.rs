//! Properties of reading manifests and front matter: a folder is a site, or has errors with correct positions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use content::name::TenantId;
use content::source::{self, Folder, FolderLimits};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Generates lines that are or are not valid in a manifest or front matter.
fn yaml() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        select(vec![
            "name: Corner",
            "root: true",
            "hosts: [a.example]",
            "aliases: [/x, y]",
            "theme: base",
            "title: A page",
            "description: >",
            "  folded",
            "sections:",
            "  - kind: call",
            "  - kind: cards",
            "date: 2025-02-30",
            "tags: [a, b]",
            "publish: 2026-01-01T00:00:00Z",
            "? a",
            "&a b",
            "*a",
            "---",
            "redirects: [{from: /a, to: /b}]",
            "settings: {accent: {day: '#fff', night: ''}}",
            "strings: {engine: {home: '{x'}}",
            "\t",
            "- ",
            "name:",
            "{",
            "\"",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,30}",
        "\\PC{0,10}",
    ];
    vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

/// Tenants of this repository. Together they use every key.
static TENANTS: LazyLock<Vec<Folder>> = LazyLock::new(|| {
    let tenants = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tenants");
    ["bluedoor", "studio"]
        .map(|name| read_folder(&tenants.join(name), name))
        .into()
});

fn read_folder(path: &Path, name: &str) -> Folder {
    let (folder, report) = source::read(
        path,
        &format!("tenants/{name}"),
        FolderLimits::default(),
        None,
    );
    assert!(report.is_servable(), "{report:?}");
    folder
}

/// A change of a text.
#[derive(Debug, Clone)]
enum Change {
    Drop(Index),
    Repeat(Index),
    Swap(Index, Index),
    Indent(Index, usize),
    Value(Index, String),
    Insert(Index, String),
    CutShort(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let junk = || {
        let known = select(vec![
            "\"",
            "'",
            ": ",
            "#",
            "- ",
            "[",
            "]",
            "{",
            "}",
            "&a",
            "*a",
            "|",
            ">",
            "!!int",
            "%",
            "\t",
            "\n",
            "\r\n",
            "---\n",
            "...\n",
            "\u{feff}",
            "\u{0}",
            "\u{85}",
            "\u{2028}",
            "\u{e9}",
            "\u{1f3e0}",
            "0x1F",
            "1e999",
            "-",
            "~",
            "null",
            "yes",
            "2025-02-30",
            "/",
            "//x",
            "javascript:x",
            "https://",
            "../..",
            "@",
            "`",
        ]);
        prop_oneof![4 => known.prop_map(str::to_owned), 1 => "\\PC{0,8}"]
    };
    prop_oneof![
        any::<Index>().prop_map(Change::Drop),
        any::<Index>().prop_map(Change::Repeat),
        any::<(Index, Index)>().prop_map(|(one, other)| Change::Swap(one, other)),
        (any::<Index>(), 0_usize..6).prop_map(|(at, by)| Change::Indent(at, by)),
        (any::<Index>(), junk()).prop_map(|(at, junk)| Change::Value(at, junk)),
        (any::<Index>(), junk()).prop_map(|(at, junk)| Change::Insert(at, junk)),
        any::<Index>().prop_map(Change::CutShort),
    ]
}

impl Change {
    fn to(&self, text: &str) -> String {
        let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
        if lines.is_empty() {
            return text.to_owned();
        }
        let line = |at: &Index| at.index(lines.len());
        let byte = |at: &Index| {
            let mut byte = at.index(text.len() + 1);
            while !text.is_char_boundary(byte) {
                byte -= 1;
            }
            byte
        };
        match self {
            Self::Drop(at) => {
                let at = line(at);
                lines.remove(at);
            }
            Self::Repeat(at) => {
                let at = line(at);
                lines.insert(at, lines[at].clone());
            }
            Self::Swap(one, other) => {
                let (one, other) = (line(one), line(other));
                lines.swap(one, other);
            }
            Self::Indent(at, by) => {
                let at = line(at);
                lines[at] = format!("{}{}", " ".repeat(*by), lines[at].trim_start());
            }
            Self::Value(at, junk) => {
                let at = line(at);
                if let Some((key, _)) = lines[at].split_once(':') {
                    lines[at] = format!("{key}: {junk}");
                }
            }
            Self::Insert(at, junk) => {
                let at = byte(at);
                return format!("{}{junk}{}", &text[..at], &text[at..]);
            }
            Self::CutShort(at) => return text[..byte(at)].to_owned(),
        }
        lines.join("\n") + "\n"
    }
}

/// Reads a folder, and checks the diagnostics against its files.
fn check(id: &str, folder: &Folder) -> Result<(), TestCaseError> {
    let id = TenantId::new(id).unwrap();
    let (site, report) = content::tenant::read(&id, folder);
    prop_assert_eq!(site.is_some(), report.is_servable());
    for diagnostic in report.iter() {
        let in_folder = diagnostic.file == folder.label
            || diagnostic.file.starts_with(&format!("{}/", folder.label));
        prop_assert!(in_folder, "{diagnostic:?}");
        let first = diagnostic.message.chars().next().unwrap_or(' ');
        prop_assert!(
            !diagnostic.message.contains('\n')
                && !diagnostic.message.ends_with('.')
                && !first.is_whitespace(),
            "{diagnostic:?}"
        );
        let Some(position) = diagnostic.position else {
            continue;
        };
        let file = folder
            .files
            .iter()
            .find(|(path, _)| folder.name_of(path) == diagnostic.file);
        let (_, bytes) =
            file.ok_or_else(|| TestCaseError::fail(format!("no file: {diagnostic:?}")))?;
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.lines().collect();
        // An error about the end of a file may be positioned behind the last line.
        prop_assert!(
            (1..=lines.len() + 1).contains(&position.line),
            "{diagnostic:?} in {} lines",
            lines.len()
        );
        let line = lines.get(position.line - 1).copied();
        prop_assert_eq!(diagnostic.text.as_deref(), line, "{:?}", diagnostic);
        let width = line.unwrap_or("").chars().count();
        prop_assert!((1..=width + 1).contains(&position.column), "{diagnostic:?}");
        prop_assert!(position.length >= 1);
    }
    let again = content::tenant::read(&id, folder).1;
    prop_assert_eq!(report, again);
    Ok(())
}

proptest! {
    #[test]
    fn folder_is_a_site_or_has_errors_with_positions(manifest in yaml(), front in yaml(), body in "\\PC{0,80}") {
        let page = format!("---\n{front}\n---\n{body}");
        let files = [("tenant.yaml", manifest), ("pages/index.md", page)];
        let files: BTreeMap<_, _> = files.into_iter().map(|(path, text)| (path.to_owned(), text.into())).collect();
        check("corner", &Folder { label: "tenants/corner".to_owned(), files, ..Folder::default() })?;
    }

    #[test]
    fn reading_any_bytes_does_not_panic(manifest in vec(any::<u8>(), 0..60), page in vec(any::<u8>(), 0..60)) {
        let files = BTreeMap::from([
            ("tenant.yaml".to_owned(), manifest.into()),
            ("pages/index.md".to_owned(), page.into()),
        ]);
        check("corner", &Folder { label: "tenants/corner".to_owned(), files, ..Folder::default() })?;
    }
}

proptest! {
    #![proptest_config(crate::reduced_case_count())]

    #[test]
    fn changed_tenant_is_a_site_or_has_errors_with_positions(tenant: Index, file: Index, changes in vec(change(), 0..4)) {
        let whole = tenant.get(&TENANTS);
        let texts: Vec<&String> = whole.files.keys().filter(|path| path.ends_with(".yaml") || path.ends_with(".md")).collect();
        // The manifest has the most keys, so it is changed most often.
        let manifest = "tenant.yaml".to_owned();
        let path = if file.index(3) == 0 { &manifest } else { file.get(&texts) };
        let mut folder = whole.clone();
        // The other files do not matter here and are slow to read.
        folder.files.retain(|other, _| [path.as_str(), "tenant.yaml", "pages/index.md"].contains(&other.as_str()));
        let text = std::str::from_utf8(&whole.files[path]).unwrap();
        let text = changes.iter().fold(text.to_owned(), |text, change| change.to(&text));
        folder.files.insert(path.clone(), text.into());
        let id = whole.label.rsplit('/').next().unwrap();
        if changes.is_empty() {
            let (site, report) = content::tenant::read(&TenantId::new(id).unwrap(), &folder);
            prop_assert!(site.is_some(), "{report:?}");
        }
        check(id, &folder)?;
    }
}
