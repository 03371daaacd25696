use std::{
    io,
    ops::{ControlFlow, Range},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use super::{
    chain::MAX_LAYERS,
    chain_walk::{ChainWalk, Content, Holes},
    child::{SECTOR, backing_name},
    disk_image::Image,
    error::{ImageDamage, ImageError},
    flatten::is_zero,
    format::Format,
    layer::{Layer, OpenLayer},
    new_file::{NewFile, parent_dir},
    qcow2::{CLUSTER, LayerWriter},
};

/// Number of bytes read at a time.
const CHUNK_SIZE: u64 = 16 * CLUSTER;

/// The progress of [`merge_layers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeProgress {
    /// Number of bytes of the disk that are done.
    pub done: u64,
    /// The size of the disk in bytes.
    pub size: u64,
    /// Number of bytes written so far.
    pub written: u64,
}

/// Writes the contents of the topmost `count` layers of an image to a single
/// qcow2 file at `to`, whose backing file is the layer below them. It can take
/// the place of these layers: with it, the disk reads the same.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::ops::ControlFlow;
/// use vmcell_disk::image::{Image, OpenOptions, merge_layers};
///
/// // 3.qcow2 is above 2.qcow2, which is above 1.qcow2.
/// let image = Image::open("3.qcow2", OpenOptions::new())?;
/// let go_on = &mut |_| ControlFlow::Continue(());
/// merge_layers(&image, 2, "merged.qcow2", 20 << 30, go_on)?;
/// // merged.qcow2 has what was in 3.qcow2 and 2.qcow2, and is above 1.qcow2.
/// # Ok(())
/// # }
/// ```
///
/// To merge layers from the middle of a chain, open the uppermost of them. If
/// `count` is all layers or more, the new file has no backing file.
///
/// Only what the layers store is read and written, so that the size of the disk
/// does not matter. Zeros are not stored. They hide data of the layers below,
/// and are left out where there is none. The layers below must not be written to
/// any more.
///
/// The header of the new file names the backing file as
/// [`create_child`](super::create_child) does. After a power loss, the new file
/// is either complete or does not exist.
///
/// `progress` is called after each chunk and can cancel the operation. At most
/// `limit` bytes are written, whatever sizes the image claims; reference counts
/// and the header are not counted.
///
/// # Errors
///
/// If the image cannot be read, one of the merged layers was marked as corrupt,
/// the file cannot be written, `to` already exists, the limit is exceeded or the
/// caller cancels. No file is left behind.
pub fn merge_layers(
    image: &Image,
    count: usize,
    to: impl AsRef<Path>,
    limit: u64,
    progress: &mut dyn FnMut(MergeProgress) -> ControlFlow<()>,
) -> Result<Layer, ImageError> {
    let to = to.as_ref();
    let count = count.min(image.chain.count());
    if image.chain.count() - count >= MAX_LAYERS {
        return Err(ImageError::TooManyLayers { limit: MAX_LAYERS });
    }
    check_not_corrupt(image, count)?;
    let folder = parent_dir(to)
        .canonicalize()
        .map_err(ImageError::write(to))?;
    let name = match image.chain.layer(count) {
        Some(below) => Some((backing_name(&folder, &below.source.path)?, below.format())),
        None => None,
    };
    let backing = name.as_ref().map(|(name, format)| (name.as_str(), *format));
    let size = image.size().next_multiple_of(SECTOR);

    let file = NewFile::create(to)?;
    let writer = LayerWriter::new(file.file(), size, backing).map_err(ImageError::write(to))?;
    let mut merge = Merge {
        image,
        from: &image.chain.top.source.path,
        to,
        limit,
        buffer: vec![0; CHUNK_SIZE as usize],
        merged: Clusters::new(image, 0..count),
        below: Clusters::new(image, count..image.chain.count()),
        writer,
    };
    let mut done = 0;
    while done < image.size() {
        done = merge.step(done)?;
        let flow = progress(MergeProgress {
            done,
            size: image.size(),
            written: merge.writer.written(),
        });
        if flow.is_break() {
            return Err(ImageError::Cancelled);
        }
    }
    merge.writer.finish().map_err(ImageError::write(to))?;

    let file = file.finish_durable()?;
    let metadata = file.metadata().map_err(ImageError::read(to))?;
    Ok(Layer {
        path: folder.join(to.file_name().unwrap_or_default()),
        format: Format::Qcow2,
        size,
        allocated: metadata.blocks() * 512,
        sealed: false,
        corrupt: false,
    })
}

/// The new file would not have the mark.
fn check_not_corrupt(image: &Image, count: usize) -> Result<(), ImageError> {
    let is_corrupt = |layer: &&OpenLayer| layer.header.as_ref().is_some_and(|it| it.corrupt);
    match image.chain.layers().take(count).find(is_corrupt) {
        Some(layer) => Err(ImageError::Damaged {
            path: layer.source.path.clone(),
            damage: ImageDamage::Unclean,
        }),
        None => Ok(()),
    }
}

/// A merge under way.
struct Merge<'a> {
    image: &'a Image,
    /// The top layer.
    from: &'a Path,
    to: &'a Path,
    limit: u64,
    /// For the data of [`CHUNK_SIZE`] bytes.
    buffer: Vec<u8>,
    /// What the layers have that are merged, and what those below them have.
    merged: Clusters<'a>,
    below: Clusters<'a>,
    writer: LayerWriter<'a>,
}

impl Merge<'_> {
    /// Does some clusters from `at` on. Returns where they end.
    fn step(&mut self, at: u64) -> Result<u64, ImageError> {
        let run = self.merged.run(at);
        let run = run.map_err(ImageError::from_reading(self.from))?;
        match run.kind {
            RunKind::Absent => Ok(run.end),
            RunKind::Zero => self.write_zeros(at..run.end),
            RunKind::Data => self.copy(at..run.end.min(at + CHUNK_SIZE)),
        }
    }

    /// Copies some clusters, the last one of which may be incomplete. What the
    /// merged layers store only a part of is completed with what is below.
    fn copy(&mut self, range: Range<u64>) -> Result<u64, ImageError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let length = (range.end - range.start) as usize;
        let (data, rest) = buffer.split_at_mut(length);
        let reading = self.image.read_at(range.start, data);
        reading.map_err(ImageError::from_reading(self.from))?;
        if !(length as u64).is_multiple_of(CLUSTER) {
            // Beyond the end of the disk.
            rest.fill(0);
        }

        let clusters = buffer.chunks(CLUSTER as usize);
        for (at, cluster) in range.clone().step_by(CLUSTER as usize).zip(clusters) {
            if is_zero(cluster) {
                let end = range.end.min(at + CLUSTER);
                self.write_zeros(at..end)?;
                continue;
            }
            let writing = self.writer.write_data(at, cluster);
            writing.map_err(ImageError::write(self.to))?;
            self.check_limit()?;
        }
        self.buffer = buffer;
        Ok(range.end)
    }

    /// Makes clusters read as zeros: those below which there may be something
    /// else, up to the next where it is otherwise. Returns where they end.
    fn write_zeros(&mut self, range: Range<u64>) -> Result<u64, ImageError> {
        let below = self.below.run(range.start);
        let below = below.map_err(ImageError::from_reading(self.from))?;
        let end = below.end.min(range.end);
        if below.kind != RunKind::Data {
            return Ok(end);
        }
        let end = end.min(range.start + CHUNK_SIZE);
        for at in (range.start..end).step_by(CLUSTER as usize) {
            let writing = self.writer.write_zero(at);
            writing.map_err(ImageError::write(self.to))?;
        }
        self.check_limit()?;
        Ok(end)
    }

    fn check_limit(&self) -> Result<(), ImageError> {
        match self.writer.written() > self.limit {
            true => Err(ImageError::Limit { limit: self.limit }),
            false => Ok(()),
        }
    }
}

/// What some layers have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunKind {
    /// Nothing.
    Absent,
    Zero,
    /// Something else, at least in a part of each cluster.
    Data,
}

/// Adjacent clusters of one kind.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Where they end: a multiple of the cluster size, or the end of the disk.
    end: u64,
    kind: RunKind,
}

/// What some layers have, in clusters of the new file. Theirs may have any other
/// size.
struct Clusters<'a> {
    walk: ChainWalk<'a>,
    size: u64,
}

impl<'a> Clusters<'a> {
    fn new(image: &'a Image, layers: Range<usize>) -> Self {
        let size = image.size();
        Self {
            walk: ChainWalk::through(image, layers, 0..size, Holes::Detect),
            size,
        }
    }

    /// Returns the clusters of one kind from `at` on, of which there may be more.
    /// `at` must be the start of a cluster, not before that of the last call.
    fn run(&mut self, at: u64) -> io::Result<Run> {
        let cluster_end = self.size.min(at + CLUSTER);
        self.walk.seek(at);
        let mut found: Option<Run> = None;
        while found.is_none_or(|run| run.end < cluster_end) {
            let Some(step) = self.walk.step()? else {
                break;
            };
            let kind = match step.content {
                Content::Absent => RunKind::Absent,
                Content::Zero => RunKind::Zero,
                Content::Data { .. } | Content::Compressed { .. } => RunKind::Data,
            };
            let end = step.start + step.length;
            found = Some(match found {
                Some(run) if run.kind != kind => Run {
                    end: end.min(cluster_end),
                    kind: RunKind::Data,
                },
                _ => Run { end, kind },
            });
        }
        let run = found.unwrap_or(Run {
            end: self.size,
            kind: RunKind::Absent,
        });
        // The next run starts with the cluster that this one has only a part of.
        let end = match run.end < self.size {
            true => cluster_end.max(run.end - run.end % CLUSTER),
            false => self.size,
        };
        Ok(Run { end, ..run })
    }
}
