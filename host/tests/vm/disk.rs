//! Persistent disks, and what is on them after the VM has ended.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;
use vmcell::{
    Command, Error, Vm, VmBuilder,
    disk::{
        Comparison, DiffSide, Disk, DiskChangeKind, DiskError,
        ext4::JournalState,
        image::{self, Image, ImageError, OpenOptions},
    },
    files::WalkOptions,
};

use super::{base, builder, builder_with_link, processes::VmmProcess};

/// Returns the folder of the image that disks are based on.
fn images() -> PathBuf {
    base().parent().unwrap().to_owned()
}

/// Creates a disk on top of the image `base`, and returns it with its folder.
pub(crate) fn new_disk() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.qcow2");
    image::create_child(base(), &path, OpenOptions::new()).unwrap();
    (folder, path)
}

pub(crate) fn builder_on(disk: &Path) -> VmBuilder {
    let folder = disk.parent().unwrap();
    let builder = builder_with_link().disk(disk).memory_mib(128);
    builder.allow_backing(folder).allow_backing(images())
}

pub(crate) fn open_disk(disk: &Path) -> Result<Disk, DiskError> {
    let folder = disk.parent().unwrap();
    let options = Disk::options().allow_backing(folder);
    options.allow_backing(images()).open(disk)
}

pub(crate) async fn run(vm: &Vm, line: &str) {
    let output = vm.exec_command(Command::shell(line)).await.unwrap();
    assert!(output.success(), "{output:?}");
}

#[tokio::test]
async fn a_disk_stays_when_its_vm_has_ended_and_boots_again() {
    let (_folder, path) = new_disk();
    let vm = builder_on(&path).start().await.unwrap();
    run(&vm, "echo first >/root/notes").await;
    vm.stop().await.unwrap();

    let disk = open_disk(&path).unwrap();
    assert!(disk.info().clean);
    assert_eq!(disk.read("root/notes").unwrap(), b"first\n");
    // While it is open for reading, no VM can write to it.
    let error = builder_on(&path).start().await.unwrap_err();
    assert!(matches!(error, Error::Disk(ImageError::InUse { .. })));
    assert_eq!(error.code(), "disk-in-use");
    drop(disk);

    let vm = builder_on(&path).start().await.unwrap();
    run(&vm, "echo second >>/root/notes && sync").await;
    // While a VM uses it, it can only be opened as `torn`.
    let error = builder_on(&path).start().await.unwrap_err();
    assert!(matches!(error, Error::Disk(ImageError::InUse { .. })));
    let error = open_disk(&path).unwrap_err();
    assert!(matches!(error, DiskError::Image(ImageError::InUse { .. })));
    let options = Disk::options().allow_backing(images());
    let torn = options.allow_in_use().open(&path).unwrap();
    assert!(torn.exists("root/notes").unwrap());
    vm.kill().await.unwrap();
    let notes = open_disk(&path).unwrap().read("root/notes").unwrap();
    assert_eq!(notes, b"first\nsecond\n");
}

#[tokio::test]
async fn a_vm_boots_from_a_layer_above_a_sealed_layer_and_writes_only_the_top() {
    let (folder, lower) = new_disk();
    let vm = builder_on(&lower).start().await.unwrap();
    run(&vm, "echo lower >/root/notes").await;
    vm.stop().await.unwrap();
    let options = OpenOptions::new().allow_backing(images());
    image::seal(&lower, options.clone()).unwrap();
    let before = std::fs::read(&lower).unwrap();

    let error = builder_on(&lower).start().await.unwrap_err();
    assert!(matches!(error, Error::Disk(ImageError::Sealed { .. })));
    let upper = folder.path().join("upper.qcow2");
    image::create_child(&lower, &upper, options.clone()).unwrap();
    let vm = builder_on(&upper).start().await.unwrap();
    run(
        &vm,
        "read line </root/notes && [ $line = lower ] && echo upper >/root/notes",
    )
    .await;
    vm.stop().await.unwrap();
    assert_eq!(
        open_disk(&upper).unwrap().read("root/notes").unwrap(),
        b"upper\n"
    );
    assert_eq!(std::fs::read(&lower).unwrap(), before);

    // A flattened disk is an ordinary image.
    let flat = folder.path().join("flat.ext4");
    let options = OpenOptions::new().allow_backing(folder.path());
    let options = options.allow_backing(images());
    let layers = Image::open(&upper, options.clone()).unwrap();
    let mut go_on = |_| ControlFlow::Continue(());
    image::flatten(&layers, &flat, 1 << 30, &mut go_on).unwrap();
    drop(layers);
    let vm = builder().image(&flat).start().await.unwrap();
    run(&vm, "read line </root/notes && [ $line = upper ]").await;
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_the_disk_of_a_vm_is_refused_by_name() {
    let (folder, path) = new_disk();
    let raw = folder.path().join("raw.ext4");
    std::fs::copy(base(), &raw).unwrap();
    let error = builder_on(&raw).start().await.unwrap_err();
    assert!(
        matches!(error, Error::Disk(ImageError::Raw { .. })),
        "{error}"
    );
    let elsewhere = builder_with_link().disk(&path).start().await.unwrap_err();
    assert!(matches!(
        elsewhere,
        Error::Disk(ImageError::BackingNotAllowed { .. })
    ));
    let both = builder_on(&path).image(base()).start().await.unwrap_err();
    assert!(matches!(both, Error::Invalid(_)), "{both}");
    let missing = builder_on(&folder.path().join("missing"))
        .start()
        .await
        .unwrap_err();
    assert!(matches!(missing, Error::Disk(ImageError::Read { .. })));

    std::fs::write(&raw, vec![0; 1 << 20]).unwrap();
    let empty = folder.path().join("empty.qcow2");
    image::create_child(&raw, &empty, OpenOptions::new()).unwrap();
    let error = builder_on(&empty).start().await.unwrap_err();
    assert!(error.to_string().contains("no ext4 file system"), "{error}");
}

#[tokio::test]
async fn the_disk_of_a_vm_that_was_killed_while_it_wrote_is_read() {
    let (_folder, path) = new_disk();
    let vm = builder_on(&path).start().await.unwrap();
    let write = "mkdir /kept /torn && cd /kept && for i in $(seq 200); do echo $i >$i; done; sync";
    run(&vm, write).await;
    let endless = "i=0; while :; do i=$((i+1)); head -c $((i*100)) /bin/busybox >/torn/$i; \
                   ln /torn/$i /torn/link-$i; rm -f /torn/link-$((i-5)); done";
    vm.spawn(Command::shell(endless)).await.unwrap();
    let under_way = Command::shell("while [ ! -e /torn/50 ]; do :; done");
    let waited = vm.exec_command(under_way.timeout(Duration::from_secs(120)));
    assert!(waited.await.unwrap().success());
    let vmm = VmmProcess::of(&vm);
    vmm.kill();
    assert!(vmm.ends_within(Duration::from_secs(30)));

    let disk = open_disk(&path).unwrap();
    let info = disk.info();
    assert!(!info.clean);
    let is_replayed = matches!(info.journal, JournalState::Replayed { .. });
    assert!(is_replayed, "{info:?}");
    for number in 1..=200 {
        let kept = disk.read(format!("kept/{number}")).unwrap();
        assert_eq!(kept, format!("{number}\n").as_bytes());
    }
    // The journal keeps names and inodes consistent, whenever the VM ends.
    let entries = disk.walk("/", WalkOptions::new()).unwrap();
    let problems: Vec<_> = entries.filter(Result::is_err).collect();
    assert!(problems.is_empty(), "{problems:?}");

    let image = Disk::open(base()).unwrap();
    let (old, new) = (DiffSide::disk(&image, "/"), DiffSide::disk(&disk, "/"));
    let diff = Comparison::new(old, new).run().unwrap();
    let changes = diff.changes().iter();
    let (kept, elsewhere): (Vec<_>, Vec<_>) = changes
        .map(|change| (change.kind(), change.path()))
        .filter(|(_, path)| !path.starts_with("torn"))
        .partition(|(_, path)| path.starts_with("kept"));
    assert_eq!(kept.len(), 201);
    let is_added = |(kind, _): &(DiskChangeKind, _)| *kind == DiskChangeKind::Added;
    assert!(kept.iter().all(is_added), "{kept:?}");
    assert!(elsewhere.len() < 20, "{elsewhere:?}");
    drop(diff);
    drop(disk);

    // The guest's own kernel reads it too.
    let vm = builder_on(&path).start().await.unwrap();
    run(&vm, "[ $(ls /kept | wc -l) = 200 ]").await;
    vm.stop().await.unwrap();
    assert!(open_disk(&path).unwrap().info().clean);
}
