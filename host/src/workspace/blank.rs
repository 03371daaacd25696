//! Workspaces that were created without a VM: their baseline is the image, and `/workspace`
//! is made when they start.

use std::fs;

use super::{first_boot, locked::Locked, running, specification::WORKSPACE};
use crate::{Vm, error::Error};

/// Makes the disk of a new workspace, and writes its first record, with which it is there.
/// If that fails, its folder is removed.
pub(super) fn create(mut locked: Locked) -> Result<(), Error> {
    let created = make_disk(&mut locked).and_then(|()| locked.write());
    if created.is_err() {
        let removed = fs::remove_dir_all(locked.folder.path());
        removed.map_err(Error::host("remove the workspace"))?;
    }
    created
}

fn make_disk(locked: &mut Locked) -> Result<(), Error> {
    let Locked { folder, record, .. } = locked;
    // Else only its first start would tell.
    running::builder(folder, record).validate()?;
    folder.link_image(&record.specification.image);
    let baseline = record.layers.top();
    folder.create_layer(baseline, record)?;
    record.layers.start_above(baseline);
    folder.create_layer(record.layers.top(), record)?;
    record.baseline.is_blank = true;
    record.is_blank = true;
    Ok(())
}

/// Makes `/workspace` in a VM that has just started, if it was never made on its disk. If
/// that fails, the VM is killed.
pub(super) async fn finish(vm: Vm, locked: &mut Locked) -> Result<Vm, Error> {
    if !locked.record.is_blank {
        return Ok(vm);
    }
    match fill(&vm, locked).await {
        Ok(()) => Ok(vm),
        Err(error) => {
            vm.kill().await?;
            Err(error)
        }
    }
}

/// Whoever is killed meanwhile, it is done again at the next start.
async fn fill(vm: &Vm, locked: &mut Locked) -> Result<(), Error> {
    first_boot::make_workspace(vm, locked.record.specification.user.as_deref()).await?;
    vm.files().sync(WORKSPACE).await?;
    locked.record.is_blank = false;
    locked.write()
}
