//! The socket by which other programs of the same user, the clients, find a VM
//! and attach to it.
//!
//! The program that owns a VM listens on an abstract Unix socket whose name
//! contains the user and the VM. Such a socket has no file, so it disappears with
//! the program, however that ends. It has no permissions either: owner and client
//! each ask the kernel for the other's user, and accept only their own.
//!
//! Any user can bind such names, and fill the queue of any socket. So clients ask
//! the kernel for the owner of each socket before connecting (`socket_diag.rs`),
//! no connect waits, and a VM whose name another user holds uses a longer name
//! that cannot be guessed.
//!
//! ```text
//!  client                                      owner
//!     |                 VmSummary, length first  |
//!     |<-----------------------------------------|
//!     | ControlRequest (1 byte)                  |
//!     |----------------------------------------->|
//!     |   Attach: the wire protocol, relayed     |
//!     |   Stop, Kill, Watch: how the VM ended,   |
//!     |     when it has; for Watch also when it  |
//!     |     is paused and resumed                |
//!     |   Pause, Resume: whether it is done      |
//!     |   Snapshot: where; whether it is done    |
//!     |   SwitchDisk: where; how long it took    |
//!     |   Baseline: length (u64 le), the bytes   |
//!     |   Metrics: which; the samples            |
//!     |   FlushMetrics: all samples              |
//!     |   Services: see `owner_request.rs` there |
//! ```

mod baseline;
mod change_record;
mod client;
mod end_record;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod listener;
mod name;
mod owner;
mod quota_record;
mod snapshot_record;
mod socket_diag;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use baseline::BaselineSlot;
pub(crate) use client::{ANSWER_TIMEOUT, AttachClient, FoundVm, find, list};
pub(crate) use name::VmName;
pub(crate) use owner::{AttachServer, AttachSocket, ChangeResult, OwnedVm};
pub(crate) use summary::VmSummary;

/// What a client requests of the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ControlRequest {
    /// Attach to the VM.
    Attach = b'a',
    /// Stop the VM.
    Stop = b's',
    /// Kill the VM.
    Kill = b'k',
    /// Send the baseline.
    Baseline = b'b',
    /// Report how the VM ends, and when it is paused and resumed.
    Watch = b'w',
    /// Pause the VM; requests wait.
    Pause = b'p',
    /// Pause the VM; requests are refused.
    PauseAndRefuse = b'f',
    /// Resume the VM.
    Resume = b'r',
    /// Take a snapshot of the VM.
    Snapshot = b'n',
    /// Send the status of its network.
    Network = b't',
    /// Send what happens on its network.
    NetworkLog = b'l',
    /// Go on in a new layer of the disk.
    SwitchDisk = b'd',
    /// Send samples of what it uses.
    Metrics = b'm',
    /// Send all samples of what it uses, and forget them.
    FlushMetrics = b'M',
    /// Publish ports for services, or count them.
    Services = b'v',
    /// Send its quotas, and how much of them is used.
    Quotas = b'q',
}

/// What the owner tells a client that watches the VM, before its end. Neither of these
/// bytes begins the record of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PauseNotice {
    /// It is paused.
    Paused = b'P',
    /// It runs.
    Running = b'R',
}

impl PauseNotice {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Paused, Self::Running]
            .into_iter()
            .find(|notice| *notice as u8 == byte)
    }
}

impl ControlRequest {
    fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Attach,
            Self::Stop,
            Self::Kill,
            Self::Baseline,
            Self::Watch,
            Self::Pause,
            Self::PauseAndRefuse,
            Self::Resume,
            Self::Snapshot,
            Self::Network,
            Self::NetworkLog,
            Self::SwitchDisk,
            Self::Metrics,
            Self::FlushMetrics,
            Self::Services,
            Self::Quotas,
        ]
        .into_iter()
        .find(|request| *request as u8 == byte)
    }
}
