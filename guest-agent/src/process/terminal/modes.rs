//! How a terminal is set: termios(3), ioctl_tty(2).

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{BorrowedFd, OwnedFd},
    io::Errno,
    process::Pid,
    termios::{
        LocalModes, OptionalActions, Winsize, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
        tcsetwinsize,
    },
};
use vmcell_wire::terminal::{Size, TerminalState};

/// Changes the size. The kernel tells the foreground process group.
pub(super) fn resize(ours: &OwnedFd, size: Size) -> Result<(), Errno> {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(ours, size)
}

/// How a terminal is set. It does not say who uses it.
pub(super) fn state(ours: &OwnedFd) -> Result<TerminalState<'static>, Errno> {
    let size = tcgetwinsize(ours)?;
    let modes = tcgetattr(ours)?.local_modes;
    Ok(TerminalState {
        size: Size {
            columns: size.ws_col,
            rows: size.ws_row,
        },
        echo: modes.contains(LocalModes::ECHO),
        canonical: modes.contains(LocalModes::ICANON),
        foreground: None,
    })
}

/// The process group that reads what is typed, if there is one.
pub(super) fn foreground_group(ours: &OwnedFd) -> Option<Pid> {
    // The kernel keeps a group within its session, so it is never PID 1's,
    // whose number would mean everybody to kill(2).
    tcgetpgrp(ours).ok().filter(|group| !group.is_init())
}

/// Whether a terminal shows lines while they are typed.
pub(super) fn shows_lines(ours: &OwnedFd) -> Result<bool, Errno> {
    let modes = tcgetattr(ours)?.local_modes;
    Ok(modes.contains(LocalModes::ECHO | LocalModes::ICANON))
}

/// Whether the program has yet to read a whole line. What was typed without a
/// line's end has gone through the line discipline when this returns: the kernel
/// sees to that before it says that there is nothing to read.
pub(super) fn has_unread_lines(theirs: BorrowedFd<'_>) -> Result<bool, Errno> {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut program = [PollFd::new(&theirs, PollFlags::IN)];
    Ok(poll(&mut program, Some(&at_once))? > 0)
}

/// Says whether a terminal shows what is typed.
pub(super) fn set_echo(ours: &OwnedFd, echo: bool) -> Result<(), Errno> {
    let mut modes = tcgetattr(ours)?;
    modes.local_modes.set(LocalModes::ECHO, echo);
    tcsetattr(ours, OptionalActions::Now, &modes)
}
