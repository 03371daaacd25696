use rustix::io::Errno;

use crate::sys::VsockAddress;

/// Returns whether a connection from this peer is accepted as a link. Over
/// vsock others than the host could connect: processes of the guest, and other
/// guests that the host lets through. A peer without a vsock address is on a
/// Unix socket, whose file permissions decide who may connect.
pub(crate) fn is_from_host(peer: Result<Option<VsockAddress>, Errno>) -> bool {
    match peer {
        Ok(Some(peer)) => peer.cid == VsockAddress::HOST,
        Ok(None) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_taken(cid: u32) -> bool {
        is_from_host(Ok(Some(VsockAddress { cid, port: 7 })))
    }

    #[test]
    fn over_vsock_only_the_host_is_taken() {
        const HYPERVISOR: u32 = 0;
        const THIS_MACHINE: u32 = 1;
        assert!(is_taken(2));
        for other in [HYPERVISOR, THIS_MACHINE, 3, 4, 258, u32::MAX] {
            assert!(!is_taken(other), "{other}");
        }
    }

    #[test]
    fn whoever_may_use_the_unix_socket_is_taken() {
        assert!(is_from_host(Ok(None)));
    }

    #[test]
    fn who_cannot_be_told_is_not_taken() {
        for errno in [Errno::NOTCONN, Errno::INVAL] {
            assert!(!is_from_host(Err(errno)));
        }
    }
}
