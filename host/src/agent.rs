//! The guest agent's program.

use std::path::Path;

use crate::error::Error;

/// The agent that was built with this library.
pub(crate) const EMBEDDED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vmcell-agent"));

/// An agent that the caller brought.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| Error::BadFile {
        what: "agent",
        path: path.to_owned(),
        reason: error.to_string(),
    })
}
