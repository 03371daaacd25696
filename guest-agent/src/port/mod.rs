//! TCP connections to programs of the guest, through its loopback interface, and those
//! that programs have begun themselves.
//!
//! ```text
//!           connected             both sides ended output
//!  Dialling ---------> Open ------------------------------> closed
//!     | no listener      | reset by the program, or abandoned
//!     v                  v
//!  refused             broken
//! ```
//!
//! A program's output stays in its socket until the link has room and the host
//! has given credit, and is then read directly into a frame. So a connection
//! only uses memory of the agent for input that the program has not read yet,
//! which the stream's window bounds.

mod connection;
mod dial;
mod table;

pub(crate) use connection::{Connection, ConnectionState};
pub(crate) use table::{Connections, failure};
