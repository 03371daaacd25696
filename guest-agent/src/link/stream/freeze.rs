use vmcell_wire::{Failure, FailureKind, Outcome, Stage, StreamId};

use super::Filled;
use crate::{
    cgroup::{FreezeError, FreezeResult},
    link::{LinkError, outgoing::Outgoing},
};

/// The stream of a request that waits until all processes stand still. It can be
/// dropped at any time: they stay frozen.
pub(crate) struct FreezeStream {
    stream: StreamId,
    result: FreezeResult,
}

impl FreezeStream {
    pub(crate) const fn new(stream: StreamId, result: FreezeResult) -> Self {
        Self { stream, result }
    }

    pub(super) fn fill(&self, outgoing: &mut Outgoing) -> Result<Filled, LinkError> {
        let failed = |kind, text| Outcome::Failed(Failure::new(kind, Stage::Cgroup, text));
        let outcome = match self.result.get() {
            None => return Ok(Filled::Nothing),
            Some(Ok(())) => Outcome::Done,
            Some(Err(FreezeError::TimedOut)) => failed(
                FailureKind::Other,
                "the processes did not stand still within 5 seconds, and run on: one of them \
                 may be waiting for a disk or another device; try again, or end it",
            ),
            Some(Err(FreezeError::Thawed)) => failed(
                FailureKind::Conflict,
                "the processes were thawed before they stood still",
            ),
        };
        outgoing.close(self.stream, &outcome)?;
        Ok(Filled::Finished)
    }
}
