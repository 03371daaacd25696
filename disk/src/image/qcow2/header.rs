use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

use super::{
    super::{
        error::{ImageDamage, ImageError},
        source::Source,
    },
    extensions::Extensions,
    packed::Method,
};

/// What every qcow2 file begins with.
pub(in super::super) const MAGIC: [u8; 4] = *b"QFI\xfb";

/// The longest name of a backing file that the format allows.
pub(in super::super) const LONGEST_NAME: usize = 1023;

/// A header's fields up to those that may be missing.
const LENGTH_V2: usize = 72;
pub(super) const LENGTH_V3: usize = 104;

/// The largest disk that is supported. However an image maps it, a walk over all
/// of it ends.
pub(in super::super) const MOST_BYTES: u64 = 64 << 40;

/// The most that a table of the first level may take, as in QEMU.
const MOST_L1_BYTES: u64 = 32 << 20;

/// Features without which an image cannot be read rightly, by bit.
const DIRTY: u64 = 1 << 0;
const CORRUPT: u64 = 1 << 1;
const DATA_FILE: u64 = 1 << 2;
const COMPRESSION: u64 = 1 << 3;
const EXTENDED_L2: u64 = 1 << 4;

/// What a header says, checked as far as a header alone can be.
#[derive(Debug)]
pub(in super::super) struct Header {
    /// The size of the disk.
    pub(in super::super) size: u64,
    /// The cluster size is 2 to this power: 9 to 21.
    pub(in super::super) cluster_bits: u32,
    /// Where the table of the first level is. All that is needed of it is in
    /// the file.
    pub(in super::super) l1_offset: u64,
    /// How many entries of it are needed.
    pub(in super::super) l1_entries: u64,
    pub(in super::super) version: u32,
    pub(in super::super) method: Method,
    pub(in super::super) backing: Option<Backing>,
    /// It was closed properly and nobody found it broken.
    pub(in super::super) clean: bool,
}

/// The layer beneath, as the header names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Backing {
    pub(in super::super) name: OsString,
    pub(in super::super) format: Option<String>,
}

impl Header {
    /// Reads and checks the header of a file.
    pub(in super::super) fn read(source: &Source) -> Result<Self, ImageError> {
        let damaged = |damage| ImageError::Damaged {
            path: source.path.clone(),
            damage,
        };
        let unsupported = |feature: String| ImageError::Unsupported {
            path: source.path.clone(),
            feature,
        };
        let bad = |field| damaged(ImageDamage::Header(field));

        let fields = Fields::read(source)?;
        if fields.be32(0) != u32::from_be_bytes(MAGIC) {
            return Err(bad("magic number"));
        }
        let version = fields.be32(4);
        if !(2..=3).contains(&version) {
            return Err(unsupported(format!("version {version} of qcow2")));
        }
        let cluster_bits = fields.be32(20);
        if !(9..=21).contains(&cluster_bits) {
            return Err(bad("cluster size"));
        }
        if fields.be32(32) != 0 {
            return Err(unsupported("decryption".to_owned()));
        }
        let (features, length) = match version {
            2 => (0, LENGTH_V2),
            _ => (fields.be64(72), fields.be32(100) as usize),
        };
        let beginning = fields.first_cluster(source, cluster_bits)?;
        if length < fields.needed(version) || length > beginning.len() {
            return Err(bad("length"));
        }
        let backing_offset = fields.be64(8);
        let extensions = match backing_offset {
            0 => beginning.get(length..),
            _ => usize::try_from(backing_offset)
                .ok()
                .and_then(|end| beginning.get(length..end)),
        };
        let extensions = extensions.ok_or_else(|| bad("backing file name"))?;
        let extensions = Extensions::parse(extensions).ok_or_else(|| bad("extension"))?;
        if let Some(feature) = unsupported_feature(features, &extensions) {
            return Err(unsupported(feature));
        }
        let method = match features & COMPRESSION {
            0 => Method::Deflate,
            _ => {
                let number = beginning.get(LENGTH_V3).filter(|_| length > LENGTH_V3);
                Method::from_number(number.copied().unwrap_or(0))
                    .ok_or_else(|| unsupported("an unknown compression method".to_owned()))?
            }
        };

        let size = fields.be64(24);
        if size > MOST_BYTES {
            return Err(ImageError::TooLarge {
                path: source.path.clone(),
                size,
                limit: MOST_BYTES,
            });
        }
        // An entry of the first level stands for a table of the second, which
        // fills a cluster with entries of 8 bytes.
        let l1_entries = size.div_ceil(1 << (2 * cluster_bits - 3));
        let l1_offset = fields.be64(40);
        let fits = |end| end <= source.length;
        let l1_end = l1_offset.checked_add(l1_entries * 8);
        if l1_entries > u64::from(fields.be32(36)) || l1_entries * 8 > MOST_L1_BYTES {
            return Err(bad("table size"));
        }
        if l1_offset % (1 << cluster_bits) != 0 || !l1_end.is_some_and(fits) {
            return Err(damaged(ImageDamage::Table { offset: l1_offset }));
        }

        let name_length = fields.be32(16) as usize;
        let backing = if backing_offset == 0 || name_length == 0 {
            None
        } else {
            let name = usize::try_from(backing_offset)
                .ok()
                .and_then(|start| beginning.get(start..)?.get(..name_length))
                .filter(|name| name.len() <= LONGEST_NAME && !name.contains(&0))
                .ok_or_else(|| bad("backing file name"))?;
            Some(Backing {
                name: OsString::from_vec(name.to_vec()),
                format: extensions.backing_format(),
            })
        };
        Ok(Self {
            size,
            cluster_bits,
            l1_offset,
            l1_entries,
            version,
            method,
            backing,
            clean: features & (DIRTY | CORRUPT) == 0,
        })
    }

    /// Whether a cluster can begin there.
    pub(super) fn is_aligned(&self, offset: u64) -> bool {
        offset & (self.cluster() - 1) == 0
    }

    /// The size of a cluster.
    pub(in super::super) fn cluster(&self) -> u64 {
        1 << self.cluster_bits
    }
}

/// The name of a feature that is needed and not supported.
fn unsupported_feature(features: u64, extensions: &Extensions<'_>) -> Option<String> {
    if features & DATA_FILE != 0 {
        return Some("an external data file".to_owned());
    }
    if features & EXTENDED_L2 != 0 {
        return Some("extended L2 entries".to_owned());
    }
    // That it was not closed properly matters only to who counts references.
    let bit = (features & !(DIRTY | CORRUPT | COMPRESSION)).trailing_zeros();
    (bit < u64::BITS).then(|| match extensions.feature_name(bit) {
        Some(name) => format!("the feature {name:?}"),
        None => format!("an unknown feature (bit {bit})"),
    })
}

/// The beginning of a file, where missing bytes are zeroes.
struct Fields([u8; LENGTH_V3]);

impl Fields {
    fn read(source: &Source) -> Result<Self, ImageError> {
        let mut bytes = [0; LENGTH_V3];
        source
            .read_padded(0, &mut bytes)
            .map_err(ImageError::read(&source.path))?;
        Ok(Self(bytes))
    }

    fn be32(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    fn be64(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }

    /// How long a header of this version is at least.
    fn needed(&self, version: u32) -> usize {
        if version == 2 { LENGTH_V2 } else { LENGTH_V3 }
    }

    /// All that belongs to the header is in the first cluster.
    fn first_cluster(&self, source: &Source, cluster_bits: u32) -> Result<Vec<u8>, ImageError> {
        let length = source.length.min(1 << cluster_bits) as usize;
        let mut bytes = vec![0; length];
        source
            .read_padded(0, &mut bytes)
            .map_err(ImageError::read(&source.path))?;
        Ok(bytes)
    }
}
