//! Real VMs, seen as a program that embeds the library sees them.
//!
//! They need what `make setup` brings: QEMU, the guest kernel, e2fsprogs and a
//! static busybox. `VMCELL_TEST_LINK=hybrid-vsock` runs them over another link
//! than the usual one.
#![allow(clippy::unwrap_used)]

mod background;
#[cfg(feature = "disk")]
mod disk;
mod exec;
mod faults;
mod files;
mod lifecycle;
mod limits;
mod links;
mod orphans;
mod ports;
mod processes;
mod resume;
mod services;
mod spec;
mod terminals;
mod trees;
mod visitors;

use std::path::PathBuf;

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

async fn start() -> Vm {
    builder().start().await.unwrap()
}
