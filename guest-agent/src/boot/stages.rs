use alloc::vec::Vec;

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use vmcell_wire::boot::{BOOT_FILE, MAX_BOOT_FILE};

use crate::{
    clock::{Moment, set_wall_clock},
    sys,
};

/// Reads the boot file. It stays in the initramfs, beneath the disk, where only
/// root could dig for it, to whom the seed in it is no secret.
pub(super) fn read_boot_file() -> Result<Vec<u8>, Errno> {
    let file = rustix::fs::open(BOOT_FILE, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = alloc::vec![0; MAX_BOOT_FILE];
    // All of it is in memory, so one read has all.
    let count = rustix::io::read(&file, &mut bytes[..])?;
    bytes.truncate(count);
    Ok(bytes)
}

pub(super) fn seed_randomness(seed: &[u8; 32]) -> Result<(), Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let random = rustix::fs::open("/dev/urandom", flags, Mode::empty())?;
    sys::add_entropy(&random, seed)
}

/// The boot file was written some time before the kernel began to count. The
/// host sets the clock again as soon as there is a link.
pub(super) fn set_clock(wall_time_ns: u64) -> Result<(), Errno> {
    set_wall_clock(wall_time_ns.saturating_add(Moment::now().since_boot_ns()))
}

pub(super) fn set_hostname(name: &str) -> Result<(), Errno> {
    rustix::system::sethostname(name.as_bytes())
}

pub(super) fn raise_loopback() -> Result<(), Errno> {
    sys::raise_loopback()
}
