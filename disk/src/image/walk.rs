use std::{io, ops::Range};

use super::{
    disk_image::Image,
    mapping::{Location, MappedRange},
};

/// What one layer has at a place of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing: the layer beneath has it.
    Absent,
    Zero,
    /// Bytes as they are in the layer's file.
    Data {
        offset: u64,
    },
    /// A compressed cluster in the layer's file.
    Packed {
        offset: u64,
        length: u64,
        /// How far into the cluster.
        within: u64,
    },
}

impl Content {
    /// What comes so many bytes later.
    pub(super) fn skip(self, bytes: u64) -> Self {
        match self {
            Self::Absent | Self::Zero => self,
            Self::Data { offset } => Self::Data {
                offset: offset + bytes,
            },
            Self::Packed {
                offset,
                length,
                within,
            } => Self::Packed {
                offset,
                length,
                within: within + bytes,
            },
        }
    }
}

/// A stretch of the disk that one layer has in one piece.
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

    /// What is at a place in it.
    pub(super) fn at(&self, at: u64) -> Content {
        self.content.skip(at - self.start)
    }
}

/// Whether holes of raw files are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holes {
    /// Asking where they are costs more than reading them.
    ReadAsData,
    Found,
}

/// Goes through a stretch of the disk, in steps that are each in one piece in
/// one layer. What is known of a layer is kept until it is passed, so that every
/// layer is asked only once for the same.
#[derive(Debug)]
pub(super) struct WalkOptions<'a> {
    image: &'a Image,
    at: u64,
    end: u64,
    holes: Holes,
    /// By layer, top first.
    known: Vec<Option<Extent>>,
}

/// Some bytes of the disk and where they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    pub(super) image: &'a Image,
    pub(super) start: u64,
    pub(super) length: u64,
    /// The layer that has them.
    pub(super) layer: usize,
    /// Never absent.
    pub(super) content: Content,
}

impl<'a> WalkOptions<'a> {
    /// `range` is within the disk.
    pub(super) fn new(image: &'a Image, range: Range<u64>, holes: Holes) -> Self {
        Self {
            image,
            at: range.start,
            end: range.end,
            holes,
            known: vec![None; image.chain.count()],
        }
    }

    /// The next step. After an error there are none.
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
        let mut found = (0, Content::Zero);
        for (layer, known) in self.known.iter_mut().enumerate() {
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
    /// The same for those outside.
    pub(super) fn run(&self) -> MappedRange {
        let file = self.image.file_id(self.layer);
        let place = match (self.content, file) {
            (Content::Data { offset }, Some(file)) => Location::File { file, offset },
            (Content::Packed { offset, within, .. }, Some(file)) => Location::Packed {
                file,
                offset,
                within,
            },
            _ => Location::Zero,
        };
        MappedRange {
            offset: self.start,
            length: self.length,
            place,
        }
    }
}
