//! The partitions of a disk, and which of them holds the file system.

mod gpt;
mod kind;
mod mbr;

use std::io;

use super::window::Window;
use crate::ReadAt;
pub use kind::PartitionKind;

/// A part of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partition {
    /// Its number, as the kernel counts: from 1 on, logical ones from 5 on.
    pub index: u32,
    /// Where it begins, in bytes.
    pub start: u64,
    /// How many bytes it has. What would be beyond the end of the disk is not
    /// counted.
    pub length: u64,
    /// What its table says it is for.
    pub kind: PartitionKind,
    /// There is an ext2, ext3 or ext4 file system in it.
    pub has_ext: bool,
}

/// Why there is no telling where a disk's file system is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The disk cannot be read.
    #[error("cannot read the disk")]
    Read(#[from] io::Error),
    /// There is neither an ext file system nor a partition.
    #[error("the disk has neither an ext2, ext3 or ext4 file system nor partitions")]
    Nothing,
    /// The disk has no partition with that number.
    #[error("the disk has no partition {index}: {}", listed(partitions))]
    NoSuchPartition {
        /// The number.
        index: u32,
        /// Those that it has.
        partitions: Vec<Partition>,
    },
    /// No partition has an ext file system.
    #[error("no partition has an ext2, ext3 or ext4 file system: {}", listed(.0))]
    NoExt(Vec<Partition>),
    /// Several partitions have one; name which.
    #[error("several partitions have a file system, name one: {}", listed(.0))]
    Several(Vec<Partition>),
}

fn listed(partitions: &[Partition]) -> String {
    if partitions.is_empty() {
        return "it has none".to_owned();
    }
    let one = |partition: &Partition| {
        let ext = if partition.has_ext { ", ext" } else { "" };
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

/// The partitions of a disk, in the order of their tables: GPT if its MBR tells
/// of one, else MBR. A disk without a table has none. Entries that make no sense are
/// left out.
///
/// # Errors
///
/// If the disk cannot be read.
pub fn partitions(disk: &impl ReadAt) -> io::Result<Vec<Partition>> {
    if mbr::protects_gpt(disk)?
        && let Some(partitions) = gpt::partitions(disk)?
    {
        return Ok(partitions);
    }
    mbr::partitions(disk)
}

/// The part of a disk that has the file system: the partition with this number,
/// or, if none is named, the whole disk if the file system begins there, else
/// the only partition that has one.
///
/// # Errors
///
/// If the disk cannot be read, or there is no such part, or more than one.
pub fn select<T: ReadAt>(disk: T, index: Option<u32>) -> Result<Window<T>, PartitionError> {
    if index.is_none() && has_ext(&disk)? {
        return Ok(Window::whole(disk));
    }
    let partitions = partitions(&disk)?;
    let mut chosen = partitions.iter().filter(|partition| match index {
        Some(index) => partition.index == index,
        None => partition.has_ext,
    });
    match (chosen.next(), chosen.next(), index) {
        (Some(one), None, _) | (Some(one), Some(_), Some(_)) => {
            Ok(Window::new(disk, one.start, one.length))
        }
        (Some(_), Some(_), None) => Err(PartitionError::Several(partitions)),
        (None, _, Some(index)) => Err(PartitionError::NoSuchPartition { index, partitions }),
        (None, _, None) if partitions.is_empty() => Err(PartitionError::Nothing),
        (None, _, None) => Err(PartitionError::NoExt(partitions)),
    }
}

/// A partition as a table has it.
struct Entry {
    index: u32,
    kind: PartitionKind,
    start: u64,
    length: u64,
}

impl Entry {
    /// The partition, if any of it is on the disk.
    fn on(self, disk: &impl ReadAt) -> io::Result<Option<Partition>> {
        let length = self.length.min(disk.size().saturating_sub(self.start));
        if length == 0 {
            return Ok(None);
        }
        Ok(Some(Partition {
            index: self.index,
            start: self.start,
            length,
            kind: self.kind,
            has_ext: has_ext(&Window::new(disk, self.start, length))?,
        }))
    }
}

/// Whether an ext superblock is there: `s_magic` is at offset 0x38 of the
/// superblock, which is 1024 bytes after the beginning.
fn has_ext(disk: &impl ReadAt) -> io::Result<bool> {
    let mut magic = [0; 2];
    Ok(read_if_there(disk, 1024 + 0x38, &mut magic)? && u16::from_le_bytes(magic) == 0xef53)
}

/// Fills the buffer if all of it is on the disk.
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
