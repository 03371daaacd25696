use alloc::vec::Vec;

use rustix::{
    fd::BorrowedFd,
    fs::{XattrFlags, fgetxattr, flistxattr, flistxattr_query, fsetxattr},
    io::Errno,
};
use vmcell_wire::{
    files::{Xattrs, XattrsBuf},
    limits::MAX_XATTRS,
};

/// The namespace of users' own attributes. The others belong to the system that
/// they are on: xattr(7).
const NAMESPACE: &[u8] = b"user.";

/// Reads the extended attributes `user.*` of one entry after the other.
#[derive(Default)]
pub(crate) struct XattrReader {
    names: Vec<u8>,
    value: Vec<u8>,
    found: XattrsBuf,
}

impl XattrReader {
    /// Returns the attributes of an entry, without those that cannot be read or do
    /// not fit.
    pub(crate) fn read(&mut self, entry: BorrowedFd<'_>) -> Xattrs<'_> {
        self.found.clear();
        // Most entries have none, and need only this call.
        if flistxattr_query(entry).is_ok_and(|length| length > 0) {
            self.collect(entry);
        }
        self.found.as_xattrs()
    }

    fn collect(&mut self, entry: BorrowedFd<'_>) {
        self.names.resize(MAX_XATTRS, 0);
        self.value.resize(MAX_XATTRS, 0);
        let Ok(length) = flistxattr(entry, self.names.as_mut_slice()) else {
            return;
        };
        let names = self.names.get(..length).unwrap_or_default();
        for name in names.split(|byte| *byte == 0).filter(|name| is_ours(name)) {
            let Ok(length) = fgetxattr(entry, name, self.value.as_mut_slice()) else {
                continue;
            };
            let value = self.value.get(..length).unwrap_or_default();
            let _left_out_if_too_large = self.found.push(name, value);
        }
    }
}

/// Sets the attributes that are `user.*`. Ignores all if the file system has none.
pub(crate) fn set(entry: BorrowedFd<'_>, xattrs: Xattrs<'_>) -> Result<(), Errno> {
    for (name, value) in xattrs.iter().filter(|(name, _)| is_ours(name)) {
        match fsetxattr(entry, name, value, XattrFlags::empty()) {
            Err(Errno::OPNOTSUPP) => return Ok(()),
            outcome => outcome?,
        }
    }
    Ok(())
}

fn is_ours(name: &[u8]) -> bool {
    name.starts_with(NAMESPACE)
}
