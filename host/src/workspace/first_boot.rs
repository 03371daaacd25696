use super::{
    folder::remove_folder,
    locked::Locked,
    record::{RunRecord, SnapshotRecord},
    running::{self, Running},
    seed::{OnSeed, Seed},
    specification::WORKSPACE,
};
use crate::{Template, Vm, VmBuilder, error::Error, on_thread::on_thread};

/// Boots the VM of a new workspace, or starts it from a template, fills it, and writes its
/// first record, with which it is there. If that fails, its folder is removed.
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
    let specification = &locked.record.specification;
    locked.folder.link_image(&specification.image);
    let plain = specification.vm().image(&specification.image);
    let is_warm = is_warm && plain.can_be_warm().await;
    let vm = match is_warm {
        true => start_warm(&mut locked, plain, seed.is_some()).await?,
        false => start_cold(&locked).await?,
    };
    match fill_vm(&mut locked, seed, &vm, is_warm, on_seed).await {
        Ok(run) => Running::new(vm, locked, run),
        Err(error) => {
            vm.kill().await?;
            Err(error)
        }
    }
}

/// Boots the VM on the first layer of its disk.
async fn start_cold(locked: &Locked) -> Result<Vm, Error> {
    let (folder, record) = (locked.folder.clone(), locked.record.clone());
    // It knows its files by where they are now.
    let builder = running::builder(&folder, &record);
    let making = on_thread("make the disk of the workspace", move || {
        folder.create_layer(record.layers.top(), &record)
    });
    making.await?;
    builder.start().await
}

/// Starts the VM from a template that has `/workspace`. The first layer of its disk is that
/// of the template, and the baseline, unless it is yet to be seeded.
async fn start_warm(locked: &mut Locked, plain: VmBuilder, is_seeded: bool) -> Result<Vm, Error> {
    let user = locked.record.specification.user.clone();
    let key = match &user {
        Some(user) => format!("{WORKSPACE} of {user}"),
        None => WORKSPACE.to_owned(),
    };
    let template = Template::builder(plain).prepare(key, move |vm| {
        let user = user.clone();
        async move {
            make_workspace(&vm, user.as_deref()).await?;
            vm.files().sync(WORKSPACE).await
        }
    });
    let template = template.get().await?;
    let image = locked.folder.image(&locked.record);
    let copy = locked.folder.layer(locked.record.layers.top());
    if !is_seeded {
        seal(locked);
    }
    let Locked { folder, record, .. } = locked;
    let make_disk = {
        let (folder, record) = (folder.clone(), record.clone());
        move || match is_seeded {
            true => folder.sync_layers(),
            false => {
                folder.prepare_layer(record.layers.top(), &record)?;
                folder.place_layer(record.layers.top())
            }
        }
    };
    let configure = |vm| running::configure(vm, folder, record);
    template
        .start_on_copy(&image, &copy, make_disk, configure)
        .await
}

/// Makes the folder that a workspace is about.
pub(super) async fn make_workspace(vm: &Vm, user: Option<&str>) -> Result<(), Error> {
    vm.files().make_directory(WORKSPACE).await?;
    give_workspace(vm, user).await
}

/// Gives the folder and all that is in it to the user of the workspace.
async fn give_workspace(vm: &Vm, user: Option<&str>) -> Result<(), Error> {
    if let Some(user) = user {
        vm.files().set_owner_of_tree(WORKSPACE, user).await?;
    }
    Ok(())
}

/// From now on the baseline does not change: the layer that was written to until now.
fn seal(locked: &mut Locked) {
    let record = &mut locked.record;
    record.baseline = SnapshotRecord::new(record.layers.top());
    record.layers.start_above(record.layers.top());
}

async fn fill_vm(
    locked: &mut Locked,
    seed: Option<Seed>,
    vm: &Vm,
    is_warm: bool,
    on_seed: OnSeed,
) -> Result<RunRecord, Error> {
    let user = locked.record.specification.user.as_deref();
    if !is_warm {
        make_workspace(vm, user).await?;
    }
    let is_sealed = is_warm && seed.is_none();
    if let Some(seed) = seed {
        locked.record.seed = seed.push(vm, on_seed).await?;
        give_workspace(vm, user).await?;
    }
    if !is_sealed {
        vm.switch_disk(locked.folder.layer(locked.record.layers.next()))
            .await?;
        locked.folder.sync_layers()?;
        seal(locked);
    }
    let run = RunRecord::new();
    locked.record.last_activity = run.began;
    locked.record.run = Some(run.clone());
    locked.write()?;
    Ok(run)
}
