use alloc::{format, vec::Vec};
use core::{ffi::CStr, mem::MaybeUninit};

use rustix::{
    fd::{AsRawFd, OwnedFd},
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

/// Detects which cgroups were changed, so that no process gets the limits, the
/// owner or the frozen state that another one left: inotify(7).
///
/// A cgroup can only be changed through its files, and inotify reports every
/// write to them.
pub(super) struct ChangeTracker {
    inotify: OwnedFd,
    /// Watches of cgroups that were changed.
    changed: Vec<i32>,
    /// How often the kernel's event queue has overflowed.
    overflows: u32,
}

/// The watch of a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watch {
    number: i32,
    /// The number of overflows when the watch began. After another one, the cgroup
    /// counts as changed.
    overflows: u32,
}

const CHANGE: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::ONLYDIR);

/// The size of the event buffer: some dozens of events.
const BUFFER: usize = 1024;

impl ChangeTracker {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self {
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            changed: Vec::new(),
            overflows: 0,
        })
    }

    /// Starts to watch a cgroup.
    pub(super) fn watch(&self, directory: &OwnedFd) -> Result<Watch, Errno> {
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        Ok(Watch {
            number: inotify::add_watch(&self.inotify, path, CHANGE)?,
            overflows: self.overflows,
        })
    }

    /// Stops watching a cgroup.
    pub(super) fn unwatch(&mut self, watch: Watch) {
        let place = self.changed.iter().position(|it| *it == watch.number);
        match place {
            Some(place) => drop(self.changed.swap_remove(place)),
            // It fails if the cgroup was removed, and the watch with it.
            None => drop(inotify::remove_watch(&self.inotify, watch.number)),
        }
    }

    /// Returns whether the cgroup is unchanged since the watch began.
    pub(super) fn is_unchanged(&mut self, watch: Watch) -> bool {
        self.read();
        self.overflows == watch.overflows && !self.changed.contains(&watch.number)
    }

    fn read(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        // The loop ends: the kernel's queue is bounded.
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

/// Returns whether a process made this change. The kernel itself modifies the
/// read-only files `*.events` when processes come and go or reach a limit; no
/// other files have such names.
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
