use std::{
    fs::File,
    io,
    ops::ControlFlow,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::Path,
};

use super::{
    disk_image::Image,
    error::ImageError,
    mapping::{Location, MappedRange},
    new_file::NewFile,
};

/// So much is copied at a time.
const PIECE: usize = 1 << 20;
/// Zeroes are left out in multiples of this, which is what file systems store.
const BLOCK: usize = 4096;
static ZEROES: [u8; BLOCK] = [0; BLOCK];

/// How far flattening has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// How much of the disk is done.
    pub done: u64,
    /// The size of the disk.
    pub size: u64,
    /// How many bytes of data were written.
    pub written: u64,
}

/// What flattening made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flattened {
    /// The size of the disk, and of the file.
    pub size: u64,
    /// How many bytes of data were written; the rest is holes.
    pub written: u64,
    /// How many bytes it takes of the file system.
    pub allocated: u64,
}

/// Writes the disk of an image to one raw sparse file at `to`. Zeroes become
/// holes, also those that the image has stored.
///
/// `progress` is called after each piece, and may end it. No more than `limit`
/// bytes of data are written, whatever size the image claims.
///
/// # Errors
///
/// If the image cannot be read, the file not be written, something is at `to`
/// already, the limit is reached or the caller ends it. Nothing is left then.
pub fn flatten(
    image: &Image,
    to: impl AsRef<Path>,
    limit: u64,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Flattened, ImageError> {
    let to = to.as_ref();
    let from = &image.chain.top.source.path;
    let size = image.size();
    let file = NewFile::create(to)?;
    file.file().set_len(size).map_err(ImageError::write(to))?;

    let mut buffer = vec![0; PIECE];
    let mut written = 0;
    for run in image.runs(0..size) {
        let run = run.map_err(ImageError::from_reading(from))?;
        for (offset, length) in pieces(&run) {
            if run.place != Location::Zero {
                let piece = buffer.get_mut(..length as usize).unwrap_or_default();
                let reading = image.read_at(offset, piece);
                reading.map_err(ImageError::from_reading(from))?;
                written += write_data(file.file(), offset, piece, limit - written)
                    .map_err(ImageError::write(to))?
                    .ok_or(ImageError::Limit { limit })?;
            }
            let done = offset + length;
            let told = progress(Progress {
                done,
                size,
                written,
            });
            if told.is_break() {
                return Err(ImageError::Cancelled);
            }
        }
    }
    let file = file.finish_for_good()?;
    let metadata = file.metadata().map_err(ImageError::read(to))?;
    Ok(Flattened {
        size,
        written,
        allocated: metadata.blocks() * 512,
    })
}

/// A run of zeroes in one piece, one of data in small ones: where, how long.
fn pieces(run: &MappedRange) -> impl Iterator<Item = (u64, u64)> + use<> {
    let end = run.offset + run.length;
    let step = match run.place {
        Location::Zero => run.length,
        _ => PIECE as u64,
    };
    (run.offset..end)
        .step_by(step as usize)
        .map(move |offset| (offset, step.min(end - offset)))
}

/// Writes what is not zero, and tells how much that was, or nothing if it is
/// more than `limit`.
fn write_data(file: &File, offset: u64, piece: &[u8], limit: u64) -> io::Result<Option<u64>> {
    let mut written = 0;
    let mut at = 0;
    while let Some(rest) = piece.get(at..).filter(|rest| !rest.is_empty()) {
        let zeroes = length_of_blocks(rest, is_zero);
        let rest = rest.get(zeroes..).unwrap_or_default();
        let length = length_of_blocks(rest, |block| !is_zero(block));
        let data = rest.get(..length).unwrap_or_default();
        written += length as u64;
        if written > limit {
            return Ok(None);
        }
        file.write_all_at(data, offset + (at + zeroes) as u64)?;
        at += zeroes + length;
    }
    Ok(Some(written))
}

/// How many bytes the first blocks have for which this is so.
fn length_of_blocks(bytes: &[u8], is_so: impl Fn(&[u8]) -> bool) -> usize {
    let blocks = bytes.chunks(BLOCK).take_while(|block| is_so(block));
    blocks.map(<[u8]>::len).sum()
}

fn is_zero(block: &[u8]) -> bool {
    ZEROES.get(..block.len()) == Some(block)
}
