//! What the kernel says of processes that it ended.

use alloc::format;

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    process::Pid,
};

/// More records than a log of the usual size has.
const MAX_RECORDS: usize = 10_000;

/// Whether the kernel has ended this process for want of memory.
///
/// The cgroup of a process would tell too, but at a price for everybody: see
/// [`cgroup`](crate::cgroup).
pub(crate) fn was_out_of_memory(pid: Pid) -> bool {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(log) = rustix::fs::open("/dev/kmsg", flags, Mode::empty()) else {
        return false;
    };
    let mut record = [0; 1024];
    for _ in 0..MAX_RECORDS {
        match rustix::io::read(&log, &mut record) {
            Ok(0) | Err(Errno::AGAIN) => return false,
            Ok(count) if tells_end_of(record.get(..count).unwrap_or_default(), pid) => return true,
            // Some other record, one that is too long, one that is gone.
            Ok(_) | Err(Errno::INVAL | Errno::PIPE | Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    false
}

/// Whether a record, `level,number,time,flags;text`, is the kernel's word that
/// it has ended the process.
fn tells_end_of(record: &[u8], pid: Pid) -> bool {
    let Some((head, text)) = split_once(record, b';') else {
        return false;
    };
    let level = split_once(head, b',').map_or(head, |(level, _)| level);
    // A single digit: what a process writes to the log has a higher level.
    let from_kernel = level.len() == 1;
    let name = format!("ut of memory: Killed process {} (", pid.as_raw_nonzero());
    from_kernel && text.windows(name.len()).any(|part| part == name.as_bytes())
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
    fn only_the_kernels_word_about_this_process_counts() {
        let pid = Pid::from_raw(123).unwrap();
        let told = |record: &str| tells_end_of(record.as_bytes(), pid);
        assert!(told(
            "3,402,5140900,-;Out of memory: Killed process 123 (tail) total-vm:9kB\n"
        ));
        assert!(told(
            "3,402,5140900,-;Memory cgroup out of memory: Killed process 123 (tail)\n"
        ));
        for other in [
            "12,402,5140900,-;Out of memory: Killed process 123 (tail)",
            "3,402,5140900,-;Out of memory: Killed process 1234 (tail)",
            "3,402,5140900,-;Out of memory: Killed process 23 (tail)",
            "3,402,5140900,-;something else",
            "Out of memory: Killed process 123 (",
            "",
            ";",
        ] {
            assert!(!told(other), "{other}");
        }
    }
}
