//! How other programs of the same user find a VM and get in.
//!
//! The program that owns a VM listens on an abstract Unix socket whose name
//! tells the user and the VM. Such a socket has no file, so it is gone with the
//! program, whatever ends that. It has no permissions either: owner and visitor
//! each ask the kernel who the other one is, and speak to their own user only.
//!
//! Anybody can bind such names, and fill the queue of any socket. So the kernel
//! is asked for the owner of each socket before anybody connects to it
//! (`socket_diag.rs`), no connect waits, and a VM whose name another user holds
//! is found under a longer one that cannot be guessed.
//!
//! ```text
//!  visitor                                     owner
//!     |                 VmSummary, length first      |
//!     |<-----------------------------------------|
//!     | ControlRequest (1 byte)                          |
//!     |----------------------------------------->|
//!     |   Attach: the wire protocol, relayed     |
//!     |   Stop, Kill, Watch: how the VM ended,   |
//!     |     when it has                          |
//!     |   Baseline: length (u64 le), the bytes   |
//! ```

mod baseline;
mod client;
mod end_record;
mod listener;
mod name;
mod owner;
mod socket_diag;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use baseline::BaselineSlot;
pub(crate) use client::{ANSWER_TIMEOUT, AttachClient, FoundVm, find, list};
pub(crate) use name::VmName;
pub(crate) use owner::{AttachServer, AttachSocket};
pub(crate) use summary::VmSummary;

/// What a visitor came for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ControlRequest {
    /// To use the VM.
    Attach = b'a',
    /// To stop it in order.
    Stop = b's',
    /// To end it at once.
    Kill = b'k',
    /// To hear how the workspace was.
    Baseline = b'b',
    /// To hear how the VM ends.
    Watch = b'w',
}

impl ControlRequest {
    fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Attach,
            Self::Stop,
            Self::Kill,
            Self::Baseline,
            Self::Watch,
        ]
        .into_iter()
        .find(|request| *request as u8 == byte)
    }
}
