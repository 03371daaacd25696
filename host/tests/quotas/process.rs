//! Quotas of the backend without a VM.

use std::time::{Duration, Instant};

use vmcell::{
    Quotas, Vm, VmBuilder,
    backend::{Backend as _, HostProcess},
};

use super::{MIB, base, printed, shell};

/// Returns `None` if this machine does not allow it.
fn builder(quotas: Quotas) -> Option<VmBuilder> {
    let health = HostProcess::new().health();
    if !health.is_available {
        eprintln!("skipped: {}", health.reason);
        return None;
    }
    let builder = Vm::builder().image(base()).memory_mib(128).quotas(quotas);
    Some(builder.backend("process").allow_host_compat())
}

#[tokio::test]
async fn the_changes_of_a_root_in_memory_end_at_the_quota() {
    let Some(builder) = builder(Quotas::new().layer_bytes(16 * MIB)) else {
        return;
    };
    let vm = builder.start().await.unwrap();
    printed(&vm, "echo kept >/root/kept").await;
    let full = shell(&vm, "dd if=/dev/zero of=/root/large bs=1M count=32").await;
    assert!(!full.success(), "{full:?}");
    assert!(full.stderr_text().contains("No space left"), "{full:?}");
    assert_eq!(printed(&vm, "cat /root/kept").await, "kept\n");
    let usage = vm.health().await.quotas.unwrap();
    assert_eq!(usage.layer_limit, Some(16 * MIB));
    vm.stop().await.unwrap();
}

#[tokio::test]
async fn what_takes_a_vmm_or_a_disk_is_an_error() {
    for (quotas, name) in [
        (Quotas::new().cpu_time(Duration::from_secs(9)), "cpu_time"),
        (Quotas::new().disk_rate(MIB), "disk_rate"),
    ] {
        let Some(builder) = builder(quotas) else {
            return;
        };
        let error = builder.start().await.unwrap_err();
        assert_eq!(error.code(), "quota");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[tokio::test]
async fn its_link_has_a_rate_too() {
    let Some(builder) = builder(Quotas::new().link_rate(MIB)) else {
        return;
    };
    let vm = builder.start().await.unwrap();
    let begun = Instant::now();
    let printed = printed(&vm, "head -c 2097152 /dev/zero | tr '\\0' a").await;
    assert_eq!(printed.len() as u64, 2 * MIB);
    assert!(begun.elapsed() >= Duration::from_millis(1600));
    vm.stop().await.unwrap();
}
