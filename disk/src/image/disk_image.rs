use std::{io, ops::Range, path::Path};

use super::{
    chain::{Chain, open_chain},
    error::{ImageDamage, ImageError},
    layer::{Layer, OpenLayer},
    mapping::{FileId, MappedRange, MappedRanges},
    options::OpenOptions,
    qcow2::{Numbered, Tables, lookup, unpack},
    slots::Slots,
    source::Stored,
    walk::{Content, Extent, Holes, Step, WalkOptions},
};
use crate::read_at::{ReadAt, check_range};

/// So many unpacked clusters are kept, of up to 2 MiB.
const UNPACKED: usize = 4;

/// A disk image, open for reading, with all layers beneath it.
///
/// Unless it was opened for a look that may be torn, nobody who asks can write
/// any of its layers until it is dropped: QEMU refuses to start.
#[derive(Debug)]
pub struct Image {
    pub(super) chain: Chain,
    size: u64,
    tables: Tables,
    unpacked: Slots<Vec<u8>>,
}

impl Image {
    /// Opens an image and its backing files.
    ///
    /// # Errors
    ///
    /// If one of them cannot be read, is in use, is not where it may be or makes
    /// no sense: [`ImageError`] tells which.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, ImageError> {
        let chain = open_chain(path.as_ref(), options)?;
        Ok(Self {
            size: chain.top.size,
            chain,
            tables: Tables::new(),
            unpacked: Slots::new(UNPACKED, 9),
        })
    }

    /// The size of the disk.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The files that it consists of, top first.
    ///
    /// # Errors
    ///
    /// If the system does not tell about a file that is open.
    pub fn layers(&self) -> io::Result<Vec<Layer>> {
        self.chain.layers().map(OpenLayer::describe).collect()
    }

    /// Fills the buffer with what is at `offset` of the disk.
    ///
    /// # Errors
    ///
    /// If not all of the buffer is within the disk, or the image cannot be read
    /// there. An error that comes from what the image holds has an
    /// [`ImageError`] inside.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = check_range(offset, buffer.len(), self.size)?;
        if self.chain.top.header.is_none() {
            return self.chain.top.read_data(offset, buffer);
        }
        let mut walk = WalkOptions::new(self, offset..end, Holes::ReadAsData);
        let mut rest = buffer;
        while let Some(step) = walk.step()? {
            // No step is longer than what is left of the buffer.
            let length = rest.len().min(step.length as usize);
            let (piece, later) = rest.split_at_mut(length);
            self.read_step(&step, piece)?;
            rest = later;
        }
        Ok(())
    }

    /// Where the bytes at `offset` really are.
    ///
    /// The run need not be as long as possible: what follows may be in the same
    /// piece.
    ///
    /// # Errors
    ///
    /// As for [`read_at`](Self::read_at).
    pub fn mapping(&self, offset: u64) -> io::Result<MappedRange> {
        check_range(offset, 1, self.size)?;
        match self.runs(offset..self.size).next() {
            Some(run) => run,
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Where the bytes of a range really are, in order. What of the range is
    /// beyond the end of the disk is left out.
    pub fn runs(&self, range: Range<u64>) -> MappedRanges<'_> {
        let range = range.start..range.end.min(self.size);
        MappedRanges {
            walk: WalkOptions::new(self, range, Holes::Found),
        }
    }

    pub(super) fn file_id(&self, layer: usize) -> Option<FileId> {
        self.chain.layer(layer).map(|layer| layer.source.id)
    }

    /// What one layer has at a place, up to `end` at most.
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
            let layer = Numbered {
                number,
                source: &layer.source,
                header,
            };
            return lookup(layer, &self.tables, at, end);
        }
        let (stored, end) = match holes {
            Holes::ReadAsData => (Stored::Data, end),
            Holes::Found => layer.source.data_or_hole(at, end)?,
        };
        let content = match stored {
            Stored::Data => Content::Data { offset: at },
            Stored::Hole => Content::Zero,
        };
        Ok(Extent::new(at, end, content))
    }

    fn read_step(&self, step: &Step<'_>, buffer: &mut [u8]) -> io::Result<()> {
        let layer = self.chain.layer(step.layer);
        match (step.content, layer) {
            (Content::Data { offset }, Some(layer)) => layer.read_data(offset, buffer),
            (
                Content::Packed {
                    offset,
                    length,
                    within,
                },
                Some(layer),
            ) => {
                let load = || unpack_at(layer, offset, length, step.start);
                self.unpacked.with((step.layer, offset), load, |cluster| {
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

fn unpack_at(layer: &OpenLayer, offset: u64, length: u64, at: u64) -> io::Result<Vec<u8>> {
    let Some(header) = &layer.header else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut packed = vec![0; length as usize];
    layer.source.read_padded(offset, &mut packed)?;
    let mut cluster = vec![0; header.cluster() as usize];
    match unpack(header.method, &packed, &mut cluster) {
        Ok(()) => Ok(cluster),
        Err(_) => Err(ImageError::Damaged {
            path: layer.source.path.clone(),
            damage: ImageDamage::Packed { at },
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
