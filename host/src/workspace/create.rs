use std::fs;

use super::{
    locked::Locked,
    record::{RunRecord, SnapshotRecord},
    running::{self, Running},
    seed::Seed,
    specification::WORKSPACE,
    timestamp::Timestamp,
};
use crate::{Vm, error::Error, on_thread::on_thread};

/// Boots the VM of a new workspace, fills it, and writes its first record, with which it
/// is there. If that fails, its folder is removed.
pub(super) async fn create(locked: Locked, seed: Option<Seed>) -> Result<Running, Error> {
    let path = locked.folder.path().to_owned();
    let created = fill(locked, seed).await;
    if created.is_err() {
        let removing = on_thread("remove the workspace", move || {
            fs::remove_dir_all(path).map_err(Error::host("remove the workspace"))
        });
        removing.await?;
    }
    created
}

async fn fill(mut locked: Locked, seed: Option<Seed>) -> Result<Running, Error> {
    let (folder, record) = (locked.folder.clone(), locked.record.clone());
    let making = on_thread("make the disk of the workspace", move || {
        folder.link_image(&record.specification.image);
        folder.create_layer(record.layers.top(), &record)
    });
    making.await?;
    let vm = running::builder(&locked.folder, &locked.record)
        .start()
        .await?;
    match fill_vm(&mut locked, seed, &vm).await {
        Ok(run) => Running::new(vm, locked, run),
        Err(error) => {
            vm.kill().await?;
            Err(error)
        }
    }
}

async fn fill_vm(locked: &mut Locked, seed: Option<Seed>, vm: &Vm) -> Result<RunRecord, Error> {
    vm.files().make_directory(WORKSPACE).await?;
    if let Some(seed) = seed {
        locked.record.seed = seed.push(vm).await?;
    }
    if let Some(user) = &locked.record.specification.user {
        vm.files().set_owner_of_tree(WORKSPACE, user).await?;
    }
    let record = &mut locked.record;
    // From now on the baseline does not change.
    vm.switch_disk(locked.folder.layer(record.layers.next()))
        .await?;
    locked.folder.sync_layers()?;
    let now = Timestamp::now();
    record.baseline = SnapshotRecord {
        layer: record.layers.top(),
        created: now,
    };
    record.layers.start_above(record.layers.top());
    record.last_activity = now;
    let run = RunRecord::new();
    record.run = Some(run.clone());
    locked.write()?;
    Ok(run)
}
