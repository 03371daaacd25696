//! Reading qcow2, QEMU's copy-on-write format, and writing new files of it.
//! Specification: `docs/interop/qcow2.txt` in QEMU.
//!
//! A disk is divided into clusters. Two levels of tables (L1 and L2) give the
//! offset of each cluster in the file, or that it is in the backing file.
//! Reference counts and internal snapshots matter only to writers; reading
//! ignores them.

mod compression;
mod empty;
mod extensions;
mod header;
mod layer_writer;
mod new_header;
mod table;

pub(super) use compression::decompress;
pub use empty::write_empty_layer;
pub(super) use header::{Backing, Header, MAGIC, MAX_BACKING_NAME, MAX_IMAGE_SIZE};
pub(super) use layer_writer::LayerWriter;
pub(super) use new_header::CLUSTER;
pub(super) use table::{LayerRef, TableCache, lookup};
