use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use super::{
    chain::{Chain, open_chain, open_named_chain},
    chain_walk::{ChainWalk, Content, Extent, Holes, Step},
    direct_mapped_cache::DirectMappedCache,
    error::{ImageDamage, ImageError},
    format::Format,
    layer::{Layer, OpenLayer},
    mapping::{FileId, MappedRange, MappedRanges},
    options::OpenOptions,
    qcow2::{LayerRef, TableCache, decompress, lookup},
    source::RegionKind,
};
use crate::read_at::{ReadAt, check_range};

/// Number of decompressed clusters in the cache, of up to 2 MiB each.
const DECOMPRESSED_CLUSTERS: usize = 4;

/// A disk image with all its backing files, opened for reading.
///
/// The layers stay locked until the image is dropped, so that programs that
/// respect the locks cannot write to them: QEMU refuses to start.
/// [`OpenOptions::allow_in_use`] opens an image without locks.
#[derive(Debug)]
pub struct Image {
    pub(super) chain: Chain,
    size: u64,
    tables: TableCache,
    clusters: DirectMappedCache<Vec<u8>>,
}

impl Image {
    /// Opens an image and its backing files.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, is in use, is outside of the allowed
    /// directories, or is damaged: see [`ImageError`].
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, ImageError> {
        Ok(Self::new(open_chain(path.as_ref(), &options)?))
    }

    /// Opens an image whose backing files are named here, the lowest one last. What the
    /// files themselves say about their formats and backing files is not used. Of the
    /// options, [`OpenOptions::allow_in_use`] counts.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_layers(
        top: (&Path, Format),
        backing: &[(PathBuf, Format)],
        options: OpenOptions,
    ) -> Result<Self, ImageError> {
        let chain = open_named_chain(top, backing, options.allow_in_use)?;
        Ok(Self::new(chain))
    }

    fn new(chain: Chain) -> Self {
        Self {
            size: chain.top.size,
            chain,
            tables: TableCache::new(),
            clusters: DirectMappedCache::new(DECOMPRESSED_CLUSTERS, 9),
        }
    }

    /// Returns the size of the disk in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the files that the image consists of, top first.
    ///
    /// # Errors
    ///
    /// If the metadata of a file cannot be read.
    pub fn layers(&self) -> io::Result<Vec<Layer>> {
        self.chain.layers().map(OpenLayer::describe).collect()
    }

    /// Fills the buffer with the bytes at `offset` of the disk.
    ///
    /// # Errors
    ///
    /// If the range reaches beyond the end of the disk, or the image cannot be
    /// read there. An error caused by the contents of the image wraps an
    /// [`ImageError`].
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = check_range(offset, buffer.len(), self.size)?;
        if self.chain.top.header.is_none() {
            return self.chain.top.read_data(offset, buffer);
        }
        let mut walk = ChainWalk::new(self, offset..end, Holes::ReadAsData);
        let mut rest = buffer;
        while let Some(step) = walk.step()? {
            let length = rest.len().min(step.length as usize);
            let (piece, later) = rest.split_at_mut(length);
            self.read_step(&step, piece)?;
            rest = later;
        }
        Ok(())
    }

    /// Returns where the bytes at `offset` are stored.
    ///
    /// The range may be shorter than possible: the next range can be stored
    /// contiguously with it.
    ///
    /// # Errors
    ///
    /// As for [`read_at`](Self::read_at).
    pub fn mapping(&self, offset: u64) -> io::Result<MappedRange> {
        check_range(offset, 1, self.size)?;
        match self.mapped_ranges(offset..self.size).next() {
            Some(run) => run,
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Returns where the bytes of a range are stored, in order. The part of the
    /// range beyond the end of the disk is ignored.
    pub fn mapped_ranges(&self, range: Range<u64>) -> MappedRanges<'_> {
        let range = range.start..range.end.min(self.size);
        MappedRanges {
            walk: ChainWalk::new(self, range, Holes::Detect),
        }
    }

    pub(super) fn file_id(&self, layer: usize) -> Option<FileId> {
        self.chain.layer(layer).map(|layer| layer.source.id)
    }

    /// Returns what one layer stores at an offset, up to `end` at most.
    pub(super) fn lookup(
        &self,
        number: usize,
        at: u64,
        end: u64,
        holes: Holes,
    ) -> io::Result<Extent> {
        let Some(layer) = self.chain.layer(number) else {
            return Ok(Extent::new(at, end, Content::Zero));
        };
        // A layer may be smaller than the one above it.
        if at >= layer.size {
            return Ok(Extent::new(at, end, Content::Zero));
        }
        let end = end.min(layer.size);
        if let Some(header) = &layer.header {
            let layer = LayerRef {
                number,
                source: &layer.source,
                header,
            };
            return lookup(layer, &self.tables, at, end);
        }
        let (stored, end) = match holes {
            Holes::ReadAsData => (RegionKind::Data, end),
            Holes::Detect => layer.source.data_or_hole(at, end)?,
        };
        let content = match stored {
            RegionKind::Data => Content::Data { offset: at },
            RegionKind::Hole => Content::Zero,
        };
        Ok(Extent::new(at, end, content))
    }

    fn read_step(&self, step: &Step<'_>, buffer: &mut [u8]) -> io::Result<()> {
        let layer = self.chain.layer(step.layer);
        match (step.content, layer) {
            (Content::Data { offset }, Some(layer)) => layer.read_data(offset, buffer),
            (
                Content::Compressed {
                    offset,
                    length,
                    within,
                },
                Some(layer),
            ) => {
                let load = || decompress_at(layer, offset, length, step.start);
                self.clusters.with((step.layer, offset), load, |cluster| {
                    let within = within as usize;
                    let bytes = cluster.get(within..within + buffer.len());
                    buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
                    Ok(())
                })?
            }
            _ => {
                buffer.fill(0);
                Ok(())
            }
        }
    }
}

fn decompress_at(layer: &OpenLayer, offset: u64, length: u64, at: u64) -> io::Result<Vec<u8>> {
    let Some(header) = &layer.header else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut compressed = vec![0; length as usize];
    layer.source.read_padded(offset, &mut compressed)?;
    let mut cluster = vec![0; header.cluster() as usize];
    match decompress(header.compression, &compressed, &mut cluster) {
        Ok(()) => Ok(cluster),
        Err(_) => Err(ImageError::Damaged {
            path: layer.source.path.clone(),
            damage: ImageDamage::Compressed { at },
        }
        .into()),
    }
}

impl ReadAt for Image {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        Self::read_at(self, offset, buffer)
    }
}
