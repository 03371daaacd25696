use rustix::{
    fd::OwnedFd,
    fs::{Gid, Mode, Uid, fchmod, fchown},
    io::Errno,
    pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{InputModes, OptionalActions, tcgetattr, tcsetattr},
};
use vmcell_wire::terminal::Size;

use super::modes::resize;

/// The group of all terminals, as distributions number it.
const TTY_GROUP: u32 = 5;

/// Makes a pair of ends, ours and that of a program of this user: pty(7). No
/// path is needed for the latter, so nobody can put another in its place.
pub(crate) fn open_pty(size: Size, uid: u32) -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    resize(&ours, size)?;
    let mut modes = tcgetattr(&ours)?;
    // Erasing takes a whole character.
    modes.input_modes |= InputModes::IUTF8;
    tcsetattr(&ours, OptionalActions::Now, &modes)?;
    // Only root may give it away. For who has it open already it makes no
    // difference, and an agent that is not root starts no others.
    let _ = fchown(
        &theirs,
        Some(Uid::from_raw(uid)),
        Some(Gid::from_raw(TTY_GROUP)),
    );
    // Members of the group may write to it, as wall(1) does.
    let _ = fchmod(&theirs, Mode::from_raw_mode(0o620));
    Ok((ours, theirs))
}
