mod job;
mod port;
mod process;
mod reader;
mod service;

use super::{Lost, outgoing::Outgoing};
use crate::tasks::Tasks;

pub(crate) use job::JobStream;
pub(crate) use port::PortStream;
pub(crate) use process::ProcessStream;
pub(crate) use reader::Place;
pub(crate) use service::{ServiceStream, Wanted};

/// A stream that is open: something that a host waits for.
pub(crate) enum Stream {
    Process(ProcessStream),
    Job(JobStream),
    Port(PortStream),
    Service(ServiceStream),
}

/// Whether a stream had something to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    Something,
    Nothing,
    /// Nothing, and it need not be asked again before something happens to it.
    Asleep,
    /// It has said its last word.
    Finished,
}

impl Stream {
    /// Its link is gone.
    pub(super) fn lose(&self, tasks: &mut Tasks) {
        match self {
            Self::Process(stream) => stream.lose(&mut tasks.processes),
            Self::Job(stream) => stream.lose(&mut tasks.jobs),
            Self::Port(stream) => stream.leave(&mut tasks.connections),
            Self::Service(stream) => stream.leave(&mut tasks.services),
        }
    }

    /// The host does not want any more of it. Answers whether it will close by
    /// itself, or has.
    pub(crate) fn cancel(&mut self, tasks: &mut Tasks) -> bool {
        match self {
            Self::Process(stream) => stream.cancel(&mut tasks.processes),
            Self::Job(stream) => {
                stream.cancel(&mut tasks.jobs);
                true
            }
            Self::Port(stream) => {
                stream.leave(&mut tasks.connections);
                false
            }
            Self::Service(stream) => {
                stream.leave(&mut tasks.services);
                false
            }
        }
    }

    /// The host knows its outcome. Answers whether there was one.
    pub(super) fn acknowledge(&self, tasks: &mut Tasks) -> bool {
        match self {
            Self::Process(stream) => stream.acknowledge(&mut tasks.processes),
            Self::Job(_) | Self::Port(_) | Self::Service(_) => false,
        }
    }

    /// Credit came for an output.
    pub(crate) fn credit(
        &mut self,
        channel: vmcell_wire::Channel,
        bytes: u32,
        tasks: &mut Tasks,
    ) -> Result<(), Lost> {
        match self {
            Self::Process(stream) => stream.credit(channel, bytes, &mut tasks.processes),
            Self::Job(stream) => stream.credit(channel, bytes),
            Self::Port(stream) => stream.credit(channel, bytes),
            Self::Service(stream) => stream.credit(channel, bytes),
        }
    }

    /// Input came. Answers how much credit to send back.
    pub(crate) fn input(&mut self, bytes: &[u8], tasks: &mut Tasks) -> Result<Option<u32>, Lost> {
        match self {
            Self::Process(stream) => stream.input(bytes, &mut tasks.processes),
            Self::Job(stream) => stream.input(bytes, &mut tasks.jobs).map(|()| None),
            Self::Port(stream) => stream.input(bytes, &mut tasks.connections).map(|()| None),
            // It wants nothing to be told.
            Self::Service(_) => Ok(None),
        }
    }

    /// The input ends here.
    pub(crate) fn input_ended(&mut self, tasks: &mut Tasks) {
        match self {
            Self::Process(stream) => stream.input_ended(&mut tasks.processes),
            Self::Job(stream) => stream.input_ended(&mut tasks.jobs),
            Self::Port(stream) => stream.input_ended(&mut tasks.connections),
            Self::Service(_) => {}
        }
    }

    /// Adds what there is to say.
    pub(super) fn fill(
        &mut self,
        outgoing: &mut Outgoing,
        tasks: &mut Tasks,
    ) -> Result<Filled, Lost> {
        match self {
            Self::Process(stream) => stream.fill(outgoing, &mut tasks.processes),
            Self::Job(stream) => stream.fill(outgoing, &mut tasks.jobs),
            Self::Port(stream) => stream.fill(outgoing, &mut tasks.connections),
            Self::Service(stream) => stream.fill(outgoing, &mut tasks.services),
        }
    }
}
