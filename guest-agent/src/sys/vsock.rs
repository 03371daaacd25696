use core::mem::size_of;

use rustix::{
    fd::{AsFd, OwnedFd},
    io::Errno,
    net::{
        AddressFamily, SocketAddrAny, SocketFlags, SocketType,
        addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque},
        socket_with,
    },
};

/// A vsock address: vsock(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VsockAddress {
    /// The context id: the host, or a guest.
    pub(crate) cid: u32,
    pub(crate) port: u32,
}

/// Creates a blocking stream socket of that address family.
pub(crate) fn vsock_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC;
    socket_with(AddressFamily::VSOCK, SocketType::STREAM, flags, None)
}

/// Returns the peer of a socket; `None`: it is of another address family.
pub(crate) fn vsock_peer(socket: impl AsFd) -> Result<Option<VsockAddress>, Errno> {
    Ok(rustix::net::getpeername(socket)?.and_then(|peer| VsockAddress::from_any(&peer)))
}

impl VsockAddress {
    /// The context id of the host: `VMADDR_CID_HOST`.
    pub(crate) const HOST: u32 = libc::VMADDR_CID_HOST;

    /// Any context id of this machine: `VMADDR_CID_ANY`.
    pub(crate) const ANY: u32 = libc::VMADDR_CID_ANY;

    fn from_any(address: &SocketAddrAny) -> Option<Self> {
        let is_whole = usize::try_from(address.addr_len()).is_ok_and(|length| length >= SIZE);
        if address.address_family() != AddressFamily::VSOCK || !is_whole {
            return None;
        }
        // SAFETY: the kernel has written at least so many bytes there, and of
        // this family. Any bytes are a valid `sockaddr_vm`.
        let vsock: libc::sockaddr_vm = unsafe {
            address
                .as_ptr()
                .cast::<libc::sockaddr_vm>()
                .read_unaligned()
        };
        Some(Self {
            cid: vsock.svm_cid,
            port: vsock.svm_port,
        })
    }
}

const SIZE: usize = size_of::<libc::sockaddr_vm>();

// SAFETY: what the closure gets points to a whole `sockaddr_vm` that outlives
// the call, and its length.
unsafe impl SocketAddrArg for VsockAddress {
    unsafe fn with_sockaddr<R>(
        &self,
        f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R,
    ) -> R {
        // SAFETY: a `sockaddr_vm` is made of numbers, for all of which zero is
        // valid.
        let mut address: libc::sockaddr_vm = unsafe { core::mem::zeroed() };
        address.svm_family = libc::AF_VSOCK as libc::sa_family_t;
        address.svm_cid = self.cid;
        address.svm_port = self.port;
        f((&raw const address).cast(), SIZE as SocketAddrLen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_the_way_to_the_kernel_and_back() {
        let address = VsockAddress { cid: 2, port: 1024 };
        assert_eq!(VsockAddress::from_any(&address.as_any()), Some(address));
    }

    #[test]
    fn addresses_of_other_families_are_none() {
        let other = core::net::SocketAddr::from(([127, 0, 0, 1], 80));
        assert_eq!(VsockAddress::from_any(&other.as_any()), None);
    }
}
