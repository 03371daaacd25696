use std::{
    fmt,
    io::Read as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a program says its version is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// How long a program may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(2);

/// No version is told in more bytes.
const MAX_TEXT: u64 = 4096;

impl Version {
    /// Asks a program with `--version`. None: it does not say.
    pub(crate) fn of(program: &Path) -> Option<Self> {
        Self::parse(&told_by(program)?)
    }

    /// The first word of a text that looks like a version: `v1.14.4`, `51.1`.
    fn parse(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let word = word.strip_prefix('v').unwrap_or(word);
            // What is behind a hyphen or a plus is of a build, not a release.
            let release = word.split(['-', '+']).next()?;
            let mut numbers = release.split('.');
            let major = numbers.next()?.parse().ok()?;
            let minor = numbers.next()?.parse().ok()?;
            let patch = numbers.next().unwrap_or("0").parse().ok()?;
            Some(Self(major, minor, patch))
        })
    }
}

/// The first line that a program says of itself.
pub(crate) fn told_by(program: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut output = child.stdout.take()?;
    let mut waiting = [PollFd::new(&output, PollFlags::IN)];
    let limit = Timespec::try_from(PATIENCE).ok();
    let told = poll(&mut waiting, limit.as_ref()).is_ok_and(|ready| ready > 0);
    let mut text = Vec::new();
    if told {
        let _ = output.by_ref().take(MAX_TEXT).read_to_end(&mut text);
    }
    // It may have more to say, or nothing for ever.
    let _ = child.kill();
    let _ = child.wait();
    let text = String::from_utf8(text).ok()?;
    text.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

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

    #[test]
    fn a_program_that_says_nothing_has_no_version() {
        let folder = tempfile::tempdir().unwrap();
        let silent = folder.path().join("silent");
        std::fs::write(&silent, "#!/bin/sh\n").unwrap();
        let executable = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&silent, executable).unwrap();
        assert_eq!(Version::of(&silent), None);
        assert_eq!(Version::of(Path::new("/no/such/program")), None);
    }
}
