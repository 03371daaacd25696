//! A conformance suite for backends, including your own.
//!
//! ```no_run
//! # async fn example() {
//! use vmcell::{Vm, conformance::{Suite, Table}};
//!
//! let suite = Suite::new("qemu", || Vm::builder().image("base.ext4").backend("qemu"));
//! let report = suite.run().await;
//! println!("{}", Table::new(&[report]));
//! # }
//! ```
//!
//! The image must have `sh`, `cat`, `sleep`, `head`, `seq`, `nc` and
//! `sha256sum`, as busybox provides them. A suite starts a handful of VMs, one
//! after the other. It also checks for resources that they leave behind, so
//! nothing else in the program may start VMs or processes meanwhile.
//!
//! To check what is left when a whole program dies, the suite needs a program
//! that it may kill: see [`Suite::crash_program`].

mod behaviour;
mod check;
mod context;
mod crash;
mod exec;
mod files;
mod host_resources;
mod leftovers;
mod lifecycle;
mod ports;
mod reconnect;
mod report;
mod services;
mod streams;
mod suite;
mod table;
mod terminals;
mod trees;

pub use report::{Report, Row, Verdict};
pub use suite::{Suite, wait_to_be_killed};
pub use table::Table;
