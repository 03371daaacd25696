use rustix::{
    fd::OwnedFd,
    fs::{Gid, Mode, Uid, fchmod, fchown},
    io::Errno,
    pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{InputModes, OptionalActions, tcgetattr, tcsetattr},
};
use vmcell_wire::terminal::Size;

use super::modes::resize;

/// The group `tty`, as distributions number it.
const TTY_GROUP: u32 = 5;

/// Opens a pseudoterminal for a program of this user, and returns the master
/// and the program's end: pty(7). The latter is opened without a path, so it
/// cannot be replaced.
pub(crate) fn open_pty(size: Size, uid: u32) -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    unlockpt(&master)?;
    let program_end = ioctl_tiocgptpeer(&master, flags)?;
    resize(&master, size)?;
    let mut modes = tcgetattr(&master)?;
    // Erasing removes a whole UTF-8 character.
    modes.input_modes |= InputModes::IUTF8;
    tcsetattr(&master, OptionalActions::Now, &modes)?;
    // Only root may change the owner. Processes that have it open do not need
    // that, and an agent that is not root starts no processes of other users.
    let _ = fchown(
        &program_end,
        Some(Uid::from_raw(uid)),
        Some(Gid::from_raw(TTY_GROUP)),
    );
    // Members of the group may write to it, as wall(1) does.
    let _ = fchmod(&program_end, Mode::from_raw_mode(0o620));
    Ok((master, program_end))
}
