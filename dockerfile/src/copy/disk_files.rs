use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use vmcell::disk::{Disk, DiskError, Entry, EntryKind, WalkOptions};

use super::{
    entry::{Content, CopyEntry, CopyKind},
    source_tree::SourceTree,
};

/// The files of another stage, or of an image.
pub(super) struct DiskFiles<'a>(pub(super) &'a Disk);

impl SourceTree for DiskFiles<'_> {
    const NAME: &'static str = "the image";

    fn entry(&self, path: &Path) -> Result<Option<CopyEntry>, String> {
        let absolute = Path::new("/").join(path);
        match self.0.stat(&absolute) {
            Ok(found) => {
                let name = path.file_name().unwrap_or_default();
                copied(&found, name.into(), absolute).map(Some)
            }
            Err(DiskError::NotFound { .. } | DiskError::DanglingLink { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn beneath(&self, directory: &Path) -> Result<Vec<CopyEntry>, String> {
        let walk = self
            .0
            .walk(Path::new("/").join(directory), WalkOptions::new());
        let mut found = Vec::new();
        for entry in walk.map_err(|error| error.to_string())? {
            let entry = entry.map_err(|problem| problem.to_string())?;
            let is_reserved = entry.path == Path::new("lost+found");
            let is_copied = matches!(
                entry.kind,
                EntryKind::File | EntryKind::Directory | EntryKind::Symlink
            );
            // As an export does.
            if is_copied && !is_reserved {
                let name = entry.path.strip_prefix(directory).unwrap_or(&entry.path);
                let path = Path::new("/").join(&entry.path);
                found.push(copied(&entry, name.to_owned(), path)?);
            }
        }
        Ok(found)
    }
}

fn copied(entry: &Entry, name: PathBuf, path: PathBuf) -> Result<CopyEntry, String> {
    let kind = match entry.kind {
        EntryKind::Directory => CopyKind::Directory,
        EntryKind::Symlink => CopyKind::Symlink(entry.target.clone().unwrap_or_default()),
        EntryKind::File => CopyKind::File {
            size: entry.size,
            content: Content::Disk(path),
        },
        _ => return Err(format!("{} is no file or directory", path.display())),
    };
    let modified = entry.modified.duration_since(SystemTime::UNIX_EPOCH);
    Ok(CopyEntry {
        name,
        kind,
        mode: entry.mode & 0o7777,
        owner: (entry.uid, entry.gid),
        modified: modified.map_or(0, |since| since.as_secs()),
    })
}
