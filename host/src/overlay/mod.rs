//! The disk of a VM: a copy-on-write layer above an image that is never
//! written.

mod persistent;

use std::{fs::File, io, os::unix::fs::FileExt as _, path::Path};

use vmcell_disk::image::write_empty_layer;

use crate::{
    backend::{PartKind, SavedMachine},
    error::Error,
};

/// The layer that the VM writes to, and its backing files.
#[derive(Debug)]
pub(crate) struct Overlay {
    /// A qcow2 file.
    pub(crate) layer: File,
    /// Whether the layer is kept after the VM. If not, it has no name, and the
    /// kernel frees it with its last user.
    pub(crate) is_persistent: bool,
    /// The backing files, the lowest one last.
    pub(crate) backing: Vec<BackingFile>,
    /// The size of the disk in bytes.
    pub(crate) size: u64,
}

/// A backing file, open for reading only.
#[derive(Debug)]
pub(crate) struct BackingFile {
    pub(crate) file: File,
    /// QEMU's name of its format.
    pub(crate) format: &'static str,
}

impl BackingFile {
    fn raw(file: File) -> Self {
        Self {
            file,
            format: "raw",
        }
    }

    fn qcow2(file: File) -> Self {
        Self {
            file,
            format: "qcow2",
        }
    }
}

impl Overlay {
    /// Creates an empty layer above `image`, of at least this size, in a file without a
    /// name in `folder`.
    pub(crate) fn create(image: &Path, least_size: u64, folder: &Path) -> Result<Self, Error> {
        let (image, size) = open_image(image)?;
        let layer = tempfile::tempfile_in(folder);
        Self::above(vec![BackingFile::raw(image)], size.max(least_size), layer)
    }

    /// Creates an empty layer above the layers of a saved VM.
    /// It has a name if `layer` is one of a file that does not exist.
    pub(crate) fn restore(
        saved: &SavedMachine,
        folder: &Path,
        layer: Option<&Path>,
    ) -> Result<Self, Error> {
        let layers = saved.open(PartKind::Layer);
        let layers = layers.map_err(Error::host("open the saved disk"))?;
        let mut backing: Vec<_> = layers.into_iter().map(BackingFile::qcow2).collect();
        if let Some(path) = &saved.image {
            backing.push(BackingFile::raw(open_image(path)?.0));
        }
        let layer = match layer {
            Some(path) => File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(path),
            None => tempfile::tempfile_in(folder),
        };
        Self::above(backing, saved.disk_size, layer)
    }

    fn above(backing: Vec<BackingFile>, size: u64, layer: io::Result<File>) -> Result<Self, Error> {
        let layer = layer.map_err(Error::host("make the VM's disk"))?;
        write_empty_layer(&layer, size, None).map_err(Error::host("make the VM's disk"))?;
        Ok(Self {
            layer,
            is_persistent: false,
            backing,
            size,
        })
    }
}

/// Opens a raw ext4 image, and returns its size.
pub(crate) fn open_image(path: &Path) -> Result<(File, u64), Error> {
    let bad = |reason: &str| Error::BadFile {
        what: "image",
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let image = File::open(path).map_err(|error| bad(&error.to_string()))?;
    let metadata = image.metadata().map_err(|error| bad(&error.to_string()))?;
    if !metadata.is_file() {
        return Err(bad("is not a regular file"));
    }
    let size = metadata.len();
    if !has_ext_magic(&image) {
        return Err(bad(
            "is not an ext4 image; `vmcell-rootfs` makes one from a directory",
        ));
    }
    if !size.is_multiple_of(512) {
        return Err(bad("is cut off: its size is not a multiple of 512 bytes"));
    }
    Ok((image, size))
}

/// Where the magic number of ext2, ext3 and ext4 is: `s_magic` is at offset
/// 0x38 of the superblock, which is at 1024.
const MAGIC_OFFSET: u64 = 1024 + 0x38;
const MAGIC: [u8; 2] = 0xef53_u16.to_le_bytes();

fn has_ext_magic(image: &File) -> bool {
    let mut magic = [0; 2];
    image.read_exact_at(&mut magic, MAGIC_OFFSET).is_ok() && magic == MAGIC
}
