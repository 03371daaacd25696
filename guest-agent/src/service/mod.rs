//! Services: named processes that the agent supervises.
//!
//! ```text
//!          needs are ready             executed            probe succeeds
//!   Waiting -------------> Launching ----------> Starting ----------------> Up
//!      |                          |                                        |
//!      | a need failed, or        +--- it exits, is not ready in time, ----+
//!      v the start failed         |    is not alive, is asked to stop
//!   Failed                        v
//!      ^    never ready, or   Stopping   signal, grace, SIGKILL; waits for its
//!      +--- due to the ---------  |      whole tree and the end of its output
//!           policy                |
//!                     +-----------+-----------+
//!                     v           v           v
//!                  Stopped     Pausing     Waiting
//!                                 |
//!                                 +--- pause is over ---> Launching
//! ```
//!
//! Without a probe a service is up when its program is executed. If the program
//! of a requested start cannot be executed, the service stays as it was.
//!
//! A [`Service`] changes its phase itself, and only in [`life`]; requests say
//! what is wanted. Each of its *runs* is a separate process in the table of
//! processes, but the output of all of them goes to one [`log`] of the service,
//! which readers see as one stream.
//!
//! A service is checked again after each event: a process ended, a pipe has
//! bytes, a probe has a result, a deadline has passed.

mod error;
mod life;
mod log;
mod needs;
mod phase;
mod requests;
mod restart;
mod run;
mod settings;
mod start;
mod table;

use alloc::{rc::Rc, string::String, vec::Vec};

use vmcell_wire::{
    Exit, Failure,
    service::{self as wire, LogStart, ServiceState, WaitFor},
};

use crate::{
    clock::Moment,
    ids::{Caller, ServiceId},
    ring::Ring,
};

pub(crate) use error::ServiceError;
pub(crate) use table::Services;

use log::Log;
use phase::Phase;
use restart::Backoff;
use run::Run;
use settings::Settings;
use start::PreviousState;

pub(crate) struct Service {
    id: ServiceId,
    name: String,
    /// The ticket of the last requested start.
    ticket: u64,
    /// Its encoded spec, as received.
    spec: Rc<[u8]>,
    settings: Settings,
    phase: Phase,
    since: Moment,
    /// Present in the phases `Launching`, `Starting`, `Up` and `Stopping`.
    run: Option<Run>,
    log: Log,
    /// Its state before the requested start that is in progress.
    previous: Option<PreviousState>,
    /// The number of the last start whose program could not be executed, and
    /// why.
    failed_start: Option<(u64, Failure<'static>)>,
    /// How often it was started by request.
    starts: u64,
    /// How often it was restarted since the last requested start.
    restarts: u32,
    backoff: Backoff,
    /// Whether it was ready since the last requested start.
    was_ready: bool,
    last_exit: Option<Exit>,
    /// The streams that wait for it or read its log.
    watchers: Vec<Caller>,
    /// Whether it was removed and only exists for readers of its log.
    is_removed: bool,
    /// When it must be checked next.
    next_deadline: Option<Moment>,
}

impl Service {
    fn new(id: ServiceId, name: &str, spec: &[u8], settings: Settings, log: Log) -> Self {
        Self {
            id,
            name: String::from(name),
            ticket: 0,
            spec: Rc::from(spec),
            settings,
            phase: Phase::Stopped,
            since: Moment::now(),
            run: None,
            log,
            previous: None,
            failed_start: None,
            starts: 0,
            restarts: 0,
            backoff: Backoff::default(),
            was_ready: false,
            last_exit: None,
            watchers: Vec::new(),
            is_removed: false,
            next_deadline: None,
        }
    }

    /// Returns its state in the form that is sent to hosts.
    pub(crate) fn state(&self) -> ServiceState<'_> {
        let now = Moment::now();
        ServiceState {
            name: &self.name,
            phase: match self.phase {
                Phase::Launching if self.restarts > 0 => wire::Phase::Restarting,
                _ => self.phase.to_wire(self.settings.ready_ms.is_some()),
            },
            since_ms: now.microseconds_since(self.since).div_euclid(1000),
            pid: self.run.as_ref().and_then(Run::pid),
            restarts: self.restarts,
            last_exit: self.last_exit,
            log: self.log.kept(),
        }
    }

    /// Returns whether it stays as it is until a request starts it.
    pub(crate) fn is_final(&self) -> bool {
        self.phase.is_final()
    }

    /// Returns whether a state that a host waits for is reached.
    pub(crate) fn has_reached(&self, until: WaitFor) -> bool {
        match until {
            WaitFor::Ready => self.is_final() || self.phase == Phase::Up,
            WaitFor::Ended => self.is_final(),
        }
    }

    /// Returns how often it was started by request.
    pub(crate) fn starts(&self) -> u64 {
        self.starts
    }

    /// Returns whether its program has not been executed yet.
    pub(crate) fn is_launching(&self) -> bool {
        self.phase == Phase::Launching
    }

    /// Returns why the program of the start with this number could not be
    /// executed.
    pub(crate) fn start_failure(&self, start: u64) -> Option<Failure<'static>> {
        let (_, failure) = self.failed_start.filter(|(number, _)| *number == start)?;
        Some(failure)
    }

    /// Returns its log.
    pub(crate) fn log(&self) -> &Ring {
        self.log.ring()
    }

    /// Returns the offset at which a reader of its log begins.
    pub(crate) fn log_offset(&self, from: LogStart) -> u64 {
        self.log.start_offset(from)
    }
}
