//! Sites of `rowhouse new` pass `check`, with every combination of flags.

use std::fs;

use rowhouse_tests::{run, stderr, stdout};

const KINDS: [&str; 4] = ["landing", "app", "blog", "manual"];
const COLOURS: [&str; 5] = ["green", "blue", "red", "violet", "grey"];

#[test]
fn every_starter_passes_check_except_fill_in_warnings() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut colours = COLOURS.iter().cycle();
    let mut made = 0;
    for theme in ["base", "plain"] {
        // The starter `manual` needs a theme for long texts.
        let kinds = KINDS
            .iter()
            .filter(|kind| theme == "plain" || **kind != "manual");
        for kind in kinds {
            for language in ["en", "de", "en,de"] {
                let colour = colours.next().expect("a colour");
                let id = format!("{kind}-{}-{theme}", language.replace(',', "-"));
                let arguments = [
                    "new",
                    &id,
                    "--kind",
                    kind,
                    "--language",
                    language,
                    "--colour",
                    colour,
                    "--theme",
                    theme,
                    "--name",
                    "Café & Söhne",
                ];
                let new = run(folder.path(), &arguments);
                assert!(new.status.success(), "{}", stderr(&new));
                made += 1;
            }
        }
    }
    let check = run(folder.path(), &["check"]);
    let text = stdout(&check);
    assert_eq!(check.status.code(), Some(0), "{text}");
    for line in text.lines().filter(|line| !line.is_empty()) {
        let is_left = line.starts_with("warning[fill-in]: ") || line.starts_with("hint: ");
        assert!(is_left, "{line}");
    }
    assert!(
        stderr(&check).contains(&format!("{made} tenants: 0 errors")),
        "{}",
        stderr(&check)
    );
    for id in ["manual-de-plain", "landing-en-base", "blog-en-de-base"] {
        assert!(text.contains(&format!("tenants/{id}/")), "{id}: {text}");
    }
}

#[test]
fn every_colour_has_contrast_in_both_themes() {
    let folder = tempfile::tempdir().expect("a folder");
    for theme in ["base", "plain"] {
        for colour in COLOURS {
            let id = format!("{colour}-{theme}");
            let arguments = [
                "new", &id, "--kind", "landing", "--colour", colour, "--theme", theme,
            ];
            assert!(run(folder.path(), &arguments).status.success());
        }
    }
    let text = stdout(&run(folder.path(), &["check"]));
    assert!(!text.contains("low-contrast"), "{text}");
    assert!(text.contains("green-base"), "{text}");
}

#[test]
fn name_with_yaml_syntax_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["A: b", "{a}", "# a", "a, b"] {
        let new = run(folder.path(), &["new", "corner", "--name", name]);
        assert_eq!(new.status.code(), Some(2), "{name}");
    }
    assert!(
        fs::read_dir(folder.path())
            .expect("a folder")
            .next()
            .is_none()
    );
}

#[test]
fn new_without_terminal_does_not_ask() {
    let folder = tempfile::tempdir().expect("a folder");
    let new = run(folder.path(), &["new"]);
    assert_eq!(new.status.code(), Some(2));
    assert!(
        stderr(&new).contains("rowhouse new corner"),
        "{}",
        stderr(&new)
    );
    let manual = run(
        folder.path(),
        &["new", "book", "--kind", "manual", "--theme", "base"],
    );
    assert!(
        stderr(&manual).contains("needs the theme `plain`"),
        "{}",
        stderr(&manual)
    );
}
