use alloc::{string::String, vec::Vec};

use rustix::{
    fd::OwnedFd,
    fs::OFlags,
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    process::{Pid, Signal, kill_process},
    thread::{ClockId, NanosleepRelativeResult, clock_nanosleep_relative},
};
use vmcell_wire::service::Probe;

use super::{
    MAX_REASON, ProbeResult, Timing, file, http,
    path_watch::PathWatch,
    tcp::{AttemptError, dial, time_left},
    unix,
};
use crate::{
    clock::Moment, event::Event, ids::ServiceId, process::Context, sys, truncated::truncated,
};

/// A forked child of the agent that probes a service, as the agent sees it.
///
/// ```text
///                due                              report
///  NotRunning ----------------------> Running ----------+
///     ^                                 |  ^            |
///     |   reaped                        |  +------------+
///     +---------------- Dying <---------+
///                                 no report in time
/// ```
pub(super) struct ChildProbe {
    state: State,
    /// When the next child is started, or by when a report must arrive.
    due: Moment,
}

enum State {
    NotRunning,
    Running {
        pid: Pid,
        reports: OwnedFd,
    },
    /// It was killed and is not reaped yet; it may hang in the kernel.
    Dying {
        pid: Pid,
    },
}

/// How much longer than an attempt the agent waits for its report.
const REPORT_MARGIN_MS: u32 = 3000;

/// The first byte of a report.
const SUCCESS: u8 = 1;
const FAILURE: u8 = 0;

/// The niceness of these children. All commands together weigh more than twice
/// as much as one of them, so that probing does not keep a service from
/// becoming ready.
const NICENESS: i32 = 10;

impl ChildProbe {
    /// Creates a probe that starts at `begin`.
    pub(super) fn new(begin: Moment) -> Self {
        Self {
            state: State::NotRunning,
            due: begin,
        }
    }

    pub(super) fn poll(
        &mut self,
        service: ServiceId,
        probe: &Probe<'_>,
        timing: Timing,
        context: &mut Context<'_>,
    ) -> Option<ProbeResult> {
        let is_due = self.due <= context.now;
        let timeout = timing.attempt_ms.saturating_add(REPORT_MARGIN_MS);
        match &self.state {
            State::NotRunning if is_due => match start(service, probe, timing, context) {
                Ok((pid, reports)) => {
                    self.state = State::Running { pid, reports };
                    self.due = context.now.after_ms(timeout.into());
                    None
                }
                Err(errno) => {
                    self.due = context.now.after_ms(timing.interval_ms.into());
                    Some(ProbeResult::Failure(super::connect_error::describe(errno)))
                }
            },
            State::NotRunning => None,
            State::Running { reports, .. } => {
                if let Some(result) = read(reports) {
                    let next = timeout.saturating_add(timing.interval_ms);
                    self.due = context.now.after_ms(next.into());
                    return Some(result);
                }
                if !is_due {
                    return None;
                }
                self.kill();
                self.due = context.now.after_ms(timeout.into());
                Some(ProbeResult::no_answer(timing.attempt_ms))
            }
            State::Dying { .. } if is_due => {
                self.due = context.now.after_ms(timeout.into());
                Some(ProbeResult::no_answer(timing.attempt_ms))
            }
            State::Dying { .. } => None,
        }
    }

    /// Handles the end of a child. The next one starts only after that, so that
    /// one runs at a time.
    pub(super) fn reaped(&mut self, pid: Pid) -> bool {
        let is_it = match self.state {
            State::NotRunning => false,
            State::Running { pid: other, .. } | State::Dying { pid: other } => other == pid,
        };
        if is_it {
            self.state = State::NotRunning;
        }
        is_it
    }

    pub(super) fn is_running(&self) -> bool {
        !matches!(self.state, State::NotRunning)
    }

    pub(super) fn next_deadline(&self) -> Option<Moment> {
        Some(self.due)
    }

    pub(super) fn stop(mut self) {
        self.kill();
    }

    fn kill(&mut self) {
        if let State::Running { pid, .. } = self.state {
            // It is not reaped, so the pid is still its own.
            let _ = kill_process(pid, Signal::KILL);
            self.state = State::Dying { pid };
        }
    }
}

/// Reads a report, if there is one.
fn read(reports: &OwnedFd) -> Option<ProbeResult> {
    let mut report = [0; MAX_REASON + 1];
    let count = rustix::io::read(reports, &mut report).ok()?;
    match report.get(..count)? {
        // The child has ended, which `reaped` handles.
        [] => None,
        [SUCCESS, ..] => Some(ProbeResult::Success),
        [_, reason @ ..] => Some(ProbeResult::failure(&String::from_utf8_lossy(reason))),
    }
}

fn start(
    service: ServiceId,
    probe: &Probe<'_>,
    timing: Timing,
    context: &Context<'_>,
) -> Result<(Pid, OwnedFd), Errno> {
    // SEQPACKET keeps each report a separate message.
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    context.poller.watch(&ours, Event::Probe(service))?;
    let pid = sys::fork([theirs], |[reports]| run_attempts(&reports, probe, timing))?;
    context.poller.add_child(pid);
    Ok((pid, ours))
}

/// Runs in the child: makes attempt after attempt until the agent kills it.
fn run_attempts(reports: &OwnedFd, probe: &Probe<'_>, timing: Timing) {
    let _ = rustix::process::nice(NICENESS);
    let mut watch = match probe {
        Probe::File { path } => Some(PathWatch::new(path)),
        _ => None,
    };
    loop {
        let began = Moment::now();
        let outcome = attempt(probe, began.after_ms(timing.attempt_ms.into()));
        let is_there = outcome.is_ok();
        if report(reports, outcome, timing).is_err() {
            return;
        }
        let next = began.after_ns(pause(timing, Moment::now().nanoseconds_since(began)));
        match &mut watch {
            // A path that exists is checked again at the next attempt.
            Some(watch) if !is_there => watch.pause(next),
            _ => sleep(next),
        }
    }
}

/// Returns the time from the start of an attempt that took `took_ns` to the
/// start of the next one. The host should know the outcome when the interval is
/// over, and reporting takes about as long as the attempt itself. The
/// correction is at most a tenth of the interval, so slow services are hardly
/// probed more often.
fn pause(timing: Timing, took_ns: u64) -> u64 {
    let interval = u64::from(timing.interval_ms).saturating_mul(1_000_000);
    let both = took_ns.saturating_mul(2);
    interval.saturating_sub(both.min(interval.div_euclid(10)))
}

fn attempt(probe: &Probe<'_>, deadline: Moment) -> Result<(), AttemptError> {
    match probe {
        Probe::File { path } => file::attempt(path),
        Probe::Unix { path } => unix::attempt(path),
        Probe::Tcp { port } => dial(*port, deadline).map(|_| ()),
        Probe::Http(wanted) => http::attempt(wanted, deadline),
        _ => Err(AttemptError::Failed("the probe is unknown".into())),
    }
}

fn report(socket: &OwnedFd, result: Result<(), AttemptError>, timing: Timing) -> Result<(), Errno> {
    let mut message = Vec::new();
    match result {
        Ok(()) => message.push(SUCCESS),
        Err(failed) => {
            let reason = match failed {
                AttemptError::TimedOut => super::no_answer(timing.attempt_ms),
                AttemptError::Failed(reason) => truncated(&reason, MAX_REASON),
            };
            message.push(FAILURE);
            message.extend_from_slice(reason.as_bytes());
        }
    }
    rustix::io::write(socket, &message).map(|_| ())
}

pub(super) fn sleep(deadline: Moment) {
    while deadline > Moment::now() {
        let slept = clock_nanosleep_relative(ClockId::Monotonic, &time_left(deadline));
        if !matches!(slept, NanosleepRelativeResult::Interrupted(_)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_attempt_is_over_when_the_interval_is_and_the_slow_are_hardly_asked_more_often() {
        let timing = Timing {
            delay_ms: 0,
            interval_ms: 500,
            attempt_ms: 1000,
        };
        assert_eq!(pause(timing, 0), 500_000_000);
        assert_eq!(pause(timing, 300_000), 499_400_000);
        assert_eq!(pause(timing, 25_000_000), 450_000_000);
        assert_eq!(pause(timing, u64::MAX), 450_000_000);
    }
}
