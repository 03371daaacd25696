use std::{fs::File, io, os::unix::fs::FileExt as _};

use super::{
    super::format::Format,
    new_header::{CLUSTER, NewHeader, l1_clusters},
};

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
    NewHeader::check(size, backing)?;
    let header = NewHeader {
        size,
        backing,
        l1_offset: 3 * CLUSTER,
        refcount_table_offset: CLUSTER,
        refcount_table_clusters: 1,
    };
    let clusters = 3 + l1_clusters(size);
    file.set_len(clusters * CLUSTER)?;
    file.write_all_at(&header.encode(), 0)?;
    file.write_all_at(&(2 * CLUSTER).to_be_bytes(), CLUSTER)?;
    let counts = 1_u16.to_be_bytes().repeat(clusters as usize);
    file.write_all_at(&counts, 2 * CLUSTER)
}
