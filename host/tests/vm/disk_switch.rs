//! A VM that writes to a new layer of its disk while it runs.

use std::path::{Path, PathBuf};

use vmcell::{
    Command, Error, LinkKind, VmBuilder, VmState,
    disk::{DiskError, image::ImageError},
};

use super::{
    builder,
    disk::{builder_on, new_disk, open_disk, run},
};

/// Returns the builder of a VM that can be controlled.
fn serial_on(disk: &Path) -> VmBuilder {
    builder_on(disk).link(LinkKind::Serial)
}

#[tokio::test]
async fn the_layer_below_is_complete_and_can_be_read_while_the_vm_goes_on() {
    let (folder, lower) = new_disk();
    let upper = folder.path().join("upper.qcow2");
    let vm = serial_on(&lower).start().await.unwrap();
    // It is in the guest's memory only.
    run(&vm, "echo first >/root/first").await;
    let writer = "i=0; while :; do i=$((i+1)); echo $i >/root/count; done";
    let writer = vm.spawn(Command::shell(writer)).await.unwrap();
    let pause = vm.switch_disk(&upper).await.unwrap();
    assert!(!pause.is_zero());
    run(&vm, "echo second >/root/second && sync").await;

    let before = std::fs::read(&lower).unwrap();
    let below = open_disk(&lower).unwrap();
    assert_eq!(below.read("root/first").unwrap(), b"first\n");
    assert!(!below.exists("root/second").unwrap());
    drop(below);
    let error = open_disk(&upper).unwrap_err();
    assert!(matches!(error, DiskError::Image(ImageError::InUse { .. })));
    writer.kill().await.unwrap();
    vm.stop().await.unwrap();
    assert!(std::fs::read(&lower).unwrap() == before);

    let vm = builder_on(&upper).start().await.unwrap();
    run(&vm, "cat /root/first /root/second").await;
    vm.stop().await.unwrap();
    let disk = open_disk(&upper).unwrap();
    assert!(disk.info().clean);
    assert_eq!(disk.read("root/second").unwrap(), b"second\n");
}

#[tokio::test]
async fn a_disk_can_be_switched_again_and_in_a_pause_and_its_vm_be_saved() {
    let (folder, first) = new_disk();
    let path = |name: &str| folder.path().join(name);
    let vm = serial_on(&first).start().await.unwrap();
    run(&vm, "echo 1 >/root/1").await;
    vm.switch_disk(path("2.qcow2")).await.unwrap();
    run(&vm, "echo 2 >/root/2").await;
    vm.pause().await.unwrap();
    vm.switch_disk(path("3.qcow2")).await.unwrap();
    assert_eq!(vm.state(), VmState::Paused);
    vm.resume().await.unwrap();
    run(&vm, "echo 3 >/root/3").await;
    vm.snapshot(path("snapshot")).await.unwrap();
    vm.stop().await.unwrap();
    for (name, files) in [("2.qcow2", 2), ("3.qcow2", 3)] {
        let disk = open_disk(&path(name)).unwrap();
        for file in 1..4 {
            let exists = disk.exists(format!("root/{file}")).unwrap();
            assert_eq!(exists, file <= files, "{name}: {file}");
        }
    }
    let copy = vmcell::Vm::restore(path("snapshot")).await.unwrap();
    run(&copy, "cd /root && cat 1 2 3").await;
    copy.kill().await.unwrap();
}

#[tokio::test]
async fn a_switch_that_fails_changes_nothing() {
    let (folder, lower) = new_disk();
    let vm = serial_on(&lower).start().await.unwrap();
    let taken = folder.path().join("taken");
    std::fs::write(&taken, "mine").unwrap();
    let missing = folder.path().join("missing/layer");
    for path in [&taken, &missing, &PathBuf::from("/proc/layer")] {
        let error = vm.switch_disk(path).await.unwrap_err();
        assert!(matches!(error, Error::Disk(_)), "{error:?}");
    }
    assert_eq!(std::fs::read(&taken).unwrap(), b"mine");
    run(&vm, "echo kept >/root/kept").await;
    vm.stop().await.unwrap();
    let disk = open_disk(&lower).unwrap();
    assert_eq!(disk.read("root/kept").unwrap(), b"kept\n");
    let entries = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(entries.count(), 2);

    // A disk that nobody keeps has no name for another layer to refer to.
    let vm = builder().start().await.unwrap();
    let error = vm.switch_disk(folder.path().join("x")).await.unwrap_err();
    assert_eq!(error.code(), "invalid", "{error}");
    vm.kill().await.unwrap();
}
