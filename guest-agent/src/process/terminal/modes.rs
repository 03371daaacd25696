//! Terminal settings: termios(3), ioctl_tty(2).

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

/// Changes the size. The kernel sends SIGWINCH to the foreground process group.
pub(super) fn resize(master: &OwnedFd, size: Size) -> Result<(), Errno> {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(master, size)
}

/// Returns the settings of a terminal, without its foreground process.
pub(super) fn state(master: &OwnedFd) -> Result<TerminalState<'static>, Errno> {
    let size = tcgetwinsize(master)?;
    let modes = tcgetattr(master)?.local_modes;
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

/// Returns the foreground process group, if there is one.
pub(super) fn foreground_group(master: &OwnedFd) -> Option<Pid> {
    // The kernel keeps a group within its session, so it is never PID 1's,
    // whose number would mean every process to kill(2).
    tcgetpgrp(master).ok().filter(|group| !group.is_init())
}

/// Returns whether a terminal is in canonical mode with echo.
pub(super) fn echoes_lines(master: &OwnedFd) -> Result<bool, Errno> {
    let modes = tcgetattr(master)?.local_modes;
    Ok(modes.contains(LocalModes::ECHO | LocalModes::ICANON))
}

/// Returns whether the program has not read all complete lines. Typed text
/// without a line end has passed the line discipline when this returns: the
/// kernel flushes it before it reports that there is nothing to read.
pub(super) fn has_unread_lines(program_end: BorrowedFd<'_>) -> Result<bool, Errno> {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut program = [PollFd::new(&program_end, PollFlags::IN)];
    Ok(poll(&mut program, Some(&at_once))? > 0)
}

/// Turns echo on or off.
pub(super) fn set_echo(master: &OwnedFd, echo: bool) -> Result<(), Errno> {
    let mut modes = tcgetattr(master)?;
    modes.local_modes.set(LocalModes::ECHO, echo);
    tcsetattr(master, OptionalActions::Now, &modes)
}
