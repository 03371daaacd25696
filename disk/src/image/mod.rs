//! Disk images: reading raw files and qcow2 chains, and creating and merging
//! the copy-on-write layers that VMs write to.
//!
//! ```text
//! ReadAt   Image ── layers, top first ──> raw file | qcow2 file
//!          Window of an Image             (a partition of it)
//! ```
//!
//! Images are untrusted, since a guest can write anything to its disk:
//!
//! - *Formats.* The format of the opened image is detected from its first bytes
//!   only if the caller does not set it ([`OpenOptions::format`]). A guest can
//!   write a qcow2 header to the start of its raw disk, so callers must set the
//!   format of a raw disk that a guest had. The format of a backing file is the
//!   one in the header of the layer above, or raw; it is never detected from
//!   its contents.
//! - *Backing files.* A backing file is opened only if it is a regular file
//!   whose real path, with all symlinks resolved, is below a directory that the
//!   caller allows ([`OpenOptions::allow_backing`]), by default the image's own
//!   directory. Protocols such as `json:` or `nbd:` are rejected.
//! - *Sizes.* Memory use does not depend on the sizes that a header claims:
//!   tables are read in chunks of a few KiB, and the cache holds a fixed number
//!   of them.
//!
//! The crate has its own code for images. `imago` reads as fast, but keeps whole
//! tables of every layer in memory, does not support zstd, and rejects an image
//! that was not closed properly, as a killed VM may leave it.

mod chain;
mod chain_walk;
mod child;
mod direct_mapped_cache;
mod disk_image;
mod error;
mod flatten;
mod foreign_format;
mod format;
mod layer;
mod lock;
mod mapping;
mod merge;
mod new_file;
mod options;
pub mod partition;
mod platform;
mod qcow2;
mod seal;
mod source;
mod window;
mod writable;

#[cfg(test)]
mod tests;

pub use child::{create_child, create_child_of_size};
pub use disk_image::Image;
pub use error::{ImageDamage, ImageError};
pub use flatten::{FlattenProgress, Flattened, flatten};
pub use foreign_format::ForeignFormat;
pub use format::Format;
pub use layer::Layer;
pub use mapping::{FileId, Location, MappedRange, MappedRanges};
pub use merge::{MergeProgress, merge_layers};
pub use options::OpenOptions;
pub use qcow2::write_empty_layer;
pub use seal::seal;
pub use window::Window;
pub use writable::WritableImage;
