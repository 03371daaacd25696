use std::io;

use flate2::Crc;

use super::{Partition, PartitionKind, TableEntry, le32, le64, read_if_there};
use crate::ReadAt;

const SIGNATURE: &[u8] = b"EFI PART";
const HEADER: usize = 92;
/// Maximum size of a partition table; the usual one has 16 KiB.
const MAX_TABLE_BYTES: u64 = 1 << 20;

/// The kernel's maximum number of partitions per disk.
const MAX_PARTITIONS: u32 = 255;

/// Returns the partitions of a GPT: of the primary one if it is intact, else of
/// the backup at the end of the disk.
pub(super) fn partitions(disk: &impl ReadAt) -> io::Result<Option<Vec<Partition>>> {
    let last = |sector: u64| disk.size() / sector * sector;
    for (offset, sector) in [
        (512, 512),
        (4096, 4096),
        (last(512).saturating_sub(512), 512),
        (last(4096).saturating_sub(4096), 4096),
    ] {
        if let Some(partitions) = read_table(disk, offset, sector)? {
            return Ok(Some(partitions));
        }
    }
    Ok(None)
}

/// Returns the partitions of the table whose header is at `offset`, or `None`
/// if it is not intact.
fn read_table(disk: &impl ReadAt, offset: u64, sector: u64) -> io::Result<Option<Vec<Partition>>> {
    let mut header = vec![0; sector as usize];
    if !read_if_there(disk, offset, &mut header)? || !header.starts_with(SIGNATURE) {
        return Ok(None);
    }
    let length = le32(&header, 12) as usize;
    let claimed = le32(&header, 16);
    // The checksum is computed with its own field set to zero.
    if let Some(checksum) = header.get_mut(16..20) {
        checksum.fill(0);
    }
    let Some(counted) = header.get(..length).filter(|_| length >= HEADER) else {
        return Ok(None);
    };
    if checksum(counted) != claimed {
        return Ok(None);
    }

    let count = u64::from(le32(&header, 80));
    let size = u64::from(le32(&header, 84));
    let bytes = count.saturating_mul(size);
    if !(128..=4096).contains(&size) || bytes > MAX_TABLE_BYTES {
        return Ok(None);
    }
    let mut table = vec![0; bytes as usize];
    let offset = le64(&header, 72).saturating_mul(sector);
    if !read_if_there(disk, offset, &mut table)? || checksum(&table) != le32(&header, 88) {
        return Ok(None);
    }

    let mut found = Vec::new();
    for (index, row) in (1..=MAX_PARTITIONS).zip(table.chunks_exact(size as usize)) {
        if let Some(entry) = entry(index, row, sector) {
            found.extend(entry.into_partition(disk)?);
        }
    }
    Ok(Some(found))
}

fn entry(index: u32, row: &[u8], sector: u64) -> Option<TableEntry> {
    let kind = *row.first_chunk::<16>()?;
    // An unused row has no type.
    if kind == [0; 16] {
        return None;
    }
    let (first, last) = (le64(row, 32), le64(row, 40));
    let sectors = last.checked_sub(first)?.saturating_add(1);
    Some(TableEntry {
        index,
        kind: PartitionKind::Gpt(kind),
        start: first.saturating_mul(sector),
        length: sectors.saturating_mul(sector),
    })
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}
