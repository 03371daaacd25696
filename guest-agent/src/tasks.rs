use crate::{
    ids::LinkId, job::Jobs, port::Connections, process::Processes, service::Services,
    write_back::WriteBack,
};

/// Everything that the agent runs for hosts.
pub(crate) struct Tasks {
    pub(crate) processes: Processes,
    pub(crate) jobs: Jobs,
    pub(crate) services: Services,
    pub(crate) connections: Connections,
    pub(crate) write_back: WriteBack,
}

impl Tasks {
    /// Reaps ended children. Returns whether others are left.
    pub(crate) fn reap_all(&mut self) -> bool {
        let Self {
            processes,
            jobs,
            services,
            write_back,
            ..
        } = self;
        processes.reap_all(|pid| {
            jobs.reaped(pid);
            services.reaped(pid);
            write_back.reaped(pid);
        })
    }

    /// Takes a link whose streams may have something to send.
    pub(crate) fn next_awake(&mut self) -> Option<LinkId> {
        let link = self.processes.next_awake();
        link.or_else(|| self.jobs.next_awake())
            .or_else(|| self.services.next_awake())
            .or_else(|| self.connections.next_awake())
    }

    /// Returns whether there is work that needs no event.
    pub(crate) fn is_busy(&self) -> bool {
        self.processes.is_busy() || self.services.is_busy()
    }

    pub(crate) fn is_awake(&self) -> bool {
        self.processes.is_awake()
            || self.jobs.is_awake()
            || self.services.is_awake()
            || self.connections.is_awake()
    }
}
