//! A server of the Model Context Protocol: microVMs and workspaces as tools for language
//! models, without a line of code.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use vmcell::workspace::Keeper;
//! use vmcell_mcp::{McpServer, Profile};
//!
//! let server = McpServer::builder()
//!     .profile(Profile::WorkspaceCore)
//!     .keeper(Keeper::vmcell()?)
//!     .build()?;
//! server.serve(tokio::io::stdin(), tokio::io::stdout()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! `vmcell mcp serve` is this server.
//!
//! ```text
//!  client ── JSON, one message in each line ──> McpServer ──> Workspaces ──> keepers ──> VMs
//!                                                  │
//!                                                  └──> Vm (vm_run)
//! ```
//!
//! A model cannot reach the host: it names environments and workspaces, it reads and writes
//! files of this machine only in folders that it was [given](McpServerBuilder::allow_path),
//! and it has neither variables of this program nor values of secrets. What a tool returns is
//! bounded, and says how to read on.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod allowed_paths;
mod call;
mod client;
mod command_line;
mod connection;
mod content;
mod environment;
mod execution;
mod failure;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod hints;
#[cfg(feature = "http")]
mod http;
mod output_log;
mod profile;
mod progress;
mod prompts;
mod resources;
mod schema;
mod server;
mod shared;
mod tool;
mod tools;

#[cfg(feature = "http")]
pub use http::HttpServer;
pub use profile::{Profile, UnknownProfile};
pub use server::{McpServer, McpServerBuilder};
