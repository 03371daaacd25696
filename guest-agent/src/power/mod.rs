//! The power-off of the guest.
//!
//! ```text
//!           SIGTERM to all               grace over: SIGKILL to all
//!  PowerOff --------------> Terminating ---------------------------> Killing
//!                                |  no child left                       |
//!                                +--------> disk made clean <-----------+
//!                                                  |
//!                                              Reported ---> off
//!                                      host has acknowledged, or deadline
//! ```
//!
//! The program that runs the agent takes part through its [`PowerControl`]: it
//! ends processes that are not the agent's, makes the disk clean, and finally
//! switches the machine off, or only itself.
//!
//! Frozen processes are thawed first, so that they can react to SIGTERM.
//! Terminals get SIGHUP too, because interactive shells ignore SIGTERM. The agent
//! reports to the host whether the disk is clean, and waits for its
//! acknowledgement: bytes are lost if the machine resets before its VMM has read
//! them. In a guest, [`boot::halt`](crate::boot::halt) then resets the machine,
//! which ends the VMM.

mod steps;

use rustix::io::Errno;

use crate::{clock::Moment, ids::Caller};

/// What the program that runs the agent does for a power-off.
///
/// An agent that has one accepts power-off requests, and
/// [`Agent::turn`](crate::Agent::turn) reports when one is complete.
pub trait PowerControl {
    /// Sends SIGTERM to the processes that are to end. Returns which ones these
    /// were: the agent signals its own processes only if they were not included.
    fn terminate(&mut self) -> Signalled {
        Signalled::NotTheAgents
    }

    /// Sends SIGKILL to the processes that have not ended in time. The agent has
    /// killed its own ones.
    fn kill(&mut self) {}

    /// Returns whether all processes have ended that the power-off waits for. The
    /// agent waits for its own children in any case. It is called in every turn of
    /// a power-off, and what it waits for has the time that the host has set.
    fn have_others_ended(&mut self) -> bool {
        true
    }

    /// Makes the file systems clean, so that the machine can be switched off.
    /// The host is told the result.
    ///
    /// # Errors
    /// They are not clean.
    fn make_disk_clean(&mut self) -> Result<(), Errno> {
        Ok(())
    }
}

/// Which processes [`PowerControl::terminate`] has signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signalled {
    /// Those of the agent too.
    All,
    /// Others, or none.
    NotTheAgents,
}

/// The state of a power-off.
pub(crate) struct PowerOff {
    caller: Caller,
    phase: Phase,
    deadline: Moment,
    acknowledged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Terminating,
    Killing,
    Reported,
}

impl PowerOff {
    pub(crate) fn new(caller: Caller, grace_ms: u32) -> Self {
        Self {
            caller,
            phase: Phase::Terminating,
            deadline: Moment::now().after_ms(grace_ms.into()),
            acknowledged: false,
        }
    }

    pub(crate) fn deadline(&self) -> Moment {
        self.deadline
    }

    /// Handles the host's acknowledgement of a stream's outcome.
    pub(crate) fn acknowledge(&mut self, caller: Caller) {
        if self.caller == caller {
            self.acknowledged = true;
        }
    }
}
