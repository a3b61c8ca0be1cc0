//! `rowhouse restore`: serves a tenant again whose folder was removed, or writes its last valid folder.
//!
//! **Invariant:** an existing file is never replaced, and a folder appears with all its files at once.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Component, Path};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use serde::de::IgnoredAny;

use content::source::{Folder, LargeSourceFile};
use render::CachePolicy;
use supervisor::{PersistedState, valid_folder};

use crate::cli::RestoreArguments;
use crate::commands::operations::releases::{command, refused};
use crate::commands::output::print_message;
use crate::commands::setup::config;

/// Restores a tenant on a running server, or writes its folder.
pub(crate) fn run(arguments: &RestoreArguments) -> anyhow::Result<ExitCode> {
    if let (Some(to), Some(state)) = (&arguments.to, &arguments.state) {
        write_folder(arguments, state, to)?;
        return Ok(ExitCode::SUCCESS);
    }
    let tenant = &arguments.tenant;
    let target = format!("/tenants/{tenant}/restore");
    let response: Result<IgnoredAny, _> = command(arguments.server, &arguments.token, &target)?;
    Ok(match response {
        Err(refusal) => refused(&refusal),
        Ok(_) => {
            print_message(&format!(
                "the last valid folder of `{tenant}` is served until its folder is back: write the folder with `rowhouse restore {tenant} --to DIR --state DIR`"
            ));
            ExitCode::SUCCESS
        }
    })
}

/// Writes the last valid folder of the tenant from the state.
fn write_folder(arguments: &RestoreArguments, state: &Path, to: &Path) -> anyhow::Result<()> {
    let tenant = &arguments.tenant;
    let config = config(&arguments.content, CachePolicy::default());
    let store = PersistedState::reader(state, &config);
    let folder = valid_folder(&store, tenant).with_context(|| {
        format!(
            "the state `{}` has no valid folder of `{tenant}`: check `--state`, `--origin` and `--tenants`, which must be those of the server",
            state.display()
        )
    })?;
    write(&folder, to).with_context(|| format!("cannot write `{}`", to.display()))?;
    let files = folder.files.len() + folder.large.len();
    print_message(&format!(
        "wrote the last valid folder of `{tenant}` to `{}`: {files} files",
        to.display()
    ));
    Ok(())
}

/// Writes a folder beside its place, then moves it to its place.
fn write(folder: &Folder, to: &Path) -> anyhow::Result<()> {
    match fs::read_dir(to) {
        Ok(mut entries) => ensure!(
            entries.next().is_none(),
            "the folder has files: name a new folder with `--to`"
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let name = to.file_name().context("the path has no name")?;
    let parent = to.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    // A hidden folder is not a tenant.
    let hidden = parent.join(format!(".{}.restored", name.display()));
    if hidden.exists() {
        fs::remove_dir_all(&hidden)?;
    }
    fs::create_dir_all(&hidden)?;
    let written = write_files(folder, &hidden).and_then(|()| Ok(fs::rename(&hidden, to)?));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_dir_all(&hidden);
    }
    written
}

fn write_files(folder: &Folder, to: &Path) -> anyhow::Result<()> {
    for (path, bytes) in &folder.files {
        io::copy(&mut &bytes[..], &mut new_file(to, path)?)?;
    }
    for (path, large) in &folder.large {
        io::copy(&mut LargeFileReader::new(large), &mut new_file(to, path)?)?;
    }
    Ok(())
}

/// Creates a file, and the folders that contain it.
fn new_file(folder: &Path, path: &str) -> anyhow::Result<File> {
    let path = Path::new(path);
    let is_inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !is_inside {
        bail!("`{}` is not a path within the folder", path.display());
    }
    let path = folder.join(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(File::create_new(path)?)
}

/// Reads a large file from its beginning.
struct LargeFileReader<'f> {
    file: &'f LargeSourceFile,
    offset: u64,
}

impl<'f> LargeFileReader<'f> {
    const fn new(file: &'f LargeSourceFile) -> Self {
        Self { file, offset: 0 }
    }
}

impl Read for LargeFileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.file.length - self.offset).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let read = self
            .file
            .file
            .read_at(buffer.get_mut(..length).unwrap_or_default(), self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn folder(files: &[(&str, &'static str)]) -> Folder {
        let files = files.iter();
        Folder {
            files: files
                .map(|(path, text)| ((*path).to_owned(), Bytes::from_static(text.as_bytes())))
                .collect(),
            ..Folder::default()
        }
    }

    #[test]
    fn folder_is_written_with_all_files() {
        let place = tempfile::tempdir().unwrap();
        let to = place.path().join("tenants/corner");
        let source = folder(&[
            ("tenant.yaml", "name: Corner\n"),
            ("pages/index.md", "Hello"),
        ]);
        write(&source, &to).unwrap();
        assert_eq!(
            fs::read_to_string(to.join("pages/index.md")).unwrap(),
            "Hello"
        );
        let tenants = fs::read_dir(place.path().join("tenants")).unwrap();
        assert_eq!(tenants.count(), 1, "no other folder is left");
    }

    #[test]
    fn folder_with_files_is_never_changed() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("mine"), "mine").unwrap();
        let error = write(&folder(&[("mine", "other")]), place.path()).unwrap_err();
        assert!(error.to_string().contains("name a new folder"), "{error}");
        assert_eq!(
            fs::read_to_string(place.path().join("mine")).unwrap(),
            "mine"
        );
    }

    #[test]
    fn path_outside_the_folder_is_refused() {
        let place = tempfile::tempdir().unwrap();
        for path in ["../out", "/etc/out", "a/../../out"] {
            let to = place.path().join("corner");
            let error = write(&folder(&[(path, "text")]), &to).unwrap_err();
            assert!(error.to_string().contains("not a path within"), "{error}");
            assert!(!to.exists());
        }
    }
}
