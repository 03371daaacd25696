use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

use super::ResourceLimit;

/// The descriptor limit of the agent: a few for each of the maximum number of
/// processes.
const AGENT_LIMIT: u64 = 65_536;

/// Raises the agent's descriptor limit. Returns the limit for programs: the one
/// that the agent was started with.
pub(crate) fn raise_descriptor_limit() -> Result<ResourceLimit, Errno> {
    let given = getrlimit(Resource::Nofile);
    let unlimited = u64::MAX;
    let hard = given.maximum.unwrap_or(unlimited);
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
    Ok(ResourceLimit {
        resource: NOFILE,
        values: [given.current.unwrap_or(unlimited), hard],
    })
}

/// `RLIMIT_NOFILE`.
const NOFILE: u8 = 7;
