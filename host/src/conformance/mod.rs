//! What every backend must do, as a suite that can be run on yours.
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
//! The image must have `sh`, `cat`, `sleep`, `head`, `seq`, `nc` and `sha256sum`, as
//! busybox has them. A suite starts a handful of VMs, one after the other. It
//! also looks for what they leave behind, so nothing else in the program may
//! start VMs or processes meanwhile.
//!
//! To see what is left when a whole program dies, the suite needs one that it
//! may kill: see [`Suite::program`].

mod behaviour;
mod crash;
mod exec;
mod files;
mod leftovers;
mod lifecycle;
mod ports;
mod reconnect;
mod report;
mod scene;
mod services;
mod streams;
mod suite;
mod table;
mod terminals;
mod traces;
mod trees;
mod unmet;

pub use report::{Report, Row, Verdict};
pub use suite::{Suite, stay};
pub use table::Table;
