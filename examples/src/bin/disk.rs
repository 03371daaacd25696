//! Keeps the disk of a VM, and compares it with its base without a VM.

use vmcell::{
    Vm,
    disk::{
        Comparison, DiffSide, Disk,
        image::{OpenOptions, create_child},
    },
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let here = tempfile::tempdir()?;
    let image = vmcell_rootfs::recipe::base().cached_async().await?.path;
    let cache = image.parent().unwrap_or(&image).to_owned();
    let work = here.path().join("work.qcow2");
    // Copy-on-write, in a millisecond.
    create_child(&image, &work, OpenOptions::new())?;
    let vm = Vm::builder()
        .disk(&work)
        .allow_backing(&cache)
        .start()
        .await?;
    vm.exec(["sh", "-c", "echo kept > /root/notes"]).await?;
    vm.stop().await?;

    let base = Disk::open(&image)?;
    let disk = Disk::options().allow_backing(&cache).open(&work)?;
    let diff = Comparison::new(DiffSide::disk(&base, "/"), DiffSide::disk(&disk, "/")).run()?;
    for change in diff.changes() {
        println!("{:?} {:?}", change.kind(), change.path());
    }
    Ok(())
}
