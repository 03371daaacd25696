//! Processes that have left the cgroups of commands.
//!
//! No process leaves a cgroup namespace by accident. But root can enter that of
//! PID 1 (setns(2)), and from there move processes anywhere. Before the agent
//! reports that a whole tree has ended, it looks for processes that may belong to
//! it and are elsewhere:
//!
//! - those in no cgroup of a command,
//! - those in the cgroup namespace of the agent, wherever they are.
//!
//! The agent's own children (workers, probes, commands before their exec) and the
//! kernel's threads are in the agent's session. A command starts a session of its
//! own, and none of its descendants can return to the agent's.

use alloc::format;
use core::ops::ControlFlow;

use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, openat, readlinkat_raw},
    io::Errno,
};

use super::PARENT;
use crate::{clock::Moment, proc_numbers::for_each_number, sys};

/// How many processes are examined, which takes some hundredths of a second. If
/// there are more, the answer is that some may have escaped.
const MAX_EXAMINED: usize = 4096;

/// Returns whether a process outside of the cgroups of commands may be a descendant
/// of a command that was started at this moment. It is true if that is not known.
pub(super) fn may_include_descendants_since(started: Moment) -> bool {
    // An error proves nothing.
    find(started).unwrap_or(true)
}

fn find(started: Moment) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = openat(CWD, "/proc", flags, Mode::empty())?;
    let agent = AgentIdentity {
        session: sys::session_of(0).ok_or(Errno::SRCH)?,
        namespace: namespace_of(&proc, "self"),
    };
    let mut examined = 0usize;
    let found = for_each_number(&proc, |pid| {
        examined = examined.saturating_add(1);
        // A process that has ended by now has no session.
        let is_foreign = sys::session_of(pid).is_some_and(|session| session != agent.session);
        let name = format!("{pid}");
        let escaped = || agent.has_escaped(&proc, &name) && is_alive_since(&proc, &name, started);
        match examined > MAX_EXAMINED || is_foreign && escaped() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    Ok(found.is_break())
}

/// What identifies the processes of the agent itself.
struct AgentIdentity {
    session: i32,
    /// `None` if the kernel has no cgroup namespaces.
    namespace: Option<NamespaceId>,
}

impl AgentIdentity {
    /// Returns whether a process is not where the agent puts commands.
    fn has_escaped(&self, proc: &OwnedFd, pid: &str) -> bool {
        let mut text = [0; 512];
        let path = read(proc, pid, "cgroup", &mut text);
        // Only the beginning of the path matters, so it may be truncated.
        if path.is_none_or(|path| number_in_path(path).is_none()) {
            return true;
        }
        self.namespace.is_some() && namespace_of(proc, pid) == self.namespace
    }
}

/// Returns the number of the command's cgroup from the text of `/proc/PID/cgroup`,
/// such as `0::/vmcell/7/below`.
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

/// Returns the number of the command's cgroup that a process is in.
pub(super) fn number_of(pid: u32) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = openat(CWD, "/proc", flags, Mode::empty()).ok()?;
    let mut text = [0; 512];
    number_in_path(read(&proc, &format!("{pid}"), "cgroup", &mut text)?)
}

/// Returns whether a process is alive and was started at this moment or later.
fn is_alive_since(proc: &OwnedFd, pid: &str, moment: Moment) -> bool {
    let mut text = [0; 1024];
    let Some(text) = read(proc, pid, "stat", &mut text) else {
        return false;
    };
    match parse_stat(text) {
        // A child of the command may be older than `moment`, because the agent
        // reads its clock after the start: a second is allowed.
        Some((state, began)) => {
            let is_alive = !matches!(state, b'Z' | b'X');
            is_alive && began.saturating_add(USER_HZ) >= ticks(moment)
        }
        None => true,
    }
}

/// The ticks per second in which the kernel reports times to programs.
const USER_HZ: u64 = 100;

fn ticks(moment: Moment) -> u64 {
    moment.since_boot_ns().div_euclid(1_000_000_000 / USER_HZ)
}

/// Returns the state of a process and its start in ticks since the boot: proc(5).
fn parse_stat(text: &[u8]) -> Option<(u8, u64)> {
    // The name is in parentheses, and may contain some.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = text.get(end.checked_add(2)?..)?.split(|byte| *byte == b' ');
    let state = *fields.next()?.first()?;
    // The state is the third field, the start time the 22nd.
    let began = core::str::from_utf8(fields.nth(18)?).ok()?;
    Some((state, began.parse().ok()?))
}

/// The text and length of a namespace's link, `cgroup:[4026531835]`.
type NamespaceId = ([u8; 32], usize);

fn namespace_of(proc: &OwnedFd, pid: &str) -> Option<NamespaceId> {
    let mut buffer = [0; 32];
    let path = format!("{pid}/ns/cgroup");
    let length = readlinkat_raw(proc, path, &mut buffer[..]).ok()?;
    Some((buffer, length))
}

fn read<'a>(proc: &OwnedFd, pid: &str, file: &str, text: &'a mut [u8]) -> Option<&'a [u8]> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(proc, format!("{pid}/{file}"), flags, Mode::empty()).ok()?;
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
        let proc = openat(CWD, "/proc", flags, Mode::empty()).unwrap();
        let later = Moment::now().after_ms(60_000);
        assert!(!is_alive_since(&proc, "self", later));
    }
}
