//! Whom the kernel has ended for want of memory.
//!
//! The kernel's log names each of them, but others have a say in the log too.
//! Root can write to it, although not at the kernel's own levels, and can have
//! the kernel quote it: the name of an unknown mount option stands in the
//! kernel's complaint about it. So only a record that begins with the kernel's
//! words counts, and only as far as a counter goes that nobody but the kernel
//! can change, `oom_kill` of `/proc/vmstat`: it grows by one for each line that
//! the kernel writes.

use alloc::collections::VecDeque;

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags},
    io::Errno,
    process::Pid,
};

use crate::clock::Moment;

/// The kernel's log and its counters, from the boot on.
pub(crate) struct KernelLog {
    log: OwnedFd,
    counters: OwnedFd,
    /// How many kills the log has told of, and the kernel has counted.
    told: u64,
    /// Those of them that nobody has asked for yet, the oldest first.
    kills: VecDeque<Kill>,
}

/// A process that the kernel ended, as its log tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kill {
    pid: u32,
    /// Microseconds since the boot.
    at: u64,
}

/// More records than a log of the usual size has.
const MAX_RECORDS: usize = 10_000;

/// So many kills are remembered: most are of processes that nobody asks for.
const MAX_KILLS: usize = 256;

/// The clock of the log is ahead of ours by what a kernel needs to set ours up.
/// No pid is used again as fast as that.
const CLOCKS_DIFFER_US: u64 = 500_000;

impl KernelLog {
    /// None: the kernel does not show its log, or does not count.
    pub(crate) fn open() -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |path: &str| rustix::fs::open(path, flags, Mode::empty()).ok();
        Some(Self {
            log: open("/dev/kmsg")?,
            counters: open("/proc/vmstat")?,
            told: 0,
            kills: VecDeque::new(),
        })
    }

    /// Whether the kernel has ended this process for want of memory.
    ///
    /// The cgroup of a process would tell too, but at a price for everybody: see
    /// [`cgroup`](crate::cgroup).
    pub(crate) fn was_out_of_memory(&mut self, pid: Pid, started: Moment) -> bool {
        self.read_on();
        let pid = pid.as_raw_nonzero().get().unsigned_abs();
        let started = started.since_boot_ns().div_euclid(1000);
        // Another process may have had the pid before.
        let is_it =
            |kill: &Kill| kill.pid == pid && kill.at.saturating_add(CLOCKS_DIFFER_US) >= started;
        let place = self.kills.iter().position(is_it);
        place.and_then(|place| self.kills.remove(place)).is_some()
    }

    fn read_on(&mut self) {
        let mut new = VecDeque::new();
        let mut record = [0; 1024];
        for _ in 0..MAX_RECORDS {
            match rustix::io::read(&self.log, &mut record) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(count) => new.extend(kill_told_by(record.get(..count).unwrap_or_default())),
                // One that is too long, or gone.
                Err(Errno::INVAL | Errno::PIPE | Errno::INTR) => {}
                Err(_) => break,
            }
        }
        // The kernel counts before it writes.
        let counted = self.counted().unwrap_or(0);
        let new_told = u64::try_from(new.len()).unwrap_or(u64::MAX);
        self.told = self.told.saturating_add(new_told);
        if self.told > counted {
            // Somebody else wrote some of these, and nobody knows which.
            self.told = counted;
            return;
        }
        self.kills.append(&mut new);
        while self.kills.len() > MAX_KILLS {
            self.kills.pop_front();
        }
    }

    /// How many processes the kernel has ended for want of memory.
    fn counted(&self) -> Option<u64> {
        let mut text = alloc::vec![0; 16 * 1024];
        let mut length = 0usize;
        loop {
            let offset = u64::try_from(length).ok()?;
            let rest = text.get_mut(length..)?;
            match rustix::io::pread(&self.counters, rest, offset) {
                Ok(0) => break,
                Ok(count) => length = length.saturating_add(count),
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        text.get(..length)?
            .split(|byte| *byte == b'\n')
            .find_map(|line| number(line.strip_prefix(b"oom_kill ")?))
    }
}

/// The kill that a record, `level,number,time,flags;text`, tells of, if it has
/// the form of the kernel's own.
fn kill_told_by(record: &[u8]) -> Option<Kill> {
    let (head, text) = split_once(record, b';')?;
    let mut fields = head.split(|byte| *byte == b',');
    // A single digit is the kernel's.
    fields.next().filter(|level| level.len() == 1)?;
    let at = number(fields.nth(1)?)?;
    let victim = [
        &b"Out of memory: Killed process "[..],
        b"Memory cgroup out of memory: Killed process ",
    ]
    .into_iter()
    .find_map(|beginning| text.strip_prefix(beginning))?;
    let (pid, _) = split_once(victim, b' ')?;
    let pid = u32::try_from(number(pid)?).ok()?;
    Some(Kill { pid, at })
}

fn number(digits: &[u8]) -> Option<u64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = bytes.iter().position(|byte| *byte == at)?;
    let (front, back) = bytes.split_at_checked(place)?;
    Some((front, back.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kernels_word_is_a_kill() {
        let told = |record: &str| kill_told_by(record.as_bytes());
        let kill = Some(Kill {
            pid: 123,
            at: 5_140_900,
        });
        assert_eq!(
            told("3,402,5140900,-;Out of memory: Killed process 123 (tail) total-vm:9kB\n"),
            kill
        );
        assert_eq!(
            told("3,402,5140900,-;Memory cgroup out of memory: Killed process 123 (tail)\n"),
            kill
        );
        for other in [
            "12,402,5140900,-;Out of memory: Killed process 123 (tail)",
            "3,402,5140900,-;x: Out of memory: Killed process 123 (tail)",
            "3,402,5140900,-;Out of memory: Killed process 12x (tail)",
            "3,402,5140900,-;Out of memory: Killed process  123 (tail)",
            "3,402,x,-;Out of memory: Killed process 123 (tail)",
            "3,402,5140900,-;Out of memory: Killed process 123",
            "3,402,5140900,-;something else",
            "Out of memory: Killed process 123 (",
            "",
            ";",
        ] {
            assert_eq!(told(other), None, "{other}");
        }
    }
}
