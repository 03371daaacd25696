//! How much a guest writes to its layer.

use std::{fs, path::PathBuf};

use tempfile::TempDir;
use vmcell::{
    Confinement, End, Error, Quotas, Template, Vm, VmBuilder,
    disk::{
        Disk,
        image::{OpenOptions, create_child},
    },
};

use super::{MIB, base, builder, limits, printed, shell};

const QUOTA: u64 = 32 * MIB;

fn quotas() -> Quotas {
    Quotas::new().layer_bytes(QUOTA)
}

/// Creates a disk that is kept, and returns it with its folder.
fn new_disk() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.qcow2");
    create_child(base(), &path, OpenOptions::new()).unwrap();
    (folder, path)
}

fn builder_on(disk: &PathBuf) -> VmBuilder {
    let vm = Vm::builder().disk(disk).memory_mib(128).backend("qemu");
    vm.allow_backing(base().parent().unwrap())
        .allow_backing(disk.parent().unwrap())
}

/// Writes more than the quota, after something that is synced.
async fn fill(vm: &Vm) {
    printed(vm, "echo kept >/root/kept && sync").await;
    let full = shell(
        vm,
        "dd if=/dev/urandom of=/root/large bs=1M count=40 conv=fsync",
    )
    .await;
    assert!(!full.success(), "{full:?}");
    // The latter if the journal did not fit.
    let errors = ["Input/output error", "Read-only file system"];
    let printed = full.stderr_text();
    assert!(errors.iter().any(|it| printed.contains(it)), "{full:?}");
}

/// The VM answers, what was synced is on the disk, and the quota is said to be used up.
async fn assert_full_and_alive(vm: &Vm) {
    let read = printed(vm, "echo 3 >/proc/sys/vm/drop_caches; cat /root/kept").await;
    assert_eq!(read, "kept\n");
    let health = vm.health().await;
    assert!(health.is_healthy(), "{health:?}");
    let usage = health.quotas.unwrap();
    assert_eq!(usage.layer_limit, Some(QUOTA));
    assert!(usage.is_layer_full, "{usage:?}");
    assert!(usage.layer_bytes.unwrap() <= QUOTA, "{usage:?}");
}

#[tokio::test]
async fn a_guest_that_writes_more_than_its_quota_gets_errors_and_goes_on() {
    for confinement in [Confinement::Required, Confinement::Off] {
        let vm = builder().quotas(quotas()).confinement(confinement);
        let vm = vm.start().await.unwrap();
        fill(&vm).await;
        assert_full_and_alive(&vm).await;
        vm.kill().await.unwrap();
    }
}

#[tokio::test]
async fn a_disk_that_is_kept_stays_below_its_quota_and_has_what_was_synced() {
    let (_folder, path) = new_disk();
    let vm = builder_on(&path).quotas(quotas()).start().await.unwrap();
    fill(&vm).await;
    assert_full_and_alive(&vm).await;
    assert!(fs::metadata(&path).unwrap().len() <= QUOTA);
    let stopped = vm.stop().await;
    assert!(fs::metadata(&path).unwrap().len() <= QUOTA);
    let disk = Disk::options().allow_backing(base().parent().unwrap());
    let disk = disk.open(&path).unwrap();
    // The file system itself may have had to write more than fits.
    match stopped {
        Ok(()) => assert!(disk.info().clean),
        Err(Error::Gone(End::NotClean)) => {}
        Err(error) => panic!("{error:?}"),
    }
    assert_eq!(disk.read("root/kept").unwrap(), b"kept\n");
    drop(disk);

    // With a larger quota it is as usable as after a power cut.
    let vm = builder_on(&path).start().await.unwrap();
    assert_eq!(printed(&vm, "cat /root/kept").await, "kept\n");
    printed(&vm, "rm -f /root/large; echo more >/root/more; sync").await;
    vm.stop().await.unwrap();
}

#[tokio::test]
async fn a_disk_without_space_for_its_own_tables_is_with_a_larger_quota_as_after_a_power_cut() {
    let (_folder, path) = new_disk();
    let vm = builder_on(&path).quotas(quotas()).start().await.unwrap();
    printed(&vm, "echo kept >/root/kept && sync").await;
    // Many files, so that tables and journal have to grow too.
    let many = "cd /root; i=0; while mkdir $i 2>/dev/null && \
                head -c 200000 /dev/urandom >$i/file 2>/dev/null && \
                [ $i -lt 400 ]; do i=$((i+1)); [ $((i % 20)) = 0 ] && sync; done; sync; echo $i";
    printed(&vm, many).await;
    let usage = vm.health().await.quotas.unwrap();
    assert!(usage.is_layer_full, "{usage:?}");
    vm.kill().await.unwrap();
    assert!(fs::metadata(&path).unwrap().len() <= QUOTA);
    // The journal has more than fits, so it takes a larger quota to boot.
    let vm = builder_on(&path).start().await.unwrap();
    assert_eq!(printed(&vm, "cat /root/kept").await, "kept\n");
    vm.stop().await.unwrap();
}

#[tokio::test]
async fn a_disk_that_is_larger_than_its_quota_does_not_grow() {
    let (_folder, path) = new_disk();
    let vm = builder_on(&path).start().await.unwrap();
    printed(
        &vm,
        "dd if=/dev/urandom of=/root/large bs=1M count=40 conv=fsync",
    )
    .await;
    vm.stop().await.unwrap();
    let before = fs::metadata(&path).unwrap().len();
    assert!(before > QUOTA);

    let vm = builder_on(&path).quotas(quotas()).start().await.unwrap();
    // It can be rewritten, as space that is free in it can be used.
    printed(
        &vm,
        "dd if=/dev/urandom of=/root/large bs=1M count=20 conv=notrunc,fsync",
    )
    .await;
    let more = shell(
        &vm,
        "dd if=/dev/urandom of=/root/more bs=1M count=40 conv=fsync",
    )
    .await;
    assert!(!more.success(), "{more:?}");
    let usage = vm.health().await.quotas.unwrap();
    assert_eq!(usage.layer_limit, Some(before));
    assert!(usage.is_layer_full, "{usage:?}");
    vm.kill().await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), before);
}

#[tokio::test]
async fn all_layers_of_a_vm_have_one_quota() {
    let (folder, path) = new_disk();
    let vm = builder_on(&path).quotas(quotas()).start().await.unwrap();
    printed(
        &vm,
        "dd if=/dev/urandom of=/root/first bs=1M count=16 conv=fsync && echo kept >/root/kept && sync",
    )
    .await;
    let second = folder.path().join("second.qcow2");
    vm.switch_disk(&second).await.unwrap();
    let full = shell(
        &vm,
        "dd if=/dev/urandom of=/root/more bs=1M count=24 conv=fsync",
    )
    .await;
    assert!(!full.success(), "{full:?}");
    assert_full_and_alive(&vm).await;
    let lengths = [&path, &second].map(|path| fs::metadata(path).unwrap().len());
    assert!(lengths.iter().sum::<u64>() <= QUOTA, "{lengths:?}");
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_vm_that_is_restored_has_the_quota_of_its_own_start() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved");
    let vm = builder().start().await.unwrap();
    vm.snapshot(&saved).await.unwrap();
    vm.kill().await.unwrap();
    let copy = Vm::builder().snapshot(&saved).quotas(quotas());
    let copy = copy.start().await.unwrap();
    fill(&copy).await;
    assert_full_and_alive(&copy).await;
    // A VM can be saved when its quota is used up, and is without one from then on.
    let again = folder.path().join("again");
    copy.snapshot(&again).await.unwrap();
    copy.kill().await.unwrap();
    let free = Vm::builder().snapshot(&again).start().await.unwrap();
    assert_eq!(printed(&free, "cat /root/kept").await, "kept\n");
    free.kill().await.unwrap();
}

#[tokio::test]
async fn vms_of_a_template_have_their_own_quotas_whatever_the_template_was_made_with() {
    let make = |quotas| {
        // The memory is a file that is larger than the quota.
        let vm = builder().memory_mib(256).quotas(quotas).warm(true);
        vm.start()
    };
    let vm = make(quotas()).await.unwrap();
    fill(&vm).await;
    assert_full_and_alive(&vm).await;
    vm.kill().await.unwrap();
    let template = Template::builder(builder().memory_mib(256).quotas(quotas()));
    let template = template.get().await.unwrap();
    let other = Template::builder(builder().memory_mib(256))
        .get()
        .await
        .unwrap();
    assert_eq!(template.name(), other.name());
    let free = other.start().await.unwrap();
    printed(
        &free,
        "dd if=/dev/urandom of=/root/large bs=1M count=40 conv=fsync",
    )
    .await;
    free.kill().await.unwrap();
}

#[tokio::test]
async fn by_default_a_layer_may_be_as_large_as_the_disk_and_its_tables() {
    let size = fs::metadata(base()).unwrap().len();
    for confinement in [Confinement::BestEffort, Confinement::Off] {
        let vm = builder().confinement(confinement).start().await.unwrap();
        let usage = vm.health().await.quotas.unwrap();
        assert_eq!(usage.quotas, Quotas::new());
        assert!(!usage.is_layer_full);
        let limit = usage.layer_limit.unwrap();
        assert!((size + 64 * MIB..size + size / 1000 + 65 * MIB).contains(&limit));
        assert_eq!(
            limits(&vm, "Max file size"),
            [limit.to_string(), limit.to_string()]
        );
        assert_eq!(limits(&vm, "Max cpu time"), ["unlimited", "unlimited"]);
        vm.kill().await.unwrap();
    }
}
