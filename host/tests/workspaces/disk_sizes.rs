//! Workspaces whose disk is larger than their image.

use vmcell::{Vm, workspace::BASELINE};

use crate::{Store, new, shell, warm_starts::check};

/// Prints how many MiB the root has.
const SIZE: &str = "df -m / | tail -n 1 | awk '{ print $2 }'";

/// A file system of this size has at least so many MiB for files.
fn assert_size(printed: &str, mib: u64) {
    let size: u64 = printed.trim().parse().unwrap();
    assert!((mib * 9 / 10..=mib).contains(&size), "{size} of {mib}");
}

#[tokio::test]
async fn the_file_system_of_a_larger_disk_is_grown() {
    let store = Store::new();
    let mib = 20_000;
    let workspace = store.workspaces.create(new().disk_mib(mib)).await.unwrap();
    assert_eq!(workspace.info().await.unwrap().disk_mib, Some(mib));
    assert_size(&shell(&workspace, SIZE).await, mib.into());
    // More than the image has.
    shell(&workspace, "fallocate -l 3g large; sync").await;
    workspace.snapshot("full").await.unwrap();
    shell(&workspace, "rm large; echo 1 > small").await;
    workspace.stop().await.unwrap();
    let disk = workspace.disk().await.unwrap();
    assert_eq!(disk.size(), u64::from(mib) << 20);
    assert_eq!(disk.read("/workspace/small").unwrap(), b"1\n");
    drop(disk);
    workspace.start().await.unwrap();
    assert_size(&shell(&workspace, SIZE).await, mib.into());
    workspace.reset("full").await.unwrap();
    assert_eq!(shell(&workspace, "stat -c %s large").await, "3221225472\n");
    workspace.reset(BASELINE).await.unwrap();
    assert_size(&shell(&workspace, SIZE).await, mib.into());
    workspace.pause().await.unwrap();
    assert_size(&shell(&workspace, SIZE).await, mib.into());
    // A fork can have an even larger one.
    let fork = workspace
        .fork(BASELINE, |new| new.disk_mib(2 * mib))
        .await
        .unwrap();
    fork.start().await.unwrap();
    assert_size(&shell(&fork, SIZE).await, (2 * mib).into());
    fork.delete().await.unwrap();
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn a_larger_disk_can_be_that_of_a_template() {
    let store = Store::new();
    let mib = 3000;
    let new = || new().disk_mib(mib).warm(true);
    let workspace = store.workspaces.create(new()).await.unwrap();
    assert_size(&shell(&workspace, SIZE).await, mib.into());
    workspace.stop().await.unwrap();
    check(&workspace.disk().await.unwrap());
    workspace.delete().await.unwrap();
    // One that is smaller than the image does not matter.
    let workspace = store.workspaces.create(crate::new().disk_mib(1)).await;
    let workspace = workspace.unwrap();
    shell(&workspace, "true").await;
    workspace.delete().await.unwrap();
}

#[tokio::test]
async fn a_disk_that_is_not_kept_can_be_larger() {
    let image = vmcell_rootfs::recipe::base().cached().unwrap().path;
    let vm = Vm::builder().image(image).memory_mib(128).disk_mib(5000);
    let vm = vm.start().await.unwrap();
    let size = vm.exec(["sh", "-c", SIZE]).await.unwrap();
    assert_size(&size.stdout_text(), 5000);
}
