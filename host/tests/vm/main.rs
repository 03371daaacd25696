//! Real VMs, seen as a program that embeds the library sees them.
//!
//! They need what `make setup` brings: QEMU, the guest kernel, e2fsprogs and a
//! static busybox. `VMCELL_TEST_LINK=hybrid-vsock` runs them over another link
//! than the usual one.
#![allow(clippy::unwrap_used)]

mod backends;
mod background;
mod clock;
mod descriptors;
#[path = "../../../tree/tests/destination_cases/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod destination_cases;
#[cfg(feature = "disk")]
mod disk;
#[cfg(feature = "disk")]
mod ends;
mod exec;
mod faults;
mod files;
mod lifecycle;
mod limits;
mod links;
mod orphans;
mod out_of_memory;
mod ports;
mod processes;
mod resume;
mod services;
mod shared_memory;
mod spec;
mod squatters;
mod stuck;
mod terminals;
mod trees;
mod visitors;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use vmcell::{Vm, VmBuilder};

/// The image of the environment `base`.
fn base() -> PathBuf {
    vmcell_rootfs::recipe::base().cached().unwrap().path
}

/// A VM of which nothing is said but the link.
fn linked() -> VmBuilder {
    match std::env::var("VMCELL_TEST_LINK") {
        Ok(link) => Vm::builder().link(link.parse().unwrap()),
        Err(_) => Vm::builder(),
    }
}

fn builder() -> VmBuilder {
    linked().image(base()).memory_mib(128)
}

/// How long something may take that is done at once, on this machine and with
/// whatever else it does: as long as twenty commands, and a second at least.
async fn soon(vm: &Vm) -> Duration {
    let begun = Instant::now();
    assert!(vm.exec(["true"]).await.unwrap().success());
    (20 * begun.elapsed()).max(Duration::from_secs(1))
}

async fn start() -> Vm {
    builder().start().await.unwrap()
}
