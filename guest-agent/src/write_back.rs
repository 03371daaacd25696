//! Writes a disk that outlives the VM back every second.
//!
//! The kernel's own timers are too coarse: data waits for dirty_expire_centisecs,
//! the journal for its commit interval (whole seconds, rounded up), and neither
//! makes the VMM write the tables of its disk image, which it does when the
//! guest flushes the device. syncfs(2) does all three. It waits for the disk,
//! so a process of its own calls it, never PID 1.

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags},
    io::Errno,
    process::{Pid, Signal, kill_process},
    thread::nanosleep,
    time::Timespec,
};

use crate::{boot::RootDisk, clock::Moment, sys};

/// How long after the beginning of one write-back the next one begins. What a
/// power cut costs is this and the time that a write-back takes.
const INTERVAL_MS: u64 = 1000;

/// The process that writes back, as the agent sees it.
pub(crate) struct WriteBack {
    is_wanted: bool,
    pid: Option<Pid>,
    /// When it is started, or started again after somebody has killed it.
    next_start: Option<Moment>,
}

impl WriteBack {
    pub(crate) fn new(root_disk: RootDisk) -> Self {
        Self {
            is_wanted: root_disk == RootDisk::Kept,
            pid: None,
            next_start: None,
        }
    }

    /// Sets when the process is started, if the disk needs one.
    pub(crate) fn begin_at(&mut self, start: Moment) {
        self.next_start = self.is_wanted.then_some(start);
    }

    /// When [`look_after`](Self::look_after) has something to do.
    pub(crate) fn next_start(&self) -> Option<Moment> {
        self.next_start
    }

    /// Starts the process when it is time.
    pub(crate) fn look_after(&mut self) {
        if self.next_start.is_some_and(|start| start <= Moment::now()) {
            self.pid = start().ok();
            // Without memory for a process now, there may be some later.
            self.begin_at(Moment::now().after_ms(INTERVAL_MS));
            if self.pid.is_some() {
                self.next_start = None;
            }
        }
    }

    /// A child has ended. If it is the process that writes back, it is started
    /// again, but not at once, so that it costs little if it ends each time.
    pub(crate) fn reaped(&mut self, pid: Pid) {
        if self.pid == Some(pid) {
            self.pid = None;
            self.begin_at(Moment::now().after_ms(INTERVAL_MS));
        }
    }

    /// Ends it for good: at power-off everything is written in any case.
    pub(crate) fn close(&mut self) {
        self.is_wanted = false;
        self.next_start = None;
        if let Some(pid) = self.pid {
            // It blocks all signals but this one.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn start() -> Result<Pid, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open("/", flags, Mode::empty())?;
    sys::fork([root], |[root]| run(&root))
}

/// The life of the process.
fn run(root: &OwnedFd) {
    loop {
        let begun = Moment::now();
        // A disk that fails tells those who use it.
        let _ = rustix::fs::syncfs(root);
        let interval_ns = INTERVAL_MS.saturating_mul(1_000_000);
        let rest_ns = interval_ns.saturating_sub(Moment::now().nanoseconds_since(begun));
        let _ = nanosleep(&Timespec {
            tv_sec: i64::try_from(rest_ns.div_euclid(1_000_000_000)).unwrap_or(1),
            tv_nsec: i64::try_from(rest_ns.rem_euclid(1_000_000_000)).unwrap_or(0),
        });
    }
}
