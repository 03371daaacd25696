//! The disk of a VM, looked at after its end.

use std::{fs::File, io, path::Path, process, time::Duration};

use vmcell::{
    Command,
    disk::{Comparison, DiffSide, Disk, DiskChangeKind, ext4::JournalState},
    files::Walk,
};

use super::{base, processes::VmmProcess, start};

/// The layer of a VM, which has no name, as a file that has the image beneath
/// it.
fn keep(layer: &mut File, at: &Path) {
    io::copy(layer, &mut File::create(at).unwrap()).unwrap();
    let output = process::Command::new("qemu-img")
        .args(["rebase", "-u", "-f", "qcow2", "-F", "raw", "-b"])
        .args([&base(), at])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn the_disk_of_a_vm_that_was_killed_while_it_wrote_is_read() {
    let vm = start().await;
    let write = "mkdir /kept /torn && cd /kept && for i in $(seq 200); do echo $i >$i; done; sync";
    let output = vm.exec_command(Command::shell(write)).await.unwrap();
    assert!(output.success(), "{output:?}");
    let endless = "i=0; while :; do i=$((i+1)); head -c $((i*100)) /bin/busybox >/torn/$i; \
                   ln /torn/$i /torn/link-$i; rm -f /torn/link-$((i-5)); done";
    vm.spawn(Command::shell(endless)).await.unwrap();
    let under_way = Command::shell("while [ ! -e /torn/50 ]; do :; done");
    let waited = vm.exec_command(under_way.timeout(Duration::from_secs(120)));
    assert!(waited.await.unwrap().success());

    let vmm = VmmProcess::of(&vm);
    let mut layer = vmm.unnamed_file().unwrap();
    vmm.kill();
    assert!(vmm.ends_within(Duration::from_secs(30)));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("layer.qcow2");
    keep(&mut layer, &path);
    let allowed = base().parent().unwrap().to_owned();
    let disk = Disk::options().allow(allowed).open(&path).unwrap();
    let info = disk.info();
    assert!(!info.clean);
    let is_replayed = matches!(info.journal, JournalState::Replayed { .. });
    assert!(is_replayed, "{info:?}");
    for number in 1..=200 {
        let kept = disk.read(format!("kept/{number}")).unwrap();
        assert_eq!(kept, format!("{number}\n").as_bytes());
    }
    // The journal keeps names and inodes whole, whenever the VM ends.
    let entries = disk.walk("/", Walk::new()).unwrap();
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
}
