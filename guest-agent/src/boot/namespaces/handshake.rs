use core::mem::MaybeUninit;

use rustix::{
    cmsg_space,
    fd::{AsFd, OwnedFd},
    io::{Errno, IoSlice, IoSliceMut},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, sendmsg,
        socketpair,
    },
};

/// One end of the socket between the monitor and PID 1. One message goes over it,
/// perhaps with a descriptor.
pub(super) struct Handshake(OwnedFd);

const MESSAGE: [u8; 1] = *b"!";

impl Handshake {
    pub(super) fn pair() -> Result<(Self, Self), Errno> {
        let (one, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(one), Self(other)))
    }

    /// Lets the other end continue.
    pub(super) fn send(&self, tree: Option<&OwnedFd>) -> Result<(), Errno> {
        let descriptors = tree.map(AsFd::as_fd);
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if descriptors.is_some() {
            let rights = SendAncillaryMessage::ScmRights(descriptors.as_slice());
            control.push(rights).then_some(()).ok_or(Errno::NOBUFS)?;
        }
        let message = [IoSlice::new(&MESSAGE)];
        sendmsg(&self.0, &message, &mut control, SendFlags::NOSIGNAL).map(|_| ())
    }

    /// Waits for the message, and returns the descriptor that came with it.
    pub(super) fn receive(&self) -> Result<Option<OwnedFd>, Errno> {
        let mut message = [0; 1];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut buffers = [IoSliceMut::new(&mut message)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.0, &mut buffers, &mut control, flags)?;
        if received.bytes == 0 {
            return Err(Errno::PIPE);
        }
        let descriptors = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        Ok(descriptors)
    }

    /// Returns whether the other end is still open. No further message may come.
    pub(super) fn is_connected(&self) -> bool {
        let mut nothing = [0; 1];
        recv(&self.0, &mut nothing, RecvFlags::DONTWAIT) == Err(Errno::AGAIN)
    }
}
