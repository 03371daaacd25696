use std::{io, ops::Range};

use super::{
    disk_image::Image,
    mapping::{Location, MappedRange},
};

/// What one layer stores at an offset of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Not stored: read the backing file.
    Absent,
    Zero,
    /// Uncompressed data in the layer's file.
    Data {
        offset: u64,
    },
    /// A compressed cluster in the layer's file.
    Compressed {
        offset: u64,
        length: u64,
        /// Offset in the decompressed cluster.
        within: u64,
    },
}

impl Content {
    /// Returns the content `bytes` further on.
    pub(super) fn skip(self, bytes: u64) -> Self {
        match self {
            Self::Absent | Self::Zero => self,
            Self::Data { offset } => Self::Data {
                offset: offset + bytes,
            },
            Self::Compressed {
                offset,
                length,
                within,
            } => Self::Compressed {
                offset,
                length,
                within: within + bytes,
            },
        }
    }
}

/// A range of the disk that one layer stores contiguously.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    start: u64,
    pub(super) end: u64,
    content: Content,
}

impl Extent {
    pub(super) fn new(start: u64, end: u64, content: Content) -> Self {
        Self {
            start,
            end,
            content,
        }
    }

    /// Returns the content at an offset of the disk.
    pub(super) fn at(&self, at: u64) -> Content {
        self.content.skip(at - self.start)
    }
}

/// Whether to look for holes in raw files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holes {
    /// Do not look for holes: the system call costs more than reading them.
    ReadAsData,
    Detect,
}

/// Walks over a range of the disk, in steps that each lie contiguously in one
/// of some adjacent layers. The last extent of each layer is remembered until
/// the walk has passed it, so that no layer is queried twice for the same range.
#[derive(Debug)]
pub(super) struct ChainWalk<'a> {
    image: &'a Image,
    at: u64,
    end: u64,
    holes: Holes,
    /// The number of the first layer.
    first: usize,
    /// What no layer stores.
    nowhere: Content,
    /// The last extent of each layer, top first.
    known: Vec<Option<Extent>>,
}

/// A range of the disk and where it is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    pub(super) image: &'a Image,
    pub(super) start: u64,
    pub(super) length: u64,
    /// The number of the layer that stores it.
    pub(super) layer: usize,
    /// [`Content::Absent`] only if the walk leaves out layers below.
    pub(super) content: Content,
}

impl<'a> ChainWalk<'a> {
    /// Starts a walk through all layers. `range` must be within the disk.
    pub(super) fn new(image: &'a Image, range: Range<u64>, holes: Holes) -> Self {
        Self::through(image, 0..image.chain.count(), range, holes)
    }

    /// Starts a walk through some layers, whose numbers must be in the chain.
    pub(super) fn through(
        image: &'a Image,
        layers: Range<usize>,
        range: Range<u64>,
        holes: Holes,
    ) -> Self {
        Self {
            image,
            at: range.start,
            end: range.end,
            holes,
            first: layers.start,
            nowhere: match layers.end < image.chain.count() {
                true => Content::Absent,
                false => Content::Zero,
            },
            known: vec![None; layers.len()],
        }
    }

    /// Goes on at `at`, which must not be before the start of the last step.
    pub(super) fn seek(&mut self, at: u64) {
        self.at = at;
    }

    /// Returns the next step. After an error the walk has ended.
    pub(super) fn step(&mut self) -> io::Result<Option<Step<'a>>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let step = self.find();
        self.at = match &step {
            Ok(step) => step.start + step.length,
            Err(_) => self.end,
        };
        step.map(Some)
    }

    fn find(&mut self) -> io::Result<Step<'a>> {
        let at = self.at;
        let mut until = self.end;
        let mut found = (self.first, self.nowhere);
        for (layer, known) in (self.first..).zip(&mut self.known) {
            let extent = match known {
                Some(extent) if extent.end > at => *extent,
                _ => self.image.lookup(layer, at, self.end, self.holes)?,
            };
            *known = Some(extent);
            until = until.min(extent.end);
            match extent.at(at) {
                Content::Absent => {}
                content => {
                    found = (layer, content);
                    break;
                }
            }
        }
        let (layer, content) = found;
        Ok(Step {
            image: self.image,
            start: at,
            length: until - at,
            layer,
            content,
        })
    }
}

impl Step<'_> {
    /// Converts the step to its public form.
    pub(super) fn run(&self) -> MappedRange {
        let file = self.image.file_id(self.layer);
        let location = match (self.content, file) {
            (Content::Data { offset }, Some(file)) => Location::File { file, offset },
            (Content::Compressed { offset, within, .. }, Some(file)) => Location::Compressed {
                file,
                offset,
                within,
            },
            _ => Location::Zero,
        };
        MappedRange {
            offset: self.start,
            length: self.length,
            location,
        }
    }
}
