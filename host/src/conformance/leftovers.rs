//! Host resources that are left when a VM has ended.

use super::{
    check::{CheckResult, ensure},
    context::CheckContext,
    host_resources::{Descendants, descriptors, resources_of, wait_gone},
};

pub(super) async fn after_stop(context: CheckContext) -> CheckResult {
    let baseline = Baseline::take();
    let vm = context.start().await?;
    let id = vm.id().to_owned();
    vm.exec(["true"]).await?;
    ensure(!baseline.new_processes().is_empty(), || {
        "no process".to_owned()
    })?;
    vm.stop().await?;
    drop(vm);
    baseline.ensure_nothing_new(&id).await
}

pub(super) async fn after_drop(context: CheckContext) -> CheckResult {
    let baseline = Baseline::take();
    let vm = context.start().await?;
    let id = vm.id().to_owned();
    vm.exec(["true"]).await?;
    drop(vm);
    baseline.ensure_nothing_new(&id).await
}

/// The processes and descriptors of this program before the VM was started.
struct Baseline {
    descendants: Descendants,
    descriptors: Vec<String>,
}

impl Baseline {
    fn take() -> Self {
        Self {
            descendants: Descendants::of(std::process::id()),
            descriptors: descriptors(),
        }
    }

    /// Returns the processes that were started since.
    fn new_processes(&self) -> Vec<String> {
        let now = Descendants::of(std::process::id());
        now.without(&self.descendants).alive()
    }

    async fn ensure_nothing_new(&self, id: &str) -> CheckResult {
        wait_gone(|| self.new_processes()).await?;
        wait_gone(|| resources_of(id)).await?;
        wait_gone(|| {
            let now = descriptors().into_iter();
            now.filter(|descriptor| !self.descriptors.contains(descriptor))
                .collect()
        })
        .await
    }
}
