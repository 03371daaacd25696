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

/// Number of bytes copied at a time.
const CHUNK_SIZE: usize = 1 << 20;
/// Granularity of holes: the usual block size of file systems.
const BLOCK: usize = 4096;
static ZEROES: [u8; BLOCK] = [0; BLOCK];

/// The progress of [`flatten`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlattenProgress {
    /// Number of bytes of the disk that are done.
    pub done: u64,
    /// The size of the disk in bytes.
    pub size: u64,
    /// Number of bytes of data written so far.
    pub written: u64,
}

/// The result of [`flatten`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Flattened {
    /// The size of the disk and of the file, in bytes.
    pub size: u64,
    /// Number of bytes of data written; the rest are holes.
    pub written: u64,
    /// Number of bytes allocated on the host's file system.
    pub allocated: u64,
}

/// Writes the contents of an image to a single sparse raw file at `to`. Zeros
/// become holes, also those stored in the image.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::ops::ControlFlow;
/// use vmcell_disk::image::{Image, OpenOptions, flatten};
///
/// let image = Image::open("vm1.qcow2", OpenOptions::new())?;
/// flatten(&image, "vm1.raw", 20 << 30, &mut |_| ControlFlow::Continue(()))?;
/// # Ok(())
/// # }
/// ```
///
/// `progress` is called after each chunk and can cancel the operation. At most
/// `limit` bytes of data are written, whatever size the image claims.
///
/// # Errors
///
/// If the image cannot be read, the file cannot be written, `to` already
/// exists, the limit is exceeded or the caller cancels. No file is left behind.
pub fn flatten(
    image: &Image,
    to: impl AsRef<Path>,
    limit: u64,
    progress: &mut dyn FnMut(FlattenProgress) -> ControlFlow<()>,
) -> Result<Flattened, ImageError> {
    let to = to.as_ref();
    let from = &image.chain.top.source.path;
    let size = image.size();
    let file = NewFile::create(to)?;
    file.file().set_len(size).map_err(ImageError::write(to))?;

    let mut buffer = vec![0; CHUNK_SIZE];
    let mut written = 0;
    for run in image.mapped_ranges(0..size) {
        let run = run.map_err(ImageError::from_reading(from))?;
        for (offset, length) in pieces(&run) {
            if run.location != Location::Zero {
                let piece = buffer.get_mut(..length as usize).unwrap_or_default();
                let reading = image.read_at(offset, piece);
                reading.map_err(ImageError::from_reading(from))?;
                written += write_data(file.file(), offset, piece, limit - written)
                    .map_err(ImageError::write(to))?
                    .ok_or(ImageError::Limit { limit })?;
            }
            let done = offset + length;
            let flow = progress(FlattenProgress {
                done,
                size,
                written,
            });
            if flow.is_break() {
                return Err(ImageError::Cancelled);
            }
        }
    }
    let file = file.finish_durable()?;
    let metadata = file.metadata().map_err(ImageError::read(to))?;
    Ok(Flattened {
        size,
        written,
        allocated: metadata.blocks() * 512,
    })
}

/// Splits a range into (offset, length) chunks. A range of zeros stays whole.
fn pieces(run: &MappedRange) -> impl Iterator<Item = (u64, u64)> + use<> {
    let end = run.offset + run.length;
    let step = match run.location {
        Location::Zero => run.length,
        _ => CHUNK_SIZE as u64,
    };
    (run.offset..end)
        .step_by(step as usize)
        .map(move |offset| (offset, step.min(end - offset)))
}

/// Writes the blocks that are not all zero. Returns the number of bytes
/// written, or `None` if it exceeds `limit`.
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

/// Returns the length of the leading blocks for which `is_so` holds.
fn length_of_blocks(bytes: &[u8], is_so: impl Fn(&[u8]) -> bool) -> usize {
    let blocks = bytes.chunks(BLOCK).take_while(|block| is_so(block));
    blocks.map(<[u8]>::len).sum()
}

pub(super) fn is_zero(bytes: &[u8]) -> bool {
    let mut blocks = bytes.chunks(BLOCK);
    blocks.all(|block| ZEROES.get(..block.len()) == Some(block))
}
