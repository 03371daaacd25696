//! Run untrusted work inside microVMs, from a library, without a daemon.
//!
//! ```no_run
//! # async fn example() -> Result<(), vmcell::Error> {
//! use vmcell::Vm;
//!
//! let vm = Vm::builder().image("base.ext4").start().await?;
//! let output = vm.exec(["echo", "hello"]).await?;
//! assert_eq!(output.stdout, b"hello\n");
//! vm.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Vm`] boots from an ext4 image that is never written, runs commands as
//! children of the agent, which is its PID 1, and ends with the program that
//! started it. Commands are run in three ways: [`Vm::exec`] collects the output,
//! [`Vm::exec_stream`] returns a stream of events, and [`Vm::spawn`] starts a
//! process in the background, to be found again through [`Vm::processes`], also
//! by another program of the same user ([`Vm::attach`]).
//!
//! [`Vm::files`] reads and writes files, copies whole trees in and out, applies
//! patches and reports changes: see [`files`].
//!
//! [`Vm::terminals`] opens terminals that run in the background, types on them
//! and shows their screens: see [`terminal`].
//!
//! [`Vm::services`] starts named processes that the guest supervises, and waits
//! until they are ready: see [`service`].
//!
//! [`Vm::ports`] connects to programs that listen in the guest, and publishes
//! their ports on this machine: see [`port`].
//!
//! [`Vm::metrics`] returns what a VM has used of this machine in the last minutes and
//! hours: see [`metrics`].
//!
//! A [`backend`] runs the VM: QEMU, Firecracker, Cloud Hypervisor, or one of your
//! own. The feature `conformance` provides the test suite that each must pass.
//!
//! Everything that comes from the guest is treated as hostile: frames, sizes,
//! text. Pass text of the guest through [`printable`], [`printable_name`] or a
//! [`Sanitizer`] before printing it.
//!
//! With the feature `serde`, results implement the traits of serde, and look as
//! the command line prints them with `--json`.
//!
//! With the feature `tool`, the module `tool` runs requests of language models under a
//! policy, and the module `receipt` keeps what ran in a log that shows every later change.
//!
//! The library needs tokio with its I/O and time drivers enabled.

mod acceleration;
mod agent;
mod attach;
pub mod backend;
#[cfg(feature = "broker")]
pub mod broker;
pub mod confinement;
#[cfg(feature = "conformance")]
pub mod conformance;
mod console;
pub mod doctor;
#[cfg(doctest)]
mod documents;
mod error;
mod event_stream;
pub mod files;
mod framed;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod hex;
mod initramfs;
#[cfg(feature = "serde")]
mod json;
mod link;
mod locate;
mod memory_file;
pub mod metrics;
pub mod network;
mod on_thread;
mod overlay;
mod pool;
pub mod port;
mod process;
mod processor;
mod quotas;
mod random;
#[cfg(feature = "receipt")]
pub mod receipt;
mod redaction;
mod result_budget;
mod run_folder;
pub mod secret;
pub mod service;
mod session;
pub mod snapshot;
mod socket_path;
mod sparse;
mod sys;
pub mod template;
#[cfg(feature = "terminal")]
pub mod terminal;
#[cfg(feature = "tool")]
pub mod tool;
pub mod tree;
mod tsc;
mod vm;
mod vmm;
mod vsock;
pub mod workspace;

pub use acceleration::{Acceleration, AccelerationChoice};
pub use confinement::Confinement;
pub use error::{BootFailure, Error};
pub use link::{LinkChoice, LinkKind};
pub use pool::{Pool, PoolBuilder};
pub use process::{
    Cause, Command, ExecEvent, ExecFailure, ExecFailureKind, ExecInput, ExecParts, ExecReader,
    ExecStage, ExecStream, ExecWaiter, Exit, Input, KeptOutput, LeftProcess, Offsets, Output,
    OutputKind, OverflowPolicy, Process, ProcessId, ProcessInfo, ProcessSelector, Processes,
    ReadFrom, Resource, Signal, Truncation, UnknownSignal,
};
pub use quotas::{QuotaUsage, Quotas};
pub use template::Template;
pub use vm::{
    End, EndKind, Health, Vm, VmBuilder, VmDetails, VmEnd, VmInfo, VmState, VmStatus, WhilePaused,
};
#[doc(inline)]
pub use vmcell_disk as disk;
pub use vmcell_tree::{
    ColourPolicy, Sanitizer, diff, is_printable, patch, printable, printable_name,
};
