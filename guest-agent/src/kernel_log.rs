//! Finds out which processes the kernel's OOM killer has killed.
//!
//! The kernel's log names each of them, but not all of the log can be trusted.
//! Root can write to it, although not at the kernel's own levels, and can make
//! the kernel quote text: the message about an unknown mount option contains its
//! name. So only a record that begins with the kernel's words counts. And no more
//! records count than `oom_kill` of `/proc/vmstat` says: only the kernel changes
//! this counter, which grows by one for each such record.

use alloc::collections::VecDeque;

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags},
    io::Errno,
    process::Pid,
};

use crate::clock::Moment;

/// The kernel's log since the boot, and its counters.
pub(crate) struct KernelLog {
    log: OwnedFd,
    counters: OwnedFd,
    /// How many kills were found in the log, at most as many as the kernel counts.
    parsed_kills: u64,
    /// Kills that were not asked for yet, the oldest first.
    kills: VecDeque<OomKill>,
}

/// A process that the OOM killer killed, according to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OomKill {
    pub(crate) pid: u32,
    /// The time, in microseconds since the boot.
    at: u64,
}

/// How many records are read at once: more than a log of the usual size has.
const MAX_RECORDS: usize = 10_000;

/// How many kills are kept. Most are of processes that are never asked for.
const MAX_KILLS: usize = 256;

/// How much the clock of the log may be ahead of the monotonic clock, which the
/// kernel starts later. No pid is used again as fast as that.
const CLOCK_SKEW_US: u64 = 500_000;

impl KernelLog {
    /// Opens the log and the counters. `None` if the kernel lacks one of them.
    pub(crate) fn open() -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |path: &str| rustix::fs::open(path, flags, Mode::empty()).ok();
        Some(Self {
            log: open("/dev/kmsg")?,
            counters: open("/proc/vmstat")?,
            parsed_kills: 0,
            kills: VecDeque::new(),
        })
    }

    /// Returns whether the OOM killer has killed this process. It returns true once.
    ///
    /// The memory controller would report it too, but slows down all processes:
    /// see [`cgroup`](crate::cgroup).
    pub(crate) fn was_oom_killed(&mut self, pid: Pid, started: Moment) -> bool {
        self.read_new_records();
        let pid = pid.as_raw_nonzero().get().unsigned_abs();
        let started = started.since_boot_ns().div_euclid(1000);
        // Another process may have had the pid before.
        let is_same =
            |kill: &OomKill| kill.pid == pid && kill.at.saturating_add(CLOCK_SKEW_US) >= started;
        let place = self.kills.iter().position(is_same);
        place.and_then(|place| self.kills.remove(place)).is_some()
    }

    fn read_new_records(&mut self) {
        let mut new = VecDeque::new();
        let mut record = [0; 1024];
        for _ in 0..MAX_RECORDS {
            match rustix::io::read(&self.log, &mut record) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(count) => new.extend(parse_oom_kill(record.get(..count).unwrap_or_default())),
                // The record is too long, or was overwritten.
                Err(Errno::INVAL | Errno::PIPE | Errno::INTR) => {}
                Err(_) => break,
            }
        }
        // The kernel increments the counter before it writes the record.
        let counted = self.oom_kill_count().unwrap_or(0);
        let new_count = u64::try_from(new.len()).unwrap_or(u64::MAX);
        self.parsed_kills = self.parsed_kills.saturating_add(new_count);
        if self.parsed_kills > counted {
            // Some of these are forged, and it is not known which.
            self.parsed_kills = counted;
            return;
        }
        self.kills.append(&mut new);
        while self.kills.len() > MAX_KILLS {
            self.kills.pop_front();
        }
    }

    /// Returns how many processes the OOM killer has killed.
    fn oom_kill_count(&self) -> Option<u64> {
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
            .find_map(|line| parse_number(line.strip_prefix(b"oom_kill ")?))
    }
}

/// Parses a record, `level,number,time,flags;text`. Returns the kill that it
/// reports, if it has the form of the kernel's own.
pub(crate) fn parse_oom_kill(record: &[u8]) -> Option<OomKill> {
    let (head, text) = split_once(record, b';')?;
    let mut fields = head.split(|byte| *byte == b',');
    // A level of one digit is the kernel's.
    fields.next().filter(|level| level.len() == 1)?;
    let at = parse_number(fields.nth(1)?)?;
    let victim = [
        &b"Out of memory: Killed process "[..],
        b"Memory cgroup out of memory: Killed process ",
    ]
    .into_iter()
    .find_map(|beginning| text.strip_prefix(beginning))?;
    let (pid, _) = split_once(victim, b' ')?;
    let pid = u32::try_from(parse_number(pid)?).ok()?;
    Some(OomKill { pid, at })
}

fn parse_number(digits: &[u8]) -> Option<u64> {
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
        let parse = |record: &str| parse_oom_kill(record.as_bytes());
        let kill = Some(OomKill {
            pid: 123,
            at: 5_140_900,
        });
        assert_eq!(
            parse("3,402,5140900,-;Out of memory: Killed process 123 (tail) total-vm:9kB\n"),
            kill
        );
        assert_eq!(
            parse("3,402,5140900,-;Memory cgroup out of memory: Killed process 123 (tail)\n"),
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
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
