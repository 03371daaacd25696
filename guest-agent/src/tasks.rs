use crate::{job::Jobs, link::LinkId, process::Processes};

/// What the agent does for hosts.
pub(crate) struct Tasks {
    pub(crate) processes: Processes,
    pub(crate) jobs: Jobs,
}

impl Tasks {
    /// Collects ended children. Answers whether there are others.
    pub(crate) fn reap_all(&mut self) -> bool {
        let Self { processes, jobs } = self;
        processes.reap_all(|pid| jobs.reaped(pid))
    }

    /// A link whose streams may have something to say.
    pub(crate) fn next_awake(&mut self) -> Option<LinkId> {
        let link = self.processes.next_awake();
        link.or_else(|| self.jobs.next_awake())
    }

    pub(crate) fn is_awake(&self) -> bool {
        self.processes.is_awake() || self.jobs.is_awake()
    }
}
