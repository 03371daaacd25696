use std::io::{self, ErrorKind};

use super::{
    super::format::Format,
    extensions::{BACKING_FORMAT, END},
    header::{LENGTH_V3, MAGIC, MAX_BACKING_NAME, MAX_IMAGE_SIZE},
};

/// The cluster size of new files: 64 KiB, the usual one.
const CLUSTER_BITS: u32 = 16;
pub(in super::super) const CLUSTER: u64 = 1 << CLUSTER_BITS;

/// Number of 8-byte entries in a table that fills a cluster.
pub(super) const TABLE_ENTRIES: u64 = CLUSTER / 8;

/// Reference counts have 2 to this power bits.
const REFCOUNT_ORDER: u32 = 4;

/// Number of reference counts in a block of them, which fills a cluster.
pub(super) const REFCOUNTS: u64 = CLUSTER / 2;

/// The name of the layer beneath, as it is found from the folder of the new
/// file, and its format.
pub(super) type NewBacking<'a> = Option<(&'a str, Format)>;

/// The header of a new file.
pub(super) struct NewHeader<'a> {
    /// The size of the disk in bytes.
    pub(super) size: u64,
    pub(super) backing: NewBacking<'a>,
    pub(super) l1_offset: u64,
    pub(super) refcount_table_offset: u64,
    pub(super) refcount_table_clusters: u64,
}

impl NewHeader<'_> {
    /// Fails if the size or the name is more than the format allows.
    pub(super) fn check(size: u64, backing: NewBacking<'_>) -> io::Result<()> {
        let name = backing.map_or("", |(name, _)| name);
        if size > MAX_IMAGE_SIZE || name.len() > MAX_BACKING_NAME {
            return Err(ErrorKind::InvalidInput.into());
        }
        Ok(())
    }

    /// Returns the bytes of the header, with its extensions and the name of the
    /// backing file. They fit into a cluster if [`check`](Self::check) passes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let name = self.backing.map_or("", |(name, _)| name);
        let mut extensions = Vec::new();
        if let Some((_, format)) = self.backing {
            let format = format.name().as_bytes();
            extensions.extend(BACKING_FORMAT.to_be_bytes());
            extensions.extend((format.len() as u32).to_be_bytes());
            extensions.extend(format);
            extensions.resize(extensions.len().next_multiple_of(8), 0);
        }
        extensions.extend([END.to_be_bytes(), 0_u32.to_be_bytes()].concat());
        let name_offset = match self.backing {
            Some(_) => (LENGTH_V3 + extensions.len()) as u64,
            None => 0,
        };

        let mut header = MAGIC.to_vec();
        header.extend(3_u32.to_be_bytes());
        header.extend(name_offset.to_be_bytes());
        header.extend((name.len() as u32).to_be_bytes());
        header.extend(CLUSTER_BITS.to_be_bytes());
        header.extend(self.size.to_be_bytes());
        // Not encrypted.
        header.extend(0_u32.to_be_bytes());
        header.extend((l1_entries(self.size) as u32).to_be_bytes());
        header.extend(self.l1_offset.to_be_bytes());
        header.extend(self.refcount_table_offset.to_be_bytes());
        header.extend((self.refcount_table_clusters as u32).to_be_bytes());
        // No snapshots.
        header.extend([0; 12]);
        // No incompatible, compatible or autoclear features.
        header.extend([0; 24]);
        header.extend(REFCOUNT_ORDER.to_be_bytes());
        header.extend((LENGTH_V3 as u32).to_be_bytes());
        header.extend(extensions);
        header.extend(name.as_bytes());
        header
    }
}

/// Returns the number of entries of the L1 table. Each stands for an L2 table.
pub(super) fn l1_entries(size: u64) -> u64 {
    size.div_ceil(CLUSTER * TABLE_ENTRIES).max(1)
}

/// Returns the number of clusters of the L1 table.
pub(super) fn l1_clusters(size: u64) -> u64 {
    l1_entries(size).div_ceil(TABLE_ENTRIES)
}
