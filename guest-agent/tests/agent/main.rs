//! The agent as an ordinary program, seen from the other end of its links.
#![allow(clippy::unwrap_used)]

mod client;
mod hostile;
mod processes;
