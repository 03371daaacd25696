//! VMs that are saved with their memory, and restored.

mod consistency;
mod pools;
mod templates;

use std::{collections::HashSet, path::PathBuf, time::Duration};

use vmcell::{
    Command, Error, LinkKind, ReadFrom, Vm, VmBuilder, VmState, WhilePaused,
    snapshot::{SnapshotError, SnapshotOptions},
};

use crate::{
    base,
    clock::assert_clock_matches,
    disk::{builder_on, new_disk, open_disk},
    processes::VmmProcess,
};

/// Returns a builder with the default link, whatever link the other tests use.
fn builder() -> VmBuilder {
    Vm::builder().image(base()).memory_mib(128)
}

async fn start() -> Vm {
    builder().start().await.unwrap()
}

async fn text(vm: &Vm, script: &str) -> String {
    let output = vm.exec(["sh", "-c", script]).await.unwrap();
    assert!(output.success(), "{script}: {output:?}");
    output.stdout_text().trim().to_owned()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("snapshot")
    }

    /// Waits until nothing is written any more: there is the snapshot, or nothing.
    async fn no_longer_partial(&self) {
        let is_partial = || {
            let mut entries = std::fs::read_dir(self.0.path()).unwrap();
            entries.any(|entry| entry.unwrap().file_name() != "snapshot")
        };
        let waiting = async {
            while is_partial() {
                tokio::task::yield_now().await;
            }
        };
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, waiting).await.unwrap();
    }

    /// Asserts that nothing is left in the folder but the snapshot.
    fn assert_clean(&self, is_there: bool) {
        let names: Vec<_> = std::fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        let expected: &[&str] = if is_there { &["snapshot"] } else { &[] };
        assert_eq!(names, expected);
    }
}

#[tokio::test]
async fn a_restored_vm_goes_on_where_the_snapshot_was_taken_and_is_another_vm() {
    let vm = start().await;
    vm.files().write("/root/file", "on the disk").await.unwrap();
    // A program that is in memory only, and counts.
    let counting = "rm /root/count.sh; i=0; while true; do i=$((i+1)); echo $i > /run/count; \
                    echo $i; sleep 0.05; done";
    vm.files().write("/root/count.sh", counting).await.unwrap();
    let counter = vm
        .spawn(Command::new("sh").arg("/root/count.sh"))
        .await
        .unwrap();
    text(&vm, "until [ -s /run/count ]; do sleep 0.05; done").await;
    let folder = Folder::new();
    let report = vm.snapshot(folder.path()).await.unwrap();
    assert!(
        report.bytes > 1 << 20 && report.bytes < 100 << 20,
        "{report:?}"
    );
    assert!(report.pause < Duration::from_secs(10), "{report:?}");
    folder.assert_clean(true);
    // The VM itself goes on.
    assert_eq!(vm.state(), VmState::Running);
    let before: u64 = text(&vm, "cat /run/count").await.parse().unwrap();
    text(
        &vm,
        &format!("until [ $(cat /run/count) -gt {before} ]; do sleep 0.05; done"),
    )
    .await;
    assert_clock_matches(&vm).await;

    let identity =
        "hostname; cat /proc/sys/kernel/random/boot_id; head -c 4096 /dev/urandom | sha256sum";
    let mut identities = HashSet::new();
    for line in text(&vm, identity).await.lines() {
        assert!(identities.insert(line.to_owned()));
    }
    for _ in 0..2 {
        let copy = Vm::restore(folder.path()).await.unwrap();
        assert_clock_matches(&copy).await;
        assert_eq!(
            copy.files().read("/root/file").await.unwrap(),
            b"on the disk"
        );
        let at_first: u64 = text(&copy, "cat /run/count").await.parse().unwrap();
        let more = format!("until [ $(cat /run/count) -gt {at_first} ]; do sleep 0.05; done");
        text(&copy, &more).await;
        for line in text(&copy, identity).await.lines() {
            assert!(
                identities.insert(line.to_owned()),
                "{line} was there before"
            );
        }
        // The process is the same, with all its output.
        let process = copy.processes().get(counter.id()).await.unwrap();
        assert_eq!(process.unwrap().pid(), counter.pid());
        copy.stop().await.unwrap();
    }
    vm.stop().await.unwrap();
}

#[tokio::test]
async fn terminals_services_and_output_go_on_in_a_restored_vm() {
    use vmcell::{service::ServiceSpec, terminal::TerminalOptions};
    let vm = start().await;
    let spec = ServiceSpec::new(Command::shell("echo up; exec sleep 100000"));
    vm.services().start("sleeper", spec).await.unwrap();
    let terminal = vm.terminals().open(TerminalOptions::new()).await.unwrap();
    terminal.run("secret=in-memory").await.unwrap();
    let process = vm.spawn(Command::shell("echo first; exec sleep 100000").tag("half"));
    let process = process.await.unwrap();
    text(&vm, "true").await;
    let folder = Folder::new();
    vm.snapshot(folder.path()).await.unwrap();
    vm.kill().await.unwrap();

    let copy = Vm::restore(folder.path()).await.unwrap();
    let service = copy.services().get("sleeper").await.unwrap().unwrap();
    let status = service.status().await.unwrap();
    assert!(status.pid.is_some(), "{status:?}");
    let same = copy.terminals().get(terminal.id()).await.unwrap().unwrap();
    let shown = same.run("echo $secret").await.unwrap();
    assert!(format!("{shown:?}").contains("in-memory"), "{shown:?}");
    // Its output is there from its first byte.
    let mut stream = copy
        .processes()
        .attach(process.id(), ReadFrom::Start)
        .unwrap();
    let mut output = Vec::new();
    while output.len() < 6 {
        if let Some(vmcell::ExecEvent::Stdout(bytes)) = stream.next().await.unwrap() {
            output.extend_from_slice(&bytes);
        }
    }
    assert_eq!(output, b"first\n");
}

#[tokio::test]
async fn a_paused_vm_can_be_saved_and_stays_paused() {
    let vm = start().await;
    text(&vm, "echo here > /run/file").await;
    vm.pause_with(WhilePaused::Fail).await.unwrap();
    let folder = Folder::new();
    vm.snapshot(folder.path()).await.unwrap();
    assert_eq!(vm.state(), VmState::Paused);
    assert!(matches!(vm.exec(["true"]).await, Err(Error::Paused)));
    let copy = Vm::restore(folder.path()).await.unwrap();
    assert_eq!(text(&copy, "cat /run/file").await, "here");
    // Its processes run again when it does.
    vm.resume().await.unwrap();
    assert_eq!(text(&vm, "cat /run/file").await, "here");
    assert_clock_matches(&vm).await;
}

#[tokio::test]
async fn a_compressed_snapshot_ends_the_vm_and_a_copy_can_be_saved_again() {
    let vm = start().await;
    text(&vm, "echo one > /root/file").await;
    let (first, second) = (Folder::new(), Folder::new());
    let options = SnapshotOptions::new().compress(true).end_vm(true);
    let report = vm.snapshot_with(first.path(), options).await.unwrap();
    assert!(report.bytes < 20 << 20, "{report:?}");
    assert_eq!(vm.ended().await.reason, vmcell::End::Killed);
    let copy = Vm::restore(first.path()).await.unwrap();
    assert_eq!(
        text(
            &copy,
            "cat /root/file; echo two >> /root/file; echo 3 > /run/file"
        )
        .await,
        "one"
    );
    copy.snapshot(second.path()).await.unwrap();
    drop(copy);
    // It needs nothing of the first one.
    drop(first);
    let copy = Vm::restore(second.path()).await.unwrap();
    assert_eq!(text(&copy, "cat /root/file /run/file").await, "one\ntwo\n3");
    let builder = Vm::builder()
        .snapshot(second.path())
        .hostname("own")
        .id("own-id-of-a-copy");
    let named = builder.start().await.unwrap();
    assert_eq!(text(&named, "hostname").await, "own");
}

#[tokio::test]
async fn what_cannot_be_saved_says_so_and_goes_on() {
    let folder = Folder::new();
    let vm = builder().link(LinkKind::HybridVsock).start().await.unwrap();
    let error = vm.snapshot(folder.path()).await.unwrap_err();
    assert_eq!(error.code(), "backend-lacks", "{error}");
    assert!(
        error.to_string().contains("choose the link serial"),
        "{error}"
    );
    text(&vm, "true").await;
    folder.assert_clean(false);

    let vm = start().await;
    vm.snapshot(folder.path()).await.unwrap();
    let error = vm.snapshot(folder.path()).await.unwrap_err();
    assert!(
        matches!(error, Error::Snapshot(SnapshotError::Exists { .. })),
        "{error}"
    );
    let nowhere = folder.path().join("no/such/folder");
    let error = vm.snapshot(nowhere).await.unwrap_err();
    assert_eq!(error.code(), "snapshot", "{error}");
    text(&vm, "true").await;
    folder.assert_clean(true);
    let both = builder()
        .snapshot(folder.path())
        .disk("some.qcow2")
        .start()
        .await;
    assert_eq!(both.unwrap_err().code(), "invalid");
}

#[tokio::test]
async fn a_vm_that_dies_while_it_is_saved_leaves_nothing() {
    let vm = start().await;
    let folder = Folder::new();
    let vmm = VmmProcess::of(&vm);
    // The monitor does not answer any more.
    vmm.pause();
    let saving = vm.snapshot(folder.path());
    let killing = async {
        tokio::task::yield_now().await;
        vmm.kill();
    };
    let (saved, ()) = tokio::join!(saving, killing);
    saved.unwrap_err();
    folder.no_longer_partial().await;
    folder.assert_clean(false);
}

#[tokio::test]
async fn a_full_disk_leaves_nothing_and_the_vm_goes_on() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can mount a small file system");
        return;
    }
    let small = tempfile::tempdir().unwrap();
    let mount = |arguments: &[&str]| {
        let status = std::process::Command::new("mount").args(arguments).status();
        assert!(status.unwrap().success());
    };
    let path = small.path().to_str().unwrap();
    mount(&["-t", "tmpfs", "-o", "size=8m", "tmpfs", path]);
    let vm = start().await;
    for options in [
        SnapshotOptions::new(),
        SnapshotOptions::new().compress(true),
        SnapshotOptions::new().end_vm(true),
    ] {
        let error = vm
            .snapshot_with(small.path().join("snapshot"), options)
            .await;
        let error = error.unwrap_err();
        assert!(
            ["snapshot", "host", "control"].contains(&error.code()),
            "{error:?}"
        );
        assert_eq!(
            std::fs::read_dir(small.path()).unwrap().count(),
            0,
            "{error}"
        );
        assert_eq!(vm.state(), VmState::Running);
        text(&vm, "true").await;
    }
    let unmounted = std::process::Command::new("umount").arg(path).status();
    assert!(unmounted.unwrap().success());
}

#[tokio::test]
async fn a_snapshot_that_nobody_waits_for_leaves_the_vm_running() {
    let vm = start().await;
    let end = SnapshotOptions::new().end_vm(true);
    // However far it has got.
    for wait in [0, 1, 5, 20, 50, 100, 150] {
        let folder = Folder::new();
        let saving = vm.snapshot_with(folder.path(), end);
        let limit = Duration::from_millis(wait);
        if tokio::time::timeout(limit, saving).await.is_ok() {
            break;
        }
        assert_eq!(text(&vm, "echo here").await, "here");
        assert_eq!(vm.state(), VmState::Running);
        folder.no_longer_partial().await;
    }
    // One that was paused before stays so.
    let vm = start().await;
    vm.pause().await.unwrap();
    let folder = Folder::new();
    let saving = vm.snapshot_with(folder.path(), end);
    let _ = tokio::time::timeout(Duration::from_millis(5), saving).await;
    let other = Folder::new();
    vm.snapshot(other.path()).await.unwrap();
    assert_eq!(vm.state(), VmState::Paused);
}

#[tokio::test]
async fn a_vm_whose_disk_is_kept_can_be_saved_and_keeps_its_disk() {
    let (_disks, disk) = new_disk();
    let vm = builder_on(&disk)
        .link(LinkKind::Serial)
        .start()
        .await
        .unwrap();
    text(&vm, "echo before > /root/file").await;
    let folder = Folder::new();
    vm.snapshot(folder.path()).await.unwrap();
    // Nobody else gets the disk meanwhile.
    assert!(open_disk(&disk).is_err());
    text(&vm, "echo after > /root/file").await;
    vm.stop().await.unwrap();
    let kept = || open_disk(&disk).unwrap().read("root/file").unwrap();
    assert_eq!(kept(), b"after\n");
    // The copy has a disk of its own.
    let copy = Vm::restore(folder.path()).await.unwrap();
    assert!(!copy.keeps_disk());
    let before = text(&copy, "cat /root/file; echo copy > /root/file").await;
    assert_eq!(before, "before");
    copy.stop().await.unwrap();
    assert_eq!(kept(), b"after\n");
}
