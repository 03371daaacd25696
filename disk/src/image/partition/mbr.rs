use std::io;

use super::{Partition, PartitionKind, TableEntry, le32, read_if_there};
use crate::ReadAt;

/// The table is in the first 512 bytes, whatever the sector size.
const TABLE: usize = 512;
/// Types of an extended partition, which contains logical partitions.
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
/// Maximum number of logical partitions, which are a linked list that could be
/// circular.
const MAX_LOGICAL: usize = 128;
/// Type and first sector of the protective entry that covers a GPT disk for
/// programs that do not support GPT.
const PROTECTIVE: (u8, u32) = (0xee, 1);

/// Returns the partitions of an MBR. The MBR counts in sectors but does not
/// record their size: 512 bytes is assumed, unless a file system is found only
/// with 4096.
pub(super) fn partitions(disk: &impl ReadAt) -> io::Result<Vec<Partition>> {
    let usual = with_sectors(disk, 512)?;
    if usual.iter().any(|partition| partition.has_ext_fs) {
        return Ok(usual);
    }
    let large = with_sectors(disk, 4096)?;
    match large.iter().any(|partition| partition.has_ext_fs) {
        true => Ok(large),
        false => Ok(usual),
    }
}

/// Returns whether the MBR has a protective entry. Without one, a GPT is a
/// leftover, which the kernel ignores as well.
pub(super) fn has_protective_entry(disk: &impl ReadAt) -> io::Result<bool> {
    let rows = read_table(disk, 0)?;
    let is_protective = |row: &Row| (row.kind, row.start) == PROTECTIVE;
    Ok(rows.is_some_and(|rows| rows.iter().any(is_protective)))
}

fn with_sectors(disk: &impl ReadAt, sector: u64) -> io::Result<Vec<Partition>> {
    let mut found = Vec::new();
    let Some(table) = read_table(disk, 0)? else {
        return Ok(found);
    };
    let mut extended = None;
    for (index, row) in (1..).zip(table) {
        if EXTENDED.contains(&row.kind) {
            extended = extended.or(Some(row));
        } else {
            found.extend(row.entry(index, 0, sector).into_partition(disk)?);
        }
    }
    if let Some(extended) = extended {
        add_logical(disk, sector, u64::from(extended.start), &mut found)?;
    }
    Ok(found)
}

/// Adds the logical partitions. Each has a table before it: the first row is
/// the partition, relative to the table; the second row is the next table,
/// relative to the extended partition.
fn add_logical(
    disk: &impl ReadAt,
    sector: u64,
    extended: u64,
    found: &mut Vec<Partition>,
) -> io::Result<()> {
    let mut at = extended;
    let mut index = 5;
    for _ in 0..MAX_LOGICAL {
        let Some([row, next, ..]) = read_table(disk, at.saturating_mul(sector))? else {
            break;
        };
        // If the first logical partition is removed, its row stays empty and is
        // not numbered.
        if !row.is_empty() {
            found.extend(row.entry(index, at, sector).into_partition(disk)?);
            index += 1;
        }
        if !EXTENDED.contains(&next.kind) || next.start == 0 {
            break;
        }
        at = extended.saturating_add(u64::from(next.start));
    }
    Ok(())
}

/// A row of a table, in sectors.
#[derive(Clone, Copy)]
struct Row {
    kind: u8,
    start: u32,
    length: u32,
}

impl Row {
    fn is_empty(self) -> bool {
        self.kind == 0 || self.length == 0
    }

    fn entry(self, index: u32, base: u64, sector: u64) -> TableEntry {
        let start = base.saturating_add(u64::from(self.start));
        let length = if self.is_empty() { 0 } else { self.length };
        TableEntry {
            index,
            kind: PartitionKind::Mbr(self.kind),
            start: start.saturating_mul(sector),
            length: u64::from(length).saturating_mul(sector),
        }
    }
}

/// Returns the table at `offset`, if there is one: four rows of 16 bytes and a
/// signature.
fn read_table(disk: &impl ReadAt, offset: u64) -> io::Result<Option<[Row; 4]>> {
    let mut bytes = [0; TABLE];
    if !read_if_there(disk, offset, &mut bytes)? || !bytes.ends_with(&[0x55, 0xaa]) {
        return Ok(None);
    }
    let row = |number: usize| {
        let row = bytes.get(446 + number * 16..).unwrap_or_default();
        Row {
            kind: row.get(4).copied().unwrap_or(0),
            start: le32(row, 8),
            length: le32(row, 12),
        }
    };
    Ok(Some([0, 1, 2, 3].map(row)))
}
