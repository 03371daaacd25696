//! Reads a tree from a tar archive.
//!
//! Archives are untrusted input. No file is unpacked under its name in the archive: contents go to
//! numbered files in a private folder, everything else into the tree, which validates paths.
//! Extended headers (pax records, GNU long names) are parsed here, because the crate `tar` would
//! read them into memory without a size limit.

mod extended_header;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tar::{Entry, EntryType, Header};

use self::extended_header::ExtendedHeader;
use crate::scratch::ScratchFolder;
use crate::tree::normalize;
use crate::{ArchiveProblem, Content, Error, Kind, Node, Owner, Tree};

/// Limit on the number of entries; no distribution comes near it.
const MAX_ENTRIES: u64 = 1_000_000;
/// Limit on the sum of all file sizes.
const MAX_BYTES: u64 = 64 << 30;

impl Tree {
    /// Reads an uncompressed tar archive.
    ///
    /// Keeps numeric owners, modes, modification times, symbolic and hard links, named pipes, device
    /// nodes, and the extended attributes that [`Tree::from_dir`] keeps. File contents are stored in
    /// a private temporary folder, which is removed when the tree and its clones are dropped.
    ///
    /// ```
    /// use vmcell_rootfs::{Owner, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut archive = tar::Builder::new(Vec::new());
    /// let mut header = tar::Header::new_gnu();
    /// header.set_mode(0o644);
    /// header.set_uid(1000);
    /// header.set_gid(1000);
    /// header.set_mtime(0);
    /// header.set_size(6);
    /// archive.append_data(&mut header, "./home/ann/note", &b"hello\n"[..])?;
    ///
    /// let tree = Tree::from_tar(&archive.into_inner()?[..])?;
    /// assert_eq!(tree.get("/home/ann/note").unwrap().owner, Owner { uid: 1000, gid: 1000 });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Archive`] and [`Error::Path`] for an entry that cannot be in an image, for example
    /// a path with `..`; [`Error::ArchiveUnreadable`]; [`Error::Write`] if the contents cannot be
    /// stored. Temporary files are removed.
    pub fn from_tar(archive: impl Read) -> Result<Self, Error> {
        let scratch = Arc::new(ScratchFolder::new()?);
        let mut unpacker = Unpacker {
            tree: Self::with_contents_in(Arc::clone(&scratch)),
            scratch,
            entries: 0,
            bytes: 0,
        };
        let mut archive = tar::Archive::new(archive);
        let mut extended = ExtendedHeader::default();
        for entry in archive.entries().map_err(unreadable)?.raw(true) {
            let mut entry = entry.map_err(unreadable)?;
            let is_extended = extended.read(&mut entry)?;
            if !is_extended {
                unpacker.add_entry(&mut entry, std::mem::take(&mut extended))?;
            }
        }
        Ok(unpacker.tree)
    }
}

/// The state of reading an archive into a tree.
struct Unpacker {
    tree: Tree,
    scratch: Arc<ScratchFolder>,
    entries: u64,
    bytes: u64,
}

impl Unpacker {
    fn add_entry<R: Read>(
        &mut self,
        entry: &mut Entry<'_, R>,
        extended: ExtendedHeader,
    ) -> Result<(), Error> {
        let path = match &extended.path {
            Some(path) => to_path(path),
            None => to_path(&entry.path_bytes()),
        };
        let refuse = |problem| Error::Archive {
            path: path.clone(),
            problem,
        };
        let header = entry.header().clone();
        self.count(entry.size()).map_err(refuse)?;
        if path.is_absolute() {
            return Err(refuse(ArchiveProblem::AbsolutePath));
        }
        let bad_number = |_: io::Error| refuse(ArchiveProblem::BadNumber);
        let (uid, gid) = (
            extended
                .uid
                .map_or_else(|| header.uid(), Ok)
                .map_err(bad_number)?,
            extended
                .gid
                .map_or_else(|| header.gid(), Ok)
                .map_err(bad_number)?,
        );
        let (Ok(uid), Ok(gid), Ok(modified)) = (
            u32::try_from(uid),
            u32::try_from(gid),
            i64::try_from(header.mtime().map_err(bad_number)?),
        ) else {
            return Err(refuse(ArchiveProblem::BadNumber));
        };
        // The mask leaves the twelve permission bits, which fit.
        let mode = (header.mode().map_err(bad_number)? & 0o7777) as u16;
        let is_directory = header.entry_type() == EntryType::Directory;
        match self.tree.get(&path).map(|node| &node.kind) {
            None => {}
            Some(Kind::Directory) if is_directory => {}
            Some(_) => return Err(refuse(ArchiveProblem::Duplicate)),
        }
        let kind = match header.entry_type() {
            EntryType::Regular | EntryType::Continuous => Kind::File(self.store_content(entry)?),
            EntryType::Link => {
                let target = self.hard_link_target(&link_target(&header, &extended));
                Kind::HardLink(target.ok_or_else(|| refuse(ArchiveProblem::BadHardLink))?)
            }
            _ => other_kind(&header, &extended).map_err(refuse)?,
        };
        let node = Node {
            kind,
            mode,
            owner: Owner { uid, gid },
            modified: Some(modified),
            xattrs: extended.xattrs,
        };
        self.tree.insert(path, node)
    }

    fn count(&mut self, size: u64) -> Result<(), ArchiveProblem> {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(size);
        if self.entries > MAX_ENTRIES || self.bytes > MAX_BYTES {
            return Err(ArchiveProblem::TooLarge);
        }
        Ok(())
    }

    /// Copies the content of a file into the scratch folder, which lives as long as the tree.
    fn store_content<R: Read>(&self, entry: &mut Entry<'_, R>) -> Result<Content, Error> {
        let path = self.scratch.path().join(self.entries.to_string());
        let write_error = |source| Error::Write {
            path: path.clone(),
            source,
        };
        let mut file = File::create_new(&path).map_err(write_error)?;
        let size = entry.size();
        let copied = copy(entry, &mut file, write_error)?;
        if copied != size {
            return Err(unreadable(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(Content::HostFile(path))
    }

    /// Returns the file that a hard link refers to. Accepts only entries that came earlier in the
    /// archive, so that links cannot form cycles.
    fn hard_link_target(&self, text: &Path) -> Option<PathBuf> {
        if text.is_absolute() {
            return None;
        }
        match &self.tree.get(text)?.kind {
            Kind::Directory => None,
            Kind::HardLink(first) => Some(first.clone()),
            _ => normalize(text).ok(),
        }
    }
}

/// Copies the rest of an entry. Distinguishes read errors from write errors.
fn copy<R: Read>(
    entry: &mut Entry<'_, R>,
    file: &mut File,
    write_error: impl Fn(io::Error) -> Error,
) -> Result<u64, Error> {
    let mut buffer = [0; 16 << 10];
    let mut copied = 0;
    loop {
        let piece = match entry.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(length) => &buffer[..length],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(error)),
        };
        io::Write::write_all(file, piece).map_err(&write_error)?;
        copied += piece.len() as u64;
    }
}

/// Returns the kind of an entry that is neither a regular file nor a hard link.
fn other_kind(header: &Header, extended: &ExtendedHeader) -> Result<Kind, ArchiveProblem> {
    let known = |number: io::Result<Option<u32>>| match number {
        Ok(Some(number)) => Ok(number),
        _ => Err(ArchiveProblem::BadNumber),
    };
    let device = || Ok((known(header.device_major())?, known(header.device_minor())?));
    Ok(match header.entry_type() {
        EntryType::Directory => Kind::Directory,
        EntryType::Symlink => Kind::Symlink(link_target(header, extended)),
        EntryType::Fifo => Kind::Fifo,
        EntryType::Char => {
            let (major, minor) = device()?;
            Kind::CharDevice { major, minor }
        }
        EntryType::Block => {
            let (major, minor) = device()?;
            Kind::BlockDevice { major, minor }
        }
        EntryType::GNUSparse => return Err(ArchiveProblem::Sparse),
        _ => return Err(ArchiveProblem::UnsupportedKind),
    })
}

fn link_target(header: &Header, extended: &ExtendedHeader) -> PathBuf {
    match &extended.link {
        Some(link) => to_path(link),
        None => to_path(&header.link_name_bytes().unwrap_or_default()),
    }
}

fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn unreadable(source: io::Error) -> Error {
    Error::ArchiveUnreadable { source }
}
