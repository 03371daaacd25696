use alloc::{format, vec::Vec};
use core::{ffi::CStr, mem::MaybeUninit};

use rustix::{
    fd::{AsRawFd, OwnedFd},
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

/// Knows which cgroups somebody has changed, so that no process gets the limits,
/// the owner or the frozen state that another one left: inotify(7).
///
/// A cgroup can only be changed through its files, and a write to any of them
/// is told, whoever makes it.
pub(super) struct Changes {
    inotify: OwnedFd,
    /// Those that were changed and not forgotten yet.
    changed: Vec<i32>,
    /// How often the kernel had no room for all changes.
    overflows: u32,
}

/// A cgroup that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watch {
    number: i32,
    /// As many overflows there were when it was begun. With one more nothing is
    /// known of it.
    overflows: u32,
}

const CHANGE: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::ONLYDIR);

/// Room for some dozens of changes at once.
const BUFFER: usize = 1024;

impl Changes {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self {
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            changed: Vec::new(),
            overflows: 0,
        })
    }

    /// Watches a cgroup from now on.
    pub(super) fn watch(&self, directory: &OwnedFd) -> Result<Watch, Errno> {
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        Ok(Watch {
            number: inotify::add_watch(&self.inotify, path, CHANGE)?,
            overflows: self.overflows,
        })
    }

    /// Watches it no more.
    pub(super) fn forget(&mut self, watch: Watch) {
        let place = self.changed.iter().position(|it| *it == watch.number);
        match place {
            Some(place) => drop(self.changed.swap_remove(place)),
            // It is watched, or went with its cgroup.
            None => drop(inotify::remove_watch(&self.inotify, watch.number)),
        }
    }

    /// Whether nobody has changed it since it is watched.
    pub(super) fn is_unchanged(&mut self, watch: Watch) -> bool {
        self.read();
        self.overflows == watch.overflows && !self.changed.contains(&watch.number)
    }

    fn read(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        // The kernel keeps a bounded number of them.
        while let Ok(event) = reader.next() {
            let number = event.wd();
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                self.overflows = self.overflows.saturating_add(1);
            } else if is_change(event.events(), event.file_name())
                && !self.changed.contains(&number)
            {
                self.changed.push(number);
                // One change is enough.
                let _ = inotify::remove_watch(&self.inotify, number);
            }
        }
    }
}

/// Whether somebody has done it. That processes come and go, or find a limit, the
/// kernel tells as a change of files that nobody can write to, which are the only
/// ones with such names.
fn is_change(flags: ReadFlags, name: Option<&CStr>) -> bool {
    let name = name.map(CStr::to_bytes).unwrap_or_default();
    let is_report = flags.contains(ReadFlags::MODIFY)
        && (name.ends_with(b".events") || name.ends_with(b".events.local"));
    !is_report && !flags.contains(ReadFlags::IGNORED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_reports_is_no_change() {
        for (flags, name, expected) in [
            (ReadFlags::MODIFY, Some(c"cgroup.events"), false),
            (ReadFlags::MODIFY, Some(c"memory.events.local"), false),
            (ReadFlags::IGNORED, None, false),
            (ReadFlags::MODIFY, Some(c"cgroup.freeze"), true),
            (ReadFlags::MODIFY, Some(c"cgroup.procs"), true),
            (ReadFlags::ATTRIB, Some(c"cgroup.events"), true),
            (ReadFlags::ATTRIB, None, true),
            (ReadFlags::CREATE, Some(c"a.events"), true),
        ] {
            assert_eq!(is_change(flags, name), expected, "{flags:?} {name:?}");
        }
    }
}
