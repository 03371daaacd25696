use alloc::{collections::BTreeMap, vec::Vec};

use rustix::fs::Stat;
use vmcell_wire::limits::MAX_PATH;

/// Files that have more than one name, and the path by which each was met
/// first.
#[derive(Default)]
pub(crate) struct HardLinks {
    /// By device and inode: where in `paths` the path begins.
    first: BTreeMap<(u64, u64), u32>,
    /// For each file the length of a path (two bytes), and the path.
    paths: Vec<u8>,
}

/// More files are not remembered.
const MAX_FILES: usize = 256 * 1024;

/// More bytes of paths are not remembered.
const MAX_PATHS: usize = 16 * 1024 * 1024;

impl HardLinks {
    /// The path by which the file was met first.
    pub(crate) fn find(&self, status: &Stat) -> Option<&[u8]> {
        if status.st_nlink < 2 {
            return None;
        }
        let start = usize::try_from(*self.first.get(&key(status))?).ok()?;
        let (length, rest) = self.paths.get(start..)?.split_first_chunk()?;
        rest.get(..usize::from(u16::from_le_bytes(*length)))
    }

    /// Remembers a file by its path, if it can have others. Answers false if
    /// there is no room for it.
    pub(crate) fn remember(&mut self, status: &Stat, path: &[u8]) -> bool {
        if status.st_nlink < 2 {
            return true;
        }
        let (Ok(start), Ok(length)) = (u32::try_from(self.paths.len()), u16::try_from(path.len()))
        else {
            return false;
        };
        if path.len() >= MAX_PATH || self.first.len() >= MAX_FILES || self.paths.len() >= MAX_PATHS
        {
            return false;
        }
        self.first.insert(key(status), start);
        self.paths.extend_from_slice(&length.to_le_bytes());
        self.paths.extend_from_slice(path);
        true
    }
}

fn key(status: &Stat) -> (u64, u64) {
    (status.st_dev, status.st_ino)
}
