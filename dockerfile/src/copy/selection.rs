use std::{
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};
use vmcell::disk::Disk;
use vmcell_rootfs::Fingerprint;

use super::{
    Context,
    archive::is_archive,
    disk_files::DiskFiles,
    entry::{Content, CopyEntry, CopyKind},
    source_tree::SourceTree,
};

/// What an instruction copies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    pub(crate) entries: Vec<CopyEntry>,
    /// Archives of the host that are unpacked.
    pub(crate) archives: Vec<PathBuf>,
    /// How many sources there are.
    sources: usize,
    has_directory: bool,
}

impl Selection {
    /// Adds a file of the Dockerfile.
    pub(crate) fn add_text(&mut self, name: &str, text: String) {
        self.sources += 1;
        self.entries.push(CopyEntry::text(name, text));
    }

    /// Adds files of the context. ADD unpacks archives.
    pub(crate) fn add_from_context(
        &mut self,
        context: &Context,
        pattern: &str,
        unpacks: bool,
    ) -> Result<(), String> {
        self.add_tree(context, pattern, unpacks)
    }

    /// Adds files of a disk.
    pub(crate) fn add_from_disk(&mut self, disk: &Disk, pattern: &str) -> Result<(), String> {
        self.add_tree(&DiskFiles(disk), pattern, false)
    }

    /// Adds what a pattern names: files, and what is in directories.
    fn add_tree(
        &mut self,
        tree: &impl SourceTree,
        pattern: &str,
        unpacks: bool,
    ) -> Result<(), String> {
        for path in tree.matches(pattern)? {
            self.sources += 1;
            let Some(entry) = tree.entry(&path)? else {
                continue;
            };
            if entry.is_directory() {
                self.has_directory = true;
                self.entries.extend(tree.beneath(&path)?);
                continue;
            }
            match &entry.kind {
                CopyKind::File {
                    content: Content::Host(file),
                    ..
                } if unpacks && is_archive(file)? => self.archives.push(file.clone()),
                _ => self.entries.push(entry),
            }
        }
        Ok(())
    }

    /// Whether the destination may be the name of a file.
    pub(crate) fn is_one_file(&self) -> bool {
        self.sources == 1 && !self.has_directory && self.archives.is_empty()
    }

    /// Gives its only file another name.
    pub(crate) fn rename(&mut self, name: &Path) {
        if let [entry] = &mut self.entries[..] {
            entry.name = name.to_owned();
        }
    }

    /// Adds all that makes a difference to the result. Times do not.
    pub(crate) fn fingerprint(&self, inputs: &mut Fingerprint) -> Result<(), String> {
        for entry in &self.entries {
            inputs.field("name", entry.name.as_os_str().as_bytes());
            inputs.field("mode", entry.mode.to_le_bytes());
            match &entry.kind {
                CopyKind::Directory => inputs.field("directory", ""),
                CopyKind::Symlink(target) => inputs.field("link", target.as_os_str().as_bytes()),
                CopyKind::File { content, .. } => match content {
                    Content::Host(path) => inputs.field("file", digest(path)?),
                    Content::Bytes(bytes) => inputs.field("file", Sha256::digest(bytes)),
                    // The disk is part of the inputs.
                    Content::Disk(path) => inputs.field("on disk", path.as_os_str().as_bytes()),
                },
            };
        }
        for path in &self.archives {
            inputs.field("archive", digest(path)?);
        }
        Ok(())
    }
}

fn digest(path: &Path) -> Result<[u8; 32], String> {
    let read = || -> io::Result<[u8; 32]> {
        let mut file = File::open(path)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 256 << 10];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(hasher.finalize().into()),
                Ok(length) => hasher.update(buffer.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    };
    read().map_err(|error| format!("cannot read {}: {error}", path.display()))
}
