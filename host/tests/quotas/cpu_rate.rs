//! How much processor time a VM uses per second.

use std::fs;

use vmcell::{
    Confinement, Quotas,
    confinement::{self, Layer},
};

use super::{builder, vmm};

/// Whether this machine has a cgroup for VMMs that limits processor time.
fn is_delegated() -> bool {
    let layers = confinement::examine().unwrap();
    let mut cgroups = layers.iter().filter(|it| it.layer == Layer::Cgroup);
    cgroups.any(|it| it.is_active && it.detail.contains("% of a processor"))
}

#[tokio::test]
async fn a_rate_holds_or_is_an_error_that_says_what_is_missing() {
    for confinement in [Confinement::BestEffort, Confinement::Off] {
        let vm = builder().quotas(Quotas::new().cpu_milli(1500));
        match (vm.confinement(confinement).start().await, is_delegated()) {
            (Ok(vm), true) => {
                let cgroups = fs::read_to_string(vmm(&vm).join("cgroup")).unwrap();
                let own = cgroups.lines().find_map(|line| line.strip_prefix("0::"));
                let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
                let mut mounts = mounts.lines().map(|line| line.split(' '));
                let root = mounts.find_map(|mut fields| {
                    let root = fields.nth(1)?;
                    (fields.next()? == "cgroup2").then(|| root.to_owned())
                });
                let limit = format!("{}{}/cpu.max", root.unwrap(), own.unwrap());
                assert_eq!(fs::read_to_string(limit).unwrap(), "150000 100000\n");
                vm.kill().await.unwrap();
            }
            (Err(error), false) => {
                eprintln!("skipped in part: no cgroup with the controller cpu");
                assert_eq!(error.code(), "quota");
                assert!(error.to_string().contains("cgroup"), "{error}");
            }
            (started, is_delegated) => panic!("{started:?} {is_delegated}"),
        }
    }
}
