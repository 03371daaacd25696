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
    Finding, MAX_REASON, Timing, file, http,
    tcp::{Failed, dial, until},
    unix,
    watch::Watch,
};
use crate::{
    clock::Moment,
    event::Event,
    service::{ServiceId, World},
    sys,
};

/// A fork of the agent that asks, as the agent sees it.
///
/// ```text
///          new, or the last one is gone             report
///  Absent ------------------------------> Asking ----------+
///     ^                                     |  ^           |
///     |   reaped                            |  +-----------+
///     +---------------- Dying <-------------+
///                                 no report in time
/// ```
pub(super) struct Child {
    state: State,
    /// When the next attempt is made, or a report must be there.
    due: Moment,
}

enum State {
    Absent,
    Asking {
        pid: Pid,
        reports: OwnedFd,
    },
    /// It hangs in the kernel, or will be gone soon.
    Dying {
        pid: Pid,
    },
}

/// A report that is later than its attempt may take does not come.
const MARGIN_MS: u32 = 3000;

/// A report of a success; one of a failure begins with another byte.
const SUCCESS: u8 = 1;
const FAILURE: u8 = 0;

/// All commands together weigh more than twice as much as one of these: who is
/// asked must not be kept from getting ready by the asking.
const NICENESS: i32 = 10;

impl Child {
    /// One that begins to ask at a moment.
    pub(super) fn new(begin: Moment) -> Self {
        Self {
            state: State::Absent,
            due: begin,
        }
    }

    pub(super) fn next(
        &mut self,
        service: ServiceId,
        probe: &Probe<'_>,
        timing: Timing,
        world: &mut World<'_>,
    ) -> Option<Finding> {
        let is_due = self.due <= world.now;
        let patience = timing.attempt_ms.saturating_add(MARGIN_MS);
        match &self.state {
            State::Absent if is_due => match start(service, probe, timing, world) {
                Ok((pid, reports)) => {
                    self.state = State::Asking { pid, reports };
                    self.due = world.now.after_ms(patience.into());
                    None
                }
                Err(errno) => {
                    self.due = world.now.after_ms(timing.interval_ms.into());
                    Some(Finding::Failure(super::errno::words(errno)))
                }
            },
            State::Absent => None,
            State::Asking { reports, .. } => {
                if let Some(finding) = read(reports) {
                    let next = patience.saturating_add(timing.interval_ms);
                    self.due = world.now.after_ms(next.into());
                    return Some(finding);
                }
                if !is_due {
                    return None;
                }
                self.kill();
                self.due = world.now.after_ms(patience.into());
                Some(Finding::no_answer(timing.attempt_ms))
            }
            State::Dying { .. } if is_due => {
                self.due = world.now.after_ms(patience.into());
                Some(Finding::no_answer(timing.attempt_ms))
            }
            State::Dying { .. } => None,
        }
    }

    /// Only one of them asks at a time: another one has to wait for its end.
    pub(super) fn reaped(&mut self, pid: Pid) -> bool {
        let is_it = match self.state {
            State::Absent => false,
            State::Asking { pid: other, .. } | State::Dying { pid: other } => other == pid,
        };
        if is_it {
            self.state = State::Absent;
        }
        is_it
    }

    pub(super) fn is_asking(&self) -> bool {
        !matches!(self.state, State::Absent)
    }

    pub(super) fn alarm(&self) -> Option<Moment> {
        Some(self.due)
    }

    pub(super) fn end(mut self) {
        self.kill();
    }

    fn kill(&mut self) {
        if let State::Asking { pid, .. } = self.state {
            // It was not reaped, so the pid is its own.
            let _ = kill_process(pid, Signal::KILL);
            self.state = State::Dying { pid };
        }
    }
}

/// What a report says, if there is one.
fn read(reports: &OwnedFd) -> Option<Finding> {
    let mut report = [0; MAX_REASON + 1];
    let count = rustix::io::read(reports, &mut report).ok()?;
    match report.get(..count)? {
        // It has ended, which the reaper tells.
        [] => None,
        [SUCCESS, ..] => Some(Finding::Success),
        [_, reason @ ..] => Some(Finding::failure(&String::from_utf8_lossy(reason))),
    }
}

fn start(
    service: ServiceId,
    probe: &Probe<'_>,
    timing: Timing,
    world: &World<'_>,
) -> Result<(Pid, OwnedFd), Errno> {
    // Each report is a message of its own.
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    world.poller.watch(&ours, Event::Prober(service))?;
    let pid = sys::fork([theirs], |[reports]| ask(&reports, probe, timing))?;
    Ok((pid, ours))
}

/// The life of a child: attempt after attempt, until the agent ends it.
fn ask(reports: &OwnedFd, probe: &Probe<'_>, timing: Timing) {
    let _ = rustix::process::nice(NICENESS);
    let mut watch = match probe {
        Probe::File { path } => Some(Watch::new(path)),
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
            // What is there already is looked at again when it is time.
            Some(watch) if !is_there => watch.pause(next),
            _ => sleep(next),
        }
    }
}

/// From the beginning of an attempt, which took so long, to that of the next
/// one. The host is to know its outcome when the interval is over, and telling it
/// takes about as long as asking. Who is slow to answer is hardly asked more often
/// for that.
fn pause(timing: Timing, took_ns: u64) -> u64 {
    let interval = u64::from(timing.interval_ms).saturating_mul(1_000_000);
    let both = took_ns.saturating_mul(2);
    interval.saturating_sub(both.min(interval.div_euclid(10)))
}

fn attempt(probe: &Probe<'_>, deadline: Moment) -> Result<(), Failed> {
    match probe {
        Probe::File { path } => file::attempt(path),
        Probe::Unix { path } => unix::attempt(path),
        Probe::Tcp { port } => dial(*port, deadline).map(|_| ()),
        Probe::Http(wanted) => http::attempt(wanted, deadline),
        _ => Err(Failed::Because(String::from("nobody can ask this"))),
    }
}

fn report(reports: &OwnedFd, outcome: Result<(), Failed>, timing: Timing) -> Result<(), Errno> {
    let mut message = Vec::new();
    match outcome {
        Ok(()) => message.push(SUCCESS),
        Err(failed) => {
            let reason = match failed {
                Failed::Late => super::no_answer(timing.attempt_ms),
                Failed::Because(reason) => crate::service::shortened(&reason, MAX_REASON),
            };
            message.push(FAILURE);
            message.extend_from_slice(reason.as_bytes());
        }
    }
    rustix::io::write(reports, &message).map(|_| ())
}

pub(super) fn sleep(deadline: Moment) {
    while deadline > Moment::now() {
        let slept = clock_nanosleep_relative(ClockId::Monotonic, &until(deadline));
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
