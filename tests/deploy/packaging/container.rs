//! `deploy/container/Containerfile` without a container engine: the files of the image, its user, and its health check.

use std::fs;
use std::path::Path;
use std::process::Command;

use rowhouse_tests::binary;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Rowhouse, run, tenant, text};

/// Returns the instructions with their arguments, of the last stage or of all stages.
fn instructions(all: bool) -> Vec<(String, String)> {
    let text = text("container/Containerfile").replace("\\\n", " ");
    let instructions: Vec<(String, String)> = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .map(|(name, rest)| (name.to_owned(), rest.trim().to_owned()))
        .collect();
    let last = instructions
        .iter()
        .rposition(|(name, _)| name == "FROM")
        .expect("a stage");
    instructions[if all { 0 } else { last }..].to_vec()
}

/// Returns the argument of the only instruction with that name in the last stage.
fn said(name: &str) -> String {
    let mut all: Vec<String> = instructions(false)
        .into_iter()
        .filter(|(other, _)| other == name)
        .map(|(_, said)| said)
        .collect();
    assert_eq!(all.len(), 1, "one {name}: {all:?}");
    all.remove(0)
}

fn list(json: &str) -> Vec<String> {
    let list: Vec<Value> = serde_json::from_str(json).expect("the form without a shell");
    list.iter()
        .map(|word| word.as_str().expect("text").to_owned())
        .collect()
}

#[test]
fn image_has_no_shell_and_is_not_root() {
    let user = said("USER");
    let (user, group) = user.split_once(':').expect("a user and a group");
    assert!(user.parse::<u32>().expect("a number") > 0);
    assert!(group.parse::<u32>().expect("a number") > 0);
    assert!(
        instructions(false)
            .iter()
            .all(|(name, _)| name != "RUN" && name != "ADD")
    );
    assert_eq!(list(&said("ENTRYPOINT")), ["/rowhouse"]);
    assert_eq!(list(&said("CMD")), ["serve"]);
    let copies = said("COPY");
    assert!(
        copies.starts_with("--from=program --chown=65532:65532 "),
        "{copies}"
    );
    let base = instructions(true)
        .into_iter()
        .find_map(|(_, said)| said.strip_prefix("BASE=").map(ToOwned::to_owned))
        .expect("a base");
    assert!(
        base.contains("/distroless/") && base.ends_with(":nonroot"),
        "{base}"
    );
}

#[test]
fn image_has_labels_and_listens_on_exposed_port() {
    let label = said("LABEL");
    for name in ["title", "description", "licenses", "version", "revision"] {
        assert!(
            label.contains(&format!("org.opencontainers.image.{name}=")),
            "{name}"
        );
    }
    let env = said("ENV");
    let port = said("EXPOSE");
    assert!(
        env.contains(&format!("ROWHOUSE_LISTEN=0.0.0.0:{port}")),
        "{env}"
    );
    assert!(
        env.contains("ROWHOUSE_ADMIN=127.0.0.1:"),
        "the admin listener stays inside"
    );
}

#[test]
fn each_copied_stage_is_defined_before() {
    let all = instructions(true);
    let stages: Vec<&str> = all
        .iter()
        .filter(|(name, _)| name == "FROM")
        .filter_map(|(_, said)| said.split_once(" AS ").map(|(_, stage)| stage))
        .collect();
    for (_, said) in all.iter().filter(|(name, _)| name == "COPY") {
        if let Some(from) = said
            .split_whitespace()
            .find_map(|word| word.strip_prefix("--from="))
        {
            assert!(stages.contains(&from), "{from} is none of {stages:?}");
        }
    }
}

/// Runs the steps of the first stage with an archive, with a folder as its root.
fn unpack(root: &Path) -> (bool, String) {
    let all = instructions(true);
    let (_, command) = (all.iter())
        .find(|(name, _)| name == "RUN")
        .expect("a command");
    let root = root.display();
    let command = command.replace("/archive", &format!("{root}/archive"));
    let command = command.replace(" /image", &format!(" {root}/image"));
    run(Command::new("sh").args(["-c", &format!("set -e; {command}")]))
}

/// Writes an archive like that of `.ci/dist`, with the files that the image needs.
fn archive(root: &Path) {
    let name = "rowhouse-1.2.3-some-system";
    let folder = root.join("archive");
    let staged = root.join(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::create_dir_all(staged.join("man")).expect("a folder");
    fs::copy(binary(), staged.join("rowhouse")).expect("a program");
    for file in ["LICENSE", "LICENSES.txt", "rowhouse.cdx.json", "NEEDS.txt"] {
        fs::write(staged.join(file), "words").expect("a file");
    }
    let script = format!(
        "tar -czf archive/{name}.tar.gz {name} && cd archive && sha256sum {name}.tar.gz > {name}.tar.gz.sha256"
    );
    let (packed, said) = run(Command::new("sh").args(["-c", &script]).current_dir(root));
    assert!(packed, "{said}");
}

#[test]
fn image_has_only_program_of_archive() {
    let all = instructions(true);
    let copied = all.iter().find(|(name, _)| name == "COPY");
    assert_eq!(copied.expect("a copy").1, "rowhouse-*.tar.gz* /archive/");
    let folder = TempDir::new().expect("a folder");
    archive(folder.path());
    let (unpacked, said) = unpack(folder.path());
    assert!(unpacked, "{said}");
    let image = folder.path().join("image");
    let (_, listed) = run(Command::new("find")
        .args([".", "-type", "f", "-o", "-empty"])
        .current_dir(&image));
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    assert_eq!(
        listed,
        [
            "./rowhouse",
            "./srv/rowhouse/tenants",
            "./usr/share/doc/rowhouse/LICENSE",
            "./usr/share/doc/rowhouse/LICENSES.txt",
            "./usr/share/doc/rowhouse/rowhouse.cdx.json",
            "./var/lib/rowhouse",
        ]
    );
    let (runs, said) = run(Command::new(image.join("rowhouse")).arg("--version"));
    assert!(runs && said.starts_with("rowhouse "), "{said}");
}

#[test]
fn archive_with_wrong_checksum_makes_no_image() {
    let folder = TempDir::new().expect("a folder");
    archive(folder.path());
    let file = folder
        .path()
        .join("archive/rowhouse-1.2.3-some-system.tar.gz");
    let mut bytes = fs::read(&file).expect("an archive");
    bytes.push(0);
    fs::write(&file, bytes).expect("an archive");
    let (unpacked, said) = unpack(folder.path());
    assert!(!unpacked && said.contains("FAILED"), "{said}");
}

#[test]
fn health_check_distinguishes_ready_server_from_none() {
    let check = said("HEALTHCHECK");
    let (_, command) = check.split_once(" CMD ").expect("a command");
    let command = list(command);
    assert_eq!(command[0], list(&said("ENTRYPOINT"))[0]);
    let folder = TempDir::new().expect("a folder");
    tenant(&folder.path().join("home"), "Home", "root: true\n");
    tenant(&folder.path().join("broken"), "Broken", "rooot: true\n");
    let mut server = Rowhouse::start(folder.path(), "https://studio.example");
    let probe = |admin: &str| {
        run(Command::new(binary())
            .args(&command[1..])
            .env("ROWHOUSE_ADMIN", admin))
    };
    let admin = server.admin.to_string();
    let everywhere = format!("0.0.0.0:{}", server.admin.port());
    for address in [&admin, &everywhere] {
        assert_eq!(probe(address), (true, "ready\nbroken: absent\n".to_owned()));
    }
    assert_eq!(server.program.end(), Some(0));
    let (healthy, said) = probe(&admin);
    assert!(
        !healthy && said.starts_with("error: no server responds at"),
        "{said}"
    );
}
