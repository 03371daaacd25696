use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The cgroups to be removed with a folder, listed in a file in it: one path a
/// line.
#[derive(Debug)]
pub(super) struct Cgroups {
    list: PathBuf,
}

/// The interval after which processes that have joined since are killed too.
const KILL_INTERVAL: Duration = Duration::from_millis(50);

impl Cgroups {
    pub(super) fn at(folder: &Path) -> Self {
        Self {
            list: folder.join("cgroups"),
        }
    }

    pub(super) fn record(&self, cgroup: &Path) -> io::Result<()> {
        let cgroup = cgroup.as_os_str().as_bytes();
        if cgroup.contains(&b'\n') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut options = OpenOptions::new();
        let mut list = options
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.list)?;
        list.write_all(&[cgroup, b"\n"].concat())
    }

    /// Kills the processes in the cgroups and removes the cgroups. Each may
    /// take up to `kill_timeout`. Returns whether none is left; otherwise the
    /// list is still needed.
    #[must_use]
    pub(super) fn remove(&self, kill_timeout: Duration) -> bool {
        let Ok(list) = fs::read(&self.list) else {
            return true;
        };
        let mut none_left = true;
        let lines = list.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            let cgroup = Path::new(std::ffi::OsStr::from_bytes(line));
            match remove(cgroup, kill_timeout) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!(cgroup = %cgroup.display(), %error, "cannot be removed");
                    none_left = false;
                }
            }
        }
        none_left
    }
}

fn remove(cgroup: &Path, kill_timeout: Duration) -> io::Result<()> {
    let deadline = Instant::now() + kill_timeout;
    let mut events = File::open(cgroup.join("cgroup.events"))?;
    loop {
        fs::write(cgroup.join("cgroup.kill"), "1")?;
        let error = match is_empty_within(&mut events, KILL_INTERVAL)? {
            true => match remove_empty(cgroup) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => error,
                result => return result,
            },
            false => io::ErrorKind::TimedOut.into(),
        };
        // A process may join while the others are killed, for example one that
        // was just being started.
        if Instant::now() >= deadline {
            return Err(error);
        }
    }
}

/// Waits until no process is left, and returns whether that is so. The kernel
/// wakes pollers of `cgroup.events` when it changes
/// (Documentation/admin-guide/cgroup-v2).
fn is_empty_within(events: &mut File, time: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + time;
    loop {
        let mut text = String::new();
        events.rewind()?;
        events.read_to_string(&mut text)?;
        if text.lines().any(|line| line == "populated 0") {
            return Ok(true);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(left).map_err(|_| io::ErrorKind::TimedOut)?;
        let mut waiting = [PollFd::new(&*events, PollFlags::PRI)];
        if left.is_zero() || poll(&mut waiting, Some(&limit))? == 0 {
            return Ok(false);
        }
    }
}

/// Removes a cgroup and its descendants. Its files need not be removed.
fn remove_empty(cgroup: &Path) -> io::Result<()> {
    for entry in fs::read_dir(cgroup)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path())?;
        }
    }
    fs::remove_dir(cgroup)
}
