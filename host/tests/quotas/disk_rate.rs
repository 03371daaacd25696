//! How fast a VM reads and writes its disk.

use std::time::{Duration, Instant};

use vmcell::{Quotas, Vm};

use super::{MIB, builder, printed};

const WRITE: &str = "dd if=/dev/zero of=/root/file bs=1M count=6 conv=fsync";
const READ: &str = "echo 3 >/proc/sys/vm/drop_caches; cat /root/file >/dev/null";

/// What six MiB take at least at one MiB per second, with a burst before.
const LEAST: Duration = Duration::from_secs(5);

async fn elapsed(vm: &Vm, line: &str) -> Duration {
    let begun = Instant::now();
    printed(vm, line).await;
    begun.elapsed()
}

/// One of many attempts is faster, however busy the machine is.
async fn assert_unlimited(vm: &Vm) {
    for _ in 0..20 {
        if elapsed(vm, WRITE).await < LEAST {
            return;
        }
    }
    panic!("none was faster");
}

#[tokio::test]
async fn a_disk_is_not_faster_than_its_rate_and_without_one_not_limited() {
    let vm = builder().quotas(Quotas::new().disk_rate(MIB));
    let vm = vm
        .boot_timeout(Duration::from_secs(240))
        .start()
        .await
        .unwrap();
    for line in [WRITE, READ] {
        let elapsed = elapsed(&vm, line).await;
        assert!(elapsed >= LEAST, "{line}: {elapsed:?}");
    }
    vm.kill().await.unwrap();
    let vm = builder().start().await.unwrap();
    assert_unlimited(&vm).await;
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_vm_that_is_restored_has_a_rate_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved");
    let vm = builder().start().await.unwrap();
    vm.snapshot(&saved).await.unwrap();
    vm.kill().await.unwrap();
    let copy = Vm::builder().snapshot(&saved);
    let copy = copy
        .quotas(Quotas::new().disk_rate(MIB))
        .start()
        .await
        .unwrap();
    assert!(elapsed(&copy, WRITE).await >= LEAST);
    // What is saved has no rate.
    let again = folder.path().join("again");
    copy.snapshot(&again).await.unwrap();
    copy.kill().await.unwrap();
    let free = Vm::builder().snapshot(&again).start().await.unwrap();
    assert_unlimited(&free).await;
    free.kill().await.unwrap();
}
