//! What happens on a terminal, written down in a folder that outlives it.
//!
//! - `transcript.log`: every byte that was printed, as it came. Bytes of a
//!   password are overwritten with `*`, at the latest when its last one came.
//! - `interaction.jsonl`: what was done and what came of it, one JSON object a
//!   line.
//! - `session.json`: what is known of the session, always whole.

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
