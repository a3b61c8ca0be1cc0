//! The reference of the manual lists every key, flag, metric and error of the program, and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use content::report::Code;
use rowhouse_tests::{TestServer, fixture, run, stdout, workspace};
use serde_json::Value as Json;
use tempfile::TempDir;

/// Returns each page's Markdown by its path within `pages`.
pub(crate) fn pages() -> BTreeMap<String, String> {
    let files = rowhouse::manual::files().expect("the manual");
    let pages = files.into_iter().filter_map(|(path, bytes)| {
        let path = path.strip_prefix("pages/")?.to_owned();
        Some((path, String::from_utf8(bytes).expect("UTF-8")))
    });
    pages.collect()
}

fn reference(name: &str) -> String {
    let mut pages = pages();
    pages
        .remove(&format!("reference/{name}.md"))
        .expect("a page of the reference")
}

/// Returns the text between backticks at the beginning of lines with this prefix: headings, or terms of definitions.
fn terms(text: &str, prefix: &str) -> Vec<String> {
    let begin = format!("{prefix}`");
    let lines = text.lines().filter_map(|line| line.strip_prefix(&begin));
    let terms = lines.filter_map(|rest| rest.split('`').next());
    terms.map(ToOwned::to_owned).collect()
}

/// Returns the terms of definitions: lines before a line with a colon.
fn defined(text: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.windows(2).filter(|pair| pair[1].starts_with(": "));
    pairs.flat_map(|pair| terms(pair[0], "")).collect()
}

fn same(what: &str, manual: &BTreeSet<String>, program: &BTreeSet<String>) {
    let missing: Vec<_> = program.difference(manual).collect();
    let invented: Vec<_> = manual.difference(program).collect();
    assert!(
        missing.is_empty(),
        "{what} that the manual lacks: {missing:?}"
    );
    assert!(
        invented.is_empty(),
        "{what} that there are not: {invented:?}"
    );
    assert!(!program.is_empty(), "{what}: none at all");
}

/// Collects the dotted paths of all keys of a schema, as the manual writes them.
fn keys(root: &Json, schema: &Json, path: &str, found: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let inner = root
            .pointer(reference.trim_start_matches('#'))
            .expect("a definition");
        return keys(root, inner, path, found);
    }
    // A value by language has the keys of the plain value.
    let is_plain = |one: &&Json| one["propertyNames"].is_null();
    let shapes = schema["anyOf"].as_array().into_iter().flatten();
    for one in shapes.filter(is_plain) {
        keys(root, one, path, found);
    }
    if schema["items"].is_object() {
        keys(root, &schema["items"], &format!("{path}[]"), found);
    }
    if schema["additionalProperties"].is_object() {
        keys(
            root,
            &schema["additionalProperties"],
            &format!("{path}.*"),
            found,
        );
    }
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        let inner = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        found.insert(inner.clone());
        keys(root, value, &inner, found);
    }
}

fn schemas() -> (TempDir, Json) {
    let folder = tempfile::tempdir().expect("a folder");
    for theme in ["plain", "base"] {
        let tenant = folder.path().join(format!("tenants/{theme}"));
        fs::create_dir_all(&tenant).expect("a folder");
        fs::write(
            tenant.join("tenant.yaml"),
            format!("name: A\ntheme: {theme}\n"),
        )
        .expect("a file");
    }
    let output = run(folder.path(), &["schema"]);
    let schemas = serde_json::from_slice(&output.stdout).expect("JSON");
    (folder, schemas)
}

#[test]
fn manual_has_exactly_the_keys_of_program() {
    let (_folder, schemas) = schemas();
    for (page, schema) in [
        ("manifest", "tenant"),
        ("front-matter", "page"),
        ("deployment", "deployment"),
        ("theme", "theme"),
    ] {
        let mut program = BTreeSet::new();
        keys(&schemas[schema], &schemas[schema], "", &mut program);
        let text = reference(page);
        let mut manual = defined(&text);
        manual.extend(terms(&text, "## "));
        same(&format!("keys of {schema}"), &manual, &program);
    }
}

#[test]
fn manual_has_no_empty_example() {
    for (path, text) in pages() {
        let blocks = super::guides::blocks_of(&text);
        let is_empty = |(_, block): &(String, String)| block.trim().is_empty();
        assert!(!blocks.iter().any(is_empty), "{path}");
    }
}

#[test]
fn manual_has_every_section_type_with_keys() {
    let (_folder, schemas) = schemas();
    for theme in ["plain", "base"] {
        let text = reference(&format!("sections-{theme}"));
        let parts: BTreeMap<String, &str> = text
            .split("\n## ")
            .skip(1)
            .map(|part| {
                (
                    part.split(['`', '\n'])
                        .find(|name| !name.is_empty())
                        .unwrap_or("")
                        .to_owned(),
                    part,
                )
            })
            .collect();
        let page = &schemas[format!("{theme}/page")];
        let definitions = page["$defs"].as_object().expect("definitions");
        let kinds: BTreeMap<String, &Json> = definitions
            .iter()
            .filter_map(|(name, schema)| Some((name.strip_prefix("section-")?.to_owned(), schema)))
            .collect();
        let mut named: BTreeSet<String> = parts.keys().cloned().collect();
        assert!(named.remove("Settings"), "{named:?}");
        same("kinds of section", &named, &kinds.keys().cloned().collect());
        for (kind, schema) in kinds {
            let mut program = BTreeSet::new();
            keys(page, schema, "", &mut program);
            program.remove("kind");
            same(&format!("keys of {kind}"), &defined(parts[&kind]), &program);
        }
    }
}

/// Returns the help text of a command with its full name: `certificates renew`.
fn help_of(name: &str) -> String {
    let words: Vec<&str> = ["help"].into_iter().chain(name.split(' ')).collect();
    stdout(&run(&workspace(), &words))
}

/// Returns the names of the commands that a help text lists.
fn listed_commands(help: &str) -> Vec<&str> {
    let listed = help.split("Commands:\n").nth(1).unwrap_or_default();
    let names = listed.lines().take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

/// Returns the commands of the program with their full names, and the flags of each.
fn commands() -> BTreeMap<String, BTreeSet<String>> {
    let help = stdout(&run(&workspace(), &["--help"]));
    let names = listed_commands(&help).into_iter().flat_map(|name| {
        let help = help_of(name);
        let below = listed_commands(&help).into_iter();
        let below = below.map(|below| format!("{name} {below}"));
        let all: Vec<String> = std::iter::once(name.to_owned()).chain(below).collect();
        all
    });
    names
        .map(|name| {
            let help = help_of(&name);
            let words = help.lines().filter_map(|line| {
                let line = line.trim_start();
                let flag = line.strip_prefix("-h, ").unwrap_or(line);
                let flag = flag.split([' ', '=']).next()?;
                flag.starts_with("--").then(|| flag.to_owned())
            });
            let flags = words.filter(|flag| flag != "--help").collect();
            (name, flags)
        })
        .collect()
}

#[test]
fn manual_has_exactly_the_flags_and_variables_of_program() {
    let text = reference("commands");
    let parts: BTreeMap<String, &str> = text
        .split("\n## `rowhouse ")
        .skip(1)
        .map(|part| (part.split('`').next().unwrap_or("").to_owned(), part))
        .collect();
    let commands = commands();
    same(
        "commands",
        &parts.keys().cloned().collect(),
        &commands.keys().cloned().collect(),
    );
    for (name, flags) in &commands {
        let terms = defined(parts[name]).into_iter();
        let manual = terms.filter(|term| term.starts_with("--"));
        let manual = manual.map(|term| term.split(' ').next().unwrap_or("").to_owned());
        let manual: BTreeSet<String> = manual.collect();
        assert_eq!(&manual, flags, "flags of {name}");
        assert_eq!(
            variables(parts[name]),
            variables(&help_of(name)),
            "variables of {name}"
        );
    }
}

fn variables(text: &str) -> BTreeSet<String> {
    let found = text.match_indices("ROWHOUSE_").map(|(start, _)| {
        let rest = &text[start..];
        let end = rest.find(|sign: char| !sign.is_ascii_uppercase() && sign != '_');
        rest[..end.unwrap_or(rest.len())].to_owned()
    });
    found.collect()
}

#[test]
fn pages_name_only_existing_flags_variables_and_metrics() {
    let commands = commands();
    let flags: BTreeSet<&String> = commands.values().flatten().collect();
    let known = variables(&reference("commands"));
    let metrics = defined(&reference("metrics"));
    for (path, text) in pages() {
        for variable in variables(&text) {
            assert!(known.contains(&variable), "{path} names {variable}");
        }
        // Text between backticks is about this program; code blocks may have commands of other programs.
        let blocks: Vec<&str> = text.split("```").step_by(2).collect();
        for code in blocks.concat().split('`').skip(1).step_by(2) {
            let first = code.split([' ', '=']).next().unwrap_or("");
            let is_flag = first.starts_with("--") && first != "---" && !FOREIGN.contains(&first);
            assert!(
                !is_flag || flags.contains(&first.to_owned()),
                "{path} names {first}"
            );
            let is_metric = first.starts_with("rowhouse_");
            assert!(
                !is_metric || metrics.contains(first),
                "{path} names {first}"
            );
        }
    }
}

/// Flags of other programs that the manual names.
const FOREIGN: [&str; 3] = ["--format", "--stop-timeout", "--help"];

#[test]
fn manual_has_exactly_the_errors_and_warnings_of_program() {
    let program = Code::ALL
        .iter()
        .map(|code| code.as_str().to_owned())
        .collect();
    let manual = terms(&reference("errors"), "## ").into_iter().collect();
    same("codes", &manual, &program);
    for code in Code::ALL {
        let output = run(&workspace(), &["check", "--explain", code.as_str()]);
        assert!(output.status.success(), "{code}");
    }
}

#[test]
fn manual_has_every_metric_of_running_server() {
    let state = TempDir::new().expect("a folder");
    let state = state.path().display().to_string();
    let alerts = "http://127.0.0.1:1/";
    let flags = ["--state", &state, "--alert-webhook", alerts];
    let server = TestServer::start(&fixture("sites"), &flags);
    assert_eq!(server.get(&server.domain(), "/").status, 200);
    let exposed = server.get_admin("/metrics").text();
    let kinds: BTreeMap<&str, &str> = exposed
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    let program = kinds.iter().map(|(name, kind)| match *kind {
        "counter" => format!("{name}_total"),
        _ => (*name).to_owned(),
    });
    // Only jemalloc counts the allocated bytes; the program of the tests has mimalloc.
    let of_jemalloc = ["rowhouse_memory_allocated_bytes".to_owned()];
    same(
        "metrics",
        &defined(&reference("metrics")),
        &program.chain(of_jemalloc).collect(),
    );
}

/// Returns the labels in an exposition by metric, without those that a histogram adds.
fn labels_of(exposed: &str, metrics: &BTreeSet<String>) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in exposed.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, rest)) = line.split_once('{') else {
            continue;
        };
        let name = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(name);
        assert!(metrics.contains(name), "{name}");
        let labels = rest.split('}').next().unwrap_or("").split(',');
        let names = labels.filter_map(|label| label.split('=').next());
        let names = names.filter(|name| *name != "le" && !name.is_empty());
        found
            .entry(name.to_owned())
            .or_default()
            .extend(names.map(ToOwned::to_owned));
    }
    found
}

#[test]
fn manual_has_labels_of_metrics() {
    let server = TestServer::start(&fixture("sites"), &[]);
    assert_eq!(server.get(&server.domain(), "/").status, 200);
    let text = reference("metrics");
    let exposed = server.get_admin("/metrics").text();
    let labels = labels_of(&exposed, &defined(&text));
    assert!(labels.len() > 4, "{labels:?}");
    for (name, labels) in labels {
        let meaning = text
            .split(&format!("`{name}`\n: "))
            .nth(1)
            .expect("its meaning");
        let meaning = meaning.lines().next().unwrap_or("");
        let told = meaning.split("Labels: ").nth(1).unwrap_or("");
        let told = told.split('`').skip(1).step_by(2).map(ToOwned::to_owned);
        assert_eq!(told.collect::<BTreeSet<_>>(), labels, "{name}");
    }
}

#[test]
fn manual_has_exactly_the_fields_of_access_log() {
    let flags = [
        "--access-log",
        "json",
        "--log-addresses",
        "--trusted-proxy",
        "127.0.0.1",
    ];
    let mut server = TestServer::start(&fixture("sites"), &flags);
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let domain = server.domain();
    assert_eq!(
        server
            .request("GET", &domain, "/", &[("traceparent", trace)])
            .status,
        200
    );
    server.signal("TERM");
    server.wait();
    let log = server.log();
    let line = log
        .lines()
        .find(|line| line.contains("duration_us"))
        .expect("a line");
    let fields: Json = serde_json::from_str(line).expect("JSON");
    let program = fields.as_object().expect("an object").keys().cloned();
    let text = reference("log");
    let manual = terms(&text, "| ").into_iter().collect();
    same("fields of the access log", &manual, &program.collect());
}

#[test]
fn manual_has_every_reserved_address() {
    let source = workspace().join("engine/content/src/name/reserved.rs");
    let source = fs::read_to_string(source).expect("the list");
    let paths = source.lines().filter_map(|line| {
        let (_, rest) = line.strip_prefix("pub const ")?.split_once('"')?;
        rest.strip_suffix("\";")
    });
    let program: BTreeSet<String> = paths.map(ToOwned::to_owned).collect();
    let manual = defined(&reference("addresses"));
    assert!(program.len() > 10, "{program:?}");
    assert!(program.is_subset(&manual), "{program:?} {manual:?}");
    // Addresses of `serve --dev` and the parts of a sitemap have computed names.
    assert_eq!(manual.len(), program.len() + 3, "{manual:?}");
}

#[test]
fn examples_of_reference_have_every_key_and_no_error() {
    let (_folder, schemas) = schemas();
    for (page, schema) in [
        ("manifest", "tenant"),
        ("front-matter", "page"),
        ("deployment", "deployment"),
    ] {
        let text = reference(page);
        let all = text.rsplit("```yaml\n").next().expect("an example");
        let all = all.split("```").next().expect("its end");
        let example: Json = serde_saphyr::from_str(all).expect("YAML");
        let mut wanted = BTreeSet::new();
        keys(&schemas[schema], &schemas[schema], "", &mut wanted);
        let mut given = BTreeSet::new();
        given_keys(&example, "", &mut given);
        // A manifest has either of these keys.
        if given.contains("languages") {
            wanted.remove("language");
        }
        for key in wanted {
            let told = key.replace(".*", "");
            let is_given = given
                .iter()
                .any(|one| *one == told || same_shape(one, &key));
            assert!(is_given, "the example of {page} has no {key}: {given:?}");
        }
    }
}

/// Whether a key with a name matches a key of the schema with a star.
fn same_shape(given: &str, wanted: &str) -> bool {
    let parts = |path: &str| path.split('.').map(ToOwned::to_owned).collect::<Vec<_>>();
    let (given, wanted) = (parts(given), parts(wanted));
    given.len() == wanted.len()
        && given
            .iter()
            .zip(&wanted)
            .all(|(one, other)| other == "*" || one == other)
}

fn given_keys(value: &Json, path: &str, found: &mut BTreeSet<String>) {
    for (key, inner) in value.as_object().into_iter().flatten() {
        let name = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        found.insert(name.clone());
        given_keys(inner, &name, found);
    }
    for item in value.as_array().into_iter().flatten() {
        given_keys(item, &format!("{path}[]"), found);
    }
}
