use alloc::{ffi::CString, vec::Vec};

use rustix::{
    fs::{Mode, OFlags, fchmod, mkdir, open, readlink},
    io::Errno,
    mount::mount_bind,
};

/// The file that programs read to find out whom to ask for names: resolv.conf(5).
const FILE: &str = "/etc/resolv.conf";

/// Where the agent's own one is, in memory.
const OWN_FILE: &str = "/run/vmcell-resolv.conf";

/// Names an address that stands for no name. The agent answers at every other one, too.
const CONTENT: &str = "nameserver 198.18.0.53\n";

/// Shows the agent's own file to programs, by a mount over the image's, which stays as
/// it is. An image without one gets an empty file.
pub(super) fn replace_resolver_file() -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let own = open(OWN_FILE, flags, Mode::from_raw_mode(0o644))?;
    // Whatever the umask is.
    fchmod(&own, Mode::from_raw_mode(0o644))?;
    rustix::io::write(&own, CONTENT.as_bytes())?;
    make_mount_point()?;
    mount_bind(OWN_FILE, FILE)
}

/// Makes the file on which to mount, or that to which it is a link.
fn make_mount_point() -> Result<(), Errno> {
    let make = || {
        let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::CLOEXEC;
        open(FILE, flags, Mode::from_raw_mode(0o644)).map(|_| ())
    };
    match open(FILE, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => {}
        outcome => return outcome.map(|_| ()),
    }
    // The target of a link is often in a directory that another program would make.
    let target: CString = readlink(FILE, Vec::new()).unwrap_or_default();
    let mut path = Vec::from(&b"/etc"[..]);
    make_directory(&path);
    match target.as_bytes() {
        [] => {}
        [b'/', ..] => path.clear(),
        _ => path.push(b'/'),
    }
    path.extend_from_slice(target.as_bytes());
    for (index, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
        make_directory(path.get(..index).unwrap_or_default());
    }
    make()
}

/// Makes a directory, if it is not there. An error shows when the file is made.
fn make_directory(path: &[u8]) {
    let _ = mkdir(path, Mode::from_raw_mode(0o755));
}
