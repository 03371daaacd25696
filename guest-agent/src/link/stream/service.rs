use vmcell_wire::{Channel, Failure, FailureKind, Outcome, Stage, service::WaitFor};

use super::{
    Filled,
    reader::{ReadSource, Reader},
};
use crate::{
    ids::{Caller, ServiceId},
    link::{LinkError, outgoing::Outgoing},
    process::ReadPosition,
    service::Services,
};

/// A stream of a request about a service.
pub(crate) struct ServiceStream {
    caller: Caller,
    service: ServiceId,
    wait_for: WaitCondition,
}

/// What a [`ServiceStream`] waits for.
pub(crate) enum WaitCondition {
    Phase(WaitFor),
    /// The program was executed, or failed to be, in the start with this
    /// number.
    Launched {
        start: u64,
    },
    /// All processes of the service are gone that ran when it had been started
    /// this many times.
    Gone {
        starts: u64,
    },
    /// The log, up to `end` or until the service is stopped for good.
    Log {
        reader: Reader,
        end: Option<u64>,
    },
}

impl WaitCondition {
    pub(crate) fn log(channel: Channel, position: ReadPosition, end: Option<u64>) -> Self {
        let reader = Reader::new(channel, position);
        Self::Log { reader, end }
    }
}

impl ServiceStream {
    pub(crate) fn new(caller: Caller, service: ServiceId, wait_for: WaitCondition) -> Self {
        Self {
            caller,
            service,
            wait_for,
        }
    }

    /// Removes the caller from the service's waiters.
    pub(super) fn stop_watching(&self, services: &mut Services) {
        services.remove_watcher(self.service, self.caller);
    }

    pub(super) fn credit(&mut self, channel: Channel, bytes: u32) -> Result<(), LinkError> {
        match &mut self.wait_for {
            WaitCondition::Log { reader, .. } if channel == Channel::Stdout => {
                reader.granted(bytes)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn fill(
        &mut self,
        outgoing: &mut Outgoing,
        services: &mut Services,
    ) -> Result<Filled, LinkError> {
        let stream = self.caller.stream;
        let Some(service) = services.get_mut(self.service) else {
            let text = "the service was removed";
            let failure = Failure::new(FailureKind::NotFound, Stage::Service, text);
            outgoing.close(stream, &Outcome::Failed(failure))?;
            return Ok(Filled::Finished);
        };
        if let WaitCondition::Launched { start } = self.wait_for
            && let Some(failure) = service.start_failure(start)
        {
            outgoing.close(stream, &Outcome::Failed(failure))?;
            self.stop_watching(services);
            return Ok(Filled::Finished);
        }
        let is_reached = match &mut self.wait_for {
            WaitCondition::Phase(until) => service.has_reached(*until),
            WaitCondition::Launched { .. } => !service.is_launching(),
            WaitCondition::Gone { starts } => {
                let is_another = service.starts() != *starts && !service.is_launching();
                service.is_final() || is_another
            }
            WaitCondition::Log { reader, end } => {
                let ring = service.log();
                let from = ReadSource {
                    ring,
                    end: end.or_else(|| service.is_final().then(|| ring.end())),
                    held: None,
                };
                if reader.fill(stream, from, outgoing)? {
                    return Ok(Filled::Something);
                }
                reader.has_ended()
            }
        };
        if !is_reached {
            return Ok(Filled::Nothing);
        }
        outgoing.close(stream, &Outcome::Service(service.state()))?;
        self.stop_watching(services);
        Ok(Filled::Finished)
    }
}
