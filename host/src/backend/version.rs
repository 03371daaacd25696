use std::{
    fmt,
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, Signal, kill_process_group},
};

use crate::sys::die_with_spawning_thread;

/// The version that a program reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// How long a program may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(2);

/// The most bytes of output that are read.
const MAX_OUTPUT: usize = 4096;

impl Version {
    /// Runs a program with `--version`. Returns `None` if it prints no version.
    pub(crate) fn of(program: &Path) -> Option<Self> {
        Self::parse(&version_line(program)?)
    }

    /// Returns the first word of a text that looks like a version: `v1.14.4`,
    /// `51.1`.
    fn parse(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let word = word.strip_prefix('v').unwrap_or(word);
            // What follows a hyphen or a plus identifies a build, not a
            // release.
            let release = word.split(['-', '+']).next()?;
            let mut numbers = release.split('.');
            let major = numbers.next()?.parse().ok()?;
            let minor = numbers.next()?.parse().ok()?;
            let patch = numbers.next().unwrap_or("0").parse().ok()?;
            Some(Self(major, minor, patch))
        })
    }
}

/// Returns the first line that a program prints with `--version`. It waits at
/// most [`VERSION_TIMEOUT`], and kills the program and everything that it
/// started.
pub(crate) fn version_line(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command
        .arg("--version")
        // A group of its own, which is killed as a whole.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    die_with_spawning_thread(&mut command);
    let mut child = command.spawn().ok()?;
    let deadline = Instant::now() + VERSION_TIMEOUT;
    let output = child.stdout.take();
    let line = output.and_then(|mut output| first_line(&mut output, deadline));
    // It may still print, or hang. It has not been waited for, so the pid is
    // still that of its group.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.wait();
    String::from_utf8(line?).ok()
}

/// Reads the first line, without its newline. Returns `None` if it does not
/// arrive by the deadline.
fn first_line(output: &mut ChildStdout, deadline: Instant) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut buffer = [0; 512];
    while text.len() < MAX_OUTPUT {
        let rest = deadline.saturating_duration_since(Instant::now());
        let rest = Timespec::try_from(rest).ok()?;
        let mut waiting = [PollFd::new(&*output, PollFlags::IN)];
        match poll(&mut waiting, Some(&rest)) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return None,
        }
        let count = output.read(&mut buffer).ok()?;
        text.extend(buffer.get(..count)?);
        let end = text.iter().position(|&byte| byte == b'\n');
        if let Some(end) = end {
            text.truncate(end);
            return Some(text);
        }
        if count == 0 {
            // The last line may lack a newline.
            return (!text.is_empty()).then_some(text);
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, path::PathBuf};

    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let parsed = |text| Version::parse(text);
        assert_eq!(parsed("Firecracker v1.14.4"), Some(Version(1, 14, 4)));
        assert_eq!(parsed("Firecracker v1.15.0-dev"), Some(Version(1, 15, 0)));
        assert_eq!(parsed("cloud-hypervisor v51.1.0"), Some(Version(51, 1, 0)));
        assert_eq!(parsed("cloud-hypervisor v52.0"), Some(Version(52, 0, 0)));
        assert_eq!(
            parsed("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)"),
            Some(Version(7, 2, 22))
        );
        for nonsense in ["", "Firecracker", "v1", "1.x.3", "99999999999.1.1"] {
            assert_eq!(parsed(nonsense), None, "{nonsense:?}");
        }
        assert!(Version(1, 14, 4) > Version(1, 13, 9));
    }

    fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        let executable = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&path, executable).unwrap();
        path
    }

    #[test]
    fn a_program_that_says_nothing_has_no_version() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Version::of(&script(folder.path(), "silent", "")), None);
        assert_eq!(Version::of(Path::new("/no/such/program")), None);
        let last = script(folder.path(), "last", "printf 'v1.2.3'");
        assert_eq!(Version::of(&last), Some(Version(1, 2, 3)));
    }

    #[test]
    fn a_program_that_hangs_in_its_first_line_is_ended_with_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        // Its child inherits the pipe, and holds the lock of this file.
        let lock = folder.path().join("lock");
        let hanging = format!("exec 9>{}; flock 9; printf v; sleep 100000", lock.display());
        let hanging = script(folder.path(), "hanging", &hanging);
        assert_eq!(version_line(&hanging), None);
        let lock = std::fs::File::open(lock).unwrap();
        lock.lock().unwrap();

        let more = script(folder.path(), "more", "echo v1.2.3; sleep 100000");
        assert_eq!(version_line(&more).as_deref(), Some("v1.2.3"));
    }
}
