//! Readiness and liveness probes of services.
//!
//! ```text
//!                 ┌─ LogProbe      a line of the log                 in the agent
//!  ProbeRunner ───┼─ CommandProbe  a program that exits with 0       a process
//!   poll()        └─ ChildProbe    a file, a port, a socket, a page  a fork
//! ```
//!
//! The agent itself never contacts a program of the guest: the program may not
//! answer, and a path may lead to a file system that hangs. So each service
//! with such a probe has one [`ChildProbe`], whose child process probes in
//! plain blocking code and reports to the agent.

mod child;
mod command;
mod connect_error;
mod file;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod http;
mod log;
mod path_watch;
mod response;
mod tcp;
mod unix;
mod validate;

use alloc::{format, rc::Rc, string::String};

use rustix::process::Pid;
use vmcell_wire::service::{Probe, Spec};

use crate::{
    clock::Moment,
    ids::{ProcessId, ServiceId},
    process::{Context, Processes},
    ring::Ring,
    truncated::truncated,
};

pub(crate) use validate::check;

use child::ChildProbe;
use command::CommandProbe;
use log::LogProbe;

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProbeResult {
    Success,
    /// With a short reason.
    Failure(String),
}

impl ProbeResult {
    fn failure(reason: &str) -> Self {
        Self::Failure(truncated(reason, MAX_REASON))
    }

    fn no_answer(attempt_ms: u32) -> Self {
        Self::Failure(no_answer(attempt_ms))
    }
}

/// The longest reason of a failure, in bytes.
const MAX_REASON: usize = 200;

fn no_answer(attempt_ms: u32) -> String {
    match (attempt_ms.div_euclid(1000), attempt_ms.rem_euclid(1000)) {
        (seconds, 0) => format!("no answer within {seconds} s"),
        _ => format!("no answer within {attempt_ms} ms"),
    }
}

/// What a probe checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeKind {
    /// Whether a service is ready.
    Readiness,
    /// Whether it still works.
    Liveness,
}

/// When attempts are made, and how long one may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timing {
    delay_ms: u32,
    interval_ms: u32,
    attempt_ms: u32,
}

impl ProbeKind {
    fn probe_of<'a>(self, spec: &Spec<'a>) -> Option<(Probe<'a>, Timing)> {
        match self {
            Self::Readiness => {
                let ready = spec.ready?;
                let timing = Timing {
                    delay_ms: ready.delay_ms,
                    interval_ms: ready.interval_ms,
                    attempt_ms: ready.attempt_ms,
                };
                Some((ready.probe, timing))
            }
            Self::Liveness => {
                let alive = spec.alive?;
                let timing = Timing {
                    delay_ms: alive.interval_ms,
                    interval_ms: alive.interval_ms,
                    attempt_ms: alive.attempt_ms,
                };
                Some((alive.probe, timing))
            }
        }
    }
}

/// A running probe.
pub(crate) struct ProbeRunner {
    /// The encoded spec that the probe is part of.
    spec: Rc<[u8]>,
    purpose: ProbeKind,
    timing: Timing,
    method: Method,
}

enum Method {
    Log(LogProbe),
    Command(CommandProbe),
    Child(ChildProbe),
}

impl ProbeRunner {
    /// Starts the probe of a spec. The log of the run begins at `log_from`.
    /// Returns `None` if the spec has no such probe.
    pub(crate) fn new(
        spec: &Rc<[u8]>,
        purpose: ProbeKind,
        log_from: u64,
        now: Moment,
    ) -> Option<Self> {
        let decoded = Spec::from_bytes(spec).ok()?;
        let (probe, timing) = purpose.probe_of(&decoded)?;
        let begin = now.after_ms(timing.delay_ms.into());
        let method = match probe {
            Probe::Log { pattern } => Method::Log(LogProbe::new(pattern, log_from)),
            Probe::Command { .. } => Method::Command(CommandProbe::new(begin)),
            _ => Method::Child(ChildProbe::new(begin)),
        };
        Some(Self {
            spec: Rc::clone(spec),
            purpose,
            timing,
            method,
        })
    }

    /// Returns the reason to report before the first result.
    pub(crate) fn pending_reason(&self) -> &'static str {
        let is_running = match &self.method {
            Method::Log(_) => return "no line of its log matches",
            Method::Command(command) => command.is_running(),
            Method::Child(child) => child.is_running(),
        };
        if is_running {
            "no answer yet"
        } else {
            "it was not probed yet"
        }
    }

    /// Advances the probe and returns the result of an attempt, if one is
    /// complete. `has_ended`: the log of the service will not grow.
    pub(crate) fn poll(
        &mut self,
        service: ServiceId,
        log: &Ring,
        has_ended: bool,
        context: &mut Context<'_>,
    ) -> Option<ProbeResult> {
        if let Method::Log(log_probe) = &mut self.method {
            return log_probe.poll(log, has_ended);
        }
        let spec = Spec::from_bytes(&self.spec).ok()?;
        let (probe, _) = self.purpose.probe_of(&spec)?;
        match (&mut self.method, probe) {
            (Method::Command(command), Probe::Command { argv }) => {
                command.poll(&spec.start, argv, self.timing, context)
            }
            (Method::Child(child), probe) => child.poll(service, &probe, self.timing, context),
            _ => None,
        }
    }

    /// Returns whether it reads the log.
    pub(crate) fn reads_log(&self) -> bool {
        matches!(self.method, Method::Log(_))
    }

    /// Returns whether part of the log is still unread.
    pub(crate) fn is_behind(&self) -> bool {
        matches!(&self.method, Method::Log(log_probe) if log_probe.is_behind())
    }

    /// Returns whether it runs as this process.
    pub(crate) fn runs_as(&self, process: ProcessId) -> bool {
        matches!(&self.method, Method::Command(command) if command.runs_as(process))
    }

    /// Handles the end of a child. Returns whether it belonged to this probe.
    pub(crate) fn reaped(&mut self, pid: Pid) -> bool {
        match &mut self.method {
            Method::Child(child) => child.reaped(pid),
            Method::Log(_) | Method::Command(_) => false,
        }
    }

    /// Returns when it must be polled next.
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        match &self.method {
            Method::Log(_) => None,
            Method::Command(command) => command.next_deadline(),
            Method::Child(child) => child.next_deadline(),
        }
    }

    /// Stops the probe.
    pub(crate) fn stop(self, processes: &mut Processes) {
        match self.method {
            Method::Log(_) => {}
            Method::Command(command) => command.stop(processes),
            Method::Child(child) => child.stop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_words() {
        assert_eq!(no_answer(5000), "no answer within 5 s");
        assert_eq!(no_answer(250), "no answer within 250 ms");
    }
}
