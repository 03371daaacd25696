//! How fast the link of a VM is.

use std::time::{Duration, Instant};

use vmcell::{Command, Quotas, Vm};

use super::{COMMAND_TIMEOUT, MIB, builder, printed};

/// What four MiB take at least at one MiB per second, with a burst before and a piece after.
const LEAST: Duration = Duration::from_millis(3500);

async fn receive(vm: &Vm) -> Duration {
    let begun = Instant::now();
    let command = Command::shell("head -c 4194304 /dev/zero").timeout(COMMAND_TIMEOUT);
    let output = vm.exec_command(command).await.unwrap();
    assert_eq!(output.stdout.len() as u64, 4 * MIB);
    begun.elapsed()
}

async fn send(vm: &Vm) -> Duration {
    let begun = Instant::now();
    let bytes = vec![0; 4 << 20];
    vm.files().write("/dev/shm/file", bytes).await.unwrap();
    assert_eq!(printed(vm, "stat -c %s /dev/shm/file").await, "4194304\n");
    begun.elapsed()
}

#[tokio::test]
async fn a_link_is_not_faster_than_its_rate_in_either_direction() {
    let vm = builder().quotas(Quotas::new().link_rate(MIB));
    let vm = vm.start().await.unwrap();
    assert_eq!(
        vm.health().await.quotas.unwrap().quotas.link_rate,
        Some(MIB)
    );
    let received = receive(&vm).await;
    assert!(received >= LEAST, "{received:?}");
    let sent = send(&vm).await;
    assert!(sent >= LEAST, "{sent:?}");
    // A new link goes on with what the last one has used.
    let (received, ()) = tokio::join!(receive(&vm), async { vm.reconnect().unwrap() });
    assert!(received >= LEAST, "{received:?}");
    vm.stop().await.unwrap();
}

#[tokio::test]
async fn programs_that_are_attached_share_the_rate() {
    let vm = builder().quotas(Quotas::new().link_rate(MIB));
    let vm = vm.start().await.unwrap();
    let attached = Vm::attach(vm.id()).await.unwrap();
    let begun = Instant::now();
    tokio::join!(receive(&vm), receive(&attached));
    assert!(begun.elapsed() >= 2 * LEAST, "{:?}", begun.elapsed());
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn without_a_rate_a_link_is_not_limited() {
    let vm = builder().start().await.unwrap();
    assert_eq!(vm.health().await.quotas.unwrap().quotas, Quotas::new());
    // One of many attempts is faster, however busy the machine is.
    let mut is_faster = false;
    for _ in 0..20 {
        is_faster |= receive(&vm).await < LEAST && send(&vm).await < LEAST;
        if is_faster {
            break;
        }
    }
    assert!(is_faster);
    vm.kill().await.unwrap();
}
