use std::{fs::File, os::fd::AsFd as _};

use rustix::fs::{Mode, OFlags, open};

use super::{
    disk_image::Image,
    error::ImageError,
    format::Format,
    lock::{LockHolder, lock_for_writing},
    source::{Source, link_to},
};

/// A disk that a VMM can write, as files that are open.
#[derive(Debug)]
pub struct Writable {
    /// The qcow2 file that takes what is written. It is locked as long as anybody
    /// has it open.
    pub top: File,
    /// What is beneath it, top first, open for reading only.
    pub beneath: Vec<(File, Format)>,
}

impl Image {
    /// The files of the image, the top one to be written.
    ///
    /// Its format must be known without looking at what a guest has written, so
    /// it cannot be raw.
    pub fn into_writable(self) -> Result<Writable, ImageError> {
        let (top, beneath) = self.chain.into_layers();
        let described = top.describe();
        let described = described.map_err(ImageError::read(&top.source.path))?;
        let path = described.path;
        if described.format == Format::Raw {
            return Err(ImageError::Raw { path });
        }
        if described.sealed {
            return Err(ImageError::Sealed { path });
        }
        let link = link_to(&top.source.file.as_fd());
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let file = open(link, flags, Mode::empty()).map_err(ImageError::write(&path))?;
        let file = File::from(file);
        // What we hold as a reader would keep ourselves from writing.
        drop(top);
        match lock_for_writing(&file) {
            Ok(LockHolder::Ours) => {}
            Ok(LockHolder::Others) => return Err(ImageError::InUse { path }),
            Err(source) => return Err(ImageError::Lock { path, source }),
        }
        let beneath = beneath.into_iter().map(|layer| {
            let format = layer.format();
            let Source { file, path, .. } = layer.source;
            let file = file.hand_over().map_err(ImageError::read(&path))?;
            Ok((file, format))
        });
        Ok(Writable {
            top: file,
            beneath: beneath.collect::<Result<_, _>>()?,
        })
    }
}
