//! VMs of Firecracker and Cloud Hypervisor that are saved and restored.

use std::{
    fs,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use vmcell::{
    LinkKind, Vm, VmBuilder, VmState,
    backend::{Backend, CloudHypervisor, Firecracker, RunFolder},
    snapshot::SnapshotOptions,
    template::Template,
};

use crate::{Fake, builder};

const FIRECRACKER: &str = "Firecracker v1.14.4";
const CLOUD_HYPERVISOR: &str = "cloud-hypervisor v52.0";

/// What a guest says that was saved and went on.
const WENT_ON: &str = "frozen: true\nclock: set\nfrozen: false\n";

/// A request of the host that is lost takes longer.
const SAVE_TIMEOUT: Duration = Duration::from_secs(5);

fn firecracker(fake: &Fake) -> Firecracker {
    Firecracker::at(fake.path("firecracker")).with_api()
}

fn cloud_hypervisor(fake: &Fake) -> CloudHypervisor {
    CloudHypervisor::at(fake.path("cloud-hypervisor")).with_api()
}

/// A builder of VMs of Cloud Hypervisor, which need a kernel of their own.
fn with_kernel(fake: &Fake, backend: impl Backend + 'static) -> VmBuilder {
    builder(backend).kernel(fake.write("vmlinux", "\x7fELF"))
}

/// Checks the files of a snapshot, and returns how its disk begins.
fn disk_of(snapshot: &Path, names: &[&str]) -> String {
    let entries = fs::read_dir(snapshot).unwrap().map(Result::unwrap);
    let mut found = Vec::new();
    for entry in entries {
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "{entry:?}");
        found.push(entry.file_name().into_string().unwrap());
    }
    found.sort();
    assert_eq!(found, names);
    begin(&snapshot.join("disk"))
}

/// Returns how a file begins.
fn begin(path: &Path) -> String {
    let mut begin = [0; 7];
    let mut file = fs::File::open(path).unwrap();
    file.read_exact(&mut begin).unwrap();
    String::from_utf8(begin.to_vec()).unwrap()
}

fn run_folder(vm: &Vm) -> PathBuf {
    RunFolder::base().join(vm.id())
}

/// Waits until the guest has said this. Its console is read in the background.
async fn wait_for(vm: &Vm, expected: &str) {
    let mut text = String::new();
    for _ in 0..1000 {
        text = vm.console().unwrap();
        if text.contains(expected) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{expected:?} is not in {text:?}");
}

/// Saves a VM, restores it twice, and saves both again.
async fn saves_and_restores(builder: VmBuilder, names: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one");
    let vm = builder.clone().start().await.unwrap();
    let saving = tokio::time::timeout(SAVE_TIMEOUT, vm.snapshot(&path));
    let report = saving.await.unwrap().unwrap();
    assert!(report.bytes > 0);
    assert_eq!(vm.state(), VmState::Running);
    assert!(vm.health().await.is_healthy());
    // Its processes stood still, and run again.
    wait_for(&vm, WENT_ON).await;
    assert_eq!(disk_of(&path, names), "written");

    let restore = || builder.clone().snapshot(&path).start();
    let (one, other) = tokio::join!(restore(), restore());
    let copies = [one.unwrap(), other.unwrap()];
    for copy in &copies {
        assert_ne!(copy.id(), vm.id());
        let health = copy.health().await;
        assert!(health.is_healthy(), "{health:?}");
        assert_eq!(health.link.kind, LinkKind::HybridVsock);
        wait_for(copy, &format!("renewed: vmcell-{}", copy.id())).await;
        assert!(!run_folder(copy).join("saved").exists());
    }
    // A copy can be paused and saved as any other VM. It has written to its own disk only.
    copies[0].pause().await.unwrap();
    let of_copy = folder.path().join("two");
    copies[0].snapshot(&of_copy).await.unwrap();
    assert_eq!(copies[0].state(), VmState::Paused);
    assert_eq!(disk_of(&of_copy, names), "a copy!");
    copies[0].resume().await.unwrap();
    assert!(copies[0].health().await.is_healthy());
    let again = folder.path().join("three");
    let options = SnapshotOptions::new().compress(true).end_vm(true);
    vm.snapshot_with(&again, options).await.unwrap();
    vm.ended().await;
    let copy = builder.clone().snapshot(&again).start().await.unwrap();
    assert!(copy.health().await.is_healthy());
    let ended = copies.into_iter().chain([copy]);
    for vm in ended {
        vm.stop().await.unwrap();
        assert!(!run_folder(&vm).exists());
    }
    assert!(!run_folder(&vm).exists());
}

#[tokio::test]
async fn a_vm_of_firecracker_is_saved_and_restored() {
    let fake = Fake::new("firecracker", FIRECRACKER);
    let names = ["disk", "manifest.json", "memory", "state"];
    saves_and_restores(builder(firecracker(&fake)), &names).await;
}

#[tokio::test]
async fn a_vm_of_cloud_hypervisor_is_saved_and_restored() {
    let fake = Fake::new("cloud-hypervisor", CLOUD_HYPERVISOR);
    let names = [
        "config.json",
        "disk",
        "manifest.json",
        "memory-ranges",
        "state.json",
    ];
    saves_and_restores(with_kernel(&fake, cloud_hypervisor(&fake)), &names).await;
}

#[tokio::test]
async fn without_the_api_a_vm_is_neither_saved_nor_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    let refused = |error: vmcell::Error| {
        assert_eq!(error.code(), "backend-lacks", "{error}");
        let error = error.to_string();
        assert!(error.contains("snapshot"), "{error}");
        assert!(error.contains("`with_api`"), "{error}");
    };

    let fake = Fake::new("firecracker", FIRECRACKER);
    let without = Firecracker::at(fake.path("firecracker"));
    let vm = builder(without.clone()).start().await.unwrap();
    refused(vm.snapshot(&path).await.unwrap_err());
    let saved = builder(firecracker(&fake)).start().await.unwrap();
    saved.snapshot(&path).await.unwrap();
    let restored = builder(without).snapshot(&path).start().await;
    refused(restored.unwrap_err());

    let fake = Fake::new("cloud-hypervisor", CLOUD_HYPERVISOR);
    let path = folder.path().join("other");
    let without = CloudHypervisor::at(fake.path("cloud-hypervisor"));
    let vm = with_kernel(&fake, without.clone()).start().await.unwrap();
    refused(vm.snapshot(&path).await.unwrap_err());
    let saved = with_kernel(&fake, cloud_hypervisor(&fake)).start().await;
    saved.unwrap().snapshot(&path).await.unwrap();
    let restored = builder(without).snapshot(&path).start().await;
    refused(restored.unwrap_err());
}

#[tokio::test]
async fn an_old_cloud_hypervisor_can_only_pause() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::new("cloud-hypervisor", "cloud-hypervisor v51.1.0");
    let vm = with_kernel(&fake, cloud_hypervisor(&fake)).start().await;
    let vm = vm.unwrap();
    let error = vm.snapshot(folder.path().join("snapshot")).await;
    let error = error.unwrap_err();
    assert_eq!(error.code(), "backend-lacks", "{error}");
    assert!(error.to_string().contains("52 or later"), "{error}");
    assert_eq!(vm.state(), VmState::Running);
    assert!(vm.health().await.is_healthy());
}

/// Saves a VM with a fake that does something wrong, and returns the error. The VM goes on,
/// and nothing is left.
async fn error_of_save(builder: VmBuilder) -> String {
    let folder = tempfile::tempdir().unwrap();
    let vm = builder.start().await.unwrap();
    let error = vm.snapshot(folder.path().join("one")).await.unwrap_err();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(vm.state(), VmState::Running);
    assert!(vm.health().await.is_healthy());
    wait_for(&vm, WENT_ON).await;
    vm.stop().await.unwrap();
    error.to_string()
}

#[tokio::test]
async fn a_vmm_that_cannot_save_says_why_and_the_vm_goes_on() {
    for (fault, expected) in [
        ("create", "save the VM: its API replies 400: no space left"),
        ("size", "it has written more than the VM can have"),
    ] {
        let fake = Fake::with_fault("firecracker", FIRECRACKER, fault);
        let error = error_of_save(builder(firecracker(&fake))).await;
        assert!(error.contains(expected), "{error}");
        let fake = Fake::with_fault("cloud-hypervisor", CLOUD_HYPERVISOR, fault);
        let error = error_of_save(with_kernel(&fake, cloud_hypervisor(&fake))).await;
        assert!(error.contains(expected), "{error}");
    }
    let fake = Fake::with_fault("firecracker", FIRECRACKER, "symlink");
    let error = error_of_save(builder(firecracker(&fake))).await;
    assert!(error.contains("save the VM"), "{error}");
}

/// Restores with this builder a snapshot that another one makes. Returns the error.
async fn error_of_restore(good: VmBuilder, bad: VmBuilder) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one");
    let vm = good.start().await.unwrap();
    vm.snapshot(&path).await.unwrap();
    let id = format!("restored-{}", vm.id());
    let restored = bad.snapshot(&path).id(&id).start().await;
    assert!(!RunFolder::base().join(&id).exists());
    vm.kill().await.unwrap();
    restored.unwrap_err().to_string()
}

#[tokio::test]
async fn a_vmm_that_cannot_restore_says_why_and_leaves_nothing() {
    let fakes = |fault| {
        (
            Fake::with_fault("firecracker", FIRECRACKER, fault),
            Fake::with_fault("cloud-hypervisor", CLOUD_HYPERVISOR, fault),
        )
    };
    let (one, other) = fakes("");
    for (fault, expected) in [
        (
            "load",
            "restore the VM: its API replies 400: the state is of another kind",
        ),
        ("exit", "this fake does not start"),
    ] {
        let (bad, other_bad) = fakes(fault);
        let error = error_of_restore(builder(firecracker(&one)), builder(firecracker(&bad)));
        let error = error.await;
        assert!(error.contains(expected), "{error}");
        let error = error_of_restore(
            with_kernel(&other, cloud_hypervisor(&other)),
            builder(cloud_hypervisor(&other_bad)),
        );
        let error = error.await;
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn another_version_of_the_vmm_is_refused_before_it_is_started() {
    let one = Fake::new("firecracker", FIRECRACKER);
    let newer = Fake::new("firecracker", "Firecracker v1.15.1");
    let error = error_of_restore(builder(firecracker(&one)), builder(firecracker(&newer)));
    let error = error.await;
    let expected = "the version of the VMM was 1.14.4, here it is 1.15.1";
    assert!(error.contains(expected), "{error}");
    assert!(!newer.was_started());

    let one = Fake::new("cloud-hypervisor", CLOUD_HYPERVISOR);
    let newer = Fake::new("cloud-hypervisor", "cloud-hypervisor v53.0");
    let error = error_of_restore(
        with_kernel(&one, cloud_hypervisor(&one)),
        builder(cloud_hypervisor(&newer)),
    );
    let error = error.await;
    let expected = "the version of the VMM was 52.0, here it is 53.0";
    assert!(error.contains(expected), "{error}");
    assert!(!newer.was_started());
}

#[tokio::test]
async fn a_guest_that_has_old_connections_is_reached_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    let fake = Fake::with_fault("firecracker", FIRECRACKER, "connect");
    let vm = builder(firecracker(&fake)).start().await.unwrap();
    vm.snapshot(&path).await.unwrap();
    let copy = builder(firecracker(&fake)).snapshot(&path).start().await;
    assert!(copy.unwrap().health().await.is_healthy());
}

#[tokio::test]
async fn a_template_is_started_and_flattened() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::new("firecracker", FIRECRACKER);
    let name = format!("vmms-{}", std::process::id());
    let template = Template::builder(builder(firecracker(&fake))).name(&name);
    let template = template.get().await.unwrap();
    let vm = template.start().await.unwrap();
    wait_for(&vm, "renewed: ").await;
    let image = folder.path().join("image");
    template.flatten(&image).await.unwrap();
    Template::remove(&name).await.unwrap();
    assert_eq!(begin(&image), "a copy!");
}
