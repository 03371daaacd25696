//! The orderly end.
//!
//! ```text
//!               SIGTERM to all          grace over: SIGKILL to all
//!  PowerOff  ------------------> Asked ---------------------------> Killing
//!                                  |  no child left                    |
//!                                  +-------> disk made clean <---------+
//!                                                  |
//!                                              Reported ---> off
//!                                      host has acknowledged, or deadline
//! ```
//!
//! Terminals hear SIGHUP too, which is what their shells heed. The host is told
//! whether the disk is clean, and has a moment to hear it: what a machine has
//! sent is lost if it resets before its VMM has taken it. Afterwards
//! [`boot::halt`](crate::boot::halt) resets the machine, which ends the VMM.

use vmcell_wire::{Failure, Outcome, Stage};

use crate::{
    agent::Agent,
    boot::{self, RootDisk},
    clock::Moment,
    process::Caller,
    sys,
};

/// A power-off under way.
pub(crate) struct PowerOff {
    caller: Caller,
    phase: Phase,
    deadline: Moment,
    children_left: bool,
    acknowledged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Asked,
    Killing,
    Reported,
}

/// How long killed processes may take to be gone. One that hangs in the kernel
/// does not keep the VM from going down.
const KILL_MS: u64 = 1000;

/// How long the host may take to acknowledge the report. One that is gone does
/// not keep the VM from going down.
const ACKNOWLEDGE_MS: u64 = 1000;

impl PowerOff {
    pub(crate) fn new(caller: Caller, grace_ms: u32) -> Self {
        Self {
            caller,
            phase: Phase::Asked,
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

    /// The host knows the outcome of a stream.
    pub(crate) fn acknowledge(&mut self, caller: Caller) {
        if self.caller == caller {
            self.acknowledged = true;
        }
    }
}

impl Agent {
    /// Begins to end everything. A second request changes nothing but who is
    /// told: the first link may be lost.
    pub(crate) fn power_off(&mut self, power: PowerOff) {
        if let Some(under_way) = &mut self.power {
            under_way.caller = power.caller;
            if under_way.phase == Phase::Reported {
                // Once more, to the new one.
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

    /// Moves a power-off on. Answers whether nothing is left to wait for.
    pub(crate) fn power_is_off(&mut self) -> bool {
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
            if power.phase == Phase::Asked {
                power.phase = Phase::Killing;
                power.deadline = Moment::now().after_ms(KILL_MS);
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
            RootDisk::Scratch | RootDisk::Kept => boot::make_root_clean(),
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
            power.deadline = Moment::now().after_ms(ACKNOWLEDGE_MS);
        }
        false
    }
}
