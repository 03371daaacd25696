//! Reading QEMU's copy-on-write format; its specification is
//! `docs/interop/qcow2.txt` of QEMU.
//!
//! A disk is cut into clusters. A table of two levels tells for each where it
//! is in the file, or that the layer beneath has it. Reference counts and
//! internal snapshots are for those who write; they are never looked at.

mod empty;
mod extensions;
mod header;
mod packed;
mod table;

pub use empty::write_empty_layer;
pub(super) use header::{Backing, Header, LONGEST_NAME, MAGIC, MOST_BYTES};
pub(super) use packed::unpack;
pub(super) use table::{Numbered, Tables, lookup};
