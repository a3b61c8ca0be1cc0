//! Compressed folders: the content of idle tenants, so that many tenants fit into little memory.
//!
//! Addresses, lists of pages and dates are in the outline of the content ([`Site::outline`]). All other content is parsed again from the compressed folder, because the folder on disk may have changed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use zstd::bulk::Compressor;
use zstd::zstd_safe::get_frame_content_size;

use content::name::TenantId;
use content::source::{Folder, LargeSourceFile};
use content::tenant::{self, Site};
use release::large;
use release::pack::{pack, unpack};
use release::payload::Payload;
use release::store::Rows;

/// The compression level of zstd. Level 1 compresses some hundred megabytes a second, which is faster than reading a folder.
const COMPRESSION_LEVEL: i32 = 1;

/// Limit on the size of an unpacked folder, in bytes: its files, and room for their paths. Damaged data may claim any size.
const MAX_UNPACKED_BYTES: usize = 128 << 20;

thread_local! {
    /// One compressor for each thread, because making a compressor takes as long as compressing a small folder.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(Compressor::new(COMPRESSION_LEVEL).ok());
}

/// A folder in memory, open or compressed.
#[derive(Debug, Clone)]
pub(crate) enum FolderContent {
    /// As it was read.
    Open(Folder),
    /// Compressed.
    Packed(Arc<PackedFolder>),
}

/// A compressed folder.
#[derive(Debug)]
pub(crate) struct PackedFolder {
    label: String,
    bytes: Bytes,
    /// The files that are too large for memory.
    large: BTreeMap<String, LargeSourceFile>,
}

impl FolderContent {
    /// Returns the folder, or `None` if it cannot be decompressed.
    pub(crate) fn folder(&self) -> Option<Folder> {
        match self {
            Self::Open(folder) => Some(folder.clone()),
            Self::Packed(packed) => packed.folder(),
        }
    }

    /// Returns the files that are too large for memory.
    pub(crate) fn large(&self) -> &BTreeMap<String, LargeSourceFile> {
        match self {
            Self::Open(folder) => &folder.large,
            Self::Packed(packed) => &packed.large,
        }
    }

    /// Returns the compressed folder, or `None` if it cannot be compressed.
    pub(crate) fn packed(&self) -> Option<Arc<PackedFolder>> {
        match self {
            Self::Open(folder) => PackedFolder::of(folder).map(Arc::new),
            Self::Packed(packed) => Some(Arc::clone(packed)),
        }
    }
}

/// Returns the rows of a folder, one for each file. Equal folders have equal rows.
pub(crate) fn rows_of(folder: &Folder) -> Rows {
    let (files, large) = (folder.files.iter(), folder.large.iter());
    let files = files.map(|(path, bytes)| (path, bytes.clone().into()));
    let large = large.map(|(path, file)| (path, of_folder(file).into()));
    let rows = files.chain(large);
    rows.map(|(path, payload)| (path.clone().into(), payload))
        .collect()
}

/// Returns the folder that has these rows, or `None` if a key is not a path in UTF-8.
pub(crate) fn folder_of(label: &str, rows: Rows) -> Option<Folder> {
    let mut folder = Folder {
        label: label.to_owned(),
        ..Folder::default()
    };
    for (path, payload) in rows {
        let path = String::from_utf8(path.to_vec()).ok()?;
        match payload {
            Payload::Memory(bytes) => drop(folder.files.insert(path, bytes)),
            Payload::Large(file) => drop(folder.large.insert(path, to_folder(&file))),
        }
    }
    Some(folder)
}

/// Converts a large file of a folder to the type that is served and persisted.
fn of_folder(file: &LargeSourceFile) -> large::LargeFile {
    let (bytes, blocks) = (Arc::clone(&file.file), Arc::clone(&file.blocks));
    large::LargeFile::new((bytes, file.length, file.digest, blocks))
}

/// Converts a large file to the type that folders contain.
pub(crate) fn to_folder(file: &large::LargeFile) -> LargeSourceFile {
    let (file, length, digest, blocks) = file.parts();
    LargeSourceFile {
        file,
        length,
        digest,
        blocks,
        stamp: None,
    }
}

impl PackedFolder {
    /// Compresses a folder. Returns `None` if the compressor fails.
    fn of(folder: &Folder) -> Option<Self> {
        let bytes = COMPRESSOR.with_borrow_mut(|compressor| {
            let files = folder.files.iter();
            let files = pack(files.map(|(path, bytes)| (path.as_bytes(), bytes.as_ref())));
            compressor.as_mut()?.compress(&files).ok()
        })?;
        Some(Self {
            label: folder.label.clone(),
            bytes: bytes.into_boxed_slice().into(),
            large: folder.large.clone(),
        })
    }

    pub(crate) fn folder(&self) -> Option<Folder> {
        // Allocated exactly: a buffer that grows needs twice the memory, and the files are parts of it.
        let length = get_frame_content_size(&self.bytes).ok()??;
        let length = usize::try_from(length).ok()?.min(MAX_UNPACKED_BYTES);
        let bytes = zstd::bulk::decompress(&self.bytes, length).ok()?;
        let file = |(path, bytes): (Bytes, Bytes)| {
            let path = String::from_utf8(path.to_vec()).ok()?;
            Some((path, bytes))
        };
        let files = unpack(&bytes.into())?.into_iter().map(file);
        Some(Folder {
            label: self.label.clone(),
            files: files.collect::<Option<_>>()?,
            large: self.large.clone(),
        })
    }

    /// Returns the compressed bytes, or `None` if the folder has files that are not in memory.
    pub(crate) fn to_bytes(&self) -> Option<Bytes> {
        self.large.is_empty().then(|| self.bytes.clone())
    }

    /// Returns the folder with these compressed bytes, which are copied because they may be part of a larger buffer.
    pub(crate) fn of_bytes(label: String, bytes: &[u8]) -> Self {
        Self {
            label,
            bytes: Bytes::copy_from_slice(bytes),
            large: BTreeMap::new(),
        }
    }

    /// Returns the compressed size in bytes.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Parses the content of the folder.
    pub(crate) fn site(&self, id: &TenantId) -> Option<Site> {
        tenant::read(id, &self.folder()?).0
    }

    /// Parses the content, and limits its pages to the pages that `outline` shows.
    pub(crate) fn shown_as(&self, outline: &Site) -> Option<Site> {
        let mut site = self.site(&outline.id)?;
        site.pages.retain(|path, page| {
            let shown = outline.pages.get(path);
            if let Some(shown) = shown {
                page.front.noindex = shown.front.noindex;
                page.hidden = shown.hidden;
            }
            shown.is_some()
        });
        site.hidden.clone_from(&outline.hidden);
        Some(site)
    }
}

#[cfg(test)]
mod tests {
    use content::tenant::HiddenReason;

    use super::*;

    #[test]
    fn packing_preserves_the_folder_and_its_visible_pages() {
        let files = [
            ("tenant.yaml", "name: Corner\n"),
            ("pages/index.md", "---\ntitle: Corner\n---\nWelcome.\n"),
            (
                "pages/draft.md",
                "---\ntitle: Draft\ndraft: true\n---\nSoon.\n",
            ),
            ("assets/a.txt", "text"),
        ];
        let folder = Folder {
            label: "tenants/corner".to_owned(),
            files: files
                .map(|(path, text)| (path.to_owned(), Bytes::from(text)))
                .into(),
            ..Folder::default()
        };
        let id = TenantId::new("corner").expect("an id");
        let packed = FolderContent::Open(folder.clone())
            .packed()
            .expect("packed");
        assert_eq!(packed.folder(), Some(folder));
        let site = Arc::new(packed.site(&id).expect("a site"));
        for includes_hidden in [false, true] {
            let shown = site.at(jiff::Timestamp::UNIX_EPOCH, includes_hidden);
            let outline = Site::clone(&shown).outline();
            assert!(outline.assets.is_empty() && outline.pages["/"].body.is_empty());
            let opened = packed.shown_as(&outline).expect("a site");
            assert!(
                opened.pages.keys().eq(shown.pages.keys()),
                "{includes_hidden}"
            );
            assert_eq!(opened.pages["/"].body, "Welcome.\n");
            if includes_hidden {
                assert!(opened.pages["/draft"].front.noindex);
                assert_eq!(opened.pages["/draft"].hidden, Some(HiddenReason::Draft));
            }
        }
    }
}
