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

/// How long the kernel may take to end what it was told to kill.
const PATIENCE: Duration = Duration::from_secs(1);

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

    /// Kills what is in them and removes them.
    pub(super) fn remove(&self) {
        let Ok(notes) = fs::read(&self.notes) else {
            return;
        };
        let lines = notes.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            let cgroup = Path::new(std::ffi::OsStr::from_bytes(line));
            match remove(cgroup) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!(cgroup = %cgroup.display(), %error, "cannot be removed");
                }
            }
        }
    }
}

fn remove(cgroup: &Path) -> io::Result<()> {
    let events = File::open(cgroup.join("cgroup.events"))?;
    fs::write(cgroup.join("cgroup.kill"), "1")?;
    wait_until_empty(events)?;
    remove_empty(cgroup)
}

/// Waits until no process is left: cgroup.events of the kernel's documentation
/// of cgroup-v2 wakes who polls it when that changes.
fn wait_until_empty(mut events: File) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut text = String::new();
        events.rewind()?;
        events.read_to_string(&mut text)?;
        if text.lines().any(|line| line == "populated 0") {
            return Ok(());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(left).map_err(|_| io::ErrorKind::TimedOut)?;
        let mut waiting = [PollFd::new(&events, PollFlags::PRI)];
        if left.is_zero() || poll(&mut waiting, Some(&limit))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
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
