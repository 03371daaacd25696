//! Ports of a guest, reached from the host. No network device is involved: each
//! connection is a stream of the link, and the guest's agent connects to its
//! own loopback.
//!
//! ```no_run
//! # async fn example(vm: vmcell::Vm) -> Result<(), Box<dyn std::error::Error>> {
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! // For other programs on this machine.
//! let web = vm.ports().publish(8080).await?;
//! println!("http://{}", web.address());
//!
//! // For this program.
//! let mut connection = vm.ports().dial(8080).await?;
//! connection.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
//! let mut answer = Vec::new();
//! connection.read_to_end(&mut answer).await?;
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!  client ──> 127.0.0.1:18080 ── listener ── relay ── stream ──> agent ──> program
//!                                             one task each         guest's loopback
//! ```

mod connection;
mod dial;
mod error;
mod listener;
mod mapping;
mod ports;
mod published;
mod relay;
#[cfg(test)]
mod tests;

pub use connection::{Connection, ConnectionReader, ConnectionWriter};
pub use error::PortError;
pub use mapping::PortMapping;
pub use ports::Ports;
pub use published::PublishedPort;

pub(crate) use published::PublishedPorts;
pub(crate) use relay::{Meter, relay, relay_stream, reset_on_close};
