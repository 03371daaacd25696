//! Records of a terminal session, in a folder that stays after it ends.
//!
//! - `transcript.log`: all output, unchanged. The bytes of a password are
//!   overwritten with `*`, at the latest when its last byte was printed.
//! - `interaction.jsonl`: operations and their results, one JSON object a line.
//! - `session.json`: the state of the session, replaced atomically.

mod asciicast;
mod folder;
mod interaction;
mod recorder;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use asciicast::{CastInfo, write_asciicast};
pub(crate) use interaction::Interaction;
pub(crate) use recorder::{RecordError, Recorder};
pub(crate) use session::Session;
