use std::path::Path;

use anyhow::Result;
use vmcell::{Error, Template, Vm, workspace::NewWorkspace};
use vmcell_benches::summary::Bound;

use crate::{compare, store::Store, timed};

const ROUNDS: usize = 11;

/// A new workspace, compared with a start of its VM without one.
pub(crate) async fn create(store: &Store, image: &Path) -> Result<()> {
    measure(
        store,
        "create of a workspace",
        || NewWorkspace::new(image),
        ("a boot of its VM", async || {
            store.plain_vm(image).image(image).start().await
        }),
        Bound::None,
    )
    .await?;
    let vm = store.plain_vm(image).image(image);
    let template = Template::builder(vm).get().await?;
    measure(
        store,
        "create of a workspace from a template",
        || NewWorkspace::new(image).warm(true),
        ("a start of its VM from that", async || {
            template.start().await
        }),
        Bound::AtMost(1.2),
    )
    .await
}

async fn measure(
    store: &Store,
    name: &str,
    new: impl Fn() -> NewWorkspace,
    (baseline, start): (&str, impl AsyncFn() -> Result<Vm, Error>),
    bound: Bound,
) -> Result<()> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (plain, vm) = timed(start()).await?;
        vm.kill().await?;
        let (ours, workspace) = timed(store.resident.create(new())).await?;
        workspace.delete().await?;
        rounds.push((ours, plain));
    }
    compare(name, rounds, baseline, bound);
    Ok(())
}
