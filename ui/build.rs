//! Builds the UI bundle when its sources have changed, and writes a table of its files for `src/embedded.rs`.
//!
//!   1. If `ROWHOUSE_UI_DIST` names a finished bundle, uses it and runs nothing.
//!   2. Otherwise checks Node, runs `npm ci` if the lock file has changed since the last run, and then `node build.mjs`.
//!   3. Writes the table: names with `include_bytes!`.
//!
//! The commands are on standard output, which `cargo build -vv` shows. There is no `cargo::warning`, since cargo
//! would repeat it with every build that runs nothing.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::{env, io};

/// The sources of the bundle, without tests, README and the Rust sources.
const SOURCES: [&str; 8] = [
    "build",
    "build.mjs",
    "islands",
    "package-lock.json",
    "package.json",
    "runtime",
    "shared",
    "tsconfig.json",
];

const MIN_NODE_MAJOR: u32 = 20;

/// Lines of a failed command's output that are passed on.
const MAX_EXCERPT_LINES: usize = 20;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            for line in message.lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ROWHOUSE_UI_DIST");
    let ui = directory("CARGO_MANIFEST_DIR")?;
    let out = directory("OUT_DIR")?;
    let bundle = match env::var_os("ROWHOUSE_UI_DIST") {
        Some(dir) if !dir.is_empty() => prebuilt(PathBuf::from(dir))?,
        _ => build(&ui, out.join("dist"))?,
    };
    let table = table(&bundle)
        .map_err(|error| format!("cannot list the UI bundle `{}`: {error}", bundle.display()))?;
    fs::write(out.join("embedded.rs"), table)
        .map_err(|error| format!("cannot write `embedded.rs`: {error}"))
}

fn directory(variable: &str) -> Result<PathBuf, String> {
    env::var_os(variable)
        .map(PathBuf::from)
        .ok_or_else(|| format!("cargo did not set `{variable}`"))
}

fn prebuilt(dir: PathBuf) -> Result<PathBuf, String> {
    println!("cargo::rerun-if-changed={}", dir.display());
    if dir.is_absolute() && dir.join("manifest.json").is_file() {
        return Ok(dir);
    }
    Err(format!(
        "`{}` (`ROWHOUSE_UI_DIST`) is not the absolute path of a UI bundle: name a folder with a `manifest.json`, \
         made by `node ui/build.mjs --out DIR`",
        dir.display()
    ))
}

fn build(ui: &Path, dist: PathBuf) -> Result<PathBuf, String> {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    check_node()?;
    install(ui)?;
    println!("running `node build.mjs` in `{}`", ui.display());
    let output = Command::new("node")
        .arg("build.mjs")
        .arg("--out")
        .arg(&dist)
        .current_dir(ui)
        .output()
        .map_err(|error| format!("cannot run `node build.mjs`: {error}"))?;
    if output.status.success() {
        Ok(dist)
    } else {
        Err(format!(
            "`node build.mjs` failed in `{}`:\n{}",
            ui.display(),
            excerpt(&output)
        ))
    }
}

fn check_node() -> Result<(), String> {
    let advice = format!(
        "install Node {MIN_NODE_MAJOR} or newer with npm to build the UI, or set `ROWHOUSE_UI_DIST` to a prebuilt bundle"
    );
    let output = Command::new("node")
        .arg("--version")
        .output()
        .map_err(|error| format!("cannot run `node` ({error}); {advice}"))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let major = version
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major >= MIN_NODE_MAJOR => Ok(()),
        _ => Err(format!("`node --version` printed `{version}`; {advice}")),
    }
}

/// Installs the npm packages, unless they were installed from the same lock file.
fn install(ui: &Path) -> Result<(), String> {
    let read = |name: &str| {
        fs::read_to_string(ui.join(name)).map_err(|error| format!("cannot read `{name}`: {error}"))
    };
    // Builds into other target directories share `node_modules`, so only one may install at a time.
    let guard = File::open(ui.join("package-lock.json"))
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|error| format!("cannot lock `package-lock.json`: {error}"))?;

    let required = read("package.json")? + &read("package-lock.json")?;
    let stamp = ui.join("node_modules").join(".rowhouse-installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == required) {
        return Ok(());
    }
    println!("running `npm ci` in `{}`", ui.display());
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let output = Command::new(npm)
        .args([
            "ci",
            "--include=dev",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ])
        .current_dir(ui)
        .output()
        .map_err(|error| {
            format!("cannot run `{npm}` ({error}); install npm with Node {MIN_NODE_MAJOR} or newer")
        })?;
    if !output.status.success() {
        return Err(format!(
            "`npm ci` failed in `{}`:\n{}",
            ui.display(),
            excerpt(&output)
        ));
    }
    fs::write(&stamp, required)
        .map_err(|error| format!("cannot write `{}`: {error}", stamp.display()))?;
    drop(guard);
    Ok(())
}

/// Returns the beginning of a failed command's output: npm and esbuild print the reason first.
fn excerpt(output: &Output) -> String {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().filter(|line| {
        !line.trim().is_empty() && *line != "npm error" && !line.starts_with("npm warn")
    });
    lines.take(MAX_EXCERPT_LINES).collect::<Vec<_>>().join("\n")
}

/// Returns Rust source code with the bundle's parts, for `include!`.
fn table(bundle: &Path) -> Result<String, io::Error> {
    let mut table = String::new();
    let path = |name: &str| bundle.join(name).display().to_string();
    let _ = writeln!(
        table,
        "const MANIFEST: &str = include_str!({:?});",
        path("manifest.json")
    );
    let _ = writeln!(
        table,
        "const SERVER_SCRIPT: &str = include_str!({:?});",
        path("server.js")
    );
    let _ = writeln!(
        table,
        "const DEV_SCRIPT: &str = include_str!({:?});",
        path("dev.js")
    );
    let _ = writeln!(
        table,
        "/// The script of the console, which the program serves to operators and to no visitor.\npub const CONSOLE_SCRIPT: &str = include_str!({:?});",
        path("console.js")
    );
    let _ = writeln!(
        table,
        "const LOADER: &str = include_str!({:?});",
        path("loader.js")
    );
    for (constant, folder) in [("CLIENT", "client"), ("BROTLI", "brotli")] {
        let _ = writeln!(table, "const {constant}: &[(&str, &[u8])] = &[");
        for file in files(&bundle.join(folder))? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let _ = writeln!(
                table,
                "    ({name:?}, include_bytes!({:?})),",
                file.display().to_string()
            );
        }
        table.push_str("];\n");
    }
    Ok(table)
}

/// Returns the files of a folder, sorted by name; none if the folder does not exist.
fn files(folder: &Path) -> Result<Vec<PathBuf>, io::Error> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder)?;
    let files: Result<Vec<PathBuf>, io::Error> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut files = files?;
    files.sort();
    Ok(files)
}
