//! The guides and the hand-written reference pages of the manual: every code block is tried, or compared with the program. The tutorials have their own tests ([`tutorials`](crate::manual::tutorials)).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use image::{Rgb, RgbImage};
use rowhouse_tests::{TestServer, binary, copy, stderr, stdout, workspace};
use tempfile::TempDir;

use crate::manual::reference::pages;
use crate::media::downloads_and_videos::film;

/// The file that a block belongs to.
#[derive(Clone, Copy)]
enum Place {
    /// The manifest of a tenant, with the required keys.
    Manifest,
    /// The front matter of a page.
    Front,
    /// The text of a page.
    Text,
    /// `deployment.yaml`.
    Deployment,
    /// A file of a tenant.
    Tenant(&'static str),
    /// A file of a theme.
    Theme(&'static str),
    /// A source file of an island.
    Island(&'static str),
    /// A file of another program.
    Foreign,
}
use Place::{Deployment, Foreign, Front, Island, Manifest, Tenant, Text, Theme};

/// The blocks of each page that are not commands, in their order.
const BLOCKS: [(&str, &[Place]); 18] = [
    (
        "guides/app-site.md",
        &[
            Manifest, Manifest, Front, Manifest, Manifest, Manifest, Manifest, Manifest,
        ],
    ),
    (
        "guides/blog.md",
        &[
            Tenant("pages/blog/index.md"),
            Tenant("pages/blog/first.md"),
            Front,
        ],
    ),
    ("guides/domains.md", &[Manifest, Manifest, Deployment]),
    ("guides/downloads.md", &[Text, Manifest]),
    ("guides/editor.md", &[Manifest]),
    (
        "guides/island.md",
        &[
            Island("props.ts"),
            Island("index.tsx"),
            Theme("sections/counter/section.html"),
        ],
    ),
    ("guides/language.md", &[Manifest, Manifest, Manifest]),
    ("guides/two-languages.md", &[Manifest, Manifest, Manifest]),
    ("guides/pictures.md", &[Text, Text, Text, Text]),
    ("guides/previews.md", &[Deployment]),
    ("guides/protect.md", &[Deployment]),
    ("guides/publish.md", &[Foreign, Foreign, Foreign, Foreign]),
    ("guides/several-machines.md", &[Foreign]),
    (
        "guides/redirects.md",
        &[Manifest, Manifest, Manifest, Manifest, Manifest, Front],
    ),
    (
        "guides/section-kind.md",
        &[
            Theme("sections/hours/schema.yaml"),
            Theme("sections/hours/section.html"),
            Theme("sections/hours/example.yaml"),
            Theme("sections/hours/section.css"),
            Front,
        ],
    ),
    (
        "guides/theme.md",
        &[
            Manifest,
            Manifest,
            Theme("theme.yaml"),
            Theme("css/bakery.css"),
        ],
    ),
    ("reference/markdown.md", &[Text, Text, Text]),
    ("reference/templates.md", &[]),
];

/// The language and the text of a code block.
pub(crate) type Block = (String, String);

/// Returns the code blocks of a text, without the indentation of list items.
pub(crate) fn blocks_of(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        let indentation = &line[..line.len() - line.trim_start().len()];
        let block = lines.by_ref().take_while(|line| line.trim_start() != "```");
        let block = block.map(|line| line.strip_prefix(indentation).unwrap_or(line));
        let block = block.map(|line| format!("{line}\n")).collect();
        blocks.push((language.to_owned(), block));
    }
    blocks
}

/// Returns the hand-written pages, except the tutorial, with their blocks.
fn handwritten_pages() -> BTreeMap<String, Vec<Block>> {
    let folder = workspace().join("engine/rowhouse/manual/pages");
    let all = pages().into_iter();
    let all = all.filter(|(path, _)| folder.join(path).exists() && !path.starts_with("tutorial/"));
    all.map(|(path, text)| (path, blocks_of(&text))).collect()
}

/// Two sites and a theme, to try the guides.
struct Reader(TempDir);

impl Reader {
    fn new() -> Self {
        let reader = Self(TempDir::new().expect("a folder"));
        copy(
            &workspace().join("themes/plain"),
            &reader.path("themes/plain"),
        );
        reader.write("themes/bakery/theme.yaml", "name: bakery\nparent: plain\n");
        reader.write(
            "tenants/studio/tenant.yaml",
            "name: Studio\ntheme: plain\nroot: true\n",
        );
        reader.write("tenants/studio/pages/index.md", "---\ntitle: Home\n---\n");
        reader.write("themes/bakery/css/bakery.css", "");
        reader.manifest("");
        reader.write("tenants/corner/pages/index.md", "---\ntitle: Home\n---\n");
        reader.write(
            "tenants/corner/pages/prices.md",
            "---\ntitle: Prices\n---\n",
        );
        for name in ["workshop.jpg", "wave.png", "pump.jpg", "screens/today.png"] {
            let file = reader.path(&format!("tenants/corner/assets/{name}"));
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            let picture = RgbImage::from_pixel(64, 48, Rgb([90, 120, 160]));
            picture.save(file).expect("a picture");
        }
        reader.write("tenants/corner/assets/pump.mp4", film(640, 360));
        reader.write("tenants/corner/assets/plan.pdf", "%PDF-1.4\n");
        reader.write("tenants/corner/assets/press-kit.zip", "PK");
        for name in ["google1a2b3c4d.html", "atproto-did.txt"] {
            reader.write(&format!("tenants/corner/assets/{name}"), "words");
        }
        reader.write("tenants/corner/assets/bell.mp3", "ID3");
        reader.write(
            "tenants/corner/assets/logo.svg",
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 24\"><path d=\"M2 2h28v20H2z\"/></svg>\n",
        );
        reader
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let file = self.path(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a written file");
    }

    /// Writes the manifest of a tenant with these lines, and the required ones.
    fn manifest(&self, lines: &str) {
        let mut text = String::new();
        for (key, line) in [("name:", "name: Corner\n"), ("theme:", "theme: bakery\n")] {
            if !lines.lines().any(|own| own.starts_with(key)) {
                text.push_str(line);
            }
        }
        self.write("tenants/corner/tenant.yaml", text + lines);
    }

    /// Writes the block to its file.
    fn follow(&self, place: Place, block: &str) {
        let page = "tenants/corner/pages/other.md";
        match place {
            Manifest => self.manifest(block),
            Front => self.write(page, format!("---\ntitle: Other\n{block}---\nWords.\n")),
            Text => self.write(page, format!("---\ntitle: Other\n---\n{block}")),
            Deployment => self.write("tenants/deployment.yaml", block),
            Tenant(path) => self.write(&format!("tenants/corner/{path}"), block),
            Theme(path) => self.write(&format!("themes/bakery/{path}"), block),
            Island(path) => self.write(&format!("Counter/{path}"), block),
            Foreign => {}
        }
    }

    /// Runs `rowhouse check` on all sites.
    fn check(&self, page: &str, flags: &[&str]) {
        let output = Command::new(binary())
            .arg("check")
            .args(["--origin", "https://studio.example"])
            .args(flags)
            .current_dir(self.0.path())
            .output()
            .expect("rowhouse");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{page}: {}{}",
            stdout(&output),
            stderr(&output)
        );
    }
}

#[test]
fn every_file_of_guides_is_valid() {
    let mut places: BTreeMap<&str, &[Place]> = BLOCKS.into_iter().collect();
    for (page, blocks) in handwritten_pages() {
        let blocks: Vec<&Block> = blocks.iter().filter(|(kind, _)| kind != "sh").collect();
        let known = places.remove(&*page).unwrap_or_default();
        assert_eq!(blocks.len(), known.len(), "{page}: name each block here");
        let reader = Reader::new();
        for ((_, block), place) in blocks.iter().zip(known) {
            reader.follow(*place, block);
            // A theme and an island are complete with their last file.
            if !matches!(place, Theme(_) | Island(_)) {
                reader.check(&page, &[]);
            }
        }
        if !known.iter().any(|place| matches!(place, Island(_))) {
            reader.check(&page, &[]);
        }
    }
    assert!(places.is_empty(), "missing pages: {:?}", places.keys());
}

#[test]
fn site_of_first_page_is_served() {
    let text = pages().remove("index.md").expect("the first page");
    let block = text.split("      ```sh\n").nth(1).expect("its commands");
    let block = block.split("      ```").next().expect("their end");
    let script: String = block
        .lines()
        .map(|line| format!("{}\n", line.strip_prefix("      ").expect("a line of it")))
        .collect();
    let folder = TempDir::new().expect("a folder");
    let (made, last) = script
        .trim()
        .rsplit_once('\n')
        .expect("commands, and a server");
    assert_eq!(last, "rowhouse serve");
    must(
        Command::new("sh")
            .args(["-ec", made])
            .current_dir(folder.path()),
    );
    let server = TestServer::start(folder.path(), &[]);
    let (domain, own) = (server.domain(), format!("sample.{}", server.domain()));
    for (host, path) in [(domain, "/sample"), (own, "/")] {
        let page = server.get(&host, path);
        assert_eq!(page.status, 200, "{host}{path}");
        assert!(page.text().contains("Hello from <strong>Sample</strong>."));
    }
}

fn must(command: &mut Command) {
    let output = command.output().expect("a program");
    assert!(output.status.success(), "{command:?}: {output:?}");
}

#[test]
fn island_of_guide_is_rendered() {
    let page = "guides/island.md";
    let (_, places) = BLOCKS
        .into_iter()
        .find(|(path, _)| *path == page)
        .expect("the guide");
    let reader = Reader::new();
    for ((_, block), place) in handwritten_pages()[page].iter().zip(places) {
        reader.follow(*place, block);
    }
    // Builds the islands with the new one.
    let ui = reader.path("ui");
    fs::create_dir(&ui).expect("a folder");
    for name in ["islands", "runtime", "shared", "build"] {
        copy(&workspace().join("ui").join(name), &ui.join(name));
    }
    for name in ["build.mjs", "package.json", "tsconfig.json"] {
        fs::copy(workspace().join("ui").join(name), ui.join(name)).expect("a file");
    }
    symlink(workspace().join("ui/node_modules"), ui.join("node_modules")).expect("the packages");
    copy(&reader.path("Counter"), &ui.join("islands/Counter"));
    must(
        Command::new("node_modules/.bin/tsc")
            .args(["--project", "tsconfig.json"])
            .current_dir(&ui),
    );
    must(
        Command::new("node")
            .args(["build.mjs", "--out", "../built"])
            .current_dir(&ui),
    );
    // Writes the guide's line into a section type of the theme, and the UI string.
    reader.write(
        "themes/bakery/sections/counter/schema.yaml",
        "description: Counts.\n",
    );
    for language in ["ar", "de", "en", "fr"] {
        let words = "islands: {counter: {add: One more}}\n";
        reader.write(&format!("themes/bakery/strings/{language}.yaml"), words);
    }
    reader.follow(Front, "sections: [{kind: counter}]\n");
    let built = ["--ui-dist", "built"];
    reader.check(page, &built);
    must(
        Command::new(binary())
            .args(["export", "out", "--origin", "https://studio.example"])
            .args(built)
            .current_dir(reader.0.path()),
    );
    let shown = reader.path("out/studio.example/corner/other.html");
    let shown = fs::read_to_string(shown).expect("the page");
    let button = shown.split("<button class=\"counter\"").nth(1);
    let button = button.expect("the button").split("</button>").next();
    let words = button.expect("its end").replace("<!-- -->", "");
    assert!(words.ends_with("One more 1"), "{words}");
}

/// The programs that guides call. A test of `rowhouse::manual` parses the lines of `rowhouse`.
const PROGRAMS: [&str; 27] = [
    "./new/rowhouse",
    ".ci/dist",
    "caddy",
    "cargo",
    "cd",
    "chmod",
    "cp",
    "curl",
    "echo",
    "grep",
    "install",
    "journalctl",
    "kubectl",
    "ls",
    "mkdir",
    "mv",
    "openssl",
    "podman",
    "printf",
    "rm",
    "rowhouse",
    "rsync",
    "sha256sum",
    "ssh",
    "sudo",
    "systemctl",
    "tar",
];

/// Returns the program of a command line, without leading variables.
fn program(line: &str) -> &str {
    let word = line.split_whitespace().next().unwrap_or_default();
    match word.split_once('=') {
        Some((name, value)) => {
            let rest = line[name.len() + 1..].trim_start();
            let rest = match value.starts_with('\'') {
                true => rest[1..].split_once('\'').map_or("", |(_, rest)| rest),
                false => rest.split_once(' ').map_or("", |(_, rest)| rest),
            };
            program(rest)
        }
        None => word,
    }
}

/// Checks that every program is known, and that files of the source, variables and units exist.
fn check_names_exist(page: &str, script: &str) {
    let commands = &pages()["reference/commands.md"];
    for line in script.replace("\\\n", "").lines() {
        let program = program(line);
        assert!(PROGRAMS.contains(&program), "{page}: `{program}` in {line}");
        for word in line.split([' ', '=', '\'']) {
            if word.starts_with("deploy/") || word.starts_with(".ci/") {
                assert!(workspace().join(word).exists(), "{page}: {word}");
            }
            if word.starts_with("ROWHOUSE_") {
                let told = format!("Variable: `{word}`");
                assert!(commands.contains(&told), "{page}: {word}");
            }
            let is_unit = word.ends_with(".socket") || word.ends_with(".service");
            if is_unit && !word.contains('/') {
                let unit = format!("deploy/systemd/{word}");
                assert!(workspace().join(unit).exists(), "{page}: {word}");
            }
        }
    }
}

/// Checks that the README of a deployment folder has the commands of the guide.
fn check_readme_has_commands(page: &str, readme: &str, script: &str) {
    let joined = |text: &str| {
        let words = text.replace("\\\n", " ");
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let path = workspace().join("deploy").join(readme);
    let full = fs::read_to_string(path).expect("a README");
    let full: Vec<String> = blocks_of(&full)
        .iter()
        .map(|(_, text)| joined(text))
        .collect();
    let full = full.join(" ");
    for line in script.replace("\\\n", " ").lines() {
        let line = joined(line);
        let beginning: String = line.split(" -t ").next().unwrap_or_default().to_owned();
        assert!(full.contains(&beginning), "{page}: {beginning} in {readme}");
    }
}

#[test]
fn every_command_of_guides_names_existing_files() {
    let mut scripts = 0;
    for (page, blocks) in handwritten_pages() {
        for (_, script) in blocks.iter().filter(|(kind, _)| kind == "sh") {
            must(Command::new("sh").args(["-nc", script]));
            check_names_exist(&page, script);
            for (guide, readme) in [
                ("guides/container.md", "container/README.md"),
                ("guides/kubernetes.md", "kubernetes/README.md"),
            ] {
                if page == guide {
                    check_readme_has_commands(&page, readme, script);
                }
            }
            scripts += 1;
        }
    }
    assert!(scripts > 12, "{scripts}");
}

#[test]
fn token_of_guide_enables_console_commands() {
    let blocks = &handwritten_pages()["guides/monitoring.md"];
    let (_, script) = blocks
        .iter()
        .find(|(_, script)| script.starts_with("openssl "))
        .expect("the token");
    let (make, serve) = script.split_once('\n').expect("two lines");
    let reader = Reader::new();
    must(
        Command::new("sh")
            .args(["-ec", make])
            .current_dir(reader.0.path()),
    );
    let flags = serve.trim().strip_prefix("rowhouse serve ");
    let flags: Vec<&str> = flags.expect("a server").split_whitespace().collect();
    let server = TestServer::start(reader.0.path(), &flags);
    let page = server.get_admin("/sites/corner").text();
    assert!(page.contains("Token of this server"), "{page}");
}
