//! Limits on listing and reading a folder.

/// Limits on the content of one folder: enough for any small site, too little to affect other tenants.
#[derive(Debug, Clone, Copy)]
pub struct FolderLimits {
    /// Bytes of one file held in memory.
    pub file: u64,
    /// Bytes of all files held in memory.
    pub total: u64,
    /// Bytes of one file that is too large for memory.
    pub large_file: u64,
    /// Bytes of all files that are too large for memory.
    pub large_total: u64,
    /// The number of files.
    pub files: usize,
    /// The number of folders.
    pub folders: usize,
    /// The number of directory entries, including hidden ones.
    pub entries: usize,
    /// The nesting depth of folders.
    pub depth: usize,
    /// The number of errors after which the rest of the folder is not read.
    pub errors: usize,
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
        }
    }
}

/// Extensions of files that may be too large for memory: video, audio, documents and archives. The program sends them unchanged, and reads all other types.
const LARGE_TYPES: [&str; 26] = [
    "7z", "aac", "apk", "appimage", "deb", "dmg", "epub", "exe", "flac", "gz", "iso", "m4a", "m4v",
    "mp3", "mp4", "msi", "ogg", "ogv", "opus", "pdf", "pkg", "tar", "wav", "webm", "xz", "zip",
];

/// Returns whether a file may be too large for memory, by its path in the folder.
pub(super) fn is_large_type(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    let extension = extension.unwrap_or_default().to_ascii_lowercase();
    path.starts_with("assets/") && LARGE_TYPES.contains(&extension.as_str())
}
