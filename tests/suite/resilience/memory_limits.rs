//! The memory that one tenant can use: the program stays below the limit of its unit (`MemoryMax`).

use std::fs;
use std::time::{Duration, Instant};

use rowhouse_tests::{Process, TestServer, TestSite};

/// `MemoryMax` of the unit.
const MEMORY_MAX: u64 = 512 << 20;
const TIMEOUT: Duration = Duration::from_secs(120);

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < TIMEOUT, "timeout: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns a text that hardly compresses.
fn text(length: usize) -> Vec<u8> {
    const LETTERS: &[u8] = b"01234567 etaoinshr";
    let mut state = 1_u64;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        LETTERS[(state >> 33) as usize % LETTERS.len()]
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn mebibytes(bytes: u64) -> u64 {
    bytes >> 20
}

/// Returns the address of a tenant's file, from the page `/data`.
fn named(server: &TestServer, begin: &str) -> Option<String> {
    let page = server.get("localhost", "/app/data").text();
    let rest = &page[page.find(begin)?..];
    Some(rest[..rest.find('"')?].to_owned())
}

#[test]
fn nested_layers_are_refused_before_allocation() {
    let mut site = TestSite::fixture("sites");
    let icon = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\">{}<path d=\"M-90-90H90V90H-90z\"/>{}</svg>",
        "<g style=\"opacity:.9\">".repeat(180),
        "</g>".repeat(180)
    );
    site.write("tenants/app/assets/icon.svg", icon);
    let server = TestServer::start_without_retained_memory(site.folder(), &[]);
    wait("the icon of the other tenant", || {
        server.get("localhost", "/favicon.ico").status == 200
    });
    let ready = server.get_admin("/readyz").text();
    assert!(ready.contains("app: "), "{ready}");
    let log = server.log();
    assert!(
        log.contains("assets/icon.svg") && log.contains("nested layers of more than"),
        "{log}"
    );
    let peak = Process(server.id()).peak();
    assert!(peak < 200 << 20, "{} MiB", mebibytes(peak));
}

#[test]
fn repeatedly_replaced_tenant_at_its_limits_fits_into_memory() {
    let mut site = TestSite::fixture("sites");
    let page = "---\ntitle: Data\n---\n[One](../assets/one.bin) [Two](../assets/two.bin)\n";
    site.write("tenants/app/pages/data.md", page);
    let write = |round: u8| {
        let folder = site.path("tenants/app/assets");
        fs::create_dir_all(&folder).expect("a folder");
        let files = [("one", 0), ("two", 1)];
        for (name, seed) in files {
            let bytes = vec![round * 2 + seed; 31 << 20];
            fs::write(folder.join(format!(".{name}")), bytes).expect("a file");
        }
        // Both at once: on a slow machine, the server would read a version with one new file, too.
        for (name, _) in files {
            let new = folder.join(format!(".{name}"));
            fs::rename(new, folder.join(format!("{name}.bin"))).expect("a file");
        }
    };
    write(0);
    let server = TestServer::start_without_retained_memory(site.folder(), &["--state", "state"]);
    let two = || named(&server, "/app/assets/two");
    for round in 1..=5 {
        let before = two();
        assert!(before.is_some());
        write(round);
        wait("the new file", || two() != before);
    }
    let peak = Process(server.id()).peak();
    assert!(peak < MEMORY_MAX, "{} MiB", mebibytes(peak));
}

#[test]
fn replaced_texts_use_at_most_twice_their_size() {
    let mut site = TestSite::fixture("sites");
    let page = "---\ntitle: Data\n---\n![First](text-0.txt)\n";
    site.write("tenants/app/pages/data.md", page);
    // Two files that are compressed in every encoding, and four that are too large for that.
    let mut text = text(8 << 20);
    let mut write = |site: &mut TestSite, round: u8| {
        for number in 0..6 {
            text[..2].copy_from_slice(&[b'a' + round, b'a' + number]);
            let length = if number < 2 { 1 << 20 } else { 8 << 20 };
            let path = format!("tenants/app/assets/text-{number}.txt");
            site.write(&path, &text[..length]);
        }
    };
    write(&mut site, 0);
    let server = TestServer::start_without_retained_memory(site.folder(), &["--state", "state"]);
    let first = || named(&server, "/app/assets/text-0.");
    wait("the first file", || first().is_some());
    let before = first();
    write(&mut site, 1);
    wait("the new file", || first() != before);
    // 34 MiB of old and of new files, encodings of the same size at most, replaced files, and files to write.
    let peak = Process(server.id()).peak();
    assert!(peak < 320 << 20, "{} MiB", mebibytes(peak));
}

#[test]
fn large_video_uses_no_memory_and_is_served_in_ranges() {
    const SIZE: usize = 96 << 20;
    let mut site = TestSite::fixture("sites");
    let page = "---\ntitle: Data\n---\n[Film](../assets/film.mp4)\n";
    site.write("tenants/app/pages/data.md", page);
    let server = TestServer::start_without_retained_memory(site.folder(), &["--state", "state"]);
    let own = || Process(server.id()).own_memory();
    let before = own();
    let write = |byte: u8| {
        fs::create_dir_all(site.path("tenants/app/assets")).expect("a folder");
        let new = site.path("tenants/app/assets/.new");
        fs::write(&new, vec![byte; SIZE]).expect("a file");
        fs::rename(&new, site.path("tenants/app/assets/film.mp4")).expect("a file");
    };
    write(b'a');
    let film = || named(&server, "/app/assets/film");
    wait("the film", || film().is_some());
    let first = film().expect("an address");
    let part = |path: &str| {
        let range = format!("bytes={}-", SIZE - 3);
        let answer = server.request("GET", "localhost", path, &[("range", &range)]);
        (answer.status, answer.text())
    };
    assert_eq!(part(&first), (206, "aaa".to_owned()));
    write(b'b');
    wait("another film", || film().is_some_and(|film| film != first));
    let second = film().expect("an address");
    assert_eq!(part(&second), (206, "bbb".to_owned()));
    assert_eq!(part(&first), (206, "aaa".to_owned()), "pages may name it");
    assert_eq!(server.get("localhost", &second).text().len(), SIZE);
    let more = own().saturating_sub(before);
    assert!(more < 48 << 20, "{} MiB", mebibytes(more));

    // A file above the limit is an error of its own tenant.
    let huge = fs::File::create(site.path("tenants/app/assets/huge.zip")).expect("a file");
    huge.set_len(300 << 20).expect("a file with holes");
    wait("an error", || server.log().contains("assets/huge.zip"));
    assert_eq!(part(&second), (206, "bbb".to_owned()));
    assert_eq!(server.get("localhost", "/").status, 200);
}
