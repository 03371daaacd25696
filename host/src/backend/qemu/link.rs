//! The link between QEMU's guest and the host.

use std::{
    fs::{File, OpenOptions},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
};

use rustix::io::Errno;

use super::vhost_device::{VSOCK, VhostDevice};
use crate::{
    backend::{AgentTransport, Machine, RunFolder},
    error::Error,
    link::{LinkChoice, LinkKind},
    locate,
    random::random_bytes,
    sys::set_guest_cid,
};

/// A link that is prepared before QEMU starts.
pub(super) struct Link {
    pub(super) choice: LinkChoice,
    pub(super) transport: AgentTransport,
    pub(super) device: Device,
    /// The descriptor that QEMU inherits.
    pub(super) descriptor: OwnedFd,
    /// The device program that runs beside QEMU, if the link needs one.
    pub(super) helper: Option<VhostDevice>,
}

/// The device that the guest sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    /// A virtio-serial port.
    Serial,
    /// vsock by the host's kernel, with this CID.
    Vsock { cid: u32 },
    /// vsock by another program, which maps the guest's memory.
    VhostUserVsock,
}

/// The device of the kernel's vsock.
const VHOST_VSOCK: &str = "/dev/vhost-vsock";

impl Link {
    /// Prepares the requested link, or the default one.
    pub(super) fn prepare(machine: &Machine, program: Option<&Path>) -> Result<Self, Error> {
        match machine.link() {
            Some(LinkKind::Serial) => Self::serial(LinkChoice::requested(LinkKind::Serial)),
            Some(LinkKind::Vsock) => {
                let device = open_vhost_vsock().map_err(|errno| Error::BackendUnavailable {
                    name: "qemu".to_owned(),
                    reason: format!(
                        "the link vsock needs {VHOST_VSOCK} ({errno}): load the module \
                         vhost_vsock and allow this user to use it, or ask for another link"
                    ),
                })?;
                Self::vsock(device, LinkChoice::requested(LinkKind::Vsock))
            }
            Some(LinkKind::HybridVsock) => Self::hybrid(machine, program),
            Some(kind @ (LinkKind::Socket | LinkKind::Relay)) => Err(Error::Invalid(format!(
                "QEMU has no link {kind}: choose serial, vsock or hybrid-vsock"
            ))),
            // It needs no support of the host, and was the faster one wherever
            // both were measured.
            None => Self::serial(LinkChoice::new(LinkKind::Serial, "it works everywhere")),
        }
    }

    fn serial(choice: LinkChoice) -> Result<Self, Error> {
        let (ours, theirs) = UnixStream::pair().map_err(Error::host("make a socket pair"))?;
        Ok(Self {
            choice,
            transport: AgentTransport::Serial(ours),
            device: Device::Serial,
            descriptor: theirs.into(),
            helper: None,
        })
    }

    fn vsock(device: File, choice: LinkChoice) -> Result<Self, Error> {
        let cid = reserve_free_cid(&device)?;
        Ok(Self {
            choice,
            transport: AgentTransport::vsock(cid)?,
            device: Device::Vsock { cid },
            descriptor: device.into(),
            helper: None,
        })
    }

    fn hybrid(machine: &Machine, program: Option<&Path>) -> Result<Self, Error> {
        let program = locate::vhost_device_vsock(program)?;
        let folder = RunFolder::create(&RunFolder::base(), machine.id())?;
        let sockets = folder.vmm_folder()?;
        let transport = AgentTransport::hybrid(sockets.join(VSOCK))?;
        let (helper, descriptor) = VhostDevice::start(program, machine, folder, &sockets)?;
        Ok(Self {
            choice: LinkChoice::requested(LinkKind::HybridVsock),
            transport,
            device: Device::VhostUserVsock,
            descriptor,
            helper: Some(helper),
        })
    }
}

fn open_vhost_vsock() -> Result<File, Errno> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .open(Path::new(VHOST_VSOCK));
    opened.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Reserves a CID that no other guest of this machine has. It stays reserved as
/// long as the device is open, here or in QEMU.
fn reserve_free_cid(device: &File) -> Result<u32, Error> {
    const ATTEMPTS: usize = 64;
    for _ in 0..ATTEMPTS {
        let cid = guest_cid(random_bytes()?);
        match set_guest_cid(device, cid) {
            Ok(()) => return Ok(cid),
            Err(Errno::ADDRINUSE) => {}
            Err(errno) => {
                return Err(Error::host("take a vsock number for the guest")(
                    errno.into(),
                ));
            }
        }
    }
    Err(Error::Busy(
        "no vsock number is free for another guest: end some VMs first",
    ))
}

/// Returns a CID for a guest. It avoids the reserved ones (the first three and
/// the last) and small ones, which people choose by hand.
fn guest_cid(random: [u8; 4]) -> u32 {
    const FIRST: u32 = 1 << 16;
    FIRST + (u32::from_le_bytes(random) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_have_numbers_that_nobody_else_has() {
        for random in [[0; 4], [0xff; 4], [1, 2, 3, 4]] {
            let cid = guest_cid(random);
            assert!((1 << 16..u32::MAX).contains(&cid), "{cid}");
        }
    }

    #[test]
    fn a_file_that_is_no_vhost_vsock_gives_no_number() {
        let error = reserve_free_cid(&tempfile::tempfile().unwrap()).unwrap_err();
        assert_eq!(error.code(), "host", "{error:?}");
    }
}
