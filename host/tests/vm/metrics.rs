//! What a VM uses of this machine.

use std::time::Duration;

use tokio::time::timeout;
use vmcell::{
    Command, Error, LinkKind, Vm,
    metrics::{MetricsTier, Sample},
};

use super::{
    builder,
    disk::{builder_on, new_disk, run},
};

const MIB: u64 = 1 << 20;

/// Waits for a sample like this.
async fn sample_with(vm: &Vm, is_wanted: impl Fn(&Sample) -> bool) -> Sample {
    let mut last = None;
    let waiting = async {
        loop {
            let sample = vm.next_sample().await.unwrap();
            if is_wanted(&sample) {
                return sample;
            }
            last = Some(sample);
        }
    };
    let waited = timeout(Duration::from_secs(60), waiting).await;
    waited.unwrap_or_else(|_| panic!("no such sample, but {last:?}"))
}

#[tokio::test]
async fn a_vm_that_computes_uses_more_of_the_processor_than_one_that_waits() {
    // Only with this link can it be paused.
    let busy = builder().link(LinkKind::Serial);
    let (idle, busy) = tokio::join!(builder().start(), busy.start());
    let (idle, busy) = (idle.unwrap(), busy.unwrap());
    let computing = Command::shell("while :; do :; done");
    let computing = busy.spawn(computing).await.unwrap();
    let idle_sample = sample_with(&idle, |sample| sample.cpu_percent < 30.0).await;
    let limit = 2.0 * idle_sample.cpu_percent + 20.0;
    let busy_sample = sample_with(&busy, |sample| sample.cpu_percent > limit).await;
    assert!(busy_sample.cpu_percent < 400.0, "{busy_sample:?}");
    computing.kill().await.unwrap();
    sample_with(&busy, |sample| sample.cpu_percent < limit).await;
    // A VM that is paused is sampled too.
    busy.pause().await.unwrap();
    sample_with(&busy, |sample| sample.cpu_percent < 10.0).await;
}

#[tokio::test]
async fn memory_and_disk_are_at_least_what_the_guest_has_touched() {
    let vm = builder().memory_mib(512).start().await.unwrap();
    let before = vm.next_sample().await.unwrap();
    assert!(before.memory_bytes > 16 * MIB, "{before:?}");
    run(
        &vm,
        "mount -t tmpfs none /mnt && head -c 100m /dev/zero >/mnt/zeros",
    )
    .await;
    let after = vm.next_sample().await.unwrap();
    assert!(after.memory_bytes >= 100 * MIB, "{after:?}");
    run(&vm, "head -c 20m /dev/urandom >/root/random && sync").await;
    let written = vm.next_sample().await.unwrap();
    let grown = written.disk_bytes.unwrap() - before.disk_bytes.unwrap();
    assert!((20 * MIB..40 * MIB).contains(&grown), "{grown}");
}

/// Waits until the guest has this many processes. A command that has just ended may be
/// counted a little longer.
async fn processes_are(vm: &Vm, count: u32) {
    sample_with(vm, |sample| sample.processes == Some(count)).await;
}

#[tokio::test]
async fn processes_are_counted_with_their_descendants_and_not_in_a_pause() {
    // Only with this link can it be paused.
    let vm = builder().link(LinkKind::Serial).start().await.unwrap();
    // To ask is no traffic.
    let is_quiet = |it: &Sample| it.processes == Some(0) && it.received_bytes == 0;
    let quiet = sample_with(&vm, is_quiet).await;
    assert_eq!(quiet.sent_bytes, 0, "{quiet:?}");
    let sleeps = Command::shell("for i in 1 2 3 4; do sleep 1000 & done; exec sleep 1000");
    let sleeps = vm.spawn(sleeps).await.unwrap();
    processes_are(&vm, 5).await;
    let other = vm.spawn(Command::new("sleep").arg("1000")).await.unwrap();
    processes_are(&vm, 6).await;
    // No number, and samples of everything else.
    vm.pause().await.unwrap();
    for _ in 0..2 {
        let sample = sample_with(&vm, |sample| sample.processes.is_none()).await;
        assert!(sample.memory_bytes > 16 * MIB, "{sample:?}");
    }
    vm.resume().await.unwrap();
    processes_are(&vm, 6).await;
    sleeps.kill().await.unwrap();
    processes_are(&vm, 1).await;
    other.kill().await.unwrap();
    processes_are(&vm, 0).await;
    let day = vm.metrics(MetricsTier::OneDay).await.unwrap();
    let largest = day.samples.iter().filter_map(|sample| sample.processes);
    assert!(largest.max() >= Some(6), "{day:?}");
}

#[tokio::test]
async fn an_attached_program_gets_the_number_of_processes_on_any_link() {
    let owner = builder().start().await.unwrap();
    let attached = Vm::attach(owner.id()).await.unwrap();
    let sleep = Command::new("sleep").arg("1000");
    let sleep = attached.spawn(sleep).await.unwrap();
    processes_are(&attached, 1).await;
    sleep.kill().await.unwrap();
    processes_are(&attached, 0).await;
}

#[tokio::test]
async fn the_disk_is_the_layer_that_the_vm_writes_to() {
    let (folder, disk) = new_disk();
    let vm = builder_on(&disk).link(LinkKind::Serial);
    let vm = vm.start().await.unwrap();
    run(&vm, "head -c 8m /dev/urandom >/root/random && sync").await;
    let before = vm.next_sample().await.unwrap();
    assert!(before.disk_bytes.unwrap() >= 8 * MIB, "{before:?}");
    vm.switch_disk(folder.path().join("2.qcow2")).await.unwrap();
    let after = vm.next_sample().await.unwrap();
    assert!(after.disk_bytes.unwrap() < 4 * MIB, "{after:?}");
    vm.stop().await.unwrap();
}

#[tokio::test]
async fn bytes_of_the_link_are_counted_in_both_directions() {
    let vm = builder().start().await.unwrap();
    let bytes = vec![b'a'; 3_000_000];
    let output = vm.exec_with(["cat"], |command| command.stdin(bytes));
    assert_eq!(output.await.unwrap().stdout.len(), 3_000_000);
    vm.next_sample().await.unwrap();
    let metrics = vm.metrics(MetricsTier::OneDay).await.unwrap();
    let received: u64 = metrics.samples.iter().map(|it| it.received_bytes).sum();
    let sent: u64 = metrics.samples.iter().map(|it| it.sent_bytes).sum();
    for count in [received, sent] {
        assert!((3_000_000..3_200_000).contains(&count), "{count}");
    }
}

#[tokio::test]
async fn an_attached_program_gets_the_same_and_a_flush_forgets_it() {
    let owner = builder().start().await.unwrap();
    let attached = Vm::attach(owner.id()).await.unwrap();
    let sample = attached.next_sample().await.unwrap();
    for vm in [&owner, &attached] {
        let fine = vm.metrics(MetricsTier::TenMinutes).await.unwrap();
        assert!(fine.samples.contains(&sample), "{sample:?} {fine:?}");
        for tier in [MetricsTier::TwoHours, MetricsTier::OneDay] {
            let metrics = vm.metrics(tier).await.unwrap();
            assert_eq!(metrics.tier, tier);
            assert!(metrics.samples.last().unwrap().elapsed >= sample.elapsed);
        }
    }
    let all = attached.flush_metrics().await.unwrap();
    let flushed = all.ten_minutes.samples.last().unwrap().elapsed;
    assert!(flushed >= sample.elapsed);
    for tier in MetricsTier::ALL {
        let last = all.tier(tier).samples.last().unwrap();
        assert_eq!(last.elapsed, flushed);
        let rest = owner.metrics(tier).await.unwrap().samples;
        assert!(rest.iter().all(|sample| sample.elapsed > flushed));
    }
    let next = owner.next_sample().await.unwrap();
    assert!(next.elapsed > flushed);
    let all = owner.flush_metrics().await.unwrap();
    assert!(all.two_hours.samples.len() == 1, "{all:?}");

    let waiting = tokio::join!(attached.next_sample(), owner.next_sample(), owner.kill());
    if let Err(error) = waiting.0 {
        assert!(matches!(error, Error::NoSuchVm { .. }), "{error}");
    }
    if let Err(error) = waiting.1 {
        assert!(matches!(error, Error::Gone(_)), "{error}");
    }
    let gone = owner.next_sample().await.unwrap_err();
    assert!(matches!(gone, Error::Gone(_)), "{gone}");
    owner.metrics(MetricsTier::TenMinutes).await.unwrap();
    let gone = attached.metrics(MetricsTier::TenMinutes).await.unwrap_err();
    assert!(matches!(gone, Error::NoSuchVm { .. }), "{gone}");
}

#[tokio::test]
async fn an_unlisted_vm_has_no_metrics() {
    let vm = builder().unlisted().start().await.unwrap();
    for error in [
        vm.metrics(MetricsTier::TenMinutes).await.unwrap_err(),
        vm.flush_metrics().await.unwrap_err(),
        vm.next_sample().await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Invalid(_)), "{error}");
        assert!(error.to_string().contains("unlisted"), "{error}");
    }
}
