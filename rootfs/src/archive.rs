//! Reading a tree from a tar archive.
//!
//! An archive may come from anywhere. Nothing of it is unpacked under a name of its own: contents
//! go to numbered files in a private folder, everything else into the tree, which knows what a
//! path may be. The pieces that stand before an entry are read here rather than by the crate
//! `tar`, which would gather them whatever their size.

mod ahead;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tar::{Entry, EntryType, Header};

use self::ahead::Ahead;
use crate::scratch::Scratch;
use crate::tree::normalize;
use crate::{ArchiveProblem, Content, Error, Kind, Node, Owner, Tree};

/// More entries than any distribution has.
const MOST_ENTRIES: u64 = 1_000_000;
/// More bytes than anybody boots from.
const MOST_BYTES: u64 = 64 << 30;

impl Tree {
    /// Reads a tar archive, which must not be compressed.
    ///
    /// Owners by number, modes, modification times, symbolic and hard links, named pipes and device
    /// nodes are taken over, and the extended attributes that [`Tree::from_dir`] takes. The
    /// contents are kept in a private temporary folder, which goes when the tree and its clones do.
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
    /// [`Error::Archive`] and [`Error::Path`] for an entry that cannot be in an image, such as one
    /// that leads outside; [`Error::ArchiveUnreadable`]; [`Error::Write`] if the contents
    /// cannot be kept. Nothing is left behind.
    pub fn from_tar(archive: impl Read) -> Result<Self, Error> {
        let scratch = Arc::new(Scratch::new()?);
        let mut unpacking = Unpacking {
            tree: Self::with_contents_in(Arc::clone(&scratch)),
            scratch,
            entries: 0,
            bytes: 0,
        };
        let mut archive = tar::Archive::new(archive);
        let mut ahead = Ahead::default();
        for entry in archive.entries().map_err(unreadable)?.raw(true) {
            let mut entry = entry.map_err(unreadable)?;
            let was_ahead = ahead.read(&mut entry)?;
            if !was_ahead {
                unpacking.take(&mut entry, std::mem::take(&mut ahead))?;
            }
        }
        Ok(unpacking.tree)
    }
}

/// A tree that is being read.
struct Unpacking {
    tree: Tree,
    scratch: Arc<Scratch>,
    entries: u64,
    bytes: u64,
}

impl Unpacking {
    fn take<R: Read>(&mut self, entry: &mut Entry<'_, R>, ahead: Ahead) -> Result<(), Error> {
        let path = match &ahead.path {
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
            return Err(refuse(ArchiveProblem::Absolute));
        }
        let number = |_: io::Error| refuse(ArchiveProblem::Number);
        let (uid, gid) = (
            ahead.uid.map_or_else(|| header.uid(), Ok).map_err(number)?,
            ahead.gid.map_or_else(|| header.gid(), Ok).map_err(number)?,
        );
        let (Ok(uid), Ok(gid), Ok(modified)) = (
            u32::try_from(uid),
            u32::try_from(gid),
            i64::try_from(header.mtime().map_err(number)?),
        ) else {
            return Err(refuse(ArchiveProblem::Number));
        };
        // The mask leaves the twelve permission bits, which fit.
        let mode = (header.mode().map_err(number)? & 0o7777) as u16;
        let is_directory = header.entry_type() == EntryType::Directory;
        match self.tree.get(&path).map(|node| &node.kind) {
            None => {}
            Some(Kind::Directory) if is_directory => {}
            Some(_) => return Err(refuse(ArchiveProblem::Twice)),
        }
        let kind = match header.entry_type() {
            EntryType::Regular | EntryType::Continuous => Kind::File(self.keep(entry)?),
            EntryType::Link => {
                let target = self.hard_link_target(&link_text(&header, &ahead));
                Kind::HardLink(target.ok_or_else(|| refuse(ArchiveProblem::HardLink))?)
            }
            _ => other_kind(&header, &ahead).map_err(refuse)?,
        };
        let node = Node {
            kind,
            mode,
            owner: Owner { uid, gid },
            modified: Some(modified),
            xattrs: ahead.xattrs,
        };
        self.tree.insert(path, node)
    }

    fn count(&mut self, size: u64) -> Result<(), ArchiveProblem> {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(size);
        if self.entries > MOST_ENTRIES || self.bytes > MOST_BYTES {
            return Err(ArchiveProblem::TooMuch);
        }
        Ok(())
    }

    /// Keeps the content of a file for as long as the tree is there.
    fn keep<R: Read>(&self, entry: &mut Entry<'_, R>) -> Result<Content, Error> {
        let path = self.scratch.path().join(self.entries.to_string());
        let write_error = |source| Error::Write {
            path: path.clone(),
            source,
        };
        let mut file = File::create_new(&path).map_err(write_error)?;
        let size = entry.size();
        let kept = copy(entry, &mut file, write_error)?;
        if kept != size {
            return Err(unreadable(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(Content::HostFile(path))
    }

    /// The file that a hard link is one more name of. Only what was there before counts, so that
    /// there are no circles.
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

/// Copies what is left of an entry, and knows on which side a failure was.
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

/// What an entry is that is neither a file nor one more name of one.
fn other_kind(header: &Header, ahead: &Ahead) -> Result<Kind, ArchiveProblem> {
    let half = |number: io::Result<Option<u32>>| match number {
        Ok(Some(number)) => Ok(number),
        _ => Err(ArchiveProblem::Number),
    };
    let device = || Ok((half(header.device_major())?, half(header.device_minor())?));
    Ok(match header.entry_type() {
        EntryType::Directory => Kind::Directory,
        EntryType::Symlink => Kind::Symlink(link_text(header, ahead)),
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
        _ => return Err(ArchiveProblem::Kind),
    })
}

fn link_text(header: &Header, ahead: &Ahead) -> PathBuf {
    match &ahead.link {
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
