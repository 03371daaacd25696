use std::path::{Path, PathBuf};

use super::{BackingFile, MAGIC, MAGIC_OFFSET, Overlay};
use crate::{
    disk::image::{Image, OpenOptions},
    error::Error,
};

impl Overlay {
    /// Opens an existing disk that is kept after the VM. Its backing files may
    /// be in the `allowed` folders.
    pub(crate) fn open(path: &Path, allowed: &[PathBuf]) -> Result<Self, Error> {
        let options = OpenOptions::new();
        let options = allowed.iter().fold(options, OpenOptions::allow_backing);
        let image = Image::open(path, options)?;
        if !has_ext_magic(&image) {
            return Err(Error::BadFile {
                what: "disk",
                path: path.to_owned(),
                reason: "has no ext4 file system at its beginning".to_owned(),
            });
        }
        let size = image.size();
        let disk = image.into_writable()?;
        let backing = disk.backing.into_iter().map(|(file, format)| BackingFile {
            file,
            format: format.name(),
        });
        Ok(Self {
            layer: disk.top,
            is_persistent: true,
            backing: backing.collect(),
            size,
        })
    }
}

fn has_ext_magic(image: &Image) -> bool {
    let mut magic = [0; 2];
    image.read_at(MAGIC_OFFSET, &mut magic).is_ok() && magic == MAGIC
}
