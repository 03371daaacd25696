//! Disks through the public API: images that `mke2fs` made from real trees,
//! modified by `debugfs`, layered by `qemu-img`.
//!
//! They need what `make setup` installs, and neither a VM nor root.
#![allow(clippy::unwrap_used)]

mod compare;
mod damage;
mod export;
mod grep;
mod journal;
mod limits;
mod lookup;
mod loops;
mod oracle;
#[path = "../../../tree/tests/pairs/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod pairs;
mod partition;
mod read;
mod sample;
mod usage;
mod walk;
