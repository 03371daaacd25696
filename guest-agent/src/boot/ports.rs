use alloc::{format, vec::Vec};

use rustix::{
    fd::OwnedFd,
    fs::{Dir, Mode, OFlags},
    io::Errno,
};

/// Opens every virtio-serial port. The host adds none but those for the agent, so
/// their names in sysfs are not checked.
pub(super) fn open_ports() -> Result<Vec<OwnedFd>, Errno> {
    let read_only = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let devices = rustix::fs::open("/dev", read_only, Mode::empty())?;
    let mut ports = Vec::new();
    for entry in Dir::read_from(&devices)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if name.starts_with("vport") {
            ports.push(rustix::fs::open(
                format!("/dev/{name}"),
                OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC,
                Mode::empty(),
            )?);
        }
    }
    Ok(ports)
}
