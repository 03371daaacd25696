//! Reads the fields of an ext4 superblock that identify an image.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::Uuid;

/// Offset and length of the superblock (kernel documentation, `filesystems/ext4/globals.rst`:
/// "The Super Block").
const OFFSET: u64 = 1024;
const LENGTH: usize = 1024;
const MAGIC: u16 = 0xef53;

/// The fields of a superblock that identify a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) uuid: Uuid,
    /// The length of the file system in bytes.
    pub(crate) bytes: u64,
    /// How many of them files and directories take.
    pub(crate) used_bytes: u64,
}

impl Superblock {
    /// Reads the superblock of a file; `None` if it has none, or if it is cut off. One that
    /// was grown can be a part of a block group shorter than its disk.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        let mut bytes = [0; LENGTH];
        match file.read_exact_at(&mut bytes, OFFSET) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let superblock = Self::parse(&bytes);
        let length = file.metadata()?.len();
        Ok(superblock.filter(|superblock| superblock.bytes <= length))
    }

    fn parse(bytes: &[u8; LENGTH]) -> Option<Self> {
        let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if u16_at(0x38)? != MAGIC {
            return None;
        }
        let blocks = u64::from(u32_at(0x4)?) | u64::from(u32_at(0x150)?) << 32;
        let block_size = 1024_u64.checked_shl(u32_at(0x18)?)?;
        let free = u64::from(u32_at(0xc)?) | u64::from(u32_at(0x158)?) << 32;
        let overhead = u64::from(u32_at(0x248)?);
        let uuid = Uuid(bytes.get(0x68..0x78)?.try_into().ok()?);
        Some(Self {
            uuid,
            bytes: blocks.checked_mul(block_size)?,
            used_bytes: blocks
                .saturating_sub(free)
                .saturating_sub(overhead)
                .checked_mul(block_size)?,
        })
    }
}
