//! A narrow tool for language models: code runs in a VM, and the application decides what it
//! may use.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use vmcell::tool::{Tool, ToolImage, ToolPolicy, ToolRequest};
//!
//! let policy = ToolPolicy::new().image("small", ToolImage::path("base.ext4"));
//! let tool = Tool::builder(policy).build()?;
//! let request = ToolRequest::from_json(
//!     br#"{
//!         "image": "small",
//!         "files": [{ "path": "/work/main.sh", "content": "echo hello" }],
//!         "command": ["sh", "/work/main.sh"],
//!         "state": { "retention": "destroy" }
//!     }"#,
//! )?;
//! match tool.run(request).await {
//!     Ok(result) => println!("{}", result.output.stdout_text()),
//!     Err(failure) => println!("{failure}: {}", failure.retry()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!  request ─> validation ─> VM from a template ─> files ─> command ─> outputs ─> retention
//!                 │                                                                   │
//!                 └── refused: nothing is started                                     ▼
//!  each decision: an event of `vmcell::audit`, and a line in the receipt      result, receipt
//! ```
//!
//! The model writes the [`ToolRequest`], which names images, grants and secrets. The
//! application writes the [`ToolPolicy`], which says what these names stand for and who may
//! use them. What is not granted is refused before anything is started.
//!
//! # Audit
//! Each decision is a `tracing` event of level `INFO` with the target `vmcell::audit` and the
//! fields `audit_id`, `caller`, `subject`, `name`, `decision` (`allowed` or `denied`) and
//! `reason`. The same is in the [receipt](crate::receipt) of the call.

mod answer;
mod audit;
mod builder;
mod call;
mod evidence;
mod failure;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod grants;
mod guest_path;
mod handle;
mod image;
mod limits;
mod names;
mod output_file;
mod plan;
mod policy;
mod request;
mod result;
mod retention;
mod sandbox;
mod schema;
mod validation;

pub use answer::ToolAnswer;
pub use builder::ToolBuilder;
pub use failure::{Retry, ToolFailure, ToolFailureKind};
pub use grants::{CallerGrants, NetworkGrant, SecretGrant, StatePolicy};
pub use handle::{DEFAULT_CALLER, Tool};
pub use image::{ToolImage, ToolLanguage};
pub use limits::ToolLimits;
pub use output_file::ToolOutputFile;
pub use policy::{ToolPolicy, ToolPolicyError};
pub use request::{
    Destination, NetworkMode, NetworkRequest, SecretReference, StateRequest, ToolFile, ToolRequest,
};
pub use result::ToolResult;
pub use retention::Retention;
pub use schema::request_schema;
