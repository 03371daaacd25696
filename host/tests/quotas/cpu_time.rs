//! How much processor time a VM uses in total.

use std::time::Duration;

use vmcell::{BootFailure, Command, Confinement, End, EndKind, Error, Quotas, VmEnd};

use super::builder;

/// More than a boot takes, with emulation too.
const CPU_TIME: Duration = Duration::from_secs(12);

fn assert_used(end: VmEnd) {
    assert_eq!(end.reason, End::CpuTimeUsed);
    assert_eq!(end.kind(), EndKind::Cut);
}

#[tokio::test]
async fn a_guest_that_spins_is_ended_when_its_processor_time_is_used_up() {
    for confinement in [Confinement::Required, Confinement::Off] {
        let vm = builder()
            .quotas(Quotas::new().cpu_time(CPU_TIME))
            .confinement(confinement);
        let vm = vm.start().await.unwrap();
        let usage = vm.health().await.quotas.unwrap();
        assert_eq!(usage.quotas.cpu_seconds, Some(12));
        let spinning = Command::shell("while :; do :; done").timeout(Duration::from_secs(600));
        let error = vm.exec_command(spinning).await.unwrap_err();
        assert!(matches!(error, Error::Gone(End::CpuTimeUsed)), "{error:?}");
        assert!(error.to_string().contains("processor time"), "{error}");
        assert_used(vm.ended().await);
        let error = vm.exec(["true"]).await.unwrap_err();
        assert!(matches!(error, Error::Gone(End::CpuTimeUsed)), "{error:?}");
    }
}

#[tokio::test]
async fn a_boot_that_takes_more_is_an_error_that_says_so() {
    let quotas = Quotas::new().cpu_time(Duration::from_secs(1));
    match builder().quotas(quotas).start().await {
        Err(Error::Boot { reason, .. }) => assert_eq!(reason, BootFailure::CpuTimeUsed),
        Err(error) => panic!("{error:?}"),
        // With KVM it takes less.
        Ok(vm) => {
            let spinning = vm.exec(["sh", "-c", "while :; do :; done"]).await;
            assert!(matches!(spinning, Err(Error::Gone(End::CpuTimeUsed))));
        }
    }
}

#[tokio::test]
async fn who_kills_a_vm_with_a_quota_is_told_that_it_was_killed() {
    let vm = builder().quotas(Quotas::new().cpu_time(CPU_TIME));
    let vm = vm.start().await.unwrap();
    vm.kill().await.unwrap();
    assert_eq!(vm.ended().await.reason, End::Killed);
}
