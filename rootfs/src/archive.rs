use std::io::Read;
use std::path::{Path, PathBuf};

use crate::contents::Contents;
use crate::tree::normalize;
use crate::unpacker::Unpacker;
use crate::{ArchiveProblem, Error, Kind, Tree};

impl Tree {
    /// Reads an uncompressed tar archive.
    ///
    /// Reads the formats of POSIX and GNU tar, including sparse files and files of any size. Absolute
    /// names are taken as relative to the root of the image. Keeps
    /// numeric owners, modes, modification times, symbolic and hard links, named pipes, device
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
        let mut contents = Contents::new()?;
        let mut tree = contents.tree();
        let mut unpacker = Unpacker::new(archive, &mut contents);
        while let Some(unpacked) = unpacker.next()? {
            match tree.get(&unpacked.path).map(|node| &node.kind) {
                None => {}
                Some(Kind::Directory) if unpacked.is_directory() => {}
                Some(_) => return Err(unpacked.refuse(ArchiveProblem::Duplicate)),
            }
            let path = unpacked.path.clone();
            let node = unpacker.node(unpacked, |target| tree.hard_link_target(target))?;
            tree.insert(&path, node)?;
            if tree.is_too_heavy() {
                let problem = ArchiveProblem::TooManyNames;
                return Err(Error::Archive { path, problem });
            }
        }
        Ok(tree)
    }

    /// Returns the file that a hard link refers to. Accepts only entries that came earlier in the
    /// archive, so that links cannot form cycles.
    pub(crate) fn hard_link_target(&self, path: &Path) -> Option<PathBuf> {
        match &self.get(path)?.kind {
            Kind::Directory => None,
            Kind::HardLink(first) => Some(first.clone()),
            _ => normalize(path).ok(),
        }
    }
}
