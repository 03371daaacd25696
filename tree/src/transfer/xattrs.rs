//! Reads and writes extended attributes of the host's files: only `user.*`,
//! because the others belong to the system, not to the file.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use vmcell_wire::files::{Xattrs, XattrsBuf};

use super::platform::platform;

const PREFIX: &[u8] = b"user.";

/// The limit of Linux for a list of names and for a value: XATTR_LIST_MAX and
/// XATTR_SIZE_MAX of xattr(7).
const MAX_SIZE: usize = 64 * 1024;

/// Reads attributes, with buffers that it reuses.
#[derive(Debug)]
pub(super) struct XattrReader {
    names: Vec<u8>,
    value: Vec<u8>,
}

impl XattrReader {
    pub(super) fn new() -> Self {
        Self {
            names: vec![0; MAX_SIZE],
            value: vec![0; MAX_SIZE],
        }
    }

    /// Reads the attributes of a file or directory. Returns how many could not
    /// be read or did not fit.
    pub(super) fn read(&mut self, file: BorrowedFd<'_>, xattrs: &mut XattrsBuf) -> u64 {
        xattrs.clear();
        let names = match platform().list_xattrs(file, &mut self.names) {
            Ok(length) => self.names.get(..length).unwrap_or_default(),
            Err(Errno::OPNOTSUPP) => return 0,
            Err(_) => return 1,
        };
        let mut lost = 0;
        for name in names.split(|byte| *byte == 0) {
            if !name.starts_with(PREFIX) {
                continue;
            }
            let fits = match platform().get_xattr(file, name, &mut self.value) {
                Ok(Some(length)) => xattrs.push(name, self.value.get(..length).unwrap_or_default()),
                // It has just been removed.
                Ok(None) => true,
                Err(_) => false,
            };
            lost += u64::from(!fits);
        }
        lost
    }
}

/// Sets the attributes of a file or directory. Returns how many were not set,
/// because they are not `user.*` or the file system rejects them.
pub(super) fn write(file: BorrowedFd<'_>, xattrs: Xattrs<'_>) -> u64 {
    let mut lost = 0;
    for (name, value) in xattrs.iter() {
        let is_set = name.starts_with(PREFIX) && platform().set_xattr(file, name, value).is_ok();
        lost += u64::from(!is_set);
    }
    lost
}
