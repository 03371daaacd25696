#[cfg(not(feature = "ports"))]
use crate::absent::AbsentTasks as Connections;
#[cfg(not(feature = "files"))]
use crate::absent::AbsentTasks as Jobs;
#[cfg(not(feature = "network"))]
use crate::absent::AbsentTasks as Network;
#[cfg(not(feature = "services"))]
use crate::absent::AbsentTasks as Services;
#[cfg(any(feature = "network", feature = "services"))]
use crate::event::Poller;
#[cfg(feature = "files")]
use crate::job::Jobs;
#[cfg(feature = "network")]
use crate::network::{MountedFiles, Network};
#[cfg(feature = "ports")]
use crate::port::Connections;
#[cfg(feature = "services")]
use crate::service::Services;
use crate::{
    cgroup::Freezer, child_exit::Reaped, ids::LinkId, process::Processes, write_back::WriteBack,
};

/// Everything that the agent runs for hosts.
pub(crate) struct Tasks {
    pub(crate) processes: Processes,
    pub(crate) jobs: Jobs,
    pub(crate) services: Services,
    pub(crate) connections: Connections,
    pub(crate) network: Network,
    #[cfg(feature = "network")]
    pub(crate) trust_store: MountedFiles,
    pub(crate) write_back: WriteBack,
    pub(crate) freezer: Freezer,
}

impl Tasks {
    pub(crate) fn new(processes: Processes, write_back: WriteBack) -> Self {
        Self {
            processes,
            jobs: Jobs::new(),
            services: Services::new(),
            connections: Connections::new(),
            network: Network::new(),
            #[cfg(feature = "network")]
            trust_store: MountedFiles::default(),
            write_back,
            freezer: Freezer::new(),
        }
    }

    /// Handles a reaped child of the agent.
    pub(crate) fn reaped(&mut self, reaped: Reaped) {
        self.jobs.reaped(reaped.pid);
        self.services.reaped(reaped.pid);
        self.write_back.reaped(reaped.pid);
        self.processes.reaped(reaped);
    }

    /// Handles a reaped child that is not the agent's: perhaps a descendant of
    /// one of its processes.
    pub(crate) fn orphan_reaped(&mut self) {
        self.processes.orphan_ended();
        self.processes.check_ended_soon();
    }

    /// Advances every service that has changed.
    #[cfg(feature = "services")]
    pub(crate) fn supervise_services(&mut self, poller: &Poller) {
        self.services.supervise(&mut self.processes, poller);
    }

    /// Takes connections and questions of programs for other machines.
    #[cfg(feature = "network")]
    pub(crate) fn advance_network(&mut self, poller: &Poller) {
        self.network.advance(&self.connections, poller);
    }

    /// Takes a link whose streams may have something to send.
    pub(crate) fn next_link_to_serve(&mut self) -> Option<LinkId> {
        let link = self.processes.next_link_to_serve();
        link.or_else(|| self.jobs.next_link_to_serve())
            .or_else(|| self.services.next_link_to_serve())
            .or_else(|| self.connections.next_link_to_serve())
            .or_else(|| self.network.next_link_to_serve())
            .or_else(|| self.freezer.next_link_to_serve())
    }

    /// Returns whether there is work that needs no event.
    pub(crate) fn is_busy(&self) -> bool {
        self.processes.is_busy() || self.services.is_busy() || self.network.is_busy()
    }

    pub(crate) fn has_links_to_serve(&self) -> bool {
        self.processes.has_links_to_serve()
            || self.jobs.has_links_to_serve()
            || self.services.has_links_to_serve()
            || self.connections.has_links_to_serve()
            || self.network.has_links_to_serve()
            || self.freezer.has_links_to_serve()
    }
}
