//! What the fuzz target `state_files` reaches.

use super::http_api;
pub use super::qemu::fuzzing::read_monitor_replies;

/// Reads a reply of the API of a VMM: its status and its body.
///
/// # Errors
/// Why it cannot be read.
pub fn read_api_reply(reply: &[u8]) -> Result<(u16, Vec<u8>), String> {
    http_api::read_reply(reply).map_err(|error| error.to_string())
}
