//! Snapshots: VMs with their memory, in folders.
//!
//! [`Vm::snapshot`](crate::Vm::snapshot) saves the memory, the devices and the disk of
//! a VM at one instant, and [`Vm::restore`](crate::Vm::restore) starts a VM that goes on
//! from there, in this program or in another one.
//!
//! ```no_run
//! # async fn example() -> Result<(), vmcell::Error> {
//! use vmcell::Vm;
//!
//! let vm = Vm::builder().image("base.ext4").start().await?;
//! vm.exec(["touch", "/root/done"]).await?;
//! vm.snapshot("snapshots/done").await?;
//!
//! let copy = Vm::restore("snapshots/done").await?;
//! copy.exec(["ls", "/root/done"]).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A restored VM has an id, a boot id, a host name, a clock and random numbers of its
//! own, before any of its processes runs. Its background processes, services and
//! terminals go on where they were. Commands in the foreground are ended after 10
//! seconds, because the program that waits for them is not there. Connections to
//! its ports are closed.
//!
//! A program in the guest that generates random numbers by itself, from a seed that it
//! got before the snapshot, generates the same ones in each copy: start it afterwards,
//! or let it seed itself again.
//!
//! **A snapshot contains all that was in the memory of the VM**: passwords, keys, the
//! contents of files. Its folder is readable by its owner only. Nobody else should be
//! able to write it, too: it is restored as it is.
//!
//! ```text
//!  snapshot/            0700
//!  ├── manifest.json    what it needs, and a digest of each file
//!  ├── state            processors, devices, memory
//!  ├── memory           the memory, if it is not in the state
//!  └── layer-0, …       the layers of the disk, the topmost first
//! ```
//!
//! The image below the disk is not part of it. It must be the same file when the
//! snapshot is restored.
//!
//! This is a snapshot of QEMU. Firecracker and Cloud Hypervisor have the whole `disk` in
//! place of layers, and need no image; Cloud Hypervisor names the other files
//! `config.json`, `state.json` and `memory-ranges`. Both need their API to save and to
//! restore: [`Firecracker::with_api`](crate::backend::Firecracker::with_api),
//! [`CloudHypervisor::with_api`](crate::backend::CloudHypervisor::with_api).

mod error;
mod file_record;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod loaded;
mod manifest;
mod options;
mod partial;
#[cfg(test)]
mod tests;

pub use error::SnapshotError;
#[cfg(feature = "tool")]
pub(crate) use file_record::file_digest;
pub(crate) use loaded::{LoadedSnapshot, Summary, keep_image};
pub(crate) use manifest::{AgentRecord, GuestRecord};
pub use options::{SnapshotOptions, SnapshotReport};
pub(crate) use partial::{PartialSnapshot, hide, remove_abandoned, remove_whole};
