use vmcell_wire::{Failure, FailureKind, Outcome, Renew, Stage, StreamId};

use super::NewIdentity;
use crate::{
    agent::Agent,
    link::{FreezeStream, LinkError, LinkSession, Stream},
    process::raw_errno,
};

impl Agent {
    /// Returns whether the agent serves the requests for snapshots.
    pub(crate) fn has_snapshots(&self) -> bool {
        self.identity_control.is_some() && self.tasks.processes.has_cgroups()
    }

    /// Freezes all processes. The outcome follows when they stand still.
    pub(crate) fn freeze(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
    ) -> Result<(), LinkError> {
        // Frozen processes do not react to its SIGTERM.
        if self.power.is_some() {
            let text = "the VM is powering off";
            let failure = Failure::new(FailureKind::Conflict, Stage::Request, text);
            return session.close(stream, &Outcome::Failed(failure));
        }
        // Otherwise every copy would have to do this.
        self.tasks.processes.prepare();
        if let Some(control) = &mut self.identity_control {
            control.prepare();
        }
        let freezer = &mut self.tasks.freezer;
        let cgroup = self.tasks.processes.cgroup_of_all();
        let frozen = cgroup.and_then(|cgroup| freezer.freeze(cgroup, session.id, &self.poller));
        match frozen {
            // If they stand still already, the stream is finished in this turn.
            Ok(result) => {
                let waiting = FreezeStream::new(stream, result);
                session.streams.insert(stream, Stream::Freeze(waiting));
                Ok(())
            }
            Err(errno) => {
                let text = "the processes cannot be frozen";
                let failure = Failure::from_errno(raw_errno(errno), Stage::Cgroup, text);
                session.close(stream, &Outcome::Failed(failure))
            }
        }
    }

    /// Lets frozen processes run.
    pub(crate) fn thaw(&mut self) -> Result<Outcome<'static>, Failure<'static>> {
        let cgroup = self.tasks.processes.cgroup_of_all();
        let thawed = cgroup.and_then(|cgroup| self.tasks.freezer.thaw(&cgroup));
        thawed.map_err(|errno| {
            let text = "the processes cannot be thawed";
            Failure::from_errno(raw_errno(errno), Stage::Cgroup, text)
        })?;
        Ok(Outcome::Done)
    }

    /// Takes a new identity, and lets frozen processes run.
    pub(crate) fn renew(
        &mut self,
        session: &mut LinkSession,
        renew: &Renew<'_>,
    ) -> Result<Outcome<'static>, Failure<'static>> {
        let identity = NewIdentity {
            seed: renew.seed,
            wall_time_ns: renew.wall_time_ns,
            hostname: renew.hostname,
            boot_id: renew.boot_id,
        };
        if let Some(control) = &mut self.identity_control {
            control.renew(&identity).map_err(|errno| {
                let text = "the VM cannot take a new identity; its processes stay frozen";
                Failure::from_errno(raw_errno(errno), Stage::Request, text)
            })?;
        }
        // The certificates of the VM that was saved are nobody's any more.
        #[cfg(feature = "network")]
        self.tasks.restore_trust_store();
        self.boot_id = renew.boot_id;
        self.change_reset_key(renew.reset_key);
        // The agent's list does not have the link that is being served.
        session.change_reset_key(renew.reset_key);
        self.thaw()
    }
}
