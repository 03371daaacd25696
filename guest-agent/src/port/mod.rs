//! Connections to programs of the guest, through its loopback.
//!
//! ```text
//!             taken               both sides have said all
//!  Dialling ---------> Open ------------------------------> closed
//!     | nobody listens   | reset by the program, or not wanted any more
//!     v                  v
//!  refused             broken
//! ```
//!
//! What a program sends stays in its socket until the link has room and the
//! host has given credit for it, and goes from there straight into a frame. So
//! a connection costs no memory of the agent, but for what the program has not
//! read yet; the stream's window bounds that.

mod connection;
mod dial;
mod table;

pub(crate) use connection::{Connection, Progress};
pub(crate) use table::{ConnectionId, Connections, failure};
