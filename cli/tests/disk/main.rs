//! Tests of the program `vmcell-disk`, run as a child process.
//!
//! The images are real: created by `mke2fs` and changed by `debugfs`. The tests
//! need what `make setup` installs, but neither a VM nor root.
#![allow(clippy::unwrap_used)]

mod cat;
mod damage;
#[path = "../../../tree/tests/destination_cases/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod destination_cases;
mod diff;
mod export;
mod find;
mod formats;
mod grep;
mod habits;
mod in_use;
mod info;
mod interrupt;
mod layers;
mod ls;
mod manual;
mod partitions;
mod pipes;
mod program;
mod sample;
#[path = "../../../disk/tests/sample_image/mod.rs"]
mod sample_image;
mod sha256;
mod stat;
mod terminal;
mod tree;
mod usage;
