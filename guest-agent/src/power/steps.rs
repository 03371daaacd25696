use vmcell_wire::{Failure, Outcome, Stage};

use super::{Phase, PowerOff, Signalled};
use crate::{agent::Agent, clock::Moment};

/// How long killed processes may take to end. One that hangs in the kernel does
/// not prevent the power-off.
const KILL_TIMEOUT_MS: u64 = 1000;

/// How long the host may take to acknowledge the report. A host that is gone does
/// not prevent the power-off.
const ACKNOWLEDGE_TIMEOUT_MS: u64 = 1000;

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
        #[cfg(feature = "services")]
        self.close_services();
        // Those that cannot be thawed end by SIGKILL.
        let _ = self.tasks.freezer.thaw_if_frozen();
        let control = self.power_control.as_mut();
        if control.map(|control| control.terminate()) != Some(Signalled::All) {
            self.tasks.processes.terminate_all();
        }
        self.tasks.processes.hang_up_all();
    }

    /// Advances a power-off. Returns whether it is complete.
    pub(crate) fn advance_power_off(&mut self) -> bool {
        let (Some(power), Some(control)) = (&mut self.power, &mut self.power_control) else {
            return false;
        };
        if power.phase == Phase::Reported {
            return power.acknowledged || Moment::now() >= power.deadline;
        }
        if self.poller.has_children() || !control.have_others_ended() {
            if Moment::now() < power.deadline {
                return false;
            }
            if power.phase == Phase::Terminating {
                power.phase = Phase::Killing;
                power.deadline = Moment::now().after_ms(KILL_TIMEOUT_MS);
                self.tasks.processes.kill_all();
                control.kill();
                return false;
            }
        }
        power.phase = Phase::Reported;
        let caller = power.caller;
        let outcome = match control.make_disk_clean() {
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
