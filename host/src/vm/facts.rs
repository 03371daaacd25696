use std::borrow::Cow;

use crate::{
    snapshot::{AgentRecord, GuestRecord},
    sparse::Digest,
};

/// What a snapshot will say about a VM.
#[derive(Clone, Debug)]
pub(super) struct VmFacts {
    /// The digest of the agent is not set if the VM has booted with it.
    pub(super) guest: GuestRecord,
    /// The agent that the VM has booted with.
    pub(super) agent: Option<Cow<'static, [u8]>>,
}

impl VmFacts {
    /// Returns the record. It takes some milliseconds.
    pub(super) fn record(self) -> GuestRecord {
        let Self { guest, agent } = self;
        let sha256 = match agent {
            Some(agent) => Some(Digest::of_bytes(&agent)),
            None => guest.agent.sha256,
        };
        GuestRecord {
            agent: AgentRecord {
                sha256,
                ..guest.agent
            },
            ..guest
        }
    }
}
