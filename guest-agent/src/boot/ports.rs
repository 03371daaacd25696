use alloc::{format, vec::Vec};

use rustix::{
    fd::OwnedFd,
    fs::{CWD, Dir, Mode, OFlags, openat},
    io::Errno,
};
use vmcell_wire::boot::PORT_PREFIX;

const PORTS: &str = "/sys/class/virtio-ports";

/// Opens every serial port that the host named as ours.
pub(super) fn open_ports() -> Result<Vec<OwnedFd>, Errno> {
    let read_only = OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = openat(CWD, PORTS, read_only | OFlags::DIRECTORY, Mode::empty())?;
    let mut ports = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let Ok(device) = entry.file_name().to_str() else {
            continue;
        };
        if device.starts_with('.') || !is_ours(device)? {
            continue;
        }
        ports.push(rustix::fs::open(
            format!("/dev/{device}"),
            OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC,
            Mode::empty(),
        )?);
    }
    Ok(ports)
}

fn is_ours(device: &str) -> Result<bool, Errno> {
    let path = format!("{PORTS}/{device}/name");
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut name = [0; 64];
    let count = rustix::io::read(&file, &mut name)?;
    let name = name.get(..count).unwrap_or_default();
    Ok(name.starts_with(PORT_PREFIX.as_bytes()))
}
