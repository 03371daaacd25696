use std::fs::File;

use super::{
    disk_image::Image,
    error::ImageError,
    format::Format,
    lock::{LockOutcome, lock_for_writing},
    platform::platform,
    source::Source,
};

/// The open files of an image that a VMM can write to. Returned by
/// [`Image::into_writable`].
#[derive(Debug)]
pub struct WritableImage {
    /// The writable qcow2 layer. It stays locked while any process has it open.
    pub top: File,
    /// Its backing files, opened for reading, the lowest one last.
    pub backing: Vec<(File, Format)>,
}

impl Image {
    /// Opens the top layer for writing and returns all files of the image, for
    /// a VMM to inherit.
    ///
    /// A raw top layer is rejected, since the format must be known independent
    /// of what a guest has written.
    ///
    /// # Errors
    ///
    /// If the top layer is raw, sealed, in use or cannot be written.
    pub fn into_writable(self) -> Result<WritableImage, ImageError> {
        let (top, backing) = self.chain.into_layers();
        let described = top.describe();
        let described = described.map_err(ImageError::read(&top.source.path))?;
        let path = described.path;
        if described.format == Format::Raw {
            return Err(ImageError::Raw { path });
        }
        if described.sealed {
            return Err(ImageError::Sealed { path });
        }
        let file = platform().reopen_for_writing(&top.source);
        let file = file.map_err(ImageError::write(&path))?;
        // Our own read lock would conflict with the write lock.
        drop(top);
        match lock_for_writing(&file) {
            Ok(LockOutcome::Acquired) => {}
            Ok(LockOutcome::InUse) => return Err(ImageError::InUse { path }),
            Err(source) => return Err(ImageError::Lock { path, source }),
        }
        let backing = backing.into_iter().map(|layer| {
            let format = layer.format();
            let Source { file, path, .. } = layer.source;
            let file = file.into_file().map_err(ImageError::read(&path))?;
            Ok((file, format))
        });
        Ok(WritableImage {
            top: file,
            backing: backing.collect::<Result<_, _>>()?,
        })
    }
}
