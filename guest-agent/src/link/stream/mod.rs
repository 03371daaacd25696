#[cfg(not(all(feature = "files", feature = "network", feature = "services")))]
mod absent;
#[cfg(feature = "network")]
mod capture;
mod freeze;
#[cfg(feature = "files")]
mod job;
#[cfg(feature = "ports")]
mod port;
mod process;
mod reader;
#[cfg(feature = "services")]
mod service;

use super::{LinkError, outgoing::Outgoing};
use crate::tasks::Tasks;

#[cfg(not(feature = "network"))]
use absent::AbsentStream as CaptureStream;
#[cfg(not(feature = "files"))]
use absent::AbsentStream as JobStream;
#[cfg(not(feature = "ports"))]
use absent::AbsentStream as PortStream;
#[cfg(not(feature = "services"))]
use absent::AbsentStream as ServiceStream;
#[cfg(feature = "network")]
pub(crate) use capture::CaptureStream;
pub(crate) use freeze::FreezeStream;
#[cfg(feature = "files")]
pub(crate) use job::JobStream;
#[cfg(feature = "ports")]
pub(crate) use port::PortStream;
pub(crate) use process::ProcessStream;
#[cfg(feature = "services")]
pub(crate) use service::{ServiceStream, WaitCondition};

/// An open stream: a request that a host waits for.
pub(crate) enum Stream {
    Process(ProcessStream),
    Job(JobStream),
    Port(PortStream),
    Service(ServiceStream),
    Freeze(FreezeStream),
    Capture(CaptureStream),
}

/// The result of polling a stream for frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    Something,
    Nothing,
    /// Nothing, and the stream need not be polled before it is woken.
    Asleep,
    /// The stream has sent its last frame.
    Finished,
}

impl Stream {
    /// Handles the loss of the link.
    pub(super) fn on_link_lost(&self, tasks: &mut Tasks) {
        match self {
            Self::Process(stream) => stream.on_link_lost(&mut tasks.processes),
            Self::Job(stream) => stream.on_link_lost(&mut tasks.jobs),
            Self::Port(stream) => stream.abandon(&mut tasks.connections),
            Self::Service(stream) => stream.stop_watching(&mut tasks.services),
            Self::Capture(stream) => stream.abandon(&mut tasks.network),
            Self::Freeze(_) => {}
        }
    }

    /// Cancels the request. Returns whether the stream will close by itself or
    /// has closed.
    pub(crate) fn cancel(&mut self, tasks: &mut Tasks) -> bool {
        match self {
            Self::Process(stream) => stream.cancel(&mut tasks.processes),
            Self::Job(stream) => {
                stream.cancel(&mut tasks.jobs);
                true
            }
            Self::Port(stream) => {
                stream.abandon(&mut tasks.connections);
                false
            }
            Self::Service(stream) => {
                stream.stop_watching(&mut tasks.services);
                false
            }
            Self::Capture(stream) => {
                stream.abandon(&mut tasks.network);
                false
            }
            Self::Freeze(_) => false,
        }
    }

    /// Handles the acknowledgement of its outcome. Returns whether there was
    /// one.
    pub(super) fn acknowledge(&self, tasks: &mut Tasks) -> bool {
        match self {
            Self::Process(stream) => stream.acknowledge(&mut tasks.processes),
            Self::Job(_)
            | Self::Port(_)
            | Self::Service(_)
            | Self::Freeze(_)
            | Self::Capture(_) => false,
        }
    }

    /// Adds credit for an output.
    pub(crate) fn credit(
        &mut self,
        channel: vmcell_wire::Channel,
        bytes: u32,
        tasks: &mut Tasks,
    ) -> Result<(), LinkError> {
        match self {
            Self::Process(stream) => stream.credit(channel, bytes, &mut tasks.processes),
            Self::Job(stream) => stream.credit(channel, bytes),
            Self::Port(stream) => stream.credit(channel, bytes),
            Self::Service(stream) => stream.credit(channel, bytes),
            Self::Capture(stream) => stream.credit(channel, bytes),
            // It has no output.
            Self::Freeze(_) => Ok(()),
        }
    }

    /// Takes input. Returns how much credit to send back.
    pub(crate) fn input(
        &mut self,
        bytes: &[u8],
        tasks: &mut Tasks,
    ) -> Result<Option<u32>, LinkError> {
        match self {
            Self::Process(stream) => stream.input(bytes, &mut tasks.processes),
            Self::Job(stream) => stream.input(bytes, &mut tasks.jobs).map(|()| None),
            Self::Port(stream) => stream.input(bytes, &mut tasks.connections).map(|()| None),
            Self::Capture(stream) => stream.answer(bytes, &mut tasks.network),
            // These take no input.
            Self::Service(_) | Self::Freeze(_) => Ok(None),
        }
    }

    /// Handles the end of input.
    pub(crate) fn input_ended(&mut self, tasks: &mut Tasks) {
        match self {
            Self::Process(stream) => stream.input_ended(&mut tasks.processes),
            Self::Job(stream) => stream.input_ended(&mut tasks.jobs),
            Self::Port(stream) => stream.input_ended(&mut tasks.connections),
            // A host that has answered everything still decides.
            Self::Service(_) | Self::Freeze(_) | Self::Capture(_) => {}
        }
    }

    /// Adds the frames that are ready.
    pub(super) fn fill(
        &mut self,
        outgoing: &mut Outgoing,
        tasks: &mut Tasks,
    ) -> Result<Filled, LinkError> {
        match self {
            Self::Process(stream) => stream.fill(outgoing, &mut tasks.processes),
            Self::Job(stream) => stream.fill(outgoing, &mut tasks.jobs),
            Self::Port(stream) => stream.fill(outgoing, &mut tasks.connections),
            Self::Service(stream) => stream.fill(outgoing, &mut tasks.services),
            Self::Freeze(stream) => stream.fill(outgoing),
            Self::Capture(stream) => stream.fill(outgoing, &mut tasks.network),
        }
    }
}
