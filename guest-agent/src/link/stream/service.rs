use vmcell_wire::{Channel, Failure, FailureKind, Outcome, Stage, encode, service::Until};

use super::{
    Filled, Place,
    reader::{From, Reader},
};
use crate::{
    link::{Lost, outgoing::Outgoing},
    process::Caller,
    service::{ServiceId, Services},
};

/// A stream that waits for something to happen to a service.
pub(crate) struct ServiceStream {
    caller: Caller,
    service: ServiceId,
    wanted: Wanted,
}

/// What it waits for.
pub(crate) enum Wanted {
    Phase(Until),
    /// That its program was executed, or was not, in the start with this number.
    Launched {
        start: u64,
    },
    /// That the processes are gone which it had when it had been started so
    /// often.
    Gone {
        starts: u64,
    },
    /// Its log, up to `end` or to its last end.
    Log {
        reader: Reader,
        end: Option<u64>,
    },
}

impl Wanted {
    pub(crate) fn log(channel: Channel, place: Place, end: Option<u64>) -> Self {
        let reader = Reader::new(channel, place);
        Self::Log { reader, end }
    }
}

impl ServiceStream {
    pub(crate) fn new(caller: Caller, service: ServiceId, wanted: Wanted) -> Self {
        Self {
            caller,
            service,
            wanted,
        }
    }

    /// Nobody waits any more.
    pub(super) fn leave(&self, services: &mut Services) {
        services.leave(self.service, self.caller);
    }

    pub(super) fn credit(&mut self, channel: Channel, bytes: u32) -> Result<(), Lost> {
        match &mut self.wanted {
            Wanted::Log { reader, .. } if channel == Channel::Stdout => reader.granted(bytes),
            _ => Ok(()),
        }
    }

    pub(super) fn fill(
        &mut self,
        outgoing: &mut Outgoing,
        services: &mut Services,
    ) -> Result<Filled, Lost> {
        let stream = self.caller.stream;
        let Some(service) = services.get_mut(self.service) else {
            let text = "the service was removed";
            let failure = Failure::new(FailureKind::NotFound, Stage::Service, text);
            encode::close(outgoing.control(), stream, &Outcome::Failed(failure))?;
            return Ok(Filled::Finished);
        };
        if let Wanted::Launched { start } = self.wanted
            && let Some(failure) = service.refusal_of(start)
        {
            encode::close(outgoing.control(), stream, &Outcome::Failed(failure))?;
            self.leave(services);
            return Ok(Filled::Finished);
        }
        let has_come = match &mut self.wanted {
            Wanted::Phase(until) => service.has_come(*until),
            Wanted::Launched { .. } => !service.is_launching(),
            Wanted::Gone { starts } => {
                let is_another = service.starts() != *starts && !service.is_launching();
                service.is_over() || is_another
            }
            Wanted::Log { reader, end } => {
                let ring = service.log();
                let from = From {
                    ring,
                    end: end.or_else(|| service.is_over().then(|| ring.end())),
                    held: None,
                };
                if reader.fill(stream, from, outgoing)? {
                    return Ok(Filled::Something);
                }
                reader.has_ended()
            }
        };
        if !has_come {
            return Ok(Filled::Nothing);
        }
        encode::close(
            outgoing.control(),
            stream,
            &Outcome::Service(service.state()),
        )?;
        self.leave(services);
        Ok(Filled::Finished)
    }
}
