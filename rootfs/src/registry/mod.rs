//! Images of registries.
//!
//! ```no_run
//! use vmcell_rootfs::{Cache, registry::{PullOptions, Reference, pull}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let reference: Reference = "ghcr.io/team/tool:1.2".parse()?;
//! let cache = Cache::user()?;
//! let image = pull(&cache, &reference, PullOptions::default(), |bytes, all| {
//!     eprintln!("{bytes} of {all}");
//! })?;
//! println!("{}", cache.image(&image)?.path.display());
//! # Ok(())
//! # }
//! ```

mod blob_store;
mod challenge;
mod client;
mod pull;
mod reference;

pub use pull::{PullOptions, pull};
pub use reference::{BadReference, Reference};
