use std::{
    fs::File,
    io::{self, ErrorKind},
    os::unix::fs::FileExt as _,
};

use super::{
    super::format::Format,
    extensions::{BACKING_FORMAT, END},
    header::{LENGTH_V3, MAGIC, MAX_BACKING_NAME, MAX_IMAGE_SIZE},
};

/// The usual size of a cluster: 64 KiB.
const CLUSTER_BITS: u32 = 16;
const CLUSTER: u64 = 1 << CLUSTER_BITS;

/// Reference counts have 2 to this power bits.
const REFCOUNT_ORDER: u32 = 4;

/// Writes a qcow2 layer without data to an empty file.
///
/// ```text
///  cluster 0        1                 2                3...
///  header, backing  refcount table    refcount block   L1 table, all zero
/// ```
///
/// `backing` is the name of the layer beneath, as it is found from the layer's
/// folder, and its format.
///
/// This is our own because `imago`, which can create qcow2 files too, brings 15
/// crates and does not build on all systems on which disks can be read.
///
/// # Errors
/// The file cannot be written, or the size or the name is more than the format
/// allows.
pub fn write_empty_layer(
    file: &File,
    size: u64,
    backing: Option<(&str, Format)>,
) -> io::Result<()> {
    let name = backing.map_or("", |(name, _)| name);
    if size > MAX_IMAGE_SIZE || name.len() > MAX_BACKING_NAME {
        return Err(ErrorKind::InvalidInput.into());
    }
    // An entry of the L1 table stands for an L2 table, which fills a cluster.
    let l1_entries = size.div_ceil(CLUSTER * (CLUSTER / 8)).max(1);
    let clusters = 3 + (l1_entries * 8).div_ceil(CLUSTER);

    let mut extensions = Vec::new();
    if let Some((_, format)) = backing {
        let format = format.name().as_bytes();
        extensions.extend(BACKING_FORMAT.to_be_bytes());
        extensions.extend((format.len() as u32).to_be_bytes());
        extensions.extend(format);
        extensions.resize(extensions.len().next_multiple_of(8), 0);
    }
    extensions.extend([END.to_be_bytes(), 0_u32.to_be_bytes()].concat());
    let name_offset = match backing {
        Some(_) => (LENGTH_V3 + extensions.len()) as u64,
        None => 0,
    };

    let mut header = MAGIC.to_vec();
    header.extend(3_u32.to_be_bytes());
    header.extend(name_offset.to_be_bytes());
    header.extend((name.len() as u32).to_be_bytes());
    header.extend(CLUSTER_BITS.to_be_bytes());
    header.extend(size.to_be_bytes());
    // Not encrypted.
    header.extend(0_u32.to_be_bytes());
    header.extend((l1_entries as u32).to_be_bytes());
    header.extend((3 * CLUSTER).to_be_bytes());
    header.extend(CLUSTER.to_be_bytes());
    header.extend(1_u32.to_be_bytes());
    // No snapshots.
    header.extend([0; 12]);
    // No incompatible, compatible or autoclear features.
    header.extend([0; 24]);
    header.extend(REFCOUNT_ORDER.to_be_bytes());
    header.extend((LENGTH_V3 as u32).to_be_bytes());
    header.extend(extensions);
    header.extend(name.as_bytes());

    file.set_len(clusters * CLUSTER)?;
    file.write_all_at(&header, 0)?;
    file.write_all_at(&(2 * CLUSTER).to_be_bytes(), CLUSTER)?;
    let counts = 1_u16.to_be_bytes().repeat(clusters as usize);
    file.write_all_at(&counts, 2 * CLUSTER)
}
