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
//! children of the agent that is its PID 1, and ends with the program that
//! started it. Everything that runs in it is one kind of process: [`Vm::exec`]
//! collects what it prints, [`Vm::exec_stream`] tells what happens, and
//! [`Vm::spawn`] lets it go on by itself, to be found again through
//! [`Vm::processes`], also by another program of the same user
//! ([`Vm::attach`]).
//!
//! [`Vm::files`] reads and writes files, moves whole trees in and out, applies
//! patches and tells what has changed: see [`files`].
//!
//! [`Vm::terminals`] opens terminals that go on by themselves, types on them and
//! shows their screens: see [`terminal`].
//!
//! [`Vm::services`] starts named processes that the guest looks after, and tells
//! when they are ready: see [`service`].
//!
//! [`Vm::ports`] connects to programs that listen in the guest, and publishes
//! their ports on this machine: see [`port`].
//!
//! What runs a VM is a [`backend`]: QEMU, Firecracker, Cloud Hypervisor, one of
//! your own. The feature `conformance` has the suite that each of them must pass.
//!
//! Everything that comes from the guest is treated as hostile: frames, sizes,
//! text. What is to be printed for people goes through [`printable`],
//! [`printable_name`] or a [`Sanitizer`] first.
//!
//! The library needs tokio with its I/O and time drivers enabled.

mod acceleration;
mod agent;
mod attach;
pub mod backend;
#[cfg(feature = "conformance")]
pub mod conformance;
mod console;
pub mod diff;
#[cfg(feature = "disk")]
pub mod disk;
pub mod doctor;
mod error;
pub mod files;
mod initramfs;
mod link;
mod locate;
mod overlay;
pub mod patch;
pub mod port;
mod printable;
mod process;
mod random;
mod result_budget;
mod run_folder;
pub mod service;
mod session;
mod sys;
#[cfg(feature = "terminal")]
pub mod terminal;
mod time_stamp;
pub mod tree;
mod vm;
mod vmm;
mod vsock;

pub use acceleration::{Acceleration, AccelerationChoice};
pub use error::{BootFailure, Error};
pub use link::{LinkChoice, LinkKind};
pub use printable::{ColourPolicy, Sanitizer, is_printable, printable, printable_name};
pub use process::{
    Cause, Command, ExecEvent, ExecFailure, ExecFailureKind, ExecInput, ExecParts, ExecReader,
    ExecStage, ExecStream, ExecWaiter, Exit, Input, KeptOutput, LeftProcess, Offsets, Output,
    OutputKind, OverflowPolicy, Process, ProcessId, ProcessInfo, ProcessSelector, Processes,
    ReadFrom, Resource, Truncation,
};
pub use vm::{End, EndKind, Health, Vm, VmBuilder, VmDetails, VmEnd, VmInfo, VmState, VmStatus};
