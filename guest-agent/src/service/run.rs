use alloc::{format, string::String};

use rustix::{fd::OwnedFd, process::Pid};
use vmcell_wire::{
    Cause, Exit, Failure, FailureKind, Lifetime, Stage, Start, Stdin, service::Spec,
};

use super::{Log, ServiceId, log::Pace};
use crate::{
    clock::Moment,
    event::{Event, Poller},
    probe::Probing,
    process::{Asked, ProcessId, Processes, Role, number, output_pipe},
};

/// What the parts of a service work with.
pub(crate) struct World<'a> {
    pub(crate) processes: &'a mut Processes,
    pub(crate) poller: &'a Poller,
    pub(crate) now: Moment,
}

/// A service's process, from its start until nothing of it is left.
pub(super) struct Run {
    process: ProcessId,
    pid: Pid,
    leader_is_gone: bool,
    pub(super) started: Moment,
    /// The agent's end of what it prints, until its program is executed.
    pipe: Option<OwnedFd>,
    pub(super) ready_since: Option<Moment>,
    /// What looks whether it is ready, or alive.
    pub(super) probing: Option<Probing>,
    /// How often in a row it did not look alive.
    pub(super) failures: u32,
    /// What the last attempt that failed has said.
    pub(super) reason: Option<String>,
    /// When its processes are killed.
    pub(super) kill_at: Option<Moment>,
    /// When the end of its output is waited for no longer.
    pub(super) cut_at: Option<Moment>,
}

impl Run {
    /// Begins to start the program of a service.
    pub(super) fn begin(
        id: ServiceId,
        name: &str,
        spec: &[u8],
        world: &mut World<'_>,
    ) -> Result<Self, Failure<'static>> {
        let decoded = Spec::from_bytes(spec).map_err(|_| {
            let text = "the spec cannot be read";
            Failure::new(FailureKind::Invalid, Stage::Service, text)
        })?;
        let tag = format!("service:{name}");
        let start = Start {
            tag: &tag,
            ..background(&decoded.start)
        };
        let no_pipe = |errno, text| Failure::from_errno(number(errno), Stage::Pipes, text);
        let (ours, theirs) =
            output_pipe().map_err(|errno| no_pipe(errno, "the pipes cannot be made"))?;
        let World {
            processes,
            poller,
            now,
        } = world;
        // Watched before there is anything to see, so that a failure costs
        // nothing.
        poller
            .watch(&ours, Event::Log(id))
            .map_err(|errno| no_pipe(errno, "the pipes cannot be watched"))?;
        let process = processes.start_for_service(&start, Role::Service, theirs, poller)?;
        let pid = processes.get_mut(process).map(|process| process.pid);
        Ok(Self {
            process,
            // It is there: it was made a moment ago.
            pid: pid.unwrap_or(Pid::INIT),
            leader_is_gone: pid.is_none(),
            started: *now,
            pipe: Some(ours),
            ready_since: None,
            probing: None,
            failures: 0,
            reason: None,
            kill_at: None,
            cut_at: None,
        })
    }

    /// Whether its program was executed, or why not. None: it is not known.
    pub(super) fn launched(
        &self,
        processes: &mut Processes,
    ) -> Option<Result<(), Failure<'static>>> {
        match processes.get_mut(self.process) {
            Some(process) if process.is_starting() => None,
            Some(process) => Some(process.start_failure().map_or(Ok(()), Err)),
            None => Some(Ok(())),
        }
    }

    /// The log goes on with what the program prints.
    pub(super) fn begin_log(&mut self, log: &mut Log) {
        if let Some(pipe) = self.pipe.take() {
            log.begin_run(pipe);
            // It may have printed something meanwhile.
            log.is_ready();
        }
    }

    /// Whether a process is its own, or one that looks how it is.
    pub(super) fn is(&self, process: ProcessId) -> bool {
        let probed_by = |probing: &Probing| probing.is_done_by(process);
        self.process == process || self.probing.as_ref().is_some_and(probed_by)
    }

    /// The kernel's number of its process, while there is one.
    pub(super) fn pid(&self) -> Option<u32> {
        let pid = self.pid.as_raw_nonzero().get().unsigned_abs();
        (!self.leader_is_gone).then_some(pid)
    }

    /// Why its process has ended, if it has.
    pub(super) fn cause(&mut self, processes: &mut Processes) -> Option<Cause> {
        let cause = match processes.get_mut(self.process) {
            Some(process) if process.start_failure().is_none() => process.ending.cause(),
            _ => Some(Cause::Killed),
        };
        self.leader_is_gone |= cause.is_some();
        cause
    }

    /// It is to end: signal first, then patience, then force.
    pub(super) fn stop(&mut self, signal: u8, grace_ms: u32, world: &mut World<'_>) {
        self.end_probing(world.processes);
        if self.cause(world.processes).is_none()
            && let Some(process) = world.processes.get_mut(self.process)
        {
            // It can only be gone, which will be noticed.
            let _ = process.signal(signal);
            self.kill_at = Some(world.now.after_ms(grace_ms.into()));
        }
    }

    /// How its log is read.
    pub(super) fn pace(&self) -> Pace {
        match &self.probing {
            Some(probing) if probing.is_behind() => Pace::Held,
            Some(probing) if probing.reads_log() => Pace::Probed,
            _ => Pace::Fast,
        }
    }

    /// Whether its log has more than was looked through.
    pub(super) fn is_behind(&self) -> bool {
        self.probing.as_ref().is_some_and(Probing::is_behind)
    }

    /// Why it is not ready.
    pub(super) fn take_reason(&mut self) -> String {
        let first = || self.probing.as_ref().map_or("", Probing::first_reason);
        self.reason.take().unwrap_or_else(|| first().into())
    }

    /// Nobody asks any more how it is.
    pub(super) fn end_probing(&mut self, processes: &mut Processes) {
        if let Some(probing) = self.probing.take() {
            probing.end(processes);
        }
    }

    /// Ends what has not heeded the signal in time.
    pub(super) fn kill_if_late(&mut self, world: &mut World<'_>) {
        if self.kill_at.is_some_and(|at| at <= world.now) {
            self.kill_at = None;
            world.processes.kill(self.process, Asked::Host);
        }
    }

    /// How it ended, when its whole tree is gone or was waited for long enough.
    pub(super) fn settled(&mut self, processes: &mut Processes) -> Option<Option<Exit>> {
        match processes.get_mut(self.process) {
            Some(process) if process.start_failure().is_none() => {
                processes.settle(self.process).map(Some)
            }
            _ => Some(None),
        }
    }

    /// Its process is of no more interest.
    pub(super) fn let_go(&self, processes: &mut Processes) {
        processes.let_go(self.process);
    }

    /// When it must be looked at again.
    pub(super) fn alarm(&self) -> Option<Moment> {
        let probing = self.probing.as_ref().and_then(Probing::alarm);
        [probing, self.kill_at].into_iter().flatten().min()
    }
}

/// The same program in the background, with nothing that a service does not
/// have.
pub(crate) fn background<'a>(start: &Start<'a>) -> Start<'a> {
    Start {
        stdin: Stdin::Empty,
        lifetime: Lifetime::Background,
        timeout_ms: 0,
        ..*start
    }
}
