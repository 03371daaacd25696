use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The cgroups that go with a folder, as a file in it tells: one path a line.
#[derive(Debug)]
pub(super) struct Cgroups {
    notes: PathBuf,
}

/// After this time those are killed who have come since.
const KILL_INTERVAL: Duration = Duration::from_millis(50);

impl Cgroups {
    pub(super) fn at(folder: &Path) -> Self {
        Self {
            notes: folder.join("cgroups"),
        }
    }

    pub(super) fn note(&self, cgroup: &Path) -> io::Result<()> {
        let cgroup = cgroup.as_os_str().as_bytes();
        if cgroup.contains(&b'\n') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut options = OpenOptions::new();
        let mut notes = options
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.notes)?;
        notes.write_all(&[cgroup, b"\n"].concat())
    }

    /// Kills what is in them and removes them; the kernel may take this long to
    /// end the processes of each. Returns whether none is left: otherwise the
    /// notes are still needed.
    #[must_use]
    pub(super) fn remove(&self, kill_timeout: Duration) -> bool {
        let Ok(notes) = fs::read(&self.notes) else {
            return true;
        };
        let mut none_left = true;
        let lines = notes.split(|byte| *byte == b'\n');
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
        // A process may come while the others are killed, such as one that a
        // start had under way.
        if Instant::now() >= deadline {
            return Err(error);
        }
    }
}

/// Waits until no process is left: cgroup.events of the kernel's documentation
/// of cgroup-v2 wakes who polls it when that changes. Returns whether none is.
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

/// Removes a cgroup after those beneath it. Its files go by themselves.
fn remove_empty(cgroup: &Path) -> io::Result<()> {
    for entry in fs::read_dir(cgroup)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path())?;
        }
    }
    fs::remove_dir(cgroup)
}
