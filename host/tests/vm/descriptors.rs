//! The descriptors that a VMM inherits.

use std::{fs, path::Path};

use rustix::io::{FdFlags, fcntl_setfd};
use vmcell::{LinkKind, Vm};

use crate::{base, builder};

/// Returns the other processes that have a file open.
fn users_of(file: &Path) -> Vec<String> {
    let this = std::process::id().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let names = processes.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let others = names.filter(|name| *name != this && name.parse::<u32>().is_ok());
    others
        .filter(|process| {
            let open = fs::read_dir(format!("/proc/{process}/fd"));
            let mut open = open.into_iter().flatten().flatten();
            open.any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == file))
        })
        .collect()
}

#[tokio::test]
async fn a_vmm_inherits_nothing_but_what_it_is_given() {
    let ours = tempfile::NamedTempFile::new().unwrap();
    // Without O_CLOEXEC, as C libraries open files.
    fcntl_setfd(ours.as_file(), FdFlags::empty()).unwrap();
    let child = std::process::Command::new("sleep").arg("1000").spawn();
    let mut child = child.unwrap();
    assert_eq!(users_of(ours.path()), [child.id().to_string()]);
    child.kill().unwrap();
    child.wait().unwrap();

    let vm = builder().start().await.unwrap();
    assert!(vm.exec(["true"]).await.unwrap().success());
    assert_eq!(users_of(ours.path()), [""; 0]);
    vm.kill().await.unwrap();
    // Also with the program that provides QEMU's vsock device, if it is
    // installed.
    let hybrid = Vm::builder().image(base()).memory_mib(128);
    match hybrid.link(LinkKind::HybridVsock).start().await {
        Ok(vm) => {
            assert!(vm.exec(["true"]).await.unwrap().success());
            assert_eq!(users_of(ours.path()), [""; 0]);
            vm.kill().await.unwrap();
        }
        Err(error) => assert_eq!(error.code(), "missing", "{error}"),
    }
}
