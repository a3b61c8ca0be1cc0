//! How much of a folder is listed and read.

use std::time::Duration;

/// The most that one folder may hold: enough for any small site, too little to hurt the neighbours.
#[derive(Debug, Clone, Copy)]
pub struct FolderLimits {
    /// Bytes in one file that is held in memory.
    pub file: u64,
    /// Bytes in all that is held in memory.
    pub total: u64,
    /// Bytes in one file that is too large for memory.
    pub large_file: u64,
    /// Bytes in all of these.
    pub large_total: u64,
    /// Files in all.
    pub files: usize,
    /// Folders in all.
    pub folders: usize,
    /// Names in all folders that are listed, hidden ones, too.
    pub entries: usize,
    /// Folders within folders.
    pub depth: usize,
    /// Diagnostics of what cannot be taken, before the rest is not looked at.
    pub errors: usize,
    /// The time after its last change in which a file that ends early counts as being uploaded. Zero takes every file as it is.
    pub upload_pause: Duration,
}

impl Default for FolderLimits {
    fn default() -> Self {
        Self {
            file: 32 << 20,
            total: 64 << 20,
            large_file: 256 << 20,
            large_total: 1 << 30,
            files: 20_000,
            folders: 4_096,
            entries: 50_000,
            depth: 16,
            errors: 100,
            upload_pause: Duration::ZERO,
        }
    }
}

/// What may be too large for memory, by its name: films, sound, documents and archives, which are only ever sent as they are. Nothing else is, since the program looks into it.
const LARGE_TYPES: [&str; 26] = [
    "7z", "aac", "apk", "appimage", "deb", "dmg", "epub", "exe", "flac", "gz", "iso", "m4a", "m4v",
    "mp3", "mp4", "msi", "ogg", "ogv", "opus", "pdf", "pkg", "tar", "wav", "webm", "xz", "zip",
];

/// Whether a file may be too large for memory, by its path in the folder.
pub(super) fn is_large_type(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    let extension = extension.unwrap_or_default().to_ascii_lowercase();
    path.starts_with("assets/") && LARGE_TYPES.contains(&extension.as_str())
}
