use alloc::{collections::BTreeMap, vec::Vec};

use rustix::fs::Stat;
use vmcell_wire::limits::MAX_PATH;

/// Files with more than one name, and the first path that was seen of each.
#[derive(Default)]
pub(crate) struct HardLinks {
    /// By device and inode: the offset of the path in `paths`.
    first: BTreeMap<(u64, u64), u32>,
    /// For each file the length of its path (two bytes), and the path.
    paths: Vec<u8>,
}

/// How many files are remembered.
const MAX_FILES: usize = 256 * 1024;

/// How many bytes of paths are remembered.
const MAX_PATHS: usize = 16 * 1024 * 1024;

impl HardLinks {
    /// Returns the first path of a file.
    pub(crate) fn find(&self, status: &Stat) -> Option<&[u8]> {
        if status.st_nlink < 2 {
            return None;
        }
        let start = usize::try_from(*self.first.get(&key(status))?).ok()?;
        let (length, rest) = self.paths.get(start..)?.split_first_chunk()?;
        rest.get(..usize::from(u16::from_le_bytes(*length)))
    }

    /// Remembers the path of a file that has several. Returns false if there are too
    /// many.
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
