//! The files of images, in the user's cache.
//!
//! ```text
//!  trees/<image>          by its path; locked while it is looked into or filled
//!  ├── image              a link to it
//!  └── <state>            by size, time and inode; locked, shared, while in use
//! ```
//!
//! An image that has changed has another state. When one is unpacked, that goes
//! which nobody uses: its states before, what a crash has left half-made, and
//! the files of images that are gone.

use std::{
    fs::{self, File, Metadata},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, MetadataExt as _, symlink},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::retry_on_intr,
    process::geteuid,
};
use sha2::{Digest as _, Sha256};

use crate::{disk::Disk, error::Error, locate};

/// The name of the link to the image.
const IMAGE: &str = "image";

/// Finds the files of an image, or unpacks them. Who wants the same meanwhile
/// waits. They stay as long as the file in the answer is open.
pub(super) fn unpacked(image: &Path) -> Result<(PathBuf, File), Error> {
    let bad = |reason: String| Error::BadFile {
        what: "image",
        path: image.to_owned(),
        reason,
    };
    let path = image
        .canonicalize()
        .map_err(|error| bad(error.to_string()))?;
    let metadata = fs::metadata(&path).map_err(|error| bad(error.to_string()))?;
    if !metadata.is_file() {
        return Err(bad("is not a regular file".to_owned()));
    }
    let cache = locate::cache_folder().ok_or_else(|| Error::Missing {
        what: "the user's cache folder",
        remedy: "set XDG_CACHE_HOME or HOME".to_owned(),
    })?;
    let trees = cache.join("trees");
    let folder = trees.join(digest(path.as_os_str().as_bytes()));
    let failed = || Error::host("keep the files of the image in the cache");
    // Programs in it may have setuid bits: nobody else gets there.
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(&folder);
    made.map_err(failed())?;
    let lock = File::open(&folder).map_err(failed())?;
    wait_for(&lock, FlockOperation::LockExclusive).map_err(failed())?;

    let directory = folder.join(state(&metadata));
    if !directory.is_dir() {
        tracing::info!(image = %image.display(), "unpacking the image, this once");
        remove_unused(&folder);
        remove_those_without_an_image(&trees);
        // It only says whose files these are.
        let _ = symlink(&path, folder.join(IMAGE));
        let partial = tempfile::Builder::new()
            .prefix("partial-")
            .tempdir_in(&folder);
        let partial = partial.map_err(failed())?;
        // Links on the way to the cache are the user's own.
        let tree = partial
            .path()
            .canonicalize()
            .map_err(failed())?
            .join("tree");
        unpack(&path, &tree).map_err(bad)?;
        fs::rename(&tree, &directory).map_err(failed())?;
    }
    let used = File::open(&directory).map_err(failed())?;
    wait_for(&used, FlockOperation::LockShared).map_err(failed())?;
    Ok((directory, used))
}

fn unpack(image: &Path, to: &Path) -> Result<(), String> {
    let disk = Disk::open(image).map_err(|error| error.to_string())?;
    let mut export = disk.export("/", to);
    if geteuid().is_root() {
        export = export.keep_owners().keep_special_bits();
    }
    let exported = export.run().map_err(|error| error.to_string())?;
    match exported.problems.first() {
        Some(problem) => Err(format!(
            "{} of its files cannot be read; the first: {problem}",
            exported.problem_count
        )),
        None => Ok(()),
    }
}

/// Removes the files of images that are gone, unless somebody is at it.
fn remove_those_without_an_image(trees: &Path) {
    for folder in fs::read_dir(trees).into_iter().flatten().flatten() {
        let folder = folder.path();
        let image = fs::read_link(folder.join(IMAGE));
        if image.is_ok_and(|image| !image.exists())
            && let Some(_lock) = lock_unused(&folder)
        {
            remove_unused(&folder);
        }
    }
}

/// Removes what no VM uses.
fn remove_unused(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name() != IMAGE && lock_unused(&entry.path()).is_some() {
            // What stays is tried again the next time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The directory, if nobody else has it.
fn lock_unused(directory: &Path) -> Option<File> {
    let directory = File::open(directory).ok()?;
    let locked = flock(&directory, FlockOperation::NonBlockingLockExclusive);
    locked.ok().map(|()| directory)
}

fn wait_for(file: &File, lock: FlockOperation) -> std::io::Result<()> {
    Ok(retry_on_intr(|| flock(file, lock))?)
}

/// What changes when the image does.
fn state(metadata: &Metadata) -> String {
    let numbers = [
        metadata.dev(),
        metadata.ino(),
        metadata.size(),
        metadata.mtime().cast_unsigned(),
        metadata.mtime_nsec().cast_unsigned(),
        u64::from(geteuid().as_raw()),
    ];
    let bytes: Vec<_> = numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    digest(&bytes)
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let half = digest.iter().take(16);
    half.fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
