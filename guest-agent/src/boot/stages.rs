use alloc::vec::Vec;

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    time::{ClockId, Timespec, clock_settime},
};
use vmcell_wire::boot::BOOT_FILE;

use crate::{clock::Moment, sys};

/// Reads the boot file. It stays in the initramfs, beneath the disk, where only
/// root could dig for it, to whom the seed in it is no secret.
pub(super) fn read_boot_file() -> Result<Vec<u8>, Errno> {
    let file = rustix::fs::open(BOOT_FILE, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = alloc::vec![0; 4096];
    let count = rustix::io::read(&file, &mut bytes[..])?;
    bytes.truncate(count);
    Ok(bytes)
}

pub(super) fn seed_randomness(seed: &[u8; 32]) -> Result<(), Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let random = rustix::fs::open("/dev/urandom", flags, Mode::empty())?;
    sys::add_entropy(&random, seed)
}

/// The boot file was written just before the VM was started, which is when the
/// monotonic clock began.
pub(super) fn set_clock(wall_time_ns: u64) -> Result<(), Errno> {
    let now = wall_time_ns.saturating_add(Moment::now().since_boot_ns());
    clock_settime(
        ClockId::Realtime,
        Timespec {
            tv_sec: i64::try_from(now.div_euclid(1_000_000_000)).map_err(|_| Errno::INVAL)?,
            tv_nsec: i64::try_from(now.rem_euclid(1_000_000_000)).map_err(|_| Errno::INVAL)?,
        },
    )
}

pub(super) fn set_hostname(name: &str) -> Result<(), Errno> {
    rustix::system::sethostname(name.as_bytes())
}

pub(super) fn raise_loopback() -> Result<(), Errno> {
    sys::raise_loopback()
}
