use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with},
    io::{Errno, retry_on_intr},
};

use super::{
    SnapshotError,
    file_record::FileRecord,
    manifest::{GuestRecord, MANIFEST, Manifest, PartRecord},
};
use crate::{
    backend::{SavedPart, SavedVm},
    hex,
    random::random_bytes,
    sparse,
};

/// A snapshot that is being written: a hidden folder beside its path. Dropping it
/// removes the folder.
///
/// A folder that a program has left behind when it was killed is removed by the next
/// one that writes a snapshot in the same place.
#[derive(Debug)]
pub(crate) struct PartialSnapshot {
    path: PathBuf,
    folder: PathBuf,
    /// Locked as long as this lives.
    _lock: File,
    is_finished: bool,
}

/// The end of the names of the hidden folders.
const SUFFIX: &str = ".partial";

/// Fast, and a fifth of the size.
const COMPRESSION_LEVEL: i32 = 1;

impl PartialSnapshot {
    /// Creates the hidden folder for a snapshot at `path`.
    pub(crate) fn create(path: &Path) -> Result<Self, SnapshotError> {
        let path = std::path::absolute(path).map_err(io_error(path, "find its folder"))?;
        let invalid = || io_error(&path, "it has no name")(io::ErrorKind::InvalidInput.into());
        let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(invalid)?;
        if fs::symlink_metadata(&path).is_ok() {
            return Err(SnapshotError::Exists { path });
        }
        let failed = || io_error(&path, "make its folder");
        // Nobody takes the new folder for an abandoned one before it is locked.
        let parent_lock = remove_abandoned(parent).map_err(failed())?;
        let folder = parent.join(hidden_name(name).map_err(failed())?);
        let created = DirBuilder::new().mode(0o700).create(&folder);
        created.map_err(failed())?;
        let lock = locked(&folder, FlockOperation::NonBlockingLockExclusive);
        drop(parent_lock);
        Ok(Self {
            _lock: lock.map_err(failed())?,
            path,
            folder,
            is_finished: false,
        })
    }

    /// Returns the folder for the files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds the manifest, and gives the snapshot its name. Returns how many bytes it
    /// takes on the disk. It may read and write for long.
    pub(crate) fn finish(
        mut self,
        guest: GuestRecord,
        saved: SavedVm,
        compress: bool,
    ) -> Result<u64, SnapshotError> {
        let failed = |doing| io_error(&self.path, doing);
        let parts = saved.parts.into_iter();
        let parts: Result<Vec<_>, _> = parts.map(|part| self.record(part, compress)).collect();
        let parts = parts.map_err(failed("write its files"))?;
        let image = saved.image.as_deref().map(FileRecord::new).transpose();
        let image = image.map_err(failed("read the image of the VM"))?;
        let manifest = Manifest::new(guest, saved.vmm, saved.disk_size, image, parts);
        let bytes = self
            .publish(&manifest)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => SnapshotError::Exists {
                    path: self.path.clone(),
                },
                _ => failed("write its manifest")(error),
            })?;
        self.is_finished = true;
        Ok(bytes)
    }

    /// Hashes a file, compresses it if that is wanted, and writes it back.
    fn record(&self, part: SavedPart, compress: bool) -> io::Result<PartRecord> {
        let path = self.folder.join(&part.name);
        let file = File::open(&path)?;
        let size = file.metadata()?.len();
        let sha256 = match compress {
            false => {
                file.sync_all()?;
                sparse::digest(&file)?
            }
            true => {
                let compressed = self.folder.join("compressed");
                let to = new_file(&compressed)?;
                let mut encoder = zstd::Encoder::new(&to, COMPRESSION_LEVEL)?;
                let digest = sparse::pack(&file, &mut encoder)?;
                encoder.finish()?;
                to.sync_all()?;
                fs::rename(&compressed, &path)?;
                digest
            }
        };
        Ok(PartRecord {
            part,
            size,
            sha256,
            is_compressed: compress,
        })
    }

    fn publish(&self, manifest: &Manifest) -> io::Result<u64> {
        use io::Write as _;
        use std::os::unix::fs::MetadataExt as _;
        let mut file = new_file(&self.folder.join(MANIFEST))?;
        file.write_all(&manifest.to_json()?)?;
        file.sync_all()?;
        File::open(&self.folder)?.sync_all()?;
        let mut bytes = 0;
        for entry in fs::read_dir(&self.folder)? {
            bytes += entry?.metadata()?.blocks() * 512;
        }
        let flags = RenameFlags::NOREPLACE;
        match renameat_with(CWD, &self.folder, CWD, &self.path, flags) {
            Ok(()) => {}
            // Not every file system can.
            Err(Errno::INVAL) => fs::rename(&self.folder, &self.path)?,
            Err(error) => return Err(error.into()),
        }
        let parent = self.path.parent().unwrap_or(Path::new("/"));
        File::open(parent)?.sync_all()?;
        Ok(bytes)
    }
}

impl Drop for PartialSnapshot {
    fn drop(&mut self) {
        if !self.is_finished
            && let Err(error) = fs::remove_dir_all(&self.folder)
        {
            tracing::warn!(%error, folder = %self.folder.display(), "cannot remove a folder");
        }
    }
}

/// Removes a snapshot as a whole: a program that is killed meanwhile leaves it, or a
/// hidden folder. Returns whether there was one.
pub(crate) fn remove_whole(path: &Path) -> io::Result<bool> {
    match hide(path)? {
        Some(hidden) => hidden.remove().map(|()| true),
        None => Ok(false),
    }
}

/// A snapshot that has lost its name. Its files are there until it is removed, or another
/// one is written beside it.
#[derive(Debug)]
#[must_use]
pub(crate) struct HiddenSnapshot(PathBuf);

impl HiddenSnapshot {
    pub(crate) fn remove(self) -> io::Result<()> {
        match fs::remove_dir_all(self.0) {
            // Others remove hidden folders, too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// Takes the name from a snapshot. Returns `None` if there is none.
pub(crate) fn hide(path: &Path) -> io::Result<Option<HiddenSnapshot>> {
    let (parent, name) = path
        .parent()
        .zip(path.file_name())
        .ok_or(io::ErrorKind::InvalidInput)?;
    let hidden = parent.join(hidden_name(name)?);
    match fs::rename(path, &hidden) {
        Ok(()) => Ok(Some(HiddenSnapshot(hidden))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the name of a hidden folder for a snapshot with this name.
fn hidden_name(name: &OsStr) -> io::Result<OsString> {
    let random: [u8; 6] = random_bytes().map_err(io::Error::other)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}{SUFFIX}", hex::encode(&random)));
    Ok(hidden)
}

/// Removes what programs have left behind that were killed while they wrote or removed a
/// snapshot in this folder. Returns the folder: as long as it is open, nobody else does.
pub(crate) fn remove_abandoned(parent: &Path) -> io::Result<File> {
    let lock = locked(parent, FlockOperation::LockExclusive)?;
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_partial = name.as_bytes().starts_with(b".")
            && name.as_bytes().ends_with(SUFFIX.as_bytes())
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        // A folder that is being written is locked.
        if is_partial && locked(&entry.path(), FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(lock)
}

/// Opens a folder and locks it.
fn locked(folder: &Path, operation: FlockOperation) -> io::Result<File> {
    let folder = File::open(folder)?;
    retry_on_intr(|| flock(&folder, operation))?;
    Ok(folder)
}

fn new_file(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

pub(super) fn io_error(
    path: &Path,
    doing: &'static str,
) -> impl FnOnce(io::Error) -> SnapshotError + use<> {
    let path = path.to_owned();
    move |source| SnapshotError::Io {
        path,
        doing,
        source,
    }
}
