//! The processor time and the memory of a process, as proc(5) counts them.

use std::{
    fs::File,
    io,
    os::{fd::BorrowedFd, unix::fs::FileExt as _},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    param::{clock_ticks_per_second, page_size},
    process::Pid,
};

/// The files of a process, which are read again and again. They belong to that process only:
/// once it is gone, reading them fails, even if another one has its number.
#[derive(Debug)]
pub(super) struct ProcessFiles {
    stat: File,
    statm: File,
    /// Nanoseconds of a clock tick, the unit of processor time.
    tick: u64,
    page: u64,
}

/// What a process has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessUsage {
    /// The processor time since its start, of all its threads.
    pub(super) cpu: Duration,
    /// Its memory that is in RAM.
    pub(super) memory_bytes: u64,
}

/// Both files are shorter.
const MAX_FILE: usize = 1024;

impl ProcessFiles {
    /// Opens the files of the process that the pidfd refers to.
    pub(super) fn open(pid: Pid, pidfd: BorrowedFd<'_>) -> io::Result<Self> {
        let open = |name| File::open(format!("/proc/{}/{name}", pid.as_raw_nonzero()));
        let files = Self {
            stat: open("stat")?,
            statm: open("statm")?,
            tick: 1_000_000_000 / clock_ticks_per_second().max(1),
            page: u64::try_from(page_size()).unwrap_or(4096),
        };
        // pidfd_open(2): it is readable once the process has exited. If it has not, nobody
        // else could have its number until now.
        let mut exited = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
        match poll(&mut exited, Some(&Timespec::default()))? {
            0 => Ok(files),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Reads what the process has used.
    pub(super) fn read(&self) -> io::Result<ProcessUsage> {
        let mut buffer = [0; MAX_FILE];
        let ticks = cpu_ticks(read(&self.stat, &mut buffer)?);
        let pages = resident_pages(read(&self.statm, &mut buffer)?);
        let (Some(ticks), Some(pages)) = (ticks, pages) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        Ok(ProcessUsage {
            cpu: Duration::from_nanos(self.tick.saturating_mul(ticks)),
            memory_bytes: pages.saturating_mul(self.page),
        })
    }
}

/// Reads a file from its beginning, which makes the kernel count again.
fn read<'a>(file: &File, buffer: &'a mut [u8; MAX_FILE]) -> io::Result<&'a str> {
    let length = file.read_at(buffer, 0)?;
    let text = buffer.get(..length).unwrap_or_default();
    // The name of the process, the first field but one, is what the VMM says. It is ASCII
    // unless the program has another file name.
    std::str::from_utf8(text).map_err(io::Error::other)
}

/// Returns the fields utime and stime of proc_pid_stat(5), added.
fn cpu_ticks(stat: &str) -> Option<u64> {
    // The name in parentheses can contain anything, also parentheses and spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    // After it, the first field is the third.
    let mut fields = fields.split_ascii_whitespace().skip(14 - 3);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

/// Returns the field resident of proc_pid_statm(5). Newer kernels count it exactly, and the
/// field rss of proc_pid_stat(5) not.
fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{
        os::fd::AsFd as _,
        process::{Command, Stdio},
    };

    use rustix::process::{PidfdFlags, getpid, pidfd_open};

    use super::*;

    #[test]
    fn the_fields_are_found_behind_any_name() {
        let rest = "S 1 2 3 4 -1 4194560 5 6 7 8 120 34 9 10 20 0 3 0 11 12 13";
        for name in ["qemu", "a) b (c", ") S 1 2 3 4"] {
            assert_eq!(cpu_ticks(&format!("77 ({name}) {rest}")), Some(154));
        }
        for bad in [
            "",
            "77 (qemu",
            "77 (qemu) S 1 2",
            "77 (q) S 1 2 3 4 5 6 7 8 9 10 x 1",
        ] {
            assert_eq!(cpu_ticks(bad), None, "{bad}");
        }
        assert_eq!(resident_pages("1000 50 7 1 0 9 0\n"), Some(50));
        assert_eq!(resident_pages("1000"), None);
    }

    #[test]
    fn this_process_uses_its_processor_and_its_memory() {
        let pidfd = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        let files = ProcessFiles::open(getpid(), pidfd.as_fd()).unwrap();
        let before = files.read().unwrap();
        let touched = vec![7_u8; 64 << 20];
        let mut after = files.read().unwrap();
        assert!(after.memory_bytes > before.memory_bytes + (48 << 20));
        while after.cpu < before.cpu + Duration::from_millis(20) {
            std::hint::black_box(&touched);
            after = files.read().unwrap();
        }
    }

    #[test]
    fn a_process_that_is_gone_has_no_files() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let files = ProcessFiles::open(pid, pidfd.as_fd()).unwrap();
        files.read().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(files.read().is_err());
        assert!(ProcessFiles::open(pid, pidfd.as_fd()).is_err());
    }
}
