use std::{
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
};

use super::{
    chain::MOST_LAYERS,
    disk_image::Image,
    error::ImageError,
    format::Format,
    layer::Layer,
    new_file::{NewFile, folder_of},
    options::OpenOptions,
    qcow2::{LONGEST_NAME, write_empty_layer},
};

/// The unit in which VMMs count the size of a disk.
const SECTOR: u64 = 512;

/// Makes an empty qcow2 layer at `child` above the image `base`, which must not
/// be written any more ([`seal`](super::seal()) sees to it). The options are
/// those to open the base with.
///
/// The child has the size of the base, rounded up to whole sectors of 512 bytes.
/// Its header names the base's format, and the base itself relative to the
/// child's folder if the two can be moved together. After a loss of power it is
/// there as a whole or not at all.
///
/// # Errors
///
/// If the base cannot be opened, is in use or has as many layers as an image may
/// have, or something is at `child` already. Nothing is left then.
pub fn create_child(
    base: impl AsRef<Path>,
    child: impl AsRef<Path>,
    options: &OpenOptions,
) -> Result<Layer, ImageError> {
    let child = child.as_ref();
    let image = Image::open(base, options)?;
    if image.chain.count() >= MOST_LAYERS {
        return Err(ImageError::TooDeep { limit: MOST_LAYERS });
    }
    let top = &image.chain.top;
    let folder = folder_of(child)
        .canonicalize()
        .map_err(ImageError::write(child))?;
    let name = backing_name(&folder, &top.source.path)?;
    let size = image.size().next_multiple_of(SECTOR);

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
    })
}

/// What a child in `folder` calls its base. Neither path has symlinks in it.
fn backing_name(folder: &Path, base: &Path) -> Result<String, ImageError> {
    let bad = |reason| ImageError::BaseName {
        path: base.to_owned(),
        reason,
    };
    let name = relative(folder, base).unwrap_or_else(|| base.to_owned());
    let name = name
        .into_os_string()
        .into_string()
        .map_err(|_| bad("its name is not UTF-8"))?;
    if name.len() > LONGEST_NAME {
        return Err(bad("its name is too long"));
    }
    Ok(name)
}

/// The way from a folder to a file that shares more than the root with it.
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
    // A colon in what comes first would look like the end of a protocol.
    Some(match way.to_string_lossy().contains(':') {
        true => Path::new(".").join(way),
        false => way,
    })
}
