//! VMs of a template, several at once.

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use vmcell::Template;

use super::machine;
use crate::{interference::Interference, random::Random, setup::Setup, step::Step};

/// What its preparation writes, and each of its VMs has.
const TEXT: &str = "prepared";

/// Returns the template of all rounds, which is made once.
pub(crate) async fn prepare(setup: &Setup) -> Result<Template> {
    let vm = setup.vm("template");
    let template = Template::builder(vm)
        .name(setup.prefix())
        .prepare("a file", |vm| async move {
            vm.files().write("/root/text", TEXT).await?;
            vm.files().write("/dev/shm/text", TEXT).await?;
            Ok(())
        });
    Ok(template.get().await?)
}

pub(super) async fn start_many(setup: &Setup, random: &mut Random) -> Result<()> {
    let template = prepare(setup).await?;
    let vms = (0..random.below(4) + 1).map(|_| {
        let mut random = random.fork();
        let template = &template;
        async move {
            let id = setup.id(&random.name());
            let starting = Step::begin(format_args!("the start of {id}"));
            let vm = template
                .start_with(|builder| builder.id(id.clone()))
                .await?;
            drop(starting);
            for file in ["/root/text", "/dev/shm/text"] {
                let found = vm.files().read(file).await?;
                ensure!(found == TEXT.as_bytes(), "{file} is another one: {found:?}");
                vm.files().write(file, "changed").await?;
            }
            let interference = Interference::choose(setup.kind, &mut random);
            machine::use_vm(&vm, setup.kind, interference, &mut random).await?;
            machine::end(vm, interference, &mut random).await
        }
    });
    try_join_all(vms.collect::<Vec<_>>()).await?;
    Ok(())
}
