//! Named processes that the agent looks after.
//!
//! ```text
//!          needs are ready             executed            probe succeeds
//!   Waiting -------------> Launching ----------> Starting ----------------> Up
//!      |                          |                                        |
//!      | a need is over, or       +--- it dies, is not ready in time, -----+
//!      v there is no program      |    is not alive, is asked to stop
//!   Failed                        v
//!      ^    never ready, or    Ending    signal, grace, SIGKILL; its whole tree
//!      +--- so says the -------   |      and the end of its output are waited for
//!           policy                |
//!                     +-----------+-----------+
//!                     v           v           v
//!                  Stopped     Pausing     (start anew)
//!                                 |
//!                                 +--- pause is over ---> Launching
//! ```
//!
//! Without a probe it is up when it has executed its program. A start that
//! somebody asked for and that finds no program leaves a service as it was.
//!
//! A [`Service`] changes its phase itself, and only in [`life`]; requests say
//! what is wanted. Each of its *runs* is a process of its own in the table of
//! processes, but what they print goes to one [`log`] that belongs to the
//! service: it goes on from run to run, and who reads it does not notice.
//!
//! Everything is looked at again when something has happened to it: a process
//! ended, a pipe has bytes, a probe has found something, a time has come.

mod life;
mod log;
mod needs;
mod phase;
mod refusal;
mod requests;
mod restart;
mod run;
mod start;
mod table;
mod terms;

use alloc::{rc::Rc, string::String, vec::Vec};

use vmcell_wire::{
    Exit, Failure,
    service::{self as wire, LogStart, State, Until},
};

use crate::{clock::Moment, process::Caller, ring::Ring};

pub(crate) use refusal::{Refusal, shortened};
pub(crate) use run::{World, background};
pub(crate) use table::Services;

use log::Log;
use phase::Phase;
use restart::Backoff;
use run::Run;
use start::Former;
use terms::Terms;

/// Names a service for as long as the agent lives, also when another one gets
/// its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServiceId(pub(crate) u32);

pub(crate) struct Service {
    id: ServiceId,
    name: String,
    /// The number of the start that was last asked for.
    ticket: u64,
    /// The bytes of its spec, as they came.
    spec: Rc<[u8]>,
    terms: Terms,
    phase: Phase,
    since: Moment,
    /// There is one in the phases `Launching`, `Starting`, `Up` and `Ending`.
    run: Option<Run>,
    log: Log,
    /// How it was before the start that is under way, if somebody asked for
    /// that.
    former: Option<Former>,
    /// The last start that found no program, and why.
    refused: Option<(u64, Failure<'static>)>,
    /// How often somebody has started it.
    starts: u64,
    /// How often it was started without that.
    restarts: u32,
    backoff: Backoff,
    /// Whether it was ready since somebody has started it.
    was_ready: bool,
    last_exit: Option<Exit>,
    /// The streams that wait for it or read its log.
    watchers: Vec<Caller>,
    /// It is gone but for those who read its log.
    is_removed: bool,
    /// When it must be looked at again.
    alarm: Option<Moment>,
}

impl Service {
    fn new(id: ServiceId, name: &str, spec: &[u8], terms: Terms, log: Log) -> Self {
        Self {
            id,
            name: String::from(name),
            ticket: 0,
            spec: Rc::from(spec),
            terms,
            phase: Phase::Stopped,
            since: Moment::now(),
            run: None,
            log,
            former: None,
            refused: None,
            starts: 0,
            restarts: 0,
            backoff: Backoff::default(),
            was_ready: false,
            last_exit: None,
            watchers: Vec::new(),
            is_removed: false,
            alarm: None,
        }
    }

    /// How it is, as hosts are told.
    pub(crate) fn state(&self) -> State<'_> {
        let now = Moment::now();
        State {
            name: &self.name,
            phase: match self.phase {
                Phase::Launching if self.restarts > 0 => wire::Phase::Restarting,
                _ => self.phase.to_wire(self.terms.ready_ms.is_some()),
            },
            since_ms: now.microseconds_since(self.since).div_euclid(1000),
            pid: self.run.as_ref().and_then(Run::pid),
            restarts: self.restarts,
            last_exit: self.last_exit,
            log: self.log.kept(),
        }
    }

    /// Whether it stays as it is unless somebody starts it.
    pub(crate) fn is_over(&self) -> bool {
        self.phase.is_over()
    }

    /// Whether what somebody waits for has come.
    pub(crate) fn has_come(&self, until: Until) -> bool {
        match until {
            Until::Ready => self.is_over() || self.phase == Phase::Up,
            Until::Over => self.is_over(),
        }
    }

    /// How often somebody has started it.
    pub(crate) fn starts(&self) -> u64 {
        self.starts
    }

    /// Whether it is not known yet if its program can be executed.
    pub(crate) fn is_launching(&self) -> bool {
        self.phase == Phase::Launching
    }

    /// Why the start with this number has found no program.
    pub(crate) fn refusal_of(&self, start: u64) -> Option<Failure<'static>> {
        let (_, failure) = self.refused.filter(|(refused, _)| *refused == start)?;
        Some(failure)
    }

    /// What it has printed.
    pub(crate) fn log(&self) -> &Ring {
        self.log.ring()
    }

    /// Where a reader of its log begins.
    pub(crate) fn log_place(&self, from: LogStart) -> u64 {
        self.log.place(from)
    }
}
