//! Confines a process to its cgroup: cgroup_namespaces(7).

use core::{
    ffi::CStr,
    fmt::{self, Write},
};

use rustix::{
    io::Errno,
    mount::{MountPropagationFlags, mount_bind, mount_change},
    thread::{UnshareFlags, unshare_unsafe},
};

/// The mount point of the cgroups.
pub const CGROUPS: &str = "/sys/fs/cgroup";

/// The cgroup of all children, in the root.
pub(crate) const CGROUP_PARENT: &str = "vmcell";

/// Which cgroups a process sees, and where it can move processes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CgroupNamespace {
    /// That of the agent, if the kernel has no cgroup namespaces.
    Shared,
    /// Its own: it can move no process out of its cgroup. `/sys/fs/cgroup` is
    /// the same as for all other processes.
    Own,
    /// Its own, and its own mount namespace in which `/sys/fs/cgroup` is its
    /// cgroup, `vmcell/` and this number. All other mounts are shared with the
    /// rest of the guest, in both directions.
    Mounted(u64),
}

/// Enters a cgroup namespace whose root is the cgroup that this process is in.
///
/// For a child that shares the agent's memory: it only makes system calls, and
/// does not touch the `errno` of the C library.
pub(super) fn enter_cgroup_namespace(namespace: CgroupNamespace) -> Result<(), Errno> {
    let number = match namespace {
        CgroupNamespace::Shared => return Ok(()),
        CgroupNamespace::Own => None,
        CgroupNamespace::Mounted(number) => Some(number),
    };
    let mut flags = UnshareFlags::NEWCGROUP;
    flags.set(UnshareFlags::NEWNS, number.is_some());
    // SAFETY: descriptors stay as they are.
    unsafe { unshare_unsafe(flags) }?;
    let Some(number) = number else {
        return Ok(());
    };
    match mount_change(CGROUPS, MountPropagationFlags::PRIVATE) {
        Ok(()) => {}
        // Root has unmounted it for the whole guest.
        Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error),
    }
    let mut path = Path::new();
    // There is room for the longest number.
    let _ = write!(path, "{CGROUPS}/{CGROUP_PARENT}/{number}");
    mount_bind(path.as_c_str(), CGROUPS)
}

/// A zero-terminated path on the stack.
struct Path {
    bytes: [u8; 64],
    length: usize,
}

impl Path {
    const fn new() -> Self {
        Self {
            bytes: [0; 64],
            length: 0,
        }
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length.saturating_add(text.len());
        // The last byte stays zero.
        let room = self.bytes.len().saturating_sub(1);
        let place = self.bytes.get_mut(self.length..end.min(room));
        let place = place.filter(|place| place.len() == text.len());
        place.ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_room_in_the_path() {
        let mut path = Path::new();
        write!(path, "{CGROUPS}/{CGROUP_PARENT}/{}", u64::MAX).unwrap();
        let expected = c"/sys/fs/cgroup/vmcell/18446744073709551615";
        assert_eq!(path.as_c_str(), expected);
        assert!(write!(path, "{}", "x".repeat(64)).is_err());
        assert_eq!(path.as_c_str(), expected);
    }
}
