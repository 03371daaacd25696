use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// The arguments of one prlimit(2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceLimit {
    pub(crate) resource: u8,
    /// Soft and hard.
    pub(crate) values: [u64; 2],
}

/// The descriptor limit of the agent: a few for each of the maximum number of
/// processes.
const AGENT_LIMIT: u64 = 65_536;

/// Raises the agent's descriptor limit. Returns the limit for programs: the one
/// that the agent was started with.
pub(crate) fn raise_descriptor_limit() -> Result<ResourceLimit, Errno> {
    let given = getrlimit(Resource::Nofile);
    let hard = given.maximum.unwrap_or(UNLIMITED);
    let raise = |limit| {
        let limit = Some(limit);
        let (current, maximum) = (limit, limit);
        setrlimit(Resource::Nofile, Rlimit { current, maximum })
    };
    // Only root may raise the hard limit.
    if hard >= AGENT_LIMIT || raise(AGENT_LIMIT).is_err() {
        let (current, maximum) = (Some(hard.min(AGENT_LIMIT)), given.maximum);
        setrlimit(Resource::Nofile, Rlimit { current, maximum })?;
    }
    Ok(resource_limit(given))
}

/// Returns the descriptor limit of this process.
pub(crate) fn descriptor_limit() -> ResourceLimit {
    resource_limit(getrlimit(Resource::Nofile))
}

fn resource_limit(limit: Rlimit) -> ResourceLimit {
    ResourceLimit {
        resource: NOFILE,
        values: [limit.current, limit.maximum].map(|value| value.unwrap_or(UNLIMITED)),
    }
}

/// `RLIM_INFINITY`.
const UNLIMITED: u64 = u64::MAX;

/// `RLIMIT_NOFILE`.
const NOFILE: u8 = 7;
