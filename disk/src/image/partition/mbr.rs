use std::io;

use super::{Entry, Partition, PartitionKind, le32, read_if_there};
use crate::ReadAt;

/// A table is in the first 512 bytes, however large sectors are.
const TABLE: usize = 512;
/// The kinds of a partition that has partitions.
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
/// Logical partitions are a linked list that a disk may make endless.
const MOST_LOGICAL: usize = 128;
/// The kind of the one that keeps programs that know no GPT away from it, and
/// the sector it begins with.
const PROTECTING: (u8, u32) = (0xee, 1);

/// The partitions of a disk's MBR. It counts in sectors and does not say how
/// large they are: 512 bytes, unless a file system is found only with 4096.
pub(super) fn partitions(disk: &impl ReadAt) -> io::Result<Vec<Partition>> {
    let usual = with_sectors(disk, 512)?;
    if usual.iter().any(|partition| partition.has_ext) {
        return Ok(usual);
    }
    let large = with_sectors(disk, 4096)?;
    match large.iter().any(|partition| partition.has_ext) {
        true => Ok(large),
        false => Ok(usual),
    }
}

/// Whether the MBR says that the disk has a GPT. One that it does not tell of is
/// left from other days: the kernel does not look at it either.
pub(super) fn protects_gpt(disk: &impl ReadAt) -> io::Result<bool> {
    let rows = read_table(disk, 0)?;
    let is_protecting = |row: &Row| (row.kind, row.start) == PROTECTING;
    Ok(rows.is_some_and(|rows| rows.iter().any(is_protecting)))
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
            found.extend(row.entry(index, 0, sector).on(disk)?);
        }
    }
    if let Some(extended) = extended {
        add_logical(disk, sector, u64::from(extended.start), &mut found)?;
    }
    Ok(found)
}

/// Each logical partition has a table before it. Its first row is the partition,
/// relative to the table; the second is the next table, relative to the extended
/// partition.
fn add_logical(
    disk: &impl ReadAt,
    sector: u64,
    extended: u64,
    found: &mut Vec<Partition>,
) -> io::Result<()> {
    let mut at = extended;
    let mut index = 5;
    for _ in 0..MOST_LOGICAL {
        let Some([row, next, ..]) = read_table(disk, at.saturating_mul(sector))? else {
            break;
        };
        // The first one stays as an empty row when it is removed, and then has
        // no number.
        if !row.is_empty() {
            found.extend(row.entry(index, at, sector).on(disk)?);
            index += 1;
        }
        if !EXTENDED.contains(&next.kind) || next.start == 0 {
            break;
        }
        at = extended.saturating_add(u64::from(next.start));
    }
    Ok(())
}

/// A row of a table, counted in sectors.
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

    fn entry(self, index: u32, base: u64, sector: u64) -> Entry {
        let start = base.saturating_add(u64::from(self.start));
        let length = if self.is_empty() { 0 } else { self.length };
        Entry {
            index,
            kind: PartitionKind::Mbr(self.kind),
            start: start.saturating_mul(sector),
            length: u64::from(length).saturating_mul(sector),
        }
    }
}

/// The table at this place, if one is there: four rows of 16 bytes and a
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
