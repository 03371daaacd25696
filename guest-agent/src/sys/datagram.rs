//! Datagrams to any address: their destination, and answers that come from it. See
//! IPV6_PKTINFO in ipv6(7).

use core::{
    mem::{MaybeUninit, size_of, zeroed},
    net::{Ipv6Addr, SocketAddrV6},
};

use rustix::{
    fd::{AsRawFd, OwnedFd},
    io::Errno,
};

/// A received datagram.
pub(crate) struct Datagram {
    pub(crate) length: usize,
    pub(crate) sender: SocketAddrV6,
    pub(crate) destination: Ipv6Addr,
}

/// Room for one control message with an address.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; 64]);

/// Requests the destination of each datagram.
pub(crate) fn report_destinations(socket: &OwnedFd) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    // SAFETY: the value is there, with this size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IPV6,
            libc::IPV6_RECVPKTINFO,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    super::check(result.into()).map(|_| ())
}

/// Receives a datagram. One that is longer than the buffer is truncated.
pub(crate) fn receive_datagram(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Datagram, Errno> {
    // SAFETY: both consist of numbers and pointers, for which zeros are valid.
    let (mut sender, mut message) =
        unsafe { (zeroed::<libc::sockaddr_in6>(), zeroed::<libc::msghdr>()) };
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let mut control = Control([MaybeUninit::uninit(); 64]);
    message.msg_name = (&raw mut sender).cast();
    message.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: everything that the message refers to is there, with these sizes.
    let result = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let length = super::check(result as libc::c_long)? as usize;
    let destination = destination(&message).ok_or(Errno::INVAL)?;
    Ok(Datagram {
        length,
        sender: SocketAddrV6::new(
            Ipv6Addr::from(sender.sin6_addr.s6_addr),
            u16::from_be(sender.sin6_port),
            0,
            sender.sin6_scope_id,
        ),
        destination,
    })
}

/// Returns the address in the control messages of a received datagram.
fn destination(message: &libc::msghdr) -> Option<Ipv6Addr> {
    // SAFETY: the kernel has filled the room for control messages, and set its
    // length.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::IPPROTO_IPV6
                && (*header).cmsg_type == libc::IPV6_PKTINFO
            {
                let data = libc::CMSG_DATA(header).cast::<libc::in6_pktinfo>();
                return Some(Ipv6Addr::from(data.read_unaligned().ipi6_addr.s6_addr));
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
        None
    }
}

/// Sends a datagram that comes from an address.
pub(crate) fn send_datagram(
    socket: &OwnedFd,
    bytes: &[u8],
    source: Ipv6Addr,
    receiver: SocketAddrV6,
) -> Result<(), Errno> {
    // SAFETY: both consist of numbers and pointers, for which zeros are valid.
    let (mut address, mut message) =
        unsafe { (zeroed::<libc::sockaddr_in6>(), zeroed::<libc::msghdr>()) };
    address.sin6_family = libc::AF_INET6 as libc::sa_family_t;
    address.sin6_port = receiver.port().to_be();
    address.sin6_addr.s6_addr = receiver.ip().octets();
    address.sin6_scope_id = receiver.scope_id();
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut control = Control([MaybeUninit::zeroed(); 64]);
    let info = libc::in6_pktinfo {
        ipi6_addr: libc::in6_addr {
            s6_addr: source.octets(),
        },
        ipi6_ifindex: 0,
    };
    let size = size_of::<libc::in6_pktinfo>() as libc::c_uint;
    message.msg_name = (&raw mut address).cast();
    message.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    // SAFETY: the room for control messages has space for this one, and is aligned for
    // it. The kernel reads everything that the message refers to, and changes nothing.
    let result = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(size) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::IPPROTO_IPV6;
        (*header).cmsg_type = libc::IPV6_PKTINFO;
        (*header).cmsg_len = libc::CMSG_LEN(size) as _;
        let data = libc::CMSG_DATA(header).cast::<libc::in6_pktinfo>();
        data.write_unaligned(info);
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    super::check(result as libc::c_long).map(|_| ())
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};

    use super::*;

    fn socket() -> (OwnedFd, SocketAddrV6) {
        let (family, kind) = (AddressFamily::INET6, SocketType::DGRAM);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        let any = SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0);
        bind(&socket, &any).unwrap();
        let SocketAddr::V6(address) = getsockname(&socket).unwrap().try_into().unwrap() else {
            panic!("it is an address of IPv6");
        };
        (socket, address)
    }

    #[test]
    fn an_answer_comes_from_the_address_that_was_asked() {
        let (server, server_address) = socket();
        let (client, client_address) = socket();
        report_destinations(&server).unwrap();
        report_destinations(&client).unwrap();
        for (ours, theirs) in [
            ("::ffff:127.0.0.1", "::ffff:127.0.0.9"),
            ("::ffff:127.0.0.2", "::ffff:127.1.2.3"),
        ] {
            let (ours, theirs): (Ipv6Addr, Ipv6Addr) =
                (ours.parse().unwrap(), theirs.parse().unwrap());
            let to = SocketAddrV6::new(theirs, server_address.port(), 0, 0);
            send_datagram(&client, b"question", ours, to).unwrap();
            let mut buffer = [0; 32];
            let question = receive_datagram(&server, &mut buffer).unwrap();
            assert_eq!(&buffer[..question.length], b"question");
            assert_eq!(question.destination, theirs);
            let asker = SocketAddrV6::new(ours, client_address.port(), 0, 0);
            assert_eq!(question.sender, asker);
            send_datagram(&server, b"answer", theirs, asker).unwrap();
            let answer = receive_datagram(&client, &mut buffer).unwrap();
            assert_eq!(&buffer[..answer.length], b"answer");
            assert_eq!(*answer.sender.ip(), theirs);
        }
    }
}
