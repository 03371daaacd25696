//! Unpacked images in the user's cache.
//!
//! ```text
//!  trees/<image>          digest of the image's path; locked while it is searched or filled
//!  ├── image              symlink to the image
//!  └── <fingerprint>      digest of inode, size, time and user; shared lock while in use
//! ```
//!
//! A changed image has a different fingerprint. Unpacking an image removes
//! whatever is not in use: trees of its earlier versions, partial trees left by
//! a crash, and trees of images that no longer exist.

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

/// The name of the symlink to the image.
const IMAGE: &str = "image";

/// Returns the directory with the files of an image, and unpacks them if
/// needed. Concurrent callers wait for each other. The tree is not removed as
/// long as the returned file, which holds a lock, is open.
pub(super) fn cached_tree(image: &Path) -> Result<(PathBuf, File), Error> {
    let bad_image = |reason: String| Error::BadFile {
        what: "image",
        path: image.to_owned(),
        reason,
    };
    let path = image
        .canonicalize()
        .map_err(|error| bad_image(error.to_string()))?;
    let metadata = fs::metadata(&path).map_err(|error| bad_image(error.to_string()))?;
    if !metadata.is_file() {
        return Err(bad_image("is not a regular file".to_owned()));
    }
    let cache = locate::cache_folder().ok_or_else(|| Error::Missing {
        what: "the user's cache folder",
        remedy: "set XDG_CACHE_HOME or HOME".to_owned(),
    })?;
    let trees = cache.join("trees");
    let folder = trees.join(digest(path.as_os_str().as_bytes()));
    let failed = || Error::host("keep the files of the image in the cache");
    // Programs in it may have setuid bits, so other users get no access.
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(&folder);
    made.map_err(failed())?;
    let lock = File::open(&folder).map_err(failed())?;
    lock_blocking(&lock, FlockOperation::LockExclusive).map_err(failed())?;

    let directory = folder.join(fingerprint(&metadata));
    if !directory.is_dir() {
        tracing::info!(image = %image.display(), "unpacking the image into the cache");
        remove_unused(&folder);
        remove_trees_without_image(&trees);
        // The link only records which image this is.
        let _ = symlink(&path, folder.join(IMAGE));
        let partial = tempfile::Builder::new()
            .prefix("partial-")
            .tempdir_in(&folder);
        let partial = partial.map_err(failed())?;
        // Symlinks in the path of the cache are the user's own.
        let tree = partial
            .path()
            .canonicalize()
            .map_err(failed())?
            .join("tree");
        unpack(&path, &tree).map_err(bad_image)?;
        fs::rename(&tree, &directory).map_err(failed())?;
    }
    let lock_in_use = File::open(&directory).map_err(failed())?;
    lock_blocking(&lock_in_use, FlockOperation::LockShared).map_err(failed())?;
    Ok((directory, lock_in_use))
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

/// Removes the trees of images that no longer exist, unless another process
/// uses them.
fn remove_trees_without_image(trees: &Path) {
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

/// Removes the trees that no VM uses.
fn remove_unused(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name() != IMAGE && lock_unused(&entry.path()).is_some() {
            // What cannot be removed is tried again the next time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Locks a directory and returns it, if nobody else has it locked.
fn lock_unused(directory: &Path) -> Option<File> {
    let directory = File::open(directory).ok()?;
    let locked = flock(&directory, FlockOperation::NonBlockingLockExclusive);
    locked.ok().map(|()| directory)
}

fn lock_blocking(file: &File, lock: FlockOperation) -> std::io::Result<()> {
    Ok(retry_on_intr(|| flock(file, lock))?)
}

/// Returns a digest that changes when the image file does.
fn fingerprint(metadata: &Metadata) -> String {
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
