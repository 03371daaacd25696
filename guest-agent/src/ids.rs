//! The ids by which the parts of the agent refer to each other.

use vmcell_wire::StreamId;

/// The id of a link: its index in the agent's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(pub(crate) u32);

/// The global name of a stream: its link and its id there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) link: LinkId,
    pub(crate) stream: StreamId,
}

/// The id of a process, unique while the agent runs. Not a pid, which the
/// kernel reuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessId(pub(crate) u32);

/// The id of a service, unique while the agent runs, even when another service
/// gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServiceId(pub(crate) u32);

/// Identifies a job: the slot of its worker, and the number of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobId {
    pub(crate) slot: u32,
    pub(crate) number: u32,
}

/// The id of a connection: its index in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId(pub(crate) u32);
