//! Files that arrive slowly, or are cut off: visitors see the old or the complete new version, and each upload is one release.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rowhouse_tests::binary;
use serde_json::Value as Json;

use crate::media::images::photo;
use crate::reload::watched_deployment::{WatchedDeployment, write_page};

/// The pause between two parts of an upload.
const PAUSE: Duration = Duration::from_millis(250);

/// The longest pause that the program takes for the same upload, if each part closes the file.
const MAX_PAUSE: Duration = Duration::from_millis(800);

/// A page of an upload, in parts that are valid pages each.
fn parts(title: &str) -> Vec<String> {
    let head = format!("---\ntitle: {title}\n---\n\nFirst para");
    let lines = (1..6).map(|number| format!("graph.\n\nParagraph {number} of {title}"));
    std::iter::once(head)
        .chain(lines)
        .chain([" is the end.\n".to_owned()])
        .collect()
}

fn line(deployment: &WatchedDeployment) -> Json {
    let body = deployment.server.get_admin("/tenants").body;
    let lines: Vec<Json> = serde_json::from_slice(&body).expect("JSON");
    let line = lines.into_iter().find(|line| line["id"] == "home");
    line.unwrap_or_default()
}

/// Returns the numbers of the releases, newest first.
fn releases(deployment: &WatchedDeployment) -> Vec<u64> {
    let output = Command::new(binary())
        .args(["releases", "home", "--format", "json", "--admin"])
        .arg(deployment.server.admin.to_string())
        .output()
        .expect("rowhouse");
    let releases: Vec<Json> = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let numbers = releases.iter().map(|release| release["number"].as_u64());
    numbers.map(|number| number.expect("a number")).collect()
}

fn start(more: &[&str]) -> WatchedDeployment {
    let more = [&["--state", "state"], more].concat();
    let deployment = WatchedDeployment::start(&more);
    deployment.wait_until("the first release", || releases(&deployment) == [1]);
    deployment
}

/// Checks that visitors get a complete version: with this title and its last words, or a former title.
fn check_page(deployment: &WatchedDeployment, former: &str, title: &str) {
    let page = deployment
        .server
        .get(&deployment.server.domain(), "/")
        .text();
    let is_former = page.contains(&format!("<h1>{former}</h1>"));
    let is_complete = page.contains(&format!("<h1>{title}</h1>")) && page.contains("is the end.");
    assert!(is_former || is_complete, "a part of the page: {page}");
}

/// Writes parts with pauses, and checks the page meanwhile. Returns whether no pause was longer than [`MAX_PAUSE`].
fn upload(parts: &[String], mut write: impl FnMut(&str), mut check: impl FnMut()) -> bool {
    let mut has_pace = true;
    for part in parts {
        let begin = Instant::now();
        write(part);
        while begin.elapsed() < PAUSE {
            check();
            std::thread::sleep(Duration::from_millis(20));
        }
        has_pace &= begin.elapsed() < MAX_PAUSE;
    }
    has_pace
}

#[test]
fn page_that_is_written_to_an_open_file_is_published_when_the_file_is_closed() {
    let deployment = start(&[]);
    let path = deployment.path("tenants/home/pages/index.md");
    let mut file = File::create(&path).expect("a file");
    let mut states = Vec::new();
    upload(
        &parts("Uploaded"),
        |part| file.write_all(part.as_bytes()).expect("a write"),
        || {
            check_page(&deployment, "Home", "Uploaded");
            states.push(line(&deployment)["state"].as_str().unwrap_or("").to_owned());
        },
    );
    let ready = deployment.server.get_admin("/readyz");
    assert_eq!(ready.status, 200);
    assert!(
        ready.text().contains("home: receiving: pages/index.md"),
        "{}",
        ready.text()
    );
    assert!(
        states.iter().any(|state| state == "receiving"),
        "{states:?}"
    );
    assert_eq!(
        deployment.title("/").as_deref(),
        Some("Home"),
        "the file is open"
    );
    drop(file);
    deployment.wait_for_title("/", Some("Uploaded"));
    check_page(&deployment, "Uploaded", "Uploaded");
    deployment.wait_until("one new release", || releases(&deployment) == [2, 1]);
    deployment.wait_until("its state", || line(&deployment)["state"] == "live");
    let log = deployment.server.log();
    let reloads = log.matches("\"message\":\"reloaded\"").count();
    assert!(reloads < 4, "each part is in the log: {log}");
    assert!(log.contains("upload ended"), "{log}");
}

#[test]
fn page_that_is_appended_in_steps_is_one_release() {
    let deployment = start(&[]);
    let path = deployment.path("tenants/home/pages/index.md");
    // The former page is longer than the first part of the upload.
    fs::write(&path, parts("Start").concat()).expect("a file");
    deployment.wait_for_title("/", Some("Start"));
    deployment.wait_until("its release", || releases(&deployment) == [2, 1]);
    let mut former = "Start".to_owned();
    for attempt in 0..10 {
        let title = format!("Attempt {attempt}");
        let before = releases(&deployment)[0];
        let (former_title, mut broken) = (former.clone(), None);
        let mut is_first = true;
        let has_pace = upload(
            &parts(&title),
            |part| {
                let mut options = OpenOptions::new();
                let options = match std::mem::take(&mut is_first) {
                    true => options.write(true).truncate(true),
                    false => options.append(true),
                };
                let mut file = options.open(&path).expect("a file");
                file.write_all(part.as_bytes()).expect("a write");
            },
            || {
                let page = deployment
                    .server
                    .get(&deployment.server.domain(), "/")
                    .text();
                let is_former = page.contains(&format!("<h1>{former_title}</h1>"));
                if !is_former && !page.contains("is the end.") {
                    broken = Some(page);
                }
            },
        );
        deployment.wait_for_title("/", Some(&title));
        deployment.wait_until("the complete page", || {
            deployment
                .server
                .get(&deployment.server.domain(), "/")
                .text()
                .contains("is the end.")
        });
        former = title;
        if has_pace {
            assert_eq!(broken, None, "a part of the page");
            deployment.wait_until("a release", || releases(&deployment)[0] > before);
            deployment.wait_until("its state", || line(&deployment)["state"] == "live");
            assert_eq!(releases(&deployment)[0], before + 1);
            return;
        }
    }
    panic!("the machine was too slow for each of ten uploads");
}

/// Files with the number of bytes after which their upload is cut off.
fn media() -> [(&'static str, Vec<u8>, usize); 2] {
    let jpeg = photo(300, 200);
    let cut = jpeg.len() / 2;
    let video = [
        &b"\0\0\0\x14ftypisom\0\0\0\0isom\0\0\x10\x08mdat"[..],
        &[7; 4096],
    ]
    .concat();
    [("hall.jpg", jpeg, cut), ("hall.mp4", video, 1000)]
}

#[test]
fn media_that_are_cut_off_keep_the_last_release_and_are_reported() {
    let deployment = start(&["--settle-max", "2s"]);
    let assets = deployment.path("tenants/home/assets");
    fs::create_dir(&assets).expect("a folder");
    for (name, content, cut) in media() {
        let before = releases(&deployment)[0];
        let path = assets.join(name);
        fs::write(&path, &content[..cut]).expect("a file");
        deployment.wait_until("the wait", || line(&deployment)["state"] == "receiving");
        // A page that is saved meanwhile waits, too.
        write_page(&deployment.path("tenants/home"), name);
        deployment.wait_until("the report", || line(&deployment)["state"] == "degraded");
        let errors = line(&deployment)["errors"].to_string();
        let is_named = errors.contains(name) && errors.contains("incomplete-file");
        assert!(is_named, "{errors}");
        assert_ne!(deployment.title("/").as_deref(), Some(name));
        assert_eq!(releases(&deployment)[0], before);
        fs::write(&path, &content).expect("a file");
        deployment.wait_for_title("/", Some(name));
        deployment.wait_until("its release", || releases(&deployment)[0] == before + 1);
        deployment.wait_until("its state", || line(&deployment)["state"] == "live");
    }
}

#[test]
fn image_that_arrives_in_steps_and_is_moved_into_place_are_one_release_each() {
    let deployment = start(&[]);
    let assets = deployment.path("tenants/home/assets");
    fs::create_dir(&assets).expect("a folder");
    let [(_, jpeg, _), _] = media();
    let page = |title: &str| format!("---\ntitle: {title}\n---\n\n![A hall](../assets/hall.jpg)\n");
    let save = |path: &Path, text: &str| {
        fs::write(path.with_extension("tmp"), text).expect("a file");
        fs::rename(path.with_extension("tmp"), path).expect("moved");
    };
    let index = deployment.path("tenants/home/pages/index.md");
    // The image is incomplete when the page that shows it arrives.
    let size = jpeg.len().div_ceil(6);
    let mut is_first = true;
    for part in jpeg.chunks(size) {
        let mut options = OpenOptions::new();
        let mut file = options
            .create(true)
            .append(true)
            .open(assets.join("hall.jpg"))
            .expect("a file");
        file.write_all(part).expect("a write");
        drop(file);
        if std::mem::take(&mut is_first) {
            save(&index, &page("Hall"));
        }
        std::thread::sleep(PAUSE);
        let shown = deployment.title("/");
        assert!(
            matches!(shown.as_deref(), Some("Home" | "Hall")),
            "{shown:?}"
        );
    }
    deployment.wait_for_title("/", Some("Hall"));
    deployment.wait_until("its state", || line(&deployment)["state"] == "live");
    deployment.wait_until("one new release", || releases(&deployment) == [2, 1]);
    save(&index, &page("Moved"));
    deployment.wait_for_title("/", Some("Moved"));
    deployment.wait_until("one new release", || releases(&deployment) == [3, 2, 1]);
}

#[test]
fn file_that_grows_all_the_time_delays_its_site_at_most_for_the_limit() {
    let deployment = start(&["--settle-max", "2s"]);
    let assets = deployment.path("tenants/home/assets");
    fs::create_dir(&assets).expect("a folder");
    let mut log = File::create(assets.join("log.txt")).expect("a file");
    for title in ["One", "Two"] {
        write_page(&deployment.path("tenants/home"), title);
        deployment.wait_until(title, || {
            log.write_all(b"A line of the log.\n").expect("a write");
            deployment.title("/").as_deref() == Some(title)
        });
    }
}
