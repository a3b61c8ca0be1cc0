//! Packs folders and files for the store.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use bucket::packed::{LARGE_FILE, PackedFolder, compress, hash};
use bucket::store::Uploads;
use content::report::{Code, Diagnostic, Report, Severity};
use content::source::{self, FolderLimits, LargeSourceFile};
use fleet::key::ContentHash;

/// Packed content: the hash of the folder first, then those of its large files.
#[derive(Debug, Default)]
pub(super) struct PackedContent {
    pub(super) hashes: Vec<ContentHash>,
    pub(super) uploads: Uploads,
}

/// Reads a folder. `prefix` comes before each path.
///
/// # Errors
/// Returns the diagnostics of files that cannot be read.
pub(super) fn read_folder(path: &Path, prefix: &str) -> Result<BTreeMap<String, Bytes>, Report> {
    let label = path.display().to_string();
    let open = |file: File, length: u64| {
        // The bytes are read below; the hash of the store is that of the bytes that are sent.
        Ok(LargeSourceFile {
            file: Arc::new(file),
            length,
            digest: [0; 32],
            blocks: Arc::default(),
            stamp: None,
        })
    };
    let (folder, mut report) = source::read(path, &label, FolderLimits::default(), Some(&open));
    let mut files: BTreeMap<String, Bytes> = folder
        .files
        .into_iter()
        .map(|(path, bytes)| (format!("{prefix}{path}"), bytes))
        .collect();
    for (path, large) in folder.large {
        let mut bytes = Vec::new();
        let read = (&*large.file).take(large.length).read_to_end(&mut bytes);
        match read {
            Ok(_) => drop(files.insert(format!("{prefix}{path}"), bytes.into())),
            Err(error) => report.push(Diagnostic::error(
                Code::Unreadable,
                format!("{label}/{path}"),
                format!("cannot read the file: {error}"),
            )),
        }
    }
    match report.count(Severity::Error) {
        0 => Ok(files),
        _ => Err(report),
    }
}

/// Packs files. Each large file is an object of its own.
///
/// # Errors
/// Returns an error if memory for the compressor is missing.
pub(super) fn pack(files: BTreeMap<String, Bytes>) -> io::Result<PackedContent> {
    let mut packed = PackedContent::default();
    let mut folder = PackedFolder::default();
    let mut large = Vec::new();
    for (path, bytes) in files {
        if bytes.len() <= LARGE_FILE {
            folder.files.insert(path, bytes);
            continue;
        }
        let name = hash(&bytes);
        packed.uploads.insert(name.clone(), compress(&bytes)?);
        folder.large.insert(path, name.clone());
        large.push(name);
    }
    let bytes = folder.to_bytes();
    let name = hash(&bytes);
    packed.uploads.insert(name.clone(), compress(&bytes)?);
    // Two paths may have one content.
    large.sort();
    large.dedup();
    packed.hashes = [vec![name], large].concat();
    Ok(packed)
}
