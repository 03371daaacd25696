//! Writes a disk that outlives the VM back to its image every second.
//!
//! The kernel's own timers are too coarse: data waits for dirty_expire_centisecs,
//! the journal for its commit interval (whole seconds, rounded up), and neither
//! makes the VMM write the tables of its disk image, which it does when the
//! guest flushes the device. syncfs(2) does all three. It waits for the disk, so
//! a separate process calls it, never PID 1.

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags},
    io::Errno,
    process::{Pid, Signal, kill_process},
    thread::nanosleep,
    time::Timespec,
};

use crate::{clock::Moment, event::Poller, sys};

/// The time from the start of one write-back to the start of the next. A power cut
/// loses what was written in this time and that of a write-back.
const INTERVAL_MS: u64 = 1000;

/// The agent's handle of the process that writes back.
pub(crate) struct WriteBack {
    is_wanted: bool,
    pid: Option<Pid>,
    /// When to start it, or to restart it after it was killed.
    next_start: Option<Moment>,
}

impl WriteBack {
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self {
            is_wanted,
            pid: None,
            next_start: None,
        }
    }

    /// Schedules the start of the process, if the disk needs one.
    pub(crate) fn begin_at(&mut self, start: Moment) {
        self.next_start = self.is_wanted.then_some(start);
    }

    /// Returns when [`start_if_due`](Self::start_if_due) must be called.
    pub(crate) fn next_start(&self) -> Option<Moment> {
        self.next_start
    }

    /// Starts the process if its time has come.
    pub(crate) fn start_if_due(&mut self, poller: &Poller) {
        if self.next_start.is_some_and(|start| start <= Moment::now()) {
            self.pid = start().ok();
            if let Some(pid) = self.pid {
                poller.add_child(pid);
            }
            // If there was no memory for a process, it is tried again later.
            self.begin_at(Moment::now().after_ms(INTERVAL_MS));
            if self.pid.is_some() {
                self.next_start = None;
            }
        }
    }

    /// Handles the end of a child. If it is the process that writes back, it is
    /// restarted after a pause, so that repeated ends cost little.
    pub(crate) fn reaped(&mut self, pid: Pid) {
        if self.pid == Some(pid) {
            self.pid = None;
            self.begin_at(Moment::now().after_ms(INTERVAL_MS));
        }
    }

    /// Ends the process for good. The power-off writes everything back itself.
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

/// The main loop of the process.
fn run(root: &OwnedFd) {
    loop {
        let begun = Moment::now();
        // The processes that use a failing disk get its errors.
        let _ = rustix::fs::syncfs(root);
        let interval_ns = INTERVAL_MS.saturating_mul(1_000_000);
        let rest_ns = interval_ns.saturating_sub(Moment::now().nanoseconds_since(begun));
        let _ = nanosleep(&Timespec {
            tv_sec: i64::try_from(rest_ns.div_euclid(1_000_000_000)).unwrap_or(1),
            tv_nsec: i64::try_from(rest_ns.rem_euclid(1_000_000_000)).unwrap_or(0),
        });
    }
}
