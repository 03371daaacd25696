//! What is left of a VM that has ended.

use super::{
    scene::Scene,
    traces::{Kin, descriptors, named, until_none},
    unmet::{Seen, demand},
};

pub(super) async fn after_stop(scene: Scene) -> Seen {
    let before = Before::look();
    let vm = scene.start().await?;
    let id = vm.id().to_owned();
    vm.exec(["true"]).await?;
    demand(before.processes() != 0, || "it has no process".to_owned())?;
    vm.stop().await?;
    drop(vm);
    before.nothing_new(&id).await
}

pub(super) async fn after_drop(scene: Scene) -> Seen {
    let before = Before::look();
    let vm = scene.start().await?;
    let id = vm.id().to_owned();
    vm.exec(["true"]).await?;
    drop(vm);
    before.nothing_new(&id).await
}

/// What this program had before the VM was started.
struct Before {
    kin: Kin,
    descriptors: Vec<String>,
}

impl Before {
    fn look() -> Self {
        Self {
            kin: Kin::of(std::process::id()),
            descriptors: descriptors(),
        }
    }

    /// How many processes have come.
    fn processes(&self) -> usize {
        Kin::of(std::process::id()).without(&self.kin).alive().len()
    }

    async fn nothing_new(&self, id: &str) -> Seen {
        until_none(|| Kin::of(std::process::id()).without(&self.kin).alive()).await?;
        until_none(|| named(id)).await?;
        until_none(|| {
            let now = descriptors().into_iter();
            now.filter(|descriptor| !self.descriptors.contains(descriptor))
                .collect()
        })
        .await
    }
}
