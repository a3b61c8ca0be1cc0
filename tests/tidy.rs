//! Checks of the repository: its crates, its module docs, its terms, its top level.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{UseTree, Visibility};

/// The crates of the engine, and the crates that each may use.
const CRATES: [(&str, &[&str]); 8] = [
    ("bucket", &["fleet", "release"]),
    ("content", &[]),
    ("fleet", &[]),
    ("release", &[]),
    ("render", &["content", "release"]),
    ("server", &["release"]),
    (
        "supervisor",
        &["bucket", "content", "fleet", "release", "render", "server"],
    ),
    (
        "rowhouse",
        &[
            "bucket",
            "content",
            "fleet",
            "release",
            "render",
            "server",
            "supervisor",
        ],
    ),
];

/// All names that may be at the top of the repository, except names that begin with a dot.
const TOP_LEVEL: [&str; 13] = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "deploy",
    "engine",
    "tenants",
    "tests",
    "themes",
    "ui",
];

/// The limit on the lines of code in a source file, without tests.
const MAX_CODE_LINES: usize = 900;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace")
        .to_owned()
}

/// Returns the files that git tracks or would add.
fn files() -> Vec<String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git");
    assert!(output.status.success(), "git ls-files failed");
    String::from_utf8(output.stdout)
        .expect("UTF-8")
        .lines()
        .filter(|file| root().join(file).is_file())
        .map(ToOwned::to_owned)
        .collect()
}

fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the output of Cargo with `Cargo.lock` and without a network.
fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--locked", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Cargo enforces the dependencies that manifests name; this test limits the names in manifests.
#[test]
fn crates_use_only_allowed_crates() {
    for (own, known) in CRATES {
        let manifest = text(&format!("engine/{own}/Cargo.toml"));
        for (other, _) in CRATES {
            let is_named = manifest
                .lines()
                .any(|line| line.split([' ', '.', '=']).next() == Some(other));
            assert!(
                !is_named || known.contains(&other),
                "`{own}` may not know `{other}`"
            );
        }
    }
    let folders = fs::read_dir(root().join("engine")).expect("the engine's folder");
    let folders: BTreeSet<String> = folders
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let crates = CRATES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(folders, crates, "each folder of the engine is a crate");
}

/// The path of a module or an item, from the crate's root.
type Names = Vec<String>;

/// The paths that a source uses of its own crate, without tests.
#[derive(Default)]
struct Named {
    /// Each path in its code and in its imports.
    paths: BTreeSet<Names>,
    /// Its imports, by the name that other modules can use. `*` stands for a complete module.
    imports: BTreeSet<(String, Names)>,
    /// Whether the visited import is a re-export.
    is_passed_on: bool,
}

impl Named {
    fn of(source: &str) -> Self {
        let mut named = Self::default();
        named.visit_file(&syn::parse_file(source).expect("Rust"));
        named
    }

    fn import(&mut self, name: &syn::Ident, path: Names) {
        if !self.is_passed_on {
            self.paths.insert(path.clone());
        }
        self.imports.insert((name.to_string(), path));
    }

    fn tree(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.tree(&path.tree, &with(&path.ident)),
            UseTree::Name(name) if name.ident == "self" => {
                if !self.is_passed_on {
                    self.paths.insert(before.to_vec());
                }
            }
            UseTree::Name(name) => self.import(&name.ident, with(&name.ident)),
            UseTree::Rename(name) => self.import(&name.rename, with(&name.ident)),
            UseTree::Glob(_) => {
                if !self.is_passed_on {
                    self.paths.insert(before.to_vec());
                }
                self.imports.insert(("*".to_owned(), before.to_vec()));
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, before)),
        }
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && (attribute.parse_args::<syn::Ident>()).is_ok_and(|what| what == "test")
    })
}

impl<'ast> Visit<'ast> for Named {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if is_for_tests(&item.attrs) {
            return;
        }
        // A re-export is not a use: the file that uses the name depends on the origin.
        self.is_passed_on = !matches!(item.vis, Visibility::Inherited);
        self.tree(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter();
        self.paths
            .insert(segments.map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    /// `pub(super)` limits visibility and uses no item.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        // Most macros contain expressions, as `format!` does.
        let parser = Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        if let Ok(arguments) = called.parse_body_with(parser) {
            arguments
                .iter()
                .for_each(|argument| self.visit_expr(argument));
        }
    }
}

/// Returns the files that each file of a crate uses. `sources`: text by module.
fn imports(sources: &BTreeMap<Names, String>) -> BTreeMap<Names, BTreeSet<Names>> {
    let named: BTreeMap<&Names, Named> = sources
        .iter()
        .map(|(module, source)| (module, Named::of(source)))
        .collect();
    let file_of = |path: &[String]| {
        (0..=path.len())
            .rev()
            .map(|length| path.split_at(length))
            .find(|(module, _)| named.contains_key(&module.to_vec()))
            .map(|(module, rest)| (module.to_vec(), rest.to_vec()))
    };
    let all = named.iter().map(|(module, own)| {
        let mut used = BTreeSet::new();
        let mut seen = BTreeSet::new();
        // A name alone may be re-exported and used in the same file.
        let reexported = own.imports.iter().filter(|(name, path)| {
            own.paths.contains(std::slice::from_ref(name)) && !own.paths.contains(path)
        });
        let reexported = reexported.map(|(_, path)| path);
        let mut open: Vec<Names> = (own.paths.iter().chain(reexported))
            .filter_map(|path| from_root(module, path, sources))
            .collect();
        while let Some(path) = open.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let Some((file, rest)) = file_of(&path) else {
                continue;
            };
            let passed_on = rest.first().map_or_else(Vec::new, |name| {
                let imports = &named[&file].imports;
                let found: Vec<_> = imports
                    .iter()
                    .filter(|(as_name, _)| as_name == name)
                    .collect();
                found
                    .into_iter()
                    .filter_map(|(_, path)| {
                        let mut path = from_root(&file, path, sources)?;
                        path.extend_from_slice(&rest[1..]);
                        Some(path)
                    })
                    .collect()
            });
            if passed_on.is_empty() && file != **module {
                used.insert(file);
            }
            open.extend(passed_on);
        }
        ((*module).clone(), used)
    });
    all.collect()
}

/// Resolves a path in a module, from the crate's root. Returns `None` for a path to another crate.
fn from_root(
    module: &[String],
    path: &[String],
    sources: &BTreeMap<Names, String>,
) -> Option<Names> {
    let (first, rest) = path.split_first()?;
    let mut whole = module.to_vec();
    match first.as_str() {
        "crate" => whole.clear(),
        "self" => {}
        "super" => drop(whole.pop()),
        // A name alone is a variable or similar.
        _ if rest.is_empty() => return None,
        name => {
            // A path that begins with a child module.
            whole.push(name.to_owned());
            sources.contains_key(&whole).then_some(())?;
        }
    }
    for name in rest {
        match name.as_str() {
            "super" => drop(whole.pop()),
            name => whole.push(name.to_owned()),
        }
    }
    Some(whole)
}

/// Returns files that use each other in a circle, and the used items.
fn circles(sources: &BTreeMap<Names, String>) -> Vec<String> {
    let imports = imports(sources);
    let leads_to = |from: &Names, to: &Names| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(file) = open.pop() {
            if seen.insert(file) {
                open.extend(&imports[file]);
            }
        }
        seen.contains(to)
    };
    let all = imports.iter().filter_map(|(file, used)| {
        let circle: Vec<String> = (used.iter())
            .filter(|used| leads_to(used, file))
            .map(|used| used.join("::"))
            .collect();
        let own = file.join("::");
        (!circle.is_empty()).then(|| format!("`{own}` uses `{}`", circle.join("`, `")))
    });
    all.collect()
}

/// Returns the sources below a folder by module. Folders and files named `tests` or `properties` contain tests.
fn sources(folder: &str) -> BTreeMap<Names, String> {
    let prefix = format!("{folder}/src/");
    let of_module = |file: &String| {
        let module = file.strip_prefix(&prefix)?.strip_suffix(".rs")?;
        let module = module.strip_suffix("/mod").unwrap_or(module);
        let segments = module.split('/').filter(|_| module != "lib");
        let names: Names = segments.map(ToOwned::to_owned).collect();
        let is_test = |name: &String| name == "tests" || name == "properties";
        (!names.iter().any(is_test)).then(|| (names, text(file)))
    };
    files().iter().filter_map(of_module).collect()
}

#[test]
fn files_of_a_crate_do_not_import_each_other_in_circles() {
    let crates = CRATES.iter().map(|(name, _)| format!("engine/{name}"));
    let found: Vec<String> = (crates.chain(["ui".to_owned()]))
        .flat_map(|folder| {
            let circles = circles(&sources(&folder));
            circles
                .into_iter()
                .map(move |circle| format!("{folder}: {circle}"))
        })
        .collect();
    assert!(found.is_empty(), "circles:\n{}", found.join("\n"));
}

#[test]
fn every_form_of_import_circle_is_found() {
    let files = |files: &[(&str, &str)]| {
        let of_file = |(module, text): &(&str, &str)| {
            let names = module.split("::").filter(|name| !name.is_empty());
            (names.map(ToOwned::to_owned).collect(), (*text).to_owned())
        };
        files
            .iter()
            .map(of_file)
            .collect::<BTreeMap<Names, String>>()
    };
    let found = |used_by_b: &str| {
        circles(&files(&[
            ("", "mod a; mod b; pub use a::A; pub use b::inner;"),
            ("a", "use crate::b::{self, B}; pub struct A;"),
            ("b", used_by_b),
            ("b::inner", "pub struct Inner;"),
        ]))
    };
    for circle in [
        "use crate::a::A;",
        "use super::a;",
        "use crate::{a::A as Other};",
        "use crate::a::*;",
        "use crate::A;",
        "fn f() -> super::A { todo!() }",
        "fn f() -> String { format!(\"{}\", crate::a::A) }",
        "pub use crate::a::A; fn f() -> A { todo!() }",
    ] {
        let expected = ["`a` uses `b`", "`b` uses `a`"];
        assert_eq!(found(circle), expected, "{circle}");
    }
    for straight in [
        "mod inner; use inner::Inner; use crate::inner::Inner as Same;",
        "#[cfg(test)] mod tests { use crate::a::A; }",
        "pub use crate::a::A;",
        "use std::fmt; use a::A;",
        "pub(super) struct B { pub(in crate::a) inner: u8 }",
        "fn f(a: u8) -> u8 { let inner = a; inner }",
    ] {
        assert_eq!(found(straight), Vec::<String>::new(), "{straight}");
    }
    let parent_and_child = circles(&files(&[
        ("", "mod a;"),
        ("a", "mod inner; pub fn f() { inner::g() } pub struct A;"),
        ("a::inner", "use super::A; pub fn g() {}"),
    ]));
    assert_eq!(
        parent_and_child,
        ["`a` uses `a::inner`", "`a::inner` uses `a`"]
    );
}

#[test]
fn protocols_and_the_model_of_the_supervisor_have_no_input_and_output() {
    let impure = [
        "std::fs",
        "std::io",
        "std::net",
        "std::sync",
        "std::thread",
        "Instant::now",
        "SystemTime::now",
        "Timestamp::now",
        "rayon::",
        "tokio::",
        "tracing::",
    ];
    let files = files();
    let is_pure = |file: &&String| {
        file.starts_with("engine/supervisor/src/model/") || file.starts_with("engine/fleet/src/")
    };
    let model = files.iter().filter(is_pure);
    let mut found = Vec::new();
    for file in model {
        let source = text(file);
        let code = source
            .split("\n#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        let used = impure.iter().filter(|name| code.contains(**name));
        found.extend(used.map(|name| format!("{file}: {name}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_source_has_module_documentation() {
    let silent: Vec<String> = files()
        .into_iter()
        .filter(|file| {
            let opening: &[&str] = match file.rsplit_once('.').map(|(_, extension)| extension) {
                Some("rs") => &["//!"],
                Some("ts" | "tsx" | "mjs" | "css") => &["/**", "/*", "//"],
                Some("html") if file.starts_with("themes/") && file.contains("/components/") => {
                    &["{#"]
                }
                _ => return false,
            };
            let text = text(file);
            !opening
                .iter()
                .any(|opening| text.trim_start().starts_with(opening))
        })
        .collect();
    assert!(
        silent.is_empty(),
        "no module documentation at the top of:\n{}",
        silent.join("\n")
    );
}

/// Terms that the style guide replaces, with the term of the field.
const REPLACED_TERMS: [(&str, &str); 8] = [
    ("asked for", "requested"),
    ("coding", "content encoding"),
    ("codings", "content encodings"),
    ("control group", "cgroup"),
    ("kind of section", "section type"),
    ("kinds of section", "section types"),
    ("secret word", "token"),
    ("under way", "in flight"),
];

/// Returns the comments of Rust, and Markdown outside of code blocks, with line numbers.
fn prose(file: &str) -> Vec<(usize, String)> {
    let is_markdown = file.ends_with(".md");
    let mut in_code = false;
    let read = |(number, line): (usize, &str)| {
        let text = match is_markdown {
            true if line.trim_start().starts_with("```") => {
                in_code = !in_code;
                return None;
            }
            true if in_code => return None,
            true => line,
            false => line.trim_start().strip_prefix("//")?,
        };
        // Every second part between backticks is code.
        let words: Vec<&str> = text.split('`').step_by(2).collect();
        Some((number + 1, words.join("`").to_lowercase()))
    };
    text(file).lines().enumerate().filter_map(read).collect()
}

#[test]
fn prose_uses_the_terms_of_the_field() {
    let folders = ["deploy/", "engine/", "tests/", "themes/", "ui/"];
    let files = files().into_iter().filter(|file| {
        let is_read = file.ends_with(".rs") || file.ends_with(".md");
        is_read
            && folders.iter().any(|folder| file.starts_with(folder))
            && !file.contains("/fixtures/")
    });
    let found: Vec<String> = files
        .flat_map(|file| {
            let lines = prose(&file).into_iter();
            lines.filter_map(move |(number, line)| {
                let is_word = |term: &str| {
                    line.match_indices(term).any(|(at, _)| {
                        let (before, behind) = (&line[..at], &line[at + term.len()..]);
                        !before.ends_with(char::is_alphanumeric)
                            && !behind.starts_with(char::is_alphanumeric)
                    })
                };
                let (term, better) = REPLACED_TERMS.iter().find(|(term, _)| is_word(term))?;
                Some(format!("{file}:{number}: `{term}`: write `{better}`"))
            })
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_comment_begins_with_relative_clause() {
    let openings = ["What ", "Who ", "Whoever "];
    let sources = files().into_iter().filter(|file| file.ends_with(".rs"));
    let found: Vec<String> = sources
        .flat_map(|file| {
            let source = text(&file);
            let lines = source.lines().enumerate().filter(|(_, line)| {
                let comment = line.trim_start().strip_prefix("//");
                let comment = comment.map(|rest| rest.trim_start_matches(['/', '!', ' ']));
                comment.is_some_and(|text| openings.iter().any(|it| text.starts_with(it)))
            });
            let lines = lines.map(|(number, line)| format!("{file}:{}: {line}", number + 1));
            lines.collect::<Vec<_>>()
        })
        .collect();
    assert!(
        found.is_empty(),
        "name the actor or the thing first:\n{}",
        found.join("\n")
    );
}

/// Returns the number of lines of a source file that are not tests.
fn count_code_lines(file: &str) -> usize {
    if file.starts_with("tests/") || file.contains("/tests/") || file.ends_with("/tests.rs") {
        return 0;
    }
    let source = text(file);
    let code = source.split("\n#[cfg(test)]\nmod tests {").next();
    code.map_or(0, |code| code.lines().count())
}

#[test]
fn source_files_stay_below_the_line_limit() {
    let long: Vec<String> = files()
        .into_iter()
        .filter(|file| {
            [".rs", ".ts", ".tsx", ".mjs", ".css", ".html"]
                .iter()
                .any(|end| file.ends_with(end))
        })
        .filter_map(|file| {
            let lines = count_code_lines(&file);
            (lines > MAX_CODE_LINES).then(|| format!("{file}: {lines} lines"))
        })
        .collect();
    assert!(
        long.is_empty(),
        "more than {MAX_CODE_LINES} lines of code:\n{}",
        long.join("\n")
    );
}

#[test]
fn top_level_has_only_known_names() {
    let strangers: BTreeSet<String> = files()
        .iter()
        .filter_map(|file| file.split('/').next().map(ToOwned::to_owned))
        .filter(|name| !name.starts_with('.') && !TOP_LEVEL.contains(&name.as_str()))
        .collect();
    assert!(strangers.is_empty(), "unexpected names: {strangers:?}");
}

#[test]
fn every_top_level_folder_has_short_readme() {
    for folder in TOP_LEVEL.iter().filter(|name| root().join(name).is_dir()) {
        let lines = text(&format!("{folder}/README.md")).lines().count();
        assert!(
            (5..=60).contains(&lines),
            "{folder}/README.md has {lines} lines"
        );
    }
}

/// The oldest supported compiler builds every dependency. For the standard library, Clippy's `incompatible_msrv` checks this.
#[test]
fn dependencies_build_with_rust_version() {
    let host = Command::new("rustc").arg("-vV").output().expect("rustc");
    let host = String::from_utf8(host.stdout).expect("UTF-8");
    let host = host.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.expect("a host");
    let metadata = cargo(&["metadata", "--format-version=1", "--filter-platform", host]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let version = |package: &serde_json::Value| -> Option<Vec<u64>> {
        let text = package["rust_version"].as_str()?;
        text.split('.').map(|part| part.parse().ok()).collect()
    };
    let own = |package: &&serde_json::Value| package["name"] == "rowhouse";
    let ours = packages.iter().find(own).and_then(version);
    let ours = ours.expect("a rust-version");
    assert!(packages.len() > 100, "{} packages", packages.len());
    let newer = packages
        .iter()
        .filter(|package| version(package) > Some(ours.clone()));
    let newer: Vec<String> = newer.map(|package| package["id"].to_string()).collect();
    assert!(newer.is_empty(), "these need a newer one: {newer:#?}");
}

/// Returns the packages of `cargo tree` with their features.
fn tree(arguments: &[&str]) -> BTreeSet<String> {
    let lines = cargo(&[&["tree", "--prefix=none", "--format={p} {f}"], arguments].concat());
    let packages = lines.lines().map(|line| line.trim_end_matches(" (*)"));
    packages.map(ToOwned::to_owned).collect()
}

/// Otherwise Cargo builds the program twice: with the features for the tests, and again with those for the program that they start.
#[test]
fn test_features_do_not_change_program() {
    let alone = tree(&[
        "--package=rowhouse",
        "--features=bucket,otlp",
        "--edges=normal",
    ]);
    let beside = tree(&["--workspace", "--edges=normal,build,dev"]);
    assert!(alone.len() > 100, "{} packages", alone.len());
    let other: Vec<&String> = alone.difference(&beside).collect();
    assert!(other.is_empty(), "with other features: {other:#?}");
}
