//! A disk that is kept, booted several times and read without its VM.

use anyhow::{Result, ensure};
use vmcell::{
    EndKind, Vm,
    disk::{
        Disk,
        image::{OpenOptions, create_child},
    },
};

use crate::{
    activity::files,
    random::Random,
    setup::{self, Setup},
};

pub(super) async fn keep_and_read(setup: &Setup, random: &mut Random) -> Result<()> {
    let folder = setup::scratch()?;
    let disk = folder.path().join("disk.qcow2");
    create_child(&setup.image, &disk, OpenOptions::new())?;
    let mut tree = files::random_tree(random);
    for _ in 0..random.below(3) + 1 {
        let image_folder = setup.image.parent().unwrap_or(folder.path());
        let vm = Vm::builder()
            .disk(&disk)
            .allow_backing(image_folder)
            .id(setup.id(&random.name()))
            .memory_mib(128)
            .backend(setup.kind.name())
            .start()
            .await?;
        tree.extend(files::random_tree(random));
        let source = folder.path().join("source");
        files::write(&source, &tree)?;
        vm.files().push(&source, "/root/tree").sync().run().await?;
        if random.one_in(3) {
            // What was synced is on the disk whatever happens.
            vm.kill().await?;
        } else {
            vm.stop().await?;
            let end = vm.ended().await;
            ensure!(
                end.kind() == EndKind::Clean,
                "a VM that was stopped ended: {end}"
            );
        }
        let back = folder.path().join("back");
        let disk = Disk::options().allow_backing(image_folder).open(&disk)?;
        disk.export("/root/tree", &back).run()?;
        let found = files::read(&back, &back)?;
        ensure!(found == tree, "what was synced is not on the disk");
        std::fs::remove_dir_all(back)?;
    }
    Ok(())
}
