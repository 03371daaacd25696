use std::{
    ffi::OsStr,
    iter,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::{
    error::ImageError, format::Format, layer::OpenLayer, options::OpenOptions, qcow2::Backing,
    source::Source,
};

/// The most layers that an image may have.
pub(super) const MOST_LAYERS: usize = 64;

/// The files of an image that is open.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) top: OpenLayer,
    /// What backs the top, and what backs that, and so on.
    beneath: Vec<OpenLayer>,
}

impl Chain {
    /// The top, and what is beneath it, top first.
    pub(super) fn into_layers(self) -> (OpenLayer, Vec<OpenLayer>) {
        (self.top, self.beneath)
    }

    /// All layers, top first.
    pub(super) fn layers(&self) -> impl Iterator<Item = &OpenLayer> {
        iter::once(&self.top).chain(&self.beneath)
    }

    pub(super) fn count(&self) -> usize {
        1 + self.beneath.len()
    }

    /// A layer by its number, 0 being the top.
    pub(super) fn layer(&self, number: usize) -> Option<&OpenLayer> {
        match number.checked_sub(1) {
            None => Some(&self.top),
            Some(number) => self.beneath.get(number),
        }
    }

    fn lowest(&self) -> &OpenLayer {
        self.beneath.last().unwrap_or(&self.top)
    }
}

/// Opens an image with all that is beneath it.
pub(super) fn open_chain(path: &Path, options: &OpenOptions) -> Result<Chain, ImageError> {
    let source = Source::open(path, options.torn)?;
    let allowed = allowed_folders(&source, options)?;
    let format = match options.format {
        Some(format) => format,
        None => Format::detect(&source).map_err(ImageError::read(path))?,
    };
    let mut chain = Chain {
        top: OpenLayer::open(source, format)?,
        beneath: Vec::new(),
    };

    while let Some(backing) = chain.lowest().backing() {
        if chain.count() >= MOST_LAYERS {
            return Err(ImageError::TooDeep { limit: MOST_LAYERS });
        }
        let above = &chain.lowest().source;
        let path = backing_path(above, &backing.name)?;
        let source = Source::open_beneath(&path, &allowed, options.torn)?;
        if chain.layers().any(|layer| layer.source.id == source.id) {
            return Err(ImageError::Loop { path: source.path });
        }
        let format = backing_format(above, backing, &source)?;
        chain.beneath.push(OpenLayer::open(source, format)?);
    }
    Ok(chain)
}

fn allowed_folders(source: &Source, options: &OpenOptions) -> Result<Vec<PathBuf>, ImageError> {
    if options.allowed.is_empty() {
        return Ok(vec![source.folder().to_owned()]);
    }
    let real = |folder: &PathBuf| folder.canonicalize().map_err(ImageError::read(folder));
    options.allowed.iter().map(real).collect()
}

/// A relative name is relative to where the layer that has it really is.
fn backing_path(above: &Source, name: &OsStr) -> Result<PathBuf, ImageError> {
    // As in QEMU, a colon before the first slash ends the name of a protocol.
    let first = name.as_bytes().split(|byte| *byte == b'/').next();
    if first.is_some_and(|first| first.contains(&b':')) {
        return Err(ImageError::Protocol {
            path: above.path.clone(),
            name: name.to_string_lossy().into_owned(),
        });
    }
    Ok(above.folder().join(name))
}

fn backing_format(
    above: &Source,
    backing: &Backing,
    source: &Source,
) -> Result<Format, ImageError> {
    let refused = |format: &str| ImageError::BackingFormat {
        path: above.path.clone(),
        format: format.to_owned(),
    };
    if let Some(name) = &backing.format {
        return Format::from_name(name).ok_or_else(|| refused(name));
    }
    // It is raw. But showing a qcow2 file's tables as if they were a disk would
    // help nobody.
    match Format::detect(source).map_err(ImageError::read(&source.path))? {
        Format::Raw => Ok(Format::Raw),
        Format::Qcow2 => Err(refused("")),
    }
}
