//! What a program needs that runs nothing but the agent, such as PID 1: settings
//! of its process, signals, reaping, and a loop.
//!
//! A program that has a loop of its own uses parts of it, or none.

use core::time::Duration;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, BorrowedFd},
    io::Errno,
    process::{getpid, set_child_subreaper},
};

use crate::{
    agent::{Agent, Progress},
    child_exit::ChildExit,
    kernel_error::KernelError,
    process::SpawnSettings,
    sys::{self, ResourceLimit, SignalFd},
};

/// The proof that this process belongs to the agent: see [`dedicate`].
pub struct Dedicated {
    descriptors: ResourceLimit,
}

impl Dedicated {
    pub(crate) fn settings(&self) -> SpawnSettings {
        SpawnSettings {
            descriptors: self.descriptors,
            directory: None,
            ignored_signals: 0,
        }
    }
}

/// Makes this process one for the agent:
///
/// - All signals are blocked, with their default actions: see [`Signals`].
/// - No descriptor but 0, 1 and 2 is inherited by other programs.
/// - Its scheduling policy is `SCHED_BATCH`, and its priority may be raised.
/// - Its descriptor limit is raised. That of programs stays as it was.
/// - Its directory is `/`.
/// - Orphaned descendants become its children, as they do of PID 1.
///
/// # Errors
/// A system call failed.
pub fn dedicate() -> Result<Dedicated, KernelError> {
    sys::reset_and_block_signals()?;
    sys::set_cloexec_on_all()?;
    sys::use_batch_scheduling()?;
    let descriptors = sys::raise_descriptor_limit()?;
    rustix::process::chdir("/")?;
    if !getpid().is_init() {
        set_child_subreaper(Some(getpid()))?;
    }
    Ok(Dedicated { descriptors })
}

/// SIGCHLD, SIGTERM and SIGINT as a readable descriptor, where they are blocked:
/// signalfd(2).
pub struct Signals(SignalFd);

/// What the signals that [`Signals::take`] has taken mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A child may have ended.
    ChildEnded,
    /// The program is asked to terminate, and a child may have ended.
    Terminate,
}

impl Signals {
    /// Opens the descriptor.
    ///
    /// # Errors
    /// The kernel has no memory or descriptors left.
    pub fn new() -> Result<Self, KernelError> {
        Ok(Self(SignalFd::new()?))
    }

    /// Takes the signals that have arrived.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn take(&self) -> Result<Received, KernelError> {
        Ok(match self.0.drain()? {
            true => Received::Terminate,
            false => Received::ChildEnded,
        })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reaps one ended child of this process, whoever started it. `None`: no child
/// has ended.
///
/// # Errors
/// The wait failed, other than because there is no child.
pub fn reap() -> Result<Option<ChildExit>, KernelError> {
    loop {
        match sys::reap_any() {
            Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(None),
            outcome => return Ok(outcome?),
        }
    }
}

/// Returns whether this process has children, running or not reaped.
pub fn has_children() -> bool {
    sys::has_children()
}

/// Whether SIGTERM and SIGINT end [`serve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTerminate {
    /// They do, unless the machine is being powered off.
    Stop,
    /// They do not.
    Ignore,
}

/// Why [`serve`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A host requested a power-off. All processes have ended.
    PowerOff,
    /// A signal asked the program to terminate. All processes are killed.
    Signal,
}

/// Runs an agent with [`Reaping::HandedOver`](crate::Reaping::HandedOver) until it
/// is asked to stop.
///
/// # Errors
/// Waiting for events, reading signals or reaping failed.
pub fn serve(
    mut agent: Agent,
    signals: &Signals,
    on_terminate: OnTerminate,
) -> Result<StopReason, KernelError> {
    while agent.turn()? == Progress::Serving {
        if !wait(&agent, signals)? {
            continue;
        }
        let may_stop = on_terminate == OnTerminate::Stop && !agent.is_powering_off();
        if signals.take()? == Received::Terminate && may_stop {
            agent.kill_all();
            return Ok(StopReason::Signal);
        }
        while let Some(exit) = reap()? {
            agent.child_ended(&exit);
        }
    }
    Ok(StopReason::PowerOff)
}

/// Sleeps until the agent is to take a turn or a signal has arrived. Returns
/// whether one has.
fn wait(agent: &Agent, signals: &Signals) -> Result<bool, KernelError> {
    let timeout = agent.timeout().map(timespec);
    let mut wanted = [
        PollFd::new(signals, PollFlags::IN),
        PollFd::new(agent, PollFlags::IN),
    ];
    match poll(&mut wanted, timeout.as_ref()) {
        Ok(_) => Ok(!wanted[0].revents().is_empty()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
