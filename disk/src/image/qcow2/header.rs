use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

use super::{
    super::{
        error::{ImageDamage, ImageError},
        source::Source,
    },
    compression::CompressionType,
    extensions::Extensions,
};

/// The first bytes of a qcow2 file.
pub(in super::super) const MAGIC: [u8; 4] = *b"QFI\xfb";

/// Maximum length of a backing file name, by the specification.
pub(in super::super) const MAX_BACKING_NAME: usize = 1023;

/// Length of the mandatory part of the header.
const LENGTH_V2: usize = 72;
pub(super) const LENGTH_V3: usize = 104;

/// Maximum size of a disk. It bounds a walk over the whole disk, however the
/// image maps it.
pub(in super::super) const MAX_IMAGE_SIZE: u64 = 64 << 40;

/// Maximum size of the L1 table, as in QEMU.
const MAX_L1_BYTES: u64 = 32 << 20;

/// Incompatible feature bits.
const DIRTY: u64 = 1 << 0;
const CORRUPT: u64 = 1 << 1;
const DATA_FILE: u64 = 1 << 2;
const COMPRESSION: u64 = 1 << 3;
const EXTENDED_L2: u64 = 1 << 4;

/// The header, checked as far as possible without reading the tables.
#[derive(Debug)]
pub(in super::super) struct Header {
    /// The size of the disk in bytes.
    pub(in super::super) size: u64,
    /// Log2 of the cluster size: 9 to 21.
    pub(in super::super) cluster_bits: u32,
    /// The offset of the L1 table. The part that is needed is within the file.
    pub(in super::super) l1_offset: u64,
    /// Number of L1 entries that are needed.
    pub(in super::super) l1_entries: u64,
    pub(in super::super) version: u32,
    pub(in super::super) compression: CompressionType,
    pub(in super::super) backing: Option<Backing>,
    /// Neither the dirty nor the corrupt bit is set.
    pub(in super::super) clean: bool,
    /// The corrupt bit is set.
    pub(in super::super) corrupt: bool,
}

/// The backing file, as recorded in the header.
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
            return Err(unsupported("encryption".to_owned()));
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
        let compression = match features & COMPRESSION {
            0 => CompressionType::Deflate,
            _ => {
                let number = beginning.get(LENGTH_V3).filter(|_| length > LENGTH_V3);
                CompressionType::from_number(number.copied().unwrap_or(0))
                    .map_err(|method| unsupported(method.to_owned()))?
            }
        };

        let size = fields.be64(24);
        if size > MAX_IMAGE_SIZE {
            return Err(ImageError::TooLarge {
                path: source.path.clone(),
                size,
                limit: MAX_IMAGE_SIZE,
            });
        }
        // Each L1 entry covers one L2 table, which is one cluster of 8-byte
        // entries.
        let l1_entries = size.div_ceil(1 << (2 * cluster_bits - 3));
        let l1_offset = fields.be64(40);
        let fits = |end| end <= source.length;
        let l1_end = l1_offset.checked_add(l1_entries * 8);
        if l1_entries > u64::from(fields.be32(36)) || l1_entries * 8 > MAX_L1_BYTES {
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
                .filter(|name| name.len() <= MAX_BACKING_NAME && !name.contains(&0))
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
            compression,
            backing,
            clean: features & (DIRTY | CORRUPT) == 0,
            corrupt: features & CORRUPT != 0,
        })
    }

    /// Returns whether an offset is a multiple of the cluster size.
    pub(super) fn is_aligned(&self, offset: u64) -> bool {
        offset & (self.cluster() - 1) == 0
    }

    /// Returns the cluster size in bytes.
    pub(in super::super) fn cluster(&self) -> u64 {
        1 << self.cluster_bits
    }
}

/// Returns the name of an unsupported incompatible feature, if any is set.
fn unsupported_feature(features: u64, extensions: &Extensions<'_>) -> Option<String> {
    if features & DATA_FILE != 0 {
        return Some("an external data file".to_owned());
    }
    if features & EXTENDED_L2 != 0 {
        return Some("extended L2 entries".to_owned());
    }
    // The dirty and corrupt bits matter only to writers, which use reference
    // counts.
    let bit = (features & !(DIRTY | CORRUPT | COMPRESSION)).trailing_zeros();
    (bit < u64::BITS).then(|| match extensions.feature_name(bit) {
        Some(name) => format!("the feature {name:?}"),
        None => format!("an unknown feature (bit {bit})"),
    })
}

/// The start of a file, padded with zeros.
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

    /// Returns the minimum length of a header of this version.
    fn needed(&self, version: u32) -> usize {
        if version == 2 { LENGTH_V2 } else { LENGTH_V3 }
    }

    /// Reads the first cluster, which contains the whole header.
    fn first_cluster(&self, source: &Source, cluster_bits: u32) -> Result<Vec<u8>, ImageError> {
        let length = source.length.min(1 << cluster_bits) as usize;
        let mut bytes = vec![0; length];
        source
            .read_padded(0, &mut bytes)
            .map_err(ImageError::read(&source.path))?;
        Ok(bytes)
    }
}
