use std::{
    fmt,
    fs::File,
    os::fd::{AsRawFd as _, OwnedFd},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::fs::{AtFlags, Mode, OFlags, Statx, StatxFlags, open, statx};

/// The file that a VM writes to. A switch of the disk replaces it in all copies of this.
#[derive(Clone, Default)]
pub(crate) struct DiskFile(Arc<Mutex<Option<OwnedFd>>>);

impl DiskFile {
    /// Remembers a file, for its size only: not even a copy of its descriptor is kept, whose
    /// locks would go on.
    pub(crate) fn new(file: &File) -> Self {
        let disk = Self::default();
        disk.replace(file);
        disk
    }

    /// Goes on with another file.
    pub(crate) fn replace(&self, file: &File) {
        // open(2): a descriptor that names a file without opening it.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let opened = open(path, flags, Mode::empty());
        // Without it the VM has no figures of its disk.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = opened.ok();
    }

    /// Returns how many bytes the file takes.
    pub(super) fn allocated_bytes(&self) -> Option<u64> {
        // statx(2): in units of 512 bytes.
        self.query(StatxFlags::BLOCKS)?.stx_blocks.checked_mul(512)
    }

    /// Returns the length of the file, with its holes.
    pub(crate) fn length(&self) -> Option<u64> {
        Some(self.query(StatxFlags::SIZE)?.stx_size)
    }

    /// Does not wait for a server: a file system of the network returns what it knows.
    fn query(&self, wanted: StatxFlags) -> Option<Statx> {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        statx(file.as_ref()?, c"", flags, wanted).ok()
    }
}

impl fmt::Debug for DiskFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DiskFile").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn what_a_file_takes_is_counted_without_its_holes_and_after_a_switch() {
        let first = tempfile::tempfile().unwrap();
        first.set_len(1 << 30).unwrap();
        let disk = DiskFile::new(&first);
        let copy = disk.clone();
        assert_eq!(copy.allocated_bytes(), Some(0));
        assert_eq!(copy.length(), Some(1 << 30));
        first.write_all_at(&[7; 1 << 20], 1 << 20).unwrap();
        first.sync_all().unwrap();
        let allocated = copy.allocated_bytes().unwrap();
        assert!((1 << 20..2 << 20).contains(&allocated), "{allocated}");
        disk.replace(&tempfile::tempfile().unwrap());
        assert_eq!(copy.allocated_bytes(), Some(0));
        assert_eq!(DiskFile::default().allocated_bytes(), None);
    }
}
