use alloc::vec::Vec;

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags, SeekFrom},
    io::Errno,
};
use vmcell_wire::boot::{BOOT_FILE, MAX_BOOT_FILE};

use crate::{
    clock::{Moment, set_wall_clock},
    sys,
};

/// Reads the boot file. It stays in the initramfs, beneath the disk, where only
/// root could reach it, from whom the seed in it is no secret.
pub(super) fn read_boot_file() -> Result<Vec<u8>, Errno> {
    let file = rustix::fs::open(BOOT_FILE, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = alloc::vec![0; MAX_BOOT_FILE];
    // The file is in memory, so one read returns all of it.
    let count = rustix::io::read(&file, &mut bytes[..])?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Seeds the kernel's random number generator, and returns it.
pub(super) fn seed_random_generator(seed: &[u8; 32]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let random = rustix::fs::open("/dev/urandom", flags, Mode::empty())?;
    sys::add_entropy(&random, seed)?;
    Ok(random)
}

/// Sets the clock to the time in the boot file and the time since the boot. That is
/// a little behind, because the file is older; the host sets it again as soon
/// as there is a link.
pub(super) fn set_clock(wall_time_ns: u64) -> Result<(), Errno> {
    set_wall_clock(wall_time_ns.saturating_add(Moment::now().since_boot_ns()))
}

/// Grows the root's file system to the size of its device.
pub(super) fn grow_root(device: &str) -> Result<(), Errno> {
    let open = |path| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let size = rustix::fs::seek(open(device)?, SeekFrom::End(0))?;
    sys::grow_file_system(&open("/")?, size)
}

pub(super) fn set_hostname(name: &str) -> Result<(), Errno> {
    rustix::system::sethostname(name.as_bytes())
}

pub(super) fn bring_up_loopback() -> Result<(), Errno> {
    sys::raise_loopback()
}
