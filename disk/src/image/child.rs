use std::{
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
};

use super::{
    chain::MAX_LAYERS,
    disk_image::Image,
    error::ImageError,
    format::Format,
    layer::Layer,
    new_file::{NewFile, parent_dir},
    options::OpenOptions,
    qcow2::{MAX_BACKING_NAME, write_empty_layer},
};

/// The unit of a disk's size in VMMs.
pub(super) const SECTOR: u64 = 512;

/// Creates an empty qcow2 image at `child` with `base` as its backing file.
/// `base` must not be written to any more, which [`seal`](super::seal())
/// ensures. `options` are used to open the base.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use vmcell_disk::image::{OpenOptions, create_child, seal};
///
/// seal("base.qcow2", OpenOptions::new())?;
/// create_child("base.qcow2", "vm1.qcow2", OpenOptions::new())?;
/// # Ok(())
/// # }
/// ```
///
/// The child has the size of the base, rounded up to a multiple of 512 bytes.
/// Its header records the format of the base and its path, relative to the
/// child's directory if the two share a parent directory other than `/`, so
/// that they can be moved together. After a power loss, the child is either
/// complete or does not exist.
///
/// # Errors
///
/// If the base cannot be opened, is in use or has the maximum number of layers,
/// or if `child` already exists. No file is left behind.
pub fn create_child(
    base: impl AsRef<Path>,
    child: impl AsRef<Path>,
    options: OpenOptions,
) -> Result<Layer, ImageError> {
    create_child_of_size(base, child, 0, options)
}

/// Creates a child that is larger than its base, if `least_size` is: see [`create_child`].
/// What is beyond the end of the base reads as zeros. The file system is as large as before.
///
/// # Errors
///
/// As for [`create_child`].
pub fn create_child_of_size(
    base: impl AsRef<Path>,
    child: impl AsRef<Path>,
    least_size: u64,
    options: OpenOptions,
) -> Result<Layer, ImageError> {
    let child = child.as_ref();
    let image = Image::open(base, options)?;
    if image.chain.count() >= MAX_LAYERS {
        return Err(ImageError::TooManyLayers { limit: MAX_LAYERS });
    }
    let top = &image.chain.top;
    let folder = parent_dir(child)
        .canonicalize()
        .map_err(ImageError::write(child))?;
    let name = backing_name(&folder, &top.source.path)?;
    let size = image.size().max(least_size).next_multiple_of(SECTOR);

    let file = NewFile::create(child)?;
    write_empty_layer(file.file(), size, Some((&name, top.format())))
        .map_err(ImageError::write(child))?;
    let file = file.finish()?;
    let metadata = file.metadata().map_err(ImageError::read(child))?;
    Ok(Layer {
        path: folder.join(child.file_name().unwrap_or_default()),
        format: Format::Qcow2,
        size,
        allocated: metadata.blocks() * 512,
        sealed: false,
        corrupt: false,
    })
}

/// Returns the backing file name that a child in `folder` records for `base`.
/// Both paths must be free of symlinks.
pub(super) fn backing_name(folder: &Path, base: &Path) -> Result<String, ImageError> {
    let bad = |reason| ImageError::BaseName {
        path: base.to_owned(),
        reason,
    };
    let name = relative(folder, base).unwrap_or_else(|| base.to_owned());
    let name = name
        .into_os_string()
        .into_string()
        .map_err(|_| bad("its name is not UTF-8"))?;
    if name.len() > MAX_BACKING_NAME {
        return Err(bad("its name is too long"));
    }
    Ok(name)
}

/// Returns the relative path from a directory to a file, if they share more
/// than the root.
fn relative(folder: &Path, file: &Path) -> Option<PathBuf> {
    let shared = folder
        .components()
        .zip(file.components())
        .take_while(|(one, other)| one == other)
        .count();
    if shared < 2 {
        return None;
    }
    let up = folder
        .components()
        .skip(shared)
        .map(|_| Component::ParentDir);
    let down = file.components().skip(shared);
    let way: PathBuf = up.chain(down).collect();
    // A colon in the first component would look like a protocol.
    Some(match way.to_string_lossy().contains(':') {
        true => Path::new(".").join(way),
        false => way,
    })
}
