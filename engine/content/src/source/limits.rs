//! How much of a folder is listed and read.

/// The most that one folder may hold: enough for any small site, too little to hurt the neighbours.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes in one file.
    pub file: u64,
    /// Bytes in all.
    pub total: u64,
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
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file: 32 << 20,
            total: 64 << 20,
            files: 20_000,
            folders: 4_096,
            entries: 50_000,
            depth: 16,
            errors: 100,
        }
    }
}
