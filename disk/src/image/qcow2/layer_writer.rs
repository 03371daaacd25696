use std::{fs::File, io, os::unix::fs::FileExt as _};

use super::new_header::{
    CLUSTER, NewBacking, NewHeader, REFCOUNTS, TABLE_ENTRIES, l1_clusters, l1_entries,
};

/// The bit of a table entry whose cluster has a reference count of one.
const COPIED: u64 = 1 << 63;
/// An L2 entry of a cluster that reads as zeros, and is not stored.
const ZERO: u64 = 1;

/// Writes a qcow2 layer to an empty file, cluster by cluster in the order of the
/// disk.
///
/// ```text
///  cluster 0        1...      then
///  header, backing  L1 table  L2 tables, each before   refcount  refcount
///                             the data that it names   blocks    table
/// ```
///
/// Nothing is known about the number of clusters before the last one, so the
/// reference counts come last. Memory is needed for one L2 table only.
#[derive(Debug)]
pub(in super::super) struct LayerWriter<'a> {
    file: &'a File,
    size: u64,
    backing: NewBacking<'a>,
    /// Number of clusters in use, all from the start of the file.
    clusters: u64,
    table: Option<L2Table>,
}

/// The L2 table that is being filled.
#[derive(Debug)]
struct L2Table {
    /// Its number, which is the index of its L1 entry.
    number: u64,
    offset: u64,
    entries: Vec<u8>,
}

impl<'a> LayerWriter<'a> {
    /// Starts a layer of a disk of `size` bytes.
    ///
    /// # Errors
    /// The size or the name is more than the format allows.
    pub(in super::super) fn new(
        file: &'a File,
        size: u64,
        backing: NewBacking<'a>,
    ) -> io::Result<Self> {
        NewHeader::check(size, backing)?;
        Ok(Self {
            file,
            size,
            backing,
            clusters: 1 + l1_clusters(size),
            table: None,
        })
    }

    /// Returns the number of bytes of data and L2 tables so far.
    pub(in super::super) fn written(&self) -> u64 {
        (self.clusters - 1 - l1_clusters(self.size)) * CLUSTER
    }

    /// Writes the data of a cluster. `at` is its offset on the disk, beyond that
    /// of the one before.
    pub(in super::super) fn write_data(&mut self, at: u64, data: &[u8]) -> io::Result<()> {
        self.open_table(at)?;
        let offset = self.allocate();
        self.file.write_all_at(data, offset)?;
        self.set_entry(at, offset | COPIED)
    }

    /// Makes a cluster read as zeros, whatever the backing file has there. `at`
    /// is as for [`write_data`](Self::write_data).
    pub(in super::super) fn write_zero(&mut self, at: u64) -> io::Result<()> {
        self.open_table(at)?;
        self.set_entry(at, ZERO)
    }

    /// Writes the rest of the file.
    pub(in super::super) fn finish(mut self) -> io::Result<()> {
        self.close_table()?;
        let (blocks, table_clusters) = refcount_clusters(self.clusters);
        let blocks_offset = self.clusters * CLUSTER;
        let table_offset = blocks_offset + blocks * CLUSTER;
        let clusters = self.clusters + blocks + table_clusters;

        self.file.set_len(clusters * CLUSTER)?;
        // Both are in use up to the last cluster, and zero beyond.
        write_repeated(self.file, blocks_offset, clusters, |_| 1_u16.to_be_bytes())?;
        write_repeated(self.file, table_offset, blocks, |number| {
            (blocks_offset + number * CLUSTER).to_be_bytes()
        })?;
        let header = NewHeader {
            size: self.size,
            backing: self.backing,
            l1_offset: CLUSTER,
            refcount_table_offset: table_offset,
            refcount_table_clusters: table_clusters,
        };
        self.file.write_all_at(&header.encode(), 0)
    }

    /// Appends a cluster and returns its offset.
    fn allocate(&mut self) -> u64 {
        self.clusters += 1;
        (self.clusters - 1) * CLUSTER
    }

    /// Makes the table that contains the cluster at `at` the current one.
    fn open_table(&mut self, at: u64) -> io::Result<()> {
        let number = at / (CLUSTER * TABLE_ENTRIES);
        if self.table.as_ref().is_some_and(|it| it.number == number) {
            return Ok(());
        }
        self.close_table()?;
        if number >= l1_entries(self.size) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.table = Some(L2Table {
            number,
            offset: self.allocate(),
            entries: vec![0; CLUSTER as usize],
        });
        Ok(())
    }

    fn close_table(&mut self) -> io::Result<()> {
        let Some(table) = self.table.take() else {
            return Ok(());
        };
        self.file.write_all_at(&table.entries, table.offset)?;
        let entry = (table.offset | COPIED).to_be_bytes();
        self.file.write_all_at(&entry, CLUSTER + table.number * 8)
    }

    fn set_entry(&mut self, at: u64, entry: u64) -> io::Result<()> {
        let index = (at / CLUSTER % TABLE_ENTRIES) as usize;
        let table = self.table.as_mut();
        let place = table.and_then(|table| table.entries.get_mut(index * 8..index * 8 + 8));
        let place = place.ok_or(io::ErrorKind::InvalidInput)?;
        place.copy_from_slice(&entry.to_be_bytes());
        Ok(())
    }
}

/// Returns the number of refcount blocks and the number of clusters of their
/// table, for a file of `clusters` other clusters: they count themselves, too.
fn refcount_clusters(clusters: u64) -> (u64, u64) {
    let (mut blocks, mut table) = (1, 1);
    loop {
        let needed = (clusters + blocks + table).div_ceil(REFCOUNTS);
        if needed <= blocks {
            return (blocks, table);
        }
        blocks = needed;
        table = blocks.div_ceil(TABLE_ENTRIES);
    }
}

/// Writes `count` values at an offset, a cluster at a time.
fn write_repeated<const N: usize>(
    file: &File,
    offset: u64,
    count: u64,
    value: impl Fn(u64) -> [u8; N],
) -> io::Result<()> {
    let at_once = CLUSTER / N as u64;
    for first in (0..count).step_by(at_once as usize) {
        let last = count.min(first + at_once);
        let bytes: Vec<u8> = (first..last).flat_map(&value).collect();
        file.write_all_at(&bytes, offset + first * N as u64)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_counts_count_themselves() {
        assert_eq!(refcount_clusters(2), (1, 1));
        assert_eq!(refcount_clusters(REFCOUNTS - 2), (1, 1));
        assert_eq!(refcount_clusters(REFCOUNTS - 1), (2, 1));
        // The second block and the table need no third one.
        assert_eq!(refcount_clusters(2 * REFCOUNTS - 3), (2, 1));
        assert_eq!(refcount_clusters(2 * REFCOUNTS - 2), (3, 1));
        let most = TABLE_ENTRIES * REFCOUNTS - TABLE_ENTRIES - 1;
        assert_eq!(refcount_clusters(most), (TABLE_ENTRIES, 1));
        assert_eq!(refcount_clusters(most + 1), (TABLE_ENTRIES + 1, 2));
    }
}
