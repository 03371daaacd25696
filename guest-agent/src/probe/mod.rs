//! Whether a service does its work.
//!
//! ```text
//!                 ┌─ Lines    the log, as it comes               in the agent
//!  Probing ───────┼─ Command  a program that exits with 0        a process
//!   next()        └─ Child    a file, a port, a socket, a page   a fork
//! ```
//!
//! The agent never asks a program of the guest anything itself: whoever is asked
//! may not answer, and a path may lead to a file system that does not. So one
//! [`Child`] asks for each service that has such a probe, in plain blocking
//! code, and tells the agent what it has found.

mod child;
mod command;
mod errno;
mod file;
mod http;
mod lines;
mod pattern;
mod response;
mod sane;
mod tcp;
mod unix;
mod watch;

use alloc::{format, rc::Rc, string::String};

use rustix::process::Pid;
use vmcell_wire::service::{Probe, Spec};

use crate::{
    clock::Moment,
    process::{ProcessId, Processes},
    ring::Ring,
    service::{ServiceId, World, shortened},
};

pub(crate) use sane::check;

use child::Child;
use command::Command;
use lines::Lines;

/// What an attempt has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Success,
    /// And why, in a few words.
    Failure(String),
}

impl Finding {
    fn failure(reason: &str) -> Self {
        Self::Failure(shortened(reason, MAX_REASON))
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

/// What is to be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Whether a service is ready.
    Ready,
    /// Whether it still lives.
    Alive,
}

/// When attempts are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timing {
    delay_ms: u32,
    interval_ms: u32,
    attempt_ms: u32,
}

impl Purpose {
    fn probe_of<'a>(self, spec: &Spec<'a>) -> Option<(Probe<'a>, Timing)> {
        match self {
            Self::Ready => {
                let ready = spec.ready?;
                let timing = Timing {
                    delay_ms: ready.delay_ms,
                    interval_ms: ready.interval_ms,
                    attempt_ms: ready.attempt_ms,
                };
                Some((ready.probe, timing))
            }
            Self::Alive => {
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

/// A probe at work.
pub(crate) struct Probing {
    /// The bytes of the spec that it is part of.
    spec: Rc<[u8]>,
    purpose: Purpose,
    timing: Timing,
    means: Means,
}

enum Means {
    Lines(Lines),
    Command(Command),
    Child(Child),
}

impl Probing {
    /// Begins to find out what a spec asks for. The log of the run begins at
    /// `log_from`. None: there is no such probe.
    pub(crate) fn new(
        spec: &Rc<[u8]>,
        purpose: Purpose,
        log_from: u64,
        now: Moment,
    ) -> Option<Self> {
        let decoded = Spec::from_bytes(spec).ok()?;
        let (probe, timing) = purpose.probe_of(&decoded)?;
        let begin = now.after_ms(timing.delay_ms.into());
        let means = match probe {
            Probe::Log { pattern } => Means::Lines(Lines::new(pattern, log_from)?),
            Probe::Command { .. } => Means::Command(Command::new(begin)),
            _ => Means::Child(Child::new(begin)),
        };
        Some(Self {
            spec: Rc::clone(spec),
            purpose,
            timing,
            means,
        })
    }

    /// What there is to say while nothing was found.
    pub(crate) fn first_reason(&self) -> &'static str {
        let is_asking = match &self.means {
            Means::Lines(_) => return "no line of its log matches",
            Means::Command(command) => command.is_asking(),
            Means::Child(child) => child.is_asking(),
        };
        if is_asking {
            "no answer yet"
        } else {
            "it was not asked yet"
        }
    }

    /// What the next attempt has found, if one has found something. `has_ended`:
    /// the service will not print any more.
    pub(crate) fn next(
        &mut self,
        service: ServiceId,
        log: &Ring,
        has_ended: bool,
        world: &mut World<'_>,
    ) -> Option<Finding> {
        if let Means::Lines(lines) = &mut self.means {
            return lines.next(log, has_ended);
        }
        let spec = Spec::from_bytes(&self.spec).ok()?;
        let (probe, _) = self.purpose.probe_of(&spec)?;
        match (&mut self.means, probe) {
            (Means::Command(command), Probe::Command { argv }) => {
                command.next(&spec.start, argv, self.timing, world)
            }
            (Means::Child(child), probe) => child.next(service, &probe, self.timing, world),
            _ => None,
        }
    }

    /// Whether it looks at the log.
    pub(crate) fn reads_log(&self) -> bool {
        matches!(self.means, Means::Lines(_))
    }

    /// Whether there is more of the log than it has looked at.
    pub(crate) fn is_behind(&self) -> bool {
        matches!(&self.means, Means::Lines(lines) if lines.is_behind())
    }

    /// Whether this process does the work.
    pub(crate) fn is_done_by(&self, process: ProcessId) -> bool {
        matches!(&self.means, Means::Command(command) if command.is(process))
    }

    /// A child has ended. Answers whether it was the one that does the work.
    pub(crate) fn reaped(&mut self, pid: Pid) -> bool {
        match &mut self.means {
            Means::Child(child) => child.reaped(pid),
            Means::Lines(_) | Means::Command(_) => false,
        }
    }

    /// When it must be asked again.
    pub(crate) fn alarm(&self) -> Option<Moment> {
        match &self.means {
            Means::Lines(_) => None,
            Means::Command(command) => command.alarm(),
            Means::Child(child) => child.alarm(),
        }
    }

    /// Nobody wants to know any more.
    pub(crate) fn end(self, processes: &mut Processes) {
        match self.means {
            Means::Lines(_) => {}
            Means::Command(command) => command.end(processes),
            Means::Child(child) => child.end(),
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
