//! Real VMs, through the public API.
//!
//! They need what `make setup` installs: QEMU, the guest kernel, e2fsprogs and
//! a static busybox. `VMCELL_TEST_LINK=hybrid-vsock` runs them over another
//! link than the default.
#![allow(clippy::unwrap_used)]

mod backends;
mod background;
mod broker;
mod clients;
mod clock;
mod descriptors;
#[path = "../../../tree/tests/destination_cases/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod destination_cases;
mod disk;
mod disk_switch;
mod ends;
mod event_streams;
mod exec;
mod faults;
mod files;
mod lifecycle;
mod limits;
mod links;
mod metrics;
mod network;
mod orphans;
mod out_of_memory;
mod own_init;
mod pauses;
mod ports;
mod processes;
mod resume;
mod secrets;
mod services;
mod shared_memory;
mod snapshots;
mod spec;
mod squatters;
mod stuck;
mod terminals;
mod tool;
mod trees;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use vmcell::{Vm, VmBuilder};

/// Returns the image of the environment `base`.
fn base() -> PathBuf {
    vmcell_rootfs::recipe::base().cached().unwrap().path
}

/// Returns a builder with only the link set.
fn builder_with_link() -> VmBuilder {
    match std::env::var("VMCELL_TEST_LINK") {
        Ok(link) => Vm::builder().link(link.parse().unwrap()),
        Err(_) => Vm::builder(),
    }
}

fn builder() -> VmBuilder {
    builder_with_link().image(base()).memory_mib(128)
}

/// For a command that ends by itself, on a machine that does many other things.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(240);

/// Returns a timeout for something that happens at once, scaled to this machine
/// and its load: as long as twenty commands take, and a second at least.
async fn short_timeout(vm: &Vm) -> Duration {
    let started = Instant::now();
    assert!(vm.exec(["true"]).await.unwrap().success());
    (20 * started.elapsed()).max(Duration::from_secs(1))
}

async fn start() -> Vm {
    builder().start().await.unwrap()
}
