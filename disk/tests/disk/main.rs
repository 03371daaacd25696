//! Tests of the public API, with images that `mke2fs` made from real trees,
//! changed by `debugfs` and layered by `qemu-img`.
//!
//! They need the tools that `make setup` installs, but neither a VM nor root.
#![allow(clippy::unwrap_used)]

mod compare;
mod damage;
#[path = "../../../tree/tests/destination_cases/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod destination_cases;
mod export;
mod grep;
mod journal;
mod limits;
mod lookup;
mod loops;
mod oracle;
mod partition;
mod read;
mod sample;
#[path = "../sample_image/mod.rs"]
mod sample_image;
mod usage;
mod walk;
