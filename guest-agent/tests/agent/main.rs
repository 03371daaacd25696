//! The agent as an ordinary program, seen from the other end of its links.
#![allow(clippy::unwrap_used)]

mod background;
mod client;
mod control;
mod conversations;
mod descriptors;
mod files;
mod hostile;
mod lease;
mod observers;
mod ports;
mod processes;
mod python_client;
mod race;
mod resume;
mod services;
mod start;
mod stuck;
mod terminals;
mod trees;
mod versions;
