//! Disk images: raw files and qcow2 chains, read without a VM, and the
//! copy-on-write layers that VMs write to.
//!
//! ```text
//! ReadAt   Image ── layers, top first ──> raw file | qcow2 file
//!          Window of an Image             (a partition of it)
//! ```
//!
//! Nothing in an image is trusted. A guest can write whatever it likes to its
//! disk, so this is what is never done on the word of an image:
//!
//! - *Formats.* The format of the image that is opened is told by its first
//!   bytes only if the caller does not name it ([`OpenOptions::format`]). A
//!   guest can write a qcow2 header to the beginning of its raw disk: whoever
//!   opens a raw disk that a guest had must say that it is raw. The format of a
//!   backing file is the one that the header above it names, or raw; its first
//!   bytes never decide.
//! - *Names.* A backing file is opened only if it is a regular file that is,
//!   with all symlinks resolved, beneath a folder that the caller allows
//!   ([`OpenOptions::allow`]), by default the folder of the image itself.
//!   Protocols such as `json:` or `nbd:` are refused.
//! - *Sizes.* No table is held in memory because a header claims it: what is
//!   looked up is read in pieces of a few KiB, of which a limited number is
//!   kept.
//!
//! Images are read by code of our own. `imago` is as fast, but keeps whole tables
//! of every layer in memory, does not know zstd, and refuses an image that was not
//! closed, as a killed VM may leave it.

mod chain;
mod child;
mod disk_image;
mod error;
mod flatten;
mod format;
mod layer;
mod lock;
mod mapping;
mod new_file;
mod options;
pub mod partition;
mod qcow2;
mod seal;
mod slots;
mod source;
mod walk;
mod window;
mod writable;

#[cfg(test)]
mod tests;

pub use child::create_child;
pub use disk_image::Image;
pub use error::{ImageDamage, ImageError};
pub use flatten::{Flattened, Progress, flatten};
pub use format::Format;
pub use layer::Layer;
pub use mapping::{FileId, Location, MappedRange, MappedRanges};
pub use options::OpenOptions;
pub use qcow2::write_empty_layer;
pub use seal::seal;
pub use window::Window;
pub use writable::Writable;
