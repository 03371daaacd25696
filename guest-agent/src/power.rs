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
//! Terminals get SIGHUP too, because interactive shells ignore SIGTERM. The agent
//! reports to the host whether the disk is clean, and waits for its
//! acknowledgement: bytes are lost if the machine resets before its VMM has read
//! them. Then [`boot::halt`](crate::boot::halt) resets the machine, which ends the
//! VMM.

use vmcell_wire::{Failure, Outcome, Stage};

use crate::{
    agent::Agent,
    boot::{self, RootDisk},
    clock::Moment,
    ids::Caller,
    sys,
};

/// The state of a power-off.
pub(crate) struct PowerOff {
    caller: Caller,
    phase: Phase,
    deadline: Moment,
    children_left: bool,
    acknowledged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Terminating,
    Killing,
    Reported,
}

/// How long killed processes may take to end. One that hangs in the kernel does
/// not prevent the power-off.
const KILL_TIMEOUT_MS: u64 = 1000;

/// How long the host may take to acknowledge the report. A host that is gone does
/// not prevent the power-off.
const ACKNOWLEDGE_TIMEOUT_MS: u64 = 1000;

impl PowerOff {
    pub(crate) fn new(caller: Caller, grace_ms: u32) -> Self {
        Self {
            caller,
            phase: Phase::Terminating,
            deadline: Moment::now().after_ms(grace_ms.into()),
            children_left: true,
            acknowledged: false,
        }
    }

    pub(crate) fn deadline(&self) -> Moment {
        self.deadline
    }

    pub(crate) fn children_left(&mut self, children_left: bool) {
        self.children_left = children_left;
    }

    /// Handles the host's acknowledgement of a stream's outcome.
    pub(crate) fn acknowledge(&mut self, caller: Caller) {
        if self.caller == caller {
            self.acknowledged = true;
        }
    }
}

impl Agent {
    /// Starts the power-off. A second request only replaces the stream that gets
    /// the outcome, because the first link may be lost.
    pub(crate) fn power_off(&mut self, power: PowerOff) {
        if let Some(under_way) = &mut self.power {
            under_way.caller = power.caller;
            if under_way.phase == Phase::Reported {
                // The outcome is reported again, to the new stream.
                under_way.phase = Phase::Killing;
            }
            return;
        }
        self.power = Some(power);
        self.tasks.write_back.close();
        self.tasks.jobs.close();
        self.close_services();
        if self.is_init {
            sys::signal_all_processes(libc::SIGTERM);
        } else {
            self.tasks.processes.terminate_all();
        }
        self.tasks.processes.hang_up_all();
        self.reap();
    }

    /// Advances a power-off. Returns whether it is complete.
    pub(crate) fn advance_power_off(&mut self) -> bool {
        let Some(power) = &mut self.power else {
            return false;
        };
        if power.phase == Phase::Reported {
            return power.acknowledged || Moment::now() >= power.deadline;
        }
        if power.children_left {
            if Moment::now() < power.deadline {
                return false;
            }
            if power.phase == Phase::Terminating {
                power.phase = Phase::Killing;
                power.deadline = Moment::now().after_ms(KILL_TIMEOUT_MS);
                self.tasks.processes.kill_all();
                if self.is_init {
                    sys::signal_all_processes(libc::SIGKILL);
                }
                return false;
            }
        }
        power.phase = Phase::Reported;
        let caller = power.caller;
        let made_clean = match self.root_disk {
            RootDisk::None => Ok(()),
            RootDisk::Scratch | RootDisk::Persistent => boot::make_root_clean(),
        };
        let outcome = match made_clean {
            Ok(()) => Outcome::DiskClean,
            Err(errno) => {
                let errno = u16::try_from(errno.raw_os_error()).unwrap_or(0);
                let text = "the root cannot be made read-only";
                Outcome::Failed(Failure::from_errno(errno, Stage::File, text))
            }
        };
        self.send_power_off_outcome(caller, &outcome);
        if let Some(power) = &mut self.power {
            power.deadline = Moment::now().after_ms(ACKNOWLEDGE_TIMEOUT_MS);
        }
        false
    }
}
