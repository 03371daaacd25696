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

/// Maximum number of layers of an image.
pub(super) const MAX_LAYERS: usize = 64;

/// The open files of an image.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) top: OpenLayer,
    /// The backing file of the top layer, then its backing file, and so on.
    backing: Vec<OpenLayer>,
}

impl Chain {
    /// Returns the top layer and its backing files, the lowest one last.
    pub(super) fn into_layers(self) -> (OpenLayer, Vec<OpenLayer>) {
        (self.top, self.backing)
    }

    /// Returns all layers, top first.
    pub(super) fn layers(&self) -> impl Iterator<Item = &OpenLayer> {
        iter::once(&self.top).chain(&self.backing)
    }

    pub(super) fn count(&self) -> usize {
        1 + self.backing.len()
    }

    /// Returns a layer by its number. The top layer is number 0.
    pub(super) fn layer(&self, number: usize) -> Option<&OpenLayer> {
        match number.checked_sub(1) {
            None => Some(&self.top),
            Some(number) => self.backing.get(number),
        }
    }

    fn lowest(&self) -> &OpenLayer {
        self.backing.last().unwrap_or(&self.top)
    }
}

/// Opens an image with all its backing files.
pub(super) fn open_chain(path: &Path, options: &OpenOptions) -> Result<Chain, ImageError> {
    let source = Source::open(path, options.allow_in_use)?;
    let allowed = allowed_folders(&source, options)?;
    let format = match options.format {
        Some(format) => format,
        None => Format::detect(&source)?,
    };
    let mut chain = Chain {
        top: OpenLayer::open(source, format)?,
        backing: Vec::new(),
    };

    while let Some(backing) = chain.lowest().backing() {
        if chain.count() >= MAX_LAYERS {
            return Err(ImageError::TooManyLayers { limit: MAX_LAYERS });
        }
        let above = &chain.lowest().source;
        let path = backing_path(above, &backing.name)?;
        let source = Source::open_within(&path, &allowed, options.allow_in_use)?;
        if chain.layers().any(|layer| layer.source.id == source.id) {
            return Err(ImageError::Loop { path: source.path });
        }
        let format = backing_format(above, backing, &source)?;
        chain.backing.push(OpenLayer::open(source, format)?);
    }
    Ok(chain)
}

/// Opens an image with these backing files, the lowest one last.
pub(super) fn open_named_chain(
    top: (&Path, Format),
    backing: &[(PathBuf, Format)],
    allow_in_use: bool,
) -> Result<Chain, ImageError> {
    if backing.len() >= MAX_LAYERS {
        return Err(ImageError::TooManyLayers { limit: MAX_LAYERS });
    }
    let open = |path: &Path, format| OpenLayer::open(Source::open(path, allow_in_use)?, format);
    let backing = backing.iter().map(|(path, format)| open(path, *format));
    Ok(Chain {
        top: open(top.0, top.1)?,
        backing: backing.collect::<Result<_, _>>()?,
    })
}

fn allowed_folders(source: &Source, options: &OpenOptions) -> Result<Vec<PathBuf>, ImageError> {
    if options.allowed.is_empty() {
        return Ok(vec![source.folder().to_owned()]);
    }
    let real = |folder: &PathBuf| folder.canonicalize().map_err(ImageError::read(folder));
    options.allowed.iter().map(real).collect()
}

/// Resolves a backing file name. A relative name is relative to the real
/// directory of the layer that contains it.
fn backing_path(above: &Source, name: &OsStr) -> Result<PathBuf, ImageError> {
    // As in QEMU, a colon before the first slash means a protocol.
    let first = name.as_bytes().split(|byte| *byte == b'/').next();
    if first.is_some_and(|first| first.contains(&b':')) {
        return Err(ImageError::BackingProtocol {
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
    // Without a recorded format, a backing file is raw. But if it looks like
    // qcow2, the missing format is more likely a mistake: reading it as raw
    // would show the qcow2 tables as a disk.
    match Format::detect(source)? {
        Format::Raw => Ok(Format::Raw),
        Format::Qcow2 => Err(refused("")),
    }
}
