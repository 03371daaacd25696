use std::time::Duration;

use bytes::Bytes;

use super::{Retention, ToolImage};
use crate::network::NetworkPolicy;

/// A request that was found valid and is allowed, with all that its names stand for.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) image_name: String,
    pub(super) image: ToolImage,
    pub(super) memory_mib: u32,
    pub(super) argv: Vec<String>,
    pub(super) files: Vec<PlannedFile>,
    pub(super) stdin: Option<Bytes>,
    pub(super) working_directory: String,
    pub(super) timeout: Duration,
    /// How long the whole call may take.
    pub(super) deadline: Duration,
    pub(super) max_output: usize,
    pub(super) network: NetworkPolicy,
    /// The names of the grants that allow it.
    pub(super) network_grants: Vec<String>,
    /// Environment variables, and the names of secrets.
    pub(super) secrets: Vec<(String, String)>,
    pub(super) outputs: Vec<String>,
    pub(super) retention: Retention,
    /// How long what is kept may be kept.
    pub(super) ttl: Option<Duration>,
    pub(super) snapshot_name: String,
}

/// A file to write.
#[derive(Debug)]
pub(super) struct PlannedFile {
    pub(super) path: String,
    pub(super) content: Bytes,
    pub(super) mode: u32,
}
