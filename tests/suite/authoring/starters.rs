//! Sites of `rowhouse new` and themes of `rowhouse new-theme` pass `check`, with every combination of flags.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{TestServer, run, stderr, stdout};

/// The timeout of a saved file on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

const KINDS: [&str; 4] = ["landing", "app", "blog", "manual"];
const COLOURS: [&str; 5] = ["green", "blue", "red", "violet", "grey"];

/// Writes a root tenant with a company profile. Without a profile, `check` warns.
fn write_company(folder: &Path) {
    let home = folder.join("tenants/home");
    fs::create_dir_all(home.join("pages")).expect("a folder");
    let company = "company: {name: Street, legal_name: Street LLC, description: It keeps a street., email: post@street.example}";
    let manifest = format!("name: Street\nroot: true\n{company}\n");
    fs::write(home.join("tenant.yaml"), manifest).expect("a file");
    let page = "---\ntitle: Street\ndescription: The first page of the street on which all sites of this folder stand.\n---\nWelcome.\n";
    fs::write(home.join("pages/index.md"), page).expect("a file");
}

#[test]
fn pages_of_two_apps_have_different_titles() {
    let folder = tempfile::tempdir().expect("a folder");
    for id in ["alder", "birch"] {
        let new = run(folder.path(), &["new", id, "--language", "en,de"]);
        assert!(new.status.success(), "{}", stderr(&new));
    }
    let titles = |id: &str| -> Vec<String> {
        let pages = fs::read_dir(folder.path().join(format!("tenants/{id}/pages")));
        let pages = pages
            .expect("a folder")
            .map(|page| page.expect("a page").path());
        let mut titles: Vec<String> = pages
            .map(|page| {
                let text = fs::read_to_string(page).expect("a text");
                let title = text.lines().find(|line| line.starts_with("title: "));
                title.expect("a title").to_owned()
            })
            .collect();
        titles.sort_unstable();
        titles
    };
    let (alder, birch) = (titles("alder"), titles("birch"));
    assert_eq!((alder.len(), birch.len()), (14, 14));
    for title in alder {
        assert!(!birch.contains(&title), "{title}");
    }
}

#[test]
fn every_starter_passes_check_except_fill_in_warnings() {
    let folder = tempfile::tempdir().expect("a folder");
    write_company(folder.path());
    let mut colours = COLOURS.iter().cycle();
    let mut made = 1;
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

#[test]
fn child_theme_of_new_theme_needs_no_copy_of_its_parent() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let new = run(folder, &["new-theme", "bakery", "--parent", "plain"]);
    assert!(new.status.success(), "{}", stderr(&new));
    assert_eq!(
        stdout(&new),
        "themes/bakery/theme.yaml\nthemes/bakery/css/bakery.css\nthemes/bakery/layouts/not-found.html\n"
    );
    let write = |file: &str, text: &str| {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write(
        "tenants/bakery/tenant.yaml",
        "name: Alder Lane\ntheme: bakery\nroot: true\ncompany: {name: Alder Lane, legal_name: Alder Lane LLC, description: It bakes bread., email: post@street.example}\n",
    );
    write(
        "tenants/bakery/pages/index.md",
        "---\ntitle: Alder Lane\ndescription: Bread from one oven, five days a week, at the door until it is gone.\nsections:\n  - {kind: hero, title: Still warm, actions: [{label: Call, link: \"tel:+13125550142\"}]}\n---\n",
    );
    let check = run(folder, &["check"]);
    assert_eq!(stdout(&check), "", "{}", stderr(&check));
    let server = TestServer::start(folder, &[]);
    let home = server.get(&server.domain(), "/").text();
    assert!(home.contains("border-radius:2rem"), "{home}");
    let missing = || server.get(&server.domain(), "/nothing").text();
    assert!(missing().contains("class=\"frame notice\""), "the parent's");

    // A style, a role and a template of the theme replace those of the parent.
    let manifest = folder.join("themes/bakery/theme.yaml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    let changed = text.replace("  paper: {day: \"#ffffff\"", "  paper: {day: \"#fdf8f0\"");
    assert_ne!(changed, text);
    fs::write(&manifest, changed).expect("a file");
    let layout = folder.join("themes/bakery/layouts/not-found.html");
    let text = fs::read_to_string(&layout).expect("a layout");
    fs::write(&layout, text.replace("frame notice", "frame shelf")).expect("a file");
    let begin = Instant::now();
    loop {
        let home = server.get(&server.domain(), "/").text();
        if home.contains("#fdf8f0") && missing().contains("class=\"frame shelf\"") {
            break;
        }
        assert!(begin.elapsed() < TIMEOUT, "{home}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn child_theme_of_each_built_in_theme_passes_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_company(folder);
    for parent in ["base", "plain"] {
        let name = format!("over-{parent}");
        let new = run(folder, &["new-theme", &name, "--parent", parent]);
        assert!(new.status.success(), "{}", stderr(&new));
        let tenant = folder.join("tenants").join(&name);
        fs::create_dir_all(tenant.join("pages")).expect("a folder");
        fs::write(
            tenant.join("tenant.yaml"),
            format!("name: A\ntheme: {name}\n"),
        )
        .expect("a file");
        let page = "---\ntitle: A home page\ndescription: A home page that shows nothing but the theme, so that the theme alone is checked.\n---\nText.\n";
        fs::write(tenant.join("pages/index.md"), page).expect("a file");
    }
    let check = run(folder, &["check"]);
    assert_eq!(stdout(&check), "", "{}", stderr(&check));
    assert_eq!(check.status.code(), Some(0));
}

#[test]
fn new_theme_never_changes_a_folder_that_exists() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (arguments, message) in [
        (
            &["bakery", "--parent", "plan"][..],
            "the program has no theme `plan`: did you mean `plain`?",
        ),
        (&["plain"][..], "the program has a theme `plain` already"),
        (&["Bakery"][..], "use small letters, digits and hyphens"),
        (&["../bakery"][..], "use small letters, digits and hyphens"),
    ] {
        let new = run(folder, &[&["new-theme"], arguments].concat());
        assert_eq!(new.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&new).contains(message), "{}", stderr(&new));
        assert!(!folder.join("themes").exists(), "{arguments:?}");
    }
    let theme = folder.join("themes/bakery");
    fs::create_dir_all(&theme).expect("a folder");
    let new = run(folder, &["new-theme", "bakery"]);
    assert_eq!(new.status.code(), Some(2));
    assert!(
        stderr(&new).contains("`themes/bakery` already exists"),
        "{}",
        stderr(&new)
    );
    assert!(fs::read_dir(theme).expect("a folder").next().is_none());
}

#[test]
fn app_starter_has_the_pages_that_stores_ask_for() {
    let folder = tempfile::tempdir().expect("a folder");
    for language in ["en", "de"] {
        let id = format!("tide-{language}");
        let arguments = ["new", &id, "--kind", "app", "--language", language];
        assert!(run(folder.path(), &arguments).status.success());
        let tenant = folder.path().join("tenants").join(&id);
        for page in ["delete-account", "accessibility", "imprint"] {
            let text = fs::read_to_string(tenant.join(format!("pages/{page}.md")));
            let text = text.unwrap_or_else(|error| panic!("{page}: {error}"));
            assert!(text.contains("fill in"), "{page}: {text}");
            assert!(text.contains("](company:email)"), "{page}: {text}");
        }
        // The pages of a site of its own that is an app fulfil what `check` asks for.
        let manifest = tenant.join("tenant.yaml");
        let text = fs::read_to_string(&manifest).expect("a manifest");
        let app = "app: {category: WeatherApplication, platforms: [ios, android], any_age: true}";
        fs::write(&manifest, format!("{text}{app}\n")).expect("a file");
    }
    write_company(folder.path());
    let text = stdout(&run(folder.path(), &["check", "tide-de"]));
    assert!(!text.contains("store-readiness"), "{text}");
    fs::remove_file(
        folder
            .path()
            .join("tenants/tide-de/pages/delete-account.md"),
    )
    .expect("a file");
    let privacy = folder.path().join("tenants/tide-de/pages/privacy.md");
    fs::write(
        &privacy,
        "---\ntitle: Datenschutz\nupdated: 2026-01-02\n---\nNichts.\n",
    )
    .expect("a file");
    let text = stdout(&run(folder.path(), &["check", "tide-de"]));
    assert!(
        text.contains("users cannot ask for the deletion of their account without the app"),
        "{text}"
    );
}
