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

/// Between keeper and PID 1: one word, and perhaps a descriptor with it.
pub(super) struct Line(OwnedFd);

const WORD: [u8; 1] = *b"!";

impl Line {
    pub(super) fn pair() -> Result<(Self, Self), Errno> {
        let (one, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(one), Self(other)))
    }

    /// Lets the other end go on.
    pub(super) fn say(&self, tree: Option<&OwnedFd>) -> Result<(), Errno> {
        let descriptors = tree.map(AsFd::as_fd);
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if descriptors.is_some() {
            let rights = SendAncillaryMessage::ScmRights(descriptors.as_slice());
            control.push(rights).then_some(()).ok_or(Errno::NOBUFS)?;
        }
        let word = [IoSlice::new(&WORD)];
        sendmsg(&self.0, &word, &mut control, SendFlags::NOSIGNAL).map(|_| ())
    }

    /// Waits for the word, and takes what came with it.
    pub(super) fn wait(&self) -> Result<Option<OwnedFd>, Errno> {
        let mut word = [0; 1];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut places = [IoSliceMut::new(&mut word)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.0, &mut places, &mut control, flags)?;
        if received.bytes == 0 {
            return Err(Errno::PIPE);
        }
        let descriptors = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        Ok(descriptors)
    }

    /// Whether the other end is still there. Nothing more is said.
    pub(super) fn is_held(&self) -> bool {
        let mut nothing = [0; 1];
        recv(&self.0, &mut nothing, RecvFlags::DONTWAIT) == Err(Errno::AGAIN)
    }
}
