use super::{
    folder::remove_folder,
    locked::Locked,
    record::{RunRecord, SnapshotRecord},
    running::{self, Running},
    seed::{OnSeed, Seed},
    specification::WORKSPACE,
};
use crate::{Vm, error::Error, on_thread::on_thread};

/// Boots the VM of a new workspace, fills it, and writes its first record, with which it
/// is there. If that fails, its folder is removed.
pub(super) async fn create(
    locked: Locked,
    seed: Option<Seed>,
    is_warm: bool,
    on_seed: OnSeed,
) -> Result<Running, Error> {
    let folder = locked.folder.clone();
    let created = fill(locked, seed, is_warm, on_seed).await;
    // Before it has room again.
    let created = created.map_err(|error| folder.explain(error));
    if created.is_err() {
        let removing = on_thread("remove the workspace", move || {
            remove_folder(folder.path());
            Ok(())
        });
        removing.await?;
    }
    created
}

async fn fill(
    mut locked: Locked,
    seed: Option<Seed>,
    is_warm: bool,
    on_seed: OnSeed,
) -> Result<Running, Error> {
    let vm = start_vm(&locked, is_warm).await?;
    match fill_vm(&mut locked, seed, &vm, on_seed).await {
        Ok(run) => Running::new(vm, locked, run),
        Err(error) => {
            vm.kill().await?;
            Err(error)
        }
    }
}

/// Starts the VM on the first layer of its disk.
async fn start_vm(locked: &Locked, is_warm: bool) -> Result<Vm, Error> {
    let (folder, record) = (locked.folder.clone(), locked.record.clone());
    let image = record.specification.image.clone();
    folder.link_image(&image);
    // It knows its files by where they are now.
    let builder = running::builder(&folder, &record);
    if is_warm {
        let linked = folder.image(&record);
        if let Some(vm) = builder.clone().start_warm(&image, &linked).await? {
            folder.sync_layers()?;
            return Ok(vm);
        }
    }
    let making = on_thread("make the disk of the workspace", move || {
        folder.create_layer(record.layers.top(), &record)
    });
    making.await?;
    builder.start().await
}

async fn fill_vm(
    locked: &mut Locked,
    seed: Option<Seed>,
    vm: &Vm,
    on_seed: OnSeed,
) -> Result<RunRecord, Error> {
    vm.files().make_directory(WORKSPACE).await?;
    if let Some(seed) = seed {
        locked.record.seed = seed.push(vm, on_seed).await?;
    }
    if let Some(user) = &locked.record.specification.user {
        vm.files().set_owner_of_tree(WORKSPACE, user).await?;
    }
    let record = &mut locked.record;
    // From now on the baseline does not change.
    vm.switch_disk(locked.folder.layer(record.layers.next()))
        .await?;
    locked.folder.sync_layers()?;
    record.baseline = SnapshotRecord::new(record.layers.top());
    record.layers.start_above(record.layers.top());
    record.last_activity = record.baseline.created;
    let run = RunRecord::new();
    record.run = Some(run.clone());
    locked.write()?;
    Ok(run)
}
