use super::{
    locked::Locked,
    record::{RunRecord, SnapshotRecord},
    running,
    seed::Seed,
    specification::WORKSPACE,
    timestamp::Timestamp,
};
use crate::{Vm, error::Error, on_thread::on_thread};

/// Boots the VM of a new workspace, fills it, and writes its first record, with which it
/// is there.
pub(super) async fn fill(locked: &mut Locked, seed: Option<Seed>) -> Result<(), Error> {
    let Some(owner) = locked.take_owner() else {
        return Err(Error::Invalid(
            "somebody else runs a new workspace".to_owned(),
        ));
    };
    let (folder, record) = (locked.folder.clone(), locked.record.clone());
    let making = on_thread("make the disk of the workspace", move || {
        folder.link_image(&record.specification.image);
        folder.create_layer(record.layers.top(), &record)
    });
    making.await?;
    let vm = running::builder(&locked.folder, &locked.record)
        .start()
        .await?;
    let filled = fill_vm(locked, seed, &vm).await;
    if filled.is_err() {
        vm.kill().await?;
    }
    let run = filled?;
    running::watch(&vm, owner, locked.folder.clone(), run);
    Ok(())
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
    let now = Timestamp::now();
    record.baseline = SnapshotRecord {
        layer: record.layers.top(),
        created: now,
    };
    record.layers.start_above(record.layers.top());
    record.last_activity = now;
    let run = RunRecord { began: now };
    record.run = Some(run.clone());
    locked.write()?;
    Ok(run)
}
