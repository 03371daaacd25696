//! The backend `process`, through the public API.
//!
//! It needs e2fsprogs and a static busybox for its image, and a kernel that
//! allows user namespaces. Otherwise these tests are skipped with a message.
#![allow(clippy::unwrap_used)]

mod basics;
mod choice;
mod crash;
mod endings;
mod isolation;
mod leftovers;
mod roots;
mod user;

use std::path::PathBuf;

use vmcell::{
    Vm, VmBuilder,
    backend::{Backend as _, HostProcess},
};

/// Environment variable: the image of the environment `base`, for a user who
/// cannot build one.
const IMAGE_VARIABLE: &str = "VMCELL_TEST_IMAGE";

/// Returns the image of the environment `base`.
fn base() -> PathBuf {
    match std::env::var_os(IMAGE_VARIABLE) {
        Some(image) => image.into(),
        None => vmcell_rootfs::recipe::base().cached().unwrap().path,
    }
}

/// Returns `None` if this machine does not allow it.
fn builder() -> Option<VmBuilder> {
    let health = HostProcess::new().health();
    if !health.is_available {
        eprintln!("skipped: {}", health.reason);
        return None;
    }
    let builder = Vm::builder().image(base()).memory_mib(128);
    Some(builder.backend("process").allow_host_compat())
}

async fn start() -> Option<Vm> {
    Some(builder()?.start().await.unwrap())
}

/// Runs a shell line and returns what it prints.
async fn shell(vm: &Vm, line: &str) -> String {
    let output = vm.exec(["sh", "-c", line]).await.unwrap();
    assert!(output.success(), "{output:?}");
    output.stdout_text()
}
