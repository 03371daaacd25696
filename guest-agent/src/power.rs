//! The orderly end.
//!
//! ```text
//!               SIGTERM to all          grace over: SIGKILL to all
//!  PowerOff  ------------------> Asked ---------------------------> Killing
//!                                  |  no child left                    |
//!                                  +----------> goodbye <--------------+
//! ```
//!
//! Terminals hear SIGHUP too, which is what their shells heed. Afterwards
//! [`boot::halt`](crate::boot::halt) makes the disk clean and resets the
//! machine, which ends the VMM.

use crate::{agent::Agent, clock::Moment, process::Caller, sys};

/// A power-off under way.
pub(crate) struct PowerOff {
    caller: Caller,
    phase: Phase,
    deadline: Moment,
    children_left: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Asked,
    Killing,
}

/// How long killed processes may take to be gone. One that hangs in the kernel
/// does not keep the VM from going down.
const KILL_MS: u64 = 1000;

impl PowerOff {
    pub(crate) fn new(caller: Caller, grace_ms: u32) -> Self {
        Self {
            caller,
            phase: Phase::Asked,
            deadline: Moment::now().after_ms(grace_ms.into()),
            children_left: true,
        }
    }

    pub(crate) fn deadline(&self) -> Moment {
        self.deadline
    }

    pub(crate) fn children_left(&mut self, children_left: bool) {
        self.children_left = children_left;
    }
}

impl Agent {
    /// Begins to end everything. A second request changes nothing but who is
    /// told: the first link may be lost.
    pub(crate) fn power_off(&mut self, power: PowerOff) {
        if let Some(under_way) = &mut self.power {
            under_way.caller = power.caller;
            return;
        }
        self.power = Some(power);
        self.tasks.jobs.close();
        self.close_services();
        if self.is_init {
            sys::signal_everyone(libc::SIGTERM);
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
        if power.children_left {
            if Moment::now() < power.deadline {
                return false;
            }
            if power.phase == Phase::Asked {
                power.phase = Phase::Killing;
                power.deadline = Moment::now().after_ms(KILL_MS);
                self.tasks.processes.kill_all();
                if self.is_init {
                    sys::signal_everyone(libc::SIGKILL);
                }
                return false;
            }
        }
        let caller = power.caller;
        self.say_goodbye(caller);
        true
    }
}
