//! A VM's own disk: a copy-on-write child of an image that is never written.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use imago::{FormatCreateBuilder, StorageOpenOptions, file::File as ImagoFile, qcow2::Qcow2};

use crate::error::Error;

/// An image and the layer that takes what the VM writes.
#[derive(Debug)]
pub(crate) struct Overlay {
    /// The image, open for reading only.
    pub(crate) image: File,
    /// A qcow2 file without a name: the kernel frees it with its last user.
    pub(crate) layer: File,
}

impl Overlay {
    /// Makes an empty layer above `image`, in a file without a name in
    /// `folder`.
    pub(crate) fn create(image: &Path, folder: &Path) -> Result<Self, Error> {
        let (image, size) = open_image(image)?;
        let layer = tempfile::tempfile_in(folder).map_err(Error::host("make the VM's disk"))?;
        write_empty_layer(&layer, size).map_err(Error::host("make the VM's disk"))?;
        Ok(Self { image, layer })
    }
}

fn write_empty_layer(layer: &File, size: u64) -> std::io::Result<()> {
    let options = StorageOpenOptions::new().write(true);
    let storage = ImagoFile::from_open_file(layer.try_clone()?, options)?;
    Qcow2::<ImagoFile>::create_builder(storage)
        .size(size)
        .create()
}

/// Opens a raw ext4 image and tells its size.
fn open_image(path: &Path) -> Result<(File, u64), Error> {
    let bad = |reason: &str| Error::BadFile {
        what: "image",
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let mut image = File::open(path).map_err(|error| bad(&error.to_string()))?;
    if !image.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(bad("is not a regular file"));
    }
    let size = image
        .seek(SeekFrom::End(0))
        .map_err(|error| bad(&error.to_string()))?;
    if !has_ext_magic(&mut image) {
        return Err(bad(
            "is not an ext4 image; `vmcell-rootfs` makes one from a directory",
        ));
    }
    if !size.is_multiple_of(512) {
        return Err(bad("is cut off: its size is not a multiple of 512 bytes"));
    }
    Ok((image, size))
}

/// Whether there is an ext2/3/4 superblock: `s_magic` is at offset 0x38 of the
/// superblock, which is at 1024.
fn has_ext_magic(image: &mut File) -> bool {
    let mut magic = [0; 2];
    image.seek(SeekFrom::Start(1024 + 0x38)).is_ok()
        && image.read_exact(&mut magic).is_ok()
        && u16::from_le_bytes(magic) == 0xef53
}
