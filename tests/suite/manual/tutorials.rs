//! The two tutorials, `themes/TUTORIAL.md` and the manual's: every step is followed in a new folder.
//!
//! | in the tutorial | here |
//! |---|---|
//! | a path in bold type, then a block | the file is written; `, at the end` adds to it, `, in place of line 3` replaces that line |
//! | a block of `sh` | a shell runs it; `rowhouse serve` starts a server that stays |
//! | a block of `text` | the output of the commands before it, stdout and then stderr |
//! | a list with addresses | the server's pages contain the text between backticks |

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use rowhouse_tests::{TestServer, binary, copy, expect_text, stderr, stdout, workspace};
use tempfile::TempDir;

/// The timeout of a saved file on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The server's address in the tutorial.
const ADDRESS: &str = "<http://localhost:8080";

/// A reader who follows the tutorial.
struct Reader {
    server: Option<TestServer>,
    root: TempDir,
}

impl Reader {
    fn new() -> Self {
        let root = TempDir::new().expect("a folder");
        let reader = Self { server: None, root };
        fs::create_dir(reader.folder()).expect("a folder");
        reader
    }

    /// Copies the repository's themes to the place of a clone.
    fn clone_themes(&self) {
        let clone = self.root.path().join("rowhouse/themes");
        copy(&workspace().join("themes"), &clone);
    }

    /// Returns the reader's working folder.
    fn folder(&self) -> PathBuf {
        self.root.path().join("sites")
    }

    /// Runs commands. `rowhouse serve` starts a server and returns no output.
    fn run(&mut self, script: &str) -> Option<Output> {
        let folder = self.folder();
        if let Some(flags) = script.trim().strip_prefix("rowhouse serve") {
            let flags: Vec<&str> = flags.split_whitespace().collect();
            self.server = Some(TestServer::start(&folder, &flags));
            return None;
        }
        let program = binary().parent().expect("a folder").display();
        let others = std::env::var("PATH").expect("a path");
        let output = Command::new("sh")
            .args(["-ec", script])
            .current_dir(folder)
            .env("PATH", format!("{program}:{others}"))
            .output();
        Some(output.expect("a shell"))
    }

    /// Writes a file. `target`: its path, two stars, and the place of the text in the file.
    fn write(&self, target: &str, text: &str) {
        let (path, place) = target.split_once("**").expect("a path in bold type");
        let file = self.folder().join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        let before = || fs::read_to_string(&file).expect("a file");
        let text = match place {
            "" => text.to_owned(),
            ", at the end" => before() + text,
            _ => {
                let number = place.strip_prefix(", in place of line ");
                let number: usize = number
                    .and_then(|number| number.parse().ok())
                    .expect("a number");
                let mut lines: Vec<String> =
                    before().lines().map(|line| format!("{line}\n")).collect();
                lines[number - 1] = text.to_owned();
                lines.concat()
            }
        };
        fs::write(&file, text).expect("a written file");
    }

    /// Polls a page until it contains the text of a line. `line`: a path, `>`, and texts between backticks.
    fn wait_for_page(&self, line: &str) {
        let (path, claims) = line.split_once('>').expect("an address");
        let wanted: Vec<&str> = claims.split('`').skip(1).step_by(2).collect();
        assert!(!wanted.is_empty(), "{path} shows nothing");
        let server = self.server.as_ref().expect("a server");
        let begin = Instant::now();
        loop {
            let page = server.get(&server.domain(), path).text();
            let missing: Vec<&&str> = wanted
                .iter()
                .filter(|words| !page.contains(**words))
                .collect();
            if missing.is_empty() {
                return;
            }
            assert!(
                begin.elapsed() < TIMEOUT,
                "{path} does not show {missing:?}:\n{page}"
            );
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Checks that commands without shown output succeed.
fn require_success(printed: &mut Option<Output>) {
    if let Some(output) = printed.take() {
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn every_step_of_theme_tutorial_works() {
    let reader = Reader::new();
    reader.clone_themes();
    follow(&workspace().join("themes/TUTORIAL.md"), reader);
}

#[test]
fn every_step_of_manual_tutorial_works() {
    let path = "engine/rowhouse/manual/pages/tutorial/index.md";
    let reader = Reader::new();
    let exported = reader.folder().join("public/harbour.example/prices.html");
    let _reader = follow(&workspace().join(path), reader);
    let prices = fs::read_to_string(exported).expect("the site that it promises");
    assert!(prices.contains("58.50"), "{prices}");
}

/// Follows every step of a tutorial.
fn follow(path: &Path, mut reader: Reader) -> Reader {
    let tutorial = fs::read_to_string(path).expect("the tutorial");
    // The tutorial with the real output of its commands.
    let mut followed = String::new();
    let mut target = None;
    let mut printed = None;
    let mut looks = 0;
    let mut lines = tutorial.lines();
    while let Some(line) = lines.next() {
        followed.push_str(line);
        followed.push('\n');
        if let Some(file) = line.strip_prefix("**") {
            target = Some(file);
        }
        if let Some((_, page)) = line.split_once(ADDRESS) {
            require_success(&mut printed);
            reader.wait_for_page(page);
            looks += 1;
        }
        let Some(language) = line.strip_prefix("```") else {
            continue;
        };
        let block = lines.by_ref().take_while(|line| *line != "```");
        let mut block: String = block.map(|line| format!("{line}\n")).collect();
        match language {
            "text" => {
                let output = printed.take().expect("a command before what it prints");
                let both = stdout(&output) + &stderr(&output);
                block = format!("{}\n", both.trim());
            }
            "sh" => {
                require_success(&mut printed);
                printed = reader.run(&block);
            }
            _ => {
                require_success(&mut printed);
                reader.write(target.take().expect("the path of a file"), &block);
            }
        }
        followed.push_str(&block);
        followed.push_str("```\n");
    }
    require_success(&mut printed);
    assert_eq!(looks, tutorial.matches(ADDRESS).count());
    expect_text(&followed, path);
    reader
}
