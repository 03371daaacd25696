use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

use super::ResourceLimit;

/// How many descriptors the agent wants to be able to have: a few for each of as
/// many processes as it takes.
const WANTED: u64 = 65_536;

/// Lets the agent have more descriptors than programs may, and returns the limit
/// of programs: what the agent was started with.
pub(crate) fn raise_descriptor_limit() -> Result<ResourceLimit, Errno> {
    let given = getrlimit(Resource::Nofile);
    let unlimited = u64::MAX;
    let hard = given.maximum.unwrap_or(unlimited);
    let raise = |limit| {
        let limit = Some(limit);
        let (current, maximum) = (limit, limit);
        setrlimit(Resource::Nofile, Rlimit { current, maximum })
    };
    // Only root may have more than it was given.
    if hard >= WANTED || raise(WANTED).is_err() {
        let (current, maximum) = (Some(hard.min(WANTED)), given.maximum);
        setrlimit(Resource::Nofile, Rlimit { current, maximum })?;
    }
    Ok(ResourceLimit {
        resource: NOFILE,
        values: [given.current.unwrap_or(unlimited), hard],
    })
}

/// `RLIMIT_NOFILE`.
const NOFILE: u8 = 7;
