//! Partition tables (MBR and GPT), and finding the partition with the file
//! system.

mod gpt;
mod kind;
mod mbr;

use std::io;

use super::window::Window;
use crate::{ReadAt, ext4::has_backup_superblock};
pub use kind::PartitionKind;

/// A partition of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partition {
    /// Its number, as in the kernel: from 1 on, logical partitions from 5 on.
    pub index: u32,
    /// Its offset in bytes.
    pub start: u64,
    /// Its length in bytes. The part beyond the end of the disk is not counted.
    pub length: u64,
    /// Its type.
    pub kind: PartitionKind,
    /// Whether it contains an ext2, ext3 or ext4 file system.
    pub has_ext_fs: bool,
}

/// Why the file system of a disk was not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The disk cannot be read.
    #[error("cannot read the disk")]
    Read(#[from] io::Error),
    /// The disk has no ext file system and no partitions.
    #[error("the disk has neither an ext2, ext3 or ext4 file system nor partitions")]
    NoFileSystem,
    /// The chosen partition does not exist.
    #[error("the disk has no partition {index}: {}", list(partitions))]
    NoSuchPartition {
        /// The number.
        index: u32,
        /// The existing partitions.
        partitions: Vec<Partition>,
    },
    /// No partition has an ext file system.
    #[error("no partition has an ext2, ext3 or ext4 file system: {}", list(.0))]
    NoExtFileSystem(Vec<Partition>),
    /// Several partitions have an ext file system. Choose one by number.
    #[error("several partitions have a file system, choose one: {}", list(.0))]
    Ambiguous(Vec<Partition>),
}

fn list(partitions: &[Partition]) -> String {
    if partitions.is_empty() {
        return "it has none".to_owned();
    }
    let one = |partition: &Partition| {
        let ext = if partition.has_ext_fs { ", ext" } else { "" };
        let Partition {
            index,
            length,
            kind,
            ..
        } = partition;
        format!("{index} ({kind}, {length} bytes{ext})")
    };
    partitions.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Returns the partitions of a disk in the order of the table: of the GPT if
/// the MBR has a protective entry, else of the MBR. A disk without a table has
/// none. Invalid entries are skipped.
///
/// # Errors
///
/// If the disk cannot be read.
pub fn partitions(disk: &impl ReadAt) -> io::Result<Vec<Partition>> {
    if mbr::has_protective_entry(disk)?
        && let Some(partitions) = gpt::partitions(disk)?
    {
        return Ok(partitions);
    }
    mbr::partitions(disk)
}

/// Returns the part of a disk that contains the file system. With a number,
/// that is this partition. Otherwise it is the whole disk if a file system
/// starts there, else the only partition that has one, else where only a backup
/// of the superblock is left.
///
/// # Errors
///
/// If the disk cannot be read, or no part or several qualify.
pub fn select<T: ReadAt>(disk: T, index: Option<u32>) -> Result<Window<T>, PartitionError> {
    if index.is_none() && has_ext_fs(&disk)? {
        return Ok(Window::whole(disk));
    }
    let partitions = partitions(&disk)?;
    let mut chosen = partitions.iter().filter(|partition| match index {
        Some(index) => partition.index == index,
        None => partition.has_ext_fs,
    });
    match (chosen.next(), chosen.next(), index) {
        (Some(one), None, _) | (Some(one), Some(_), Some(_)) => {
            Ok(Window::new(disk, one.start, one.length))
        }
        (Some(_), Some(_), None) => Err(PartitionError::Ambiguous(partitions)),
        (None, _, Some(index)) => Err(PartitionError::NoSuchPartition { index, partitions }),
        (None, _, None) => select_by_backup(disk, partitions),
    }
}

/// Returns the part of a disk whose superblock is lost but has a backup.
fn select_by_backup<T: ReadAt>(
    disk: T,
    partitions: Vec<Partition>,
) -> Result<Window<T>, PartitionError> {
    let mut chosen = partitions.iter().filter(|partition| {
        let part = Window::new(&disk, partition.start, partition.length);
        has_backup_superblock(&part)
    });
    let chosen = (chosen.next().cloned(), chosen.next().is_some());
    match chosen {
        (Some(one), false) => Ok(Window::new(disk, one.start, one.length)),
        (Some(_), true) => Err(PartitionError::Ambiguous(partitions)),
        (None, _) if has_backup_superblock(&disk) => Ok(Window::whole(disk)),
        (None, _) if partitions.is_empty() => Err(PartitionError::NoFileSystem),
        (None, _) => Err(PartitionError::NoExtFileSystem(partitions)),
    }
}

/// An entry of a partition table.
struct TableEntry {
    index: u32,
    kind: PartitionKind,
    start: u64,
    length: u64,
}

impl TableEntry {
    /// Converts the entry, or returns `None` if it lies beyond the end of the
    /// disk.
    fn into_partition(self, disk: &impl ReadAt) -> io::Result<Option<Partition>> {
        let length = self.length.min(disk.size().saturating_sub(self.start));
        if length == 0 {
            return Ok(None);
        }
        Ok(Some(Partition {
            index: self.index,
            start: self.start,
            length,
            kind: self.kind,
            has_ext_fs: has_ext_fs(&Window::new(disk, self.start, length))?,
        }))
    }
}

/// Returns whether there is an ext superblock: `s_magic` is at offset 0x38 of
/// the superblock, which is at offset 1024.
fn has_ext_fs(disk: &impl ReadAt) -> io::Result<bool> {
    let mut magic = [0; 2];
    Ok(read_if_there(disk, 1024 + 0x38, &mut magic)? && u16::from_le_bytes(magic) == 0xef53)
}

/// Fills the buffer if the disk has all of these bytes. Returns whether it did.
fn read_if_there(disk: &impl ReadAt, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
    let end = offset.saturating_add(buffer.len() as u64);
    if end > disk.size() {
        return Ok(false);
    }
    disk.read_at(offset, buffer)?;
    Ok(true)
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
