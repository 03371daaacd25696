//! Processes that have left the cgroups of commands.
//!
//! Nobody leaves a cgroup namespace by accident. But root can enter that of
//! PID 1 (setns(2)), and from there move processes to wherever it likes. Before
//! the agent says that all of a tree has ended, it looks for processes that may
//! belong to it and are elsewhere:
//!
//! - those in no cgroup of a command,
//! - those in the cgroup namespace of the agent, wherever they are.
//!
//! The agent's own children (workers, probes, commands that prepare themselves)
//! and the kernel's threads are in the agent's session; a command begins one of
//! its own, and none of its descendants can go back.

use alloc::format;
use core::mem::MaybeUninit;

use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, RawDir, openat, readlinkat_raw},
    io::Errno,
};

use super::PARENT;
use crate::{clock::Moment, sys};

/// So many processes are looked at, which takes some hundredths of a second.
/// If there are more, nothing is known.
const MAX_EXAMINED: usize = 4096;

/// Answers whether some process outside of the cgroups of commands may be a
/// descendant of a command that was started at this moment, or whether that
/// cannot be known.
pub(super) fn may_descend_from_one_started_at(started: Moment) -> bool {
    // What cannot be looked at proves nothing.
    find(started).unwrap_or(true)
}

fn find(started: Moment) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let processes = openat(CWD, "/proc", flags, Mode::empty())?;
    let ours = Agent {
        session: sys::session_of(0).ok_or(Errno::SRCH)?,
        namespace: namespace_of(&processes, "self"),
    };
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&processes, &mut buffer);
    let mut examined = 0usize;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_str().unwrap_or_default();
        let Ok(pid) = name.parse::<i32>() else {
            continue;
        };
        examined = examined.saturating_add(1);
        if examined > MAX_EXAMINED {
            return Ok(true);
        }
        // One that is gone by now has no session.
        let is_foreign = sys::session_of(pid).is_some_and(|session| session != ours.session);
        if is_foreign && ours.have_lost(&processes, name) && lives_since(&processes, name, started)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a process of the agent is known by.
struct Agent {
    session: i32,
    /// None: the kernel has no such namespaces.
    namespace: Option<Link>,
}

impl Agent {
    /// Whether a process is not where the agent puts commands.
    fn have_lost(&self, processes: &OwnedFd, pid: &str) -> bool {
        let mut text = [0; 512];
        let path = read(processes, pid, "cgroup", &mut text);
        // The beginning of the path is all that counts, so it may be cut off.
        if path.is_none_or(|path| number_in_path(path).is_none()) {
            return true;
        }
        self.namespace.is_some() && namespace_of(processes, pid) == self.namespace
    }
}

/// The number of the command's cgroup that a path is in, as `/proc/PID/cgroup`
/// has it: `0::/vmcell/7/below`.
fn number_in_path(text: &[u8]) -> Option<u64> {
    let path = text
        .strip_prefix(b"0::/")?
        .strip_prefix(PARENT.as_bytes())?;
    let rest = path.strip_prefix(b"/")?;
    let number = rest
        .split(|byte| matches!(byte, b'/' | b'\n' | b' '))
        .next()?;
    core::str::from_utf8(number).ok()?.parse().ok()
}

/// The number of the command's cgroup that a process is in.
pub(super) fn number_of(pid: u32) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let processes = openat(CWD, "/proc", flags, Mode::empty()).ok()?;
    let mut text = [0; 512];
    number_in_path(read(&processes, &format!("{pid}"), "cgroup", &mut text)?)
}

/// Whether a process lives that began at this moment or later.
fn lives_since(processes: &OwnedFd, pid: &str, moment: Moment) -> bool {
    let mut text = [0; 1024];
    let Some(text) = read(processes, pid, "stat", &mut text) else {
        return false;
    };
    match parse_stat(text) {
        // What a command starts at once may have begun before the agent has
        // looked at its clock.
        Some((state, began)) => {
            let is_alive = !matches!(state, b'Z' | b'X');
            is_alive && began.saturating_add(TICKS) >= ticks(moment)
        }
        None => true,
    }
}

/// How many ticks of the kernel there are in a second, to programs: `USER_HZ`.
const TICKS: u64 = 100;

fn ticks(moment: Moment) -> u64 {
    moment.since_boot_ns().div_euclid(1_000_000_000 / TICKS)
}

/// The state of a process and when it began, in ticks since the boot: proc(5).
fn parse_stat(text: &[u8]) -> Option<(u8, u64)> {
    // Its name is in parentheses, and may have some itself.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = text.get(end.checked_add(2)?..)?.split(|byte| *byte == b' ');
    let state = *fields.next()?.first()?;
    // The state is the third field, the beginning the 22nd.
    let began = core::str::from_utf8(fields.nth(18)?).ok()?;
    Some((state, began.parse().ok()?))
}

/// The text of a namespace's link, `cgroup:[4026531835]`.
type Link = ([u8; 32], usize);

fn namespace_of(processes: &OwnedFd, pid: &str) -> Option<Link> {
    let mut buffer = [0; 32];
    let path = format!("{pid}/ns/cgroup");
    let length = readlinkat_raw(processes, path, &mut buffer[..]).ok()?;
    Some((buffer, length))
}

fn read<'a>(processes: &OwnedFd, pid: &str, file: &str, text: &'a mut [u8]) -> Option<&'a [u8]> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(processes, format!("{pid}/{file}"), flags, Mode::empty()).ok()?;
    let count = rustix::io::read(&file, &mut *text).ok()?;
    text.get(..count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_the_cgroup_of_a_command() {
        for (text, number) in [
            (&b"0::/vmcell/7\n"[..], Some(7)),
            (b"0::/vmcell/7/below/8\n", Some(7)),
            (b"0::/vmcell/12 (deleted)\n", Some(12)),
            (b"0::/vmcell\n", None),
            (b"0::/vmcell/\n", None),
            (b"0::/vmcell/mine\n", None),
            (b"0::/vmcellar/7\n", None),
            (b"0::/mine/vmcell/7\n", None),
            (b"0::/../vmcell/7\n", None),
            (b"0::/\n", None),
            (b"", None),
        ] {
            assert_eq!(number_in_path(text), number, "{text:?}");
        }
    }

    #[test]
    fn a_name_cannot_pretend_an_earlier_beginning() {
        let fields = "S 1 8 8 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        for name in ["sleep", "a) Z 0 0", ") (", ""] {
            let text = alloc::format!("8 ({name}) {fields}\n");
            assert_eq!(parse_stat(text.as_bytes()), Some((b'S', 4711)), "{name}");
        }
        assert_eq!(parse_stat(b"8 (sleep) S 1"), None);
    }

    #[test]
    fn who_began_earlier_is_no_descendant() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let processes = openat(CWD, "/proc", flags, Mode::empty()).unwrap();
        let later = Moment::now().after_ms(60_000);
        assert!(!lives_since(&processes, "self", later));
    }
}
