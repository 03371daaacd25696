//! Machines that are switched off while workspaces run or are paused.

use std::{
    fs::{self, File},
    path::Path,
};

use rustix::process::{Pid, Signal, kill_process};
use vmcell::workspace::{BASELINE, Keeper, Workspace, WorkspaceState, WorkspaceUpdate, Workspaces};

use crate::{
    Store,
    keepers::{ended, keeper, keeper_of},
    namespaces::{block_on, is_inside, mount, run},
    new, shell,
};

/// Returns a keeper that has its temporary files and those of its VM below a folder.
fn keeper_with_files_in(folder: &Path) -> Keeper {
    fs::create_dir_all(folder).unwrap();
    let keeper = Keeper::new("/usr/bin/env")
        .arg(format!("TMPDIR={}", folder.display()))
        .arg(format!("XDG_RUNTIME_DIR={}", folder.display()))
        .arg(std::env::current_exe().unwrap());
    let test = crate::keepers::KEEP;
    keeper.arg("--exact").arg(test).arg("--nocapture")
}

/// Kills the processes of a workspace at once: they cannot learn of each other's end.
async fn kill_all(workspace: &Workspace) {
    let keeper = keeper_of(workspace).await;
    let mut processes = vec![keeper];
    for task in fs::read_dir(format!("/proc/{keeper}/task")).unwrap() {
        let children = fs::read_to_string(task.unwrap().path().join("children"));
        let children = children.unwrap_or_default();
        let pids = children.split_whitespace().map(|pid| pid.parse().unwrap());
        processes.extend(pids.filter_map(Pid::from_raw));
    }
    assert!(processes.len() > 1, "it has no VMM");
    for process in &processes {
        kill_process(*process, Signal::STOP).unwrap();
    }
    // The keeper last: the others end with it, and would not be there any more.
    for process in processes.iter().rev() {
        kill_process(*process, Signal::KILL).unwrap();
    }
    for process in processes {
        ended(process).await;
    }
}

#[tokio::test]
async fn a_workspace_is_there_after_the_machine_was_switched_off() {
    let store = Store::new();
    let boot = |number: u32| {
        // Nothing of before is there but the workspaces.
        let folder = store.root.path().join(format!("boot-{number}"));
        let workspaces = Workspaces::at(store.root.path()).unwrap();
        (workspaces.keeper(keeper_with_files_in(&folder)), folder)
    };
    let (workspaces, files) = boot(1);
    let workspace = workspaces.create(new().name("it")).await.unwrap();
    shell(
        &workspace,
        "echo synced > file; sync; echo lost > /dev/shm/file",
    )
    .await;
    kill_all(&workspace).await;
    fs::remove_dir_all(files).unwrap();

    let (workspaces, files) = boot(2);
    let workspace = workspaces.get("it").await.unwrap();
    // Locks of dead programs lie about, and are nobody's.
    assert!(store.folder(&workspace).join("owner.lock").exists());
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    let reason = info.stop_reason.unwrap();
    assert!(reason.contains("ended unexpectedly"), "{reason}");
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "cat file; ls /dev/shm").await, "synced\n");
    shell(&workspace, "echo in memory > /dev/shm/file").await;
    workspace.pause().await.unwrap();
    fs::remove_dir_all(files).unwrap();

    let (workspaces, files) = boot(3);
    let workspace = workspaces.get("it").await.unwrap();
    assert_eq!(
        workspace.info().await.unwrap().state,
        WorkspaceState::Paused
    );
    workspace.start().await.unwrap();
    let line = "cat file /dev/shm/file; echo 2 > file; sync";
    assert_eq!(shell(&workspace, line).await, "synced\nin memory\n");
    // Once more, after its processes have gone on: that memory is of the past.
    kill_all(&workspace).await;
    fs::remove_dir_all(files).unwrap();

    let (workspaces, _) = boot(4);
    let workspace = workspaces.get("it").await.unwrap();
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    workspace.start().await.unwrap();
    assert_eq!(shell(&workspace, "cat file; ls /dev/shm").await, "2\n");
    workspace.delete().await.unwrap();
    assert!(store.files().is_empty());
}

/// Ends the VM of a workspace, and waits until nothing of it has files open any more.
async fn end(workspace: Workspace, ending: impl Future<Output = Result<(), vmcell::Error>>) {
    let keeper = keeper_of(&workspace).await;
    ending.await.unwrap();
    ended(keeper).await;
}

/// A file system that loses what was not synced.
struct CutDisk {
    image: String,
    folder: String,
}

impl CutDisk {
    fn new(root: &Path) -> Self {
        let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let disk = Self {
            image: text("disk.ext4"),
            folder: text("disk"),
        };
        fs::create_dir(&disk.folder).unwrap();
        let image = File::create(&disk.image).unwrap();
        image.set_len(1 << 30).unwrap();
        run("mkfs.ext4", &["-q", &disk.image]);
        disk.mount();
        disk
    }

    fn mount(&self) {
        mount(&["-o", "loop", &self.image, &self.folder]);
    }

    fn workspaces(&self) -> Workspaces {
        Workspaces::at(&self.folder).unwrap().keeper(keeper())
    }

    /// Switches the machine off: the file system loses all that is not on the disk, and all
    /// processes of workspaces end. Returns the workspaces after the next boot.
    async fn cut(&self, running: &[&Workspace]) -> Workspaces {
        shut_down(&self.folder);
        for workspace in running {
            kill_all(workspace).await;
        }
        run("umount", &[&self.folder]);
        self.mount();
        self.workspaces()
    }
}

/// Makes an ext4 file system forget what is not on its disk, and write nothing more.
#[allow(unsafe_code)]
fn shut_down(folder: &str) {
    /// `EXT4_IOC_SHUTDOWN` of the kernel's `ext4.h`.
    const SHUTDOWN: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<u32>(b'X', 125);
    /// `EXT4_GOING_FLAGS_NOLOGFLUSH`: as a power failure.
    const WITHOUT_FLUSH: u32 = 2;
    let folder = File::open(folder).unwrap();
    // SAFETY: it reads one `u32`.
    let done = unsafe {
        let request = rustix::ioctl::Setter::<SHUTDOWN, u32>::new(WITHOUT_FLUSH);
        rustix::ioctl::ioctl(&folder, request)
    };
    done.unwrap();
}

#[test]
fn what_is_done_is_on_the_disk_when_the_power_fails() {
    if !rustix::process::geteuid().is_root() {
        return println!("not tested: only root can mount a file system that loses its power");
    }
    if is_inside(
        "power_cuts::what_is_done_is_on_the_disk_when_the_power_fails",
        &[],
    ) {
        block_on(cut_the_power());
    }
}

async fn cut_the_power() {
    let root = tempfile::tempdir().unwrap();
    let disk = CutDisk::new(root.path());
    let it = disk.workspaces().create(new().name("it")).await.unwrap();

    let it = disk.cut(&[&it]).await.get("it").await.unwrap();
    it.start().await.unwrap();
    shell(&it, "echo 1 > file; sync").await;
    let it = disk.cut(&[&it]).await.get("it").await.unwrap();
    let info = it.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    assert!(info.stop_reason.unwrap().contains("unexpectedly"));
    it.start().await.unwrap();
    assert_eq!(shell(&it, "cat file").await, "1\n");

    // What was not synced is in a snapshot, which is on the disk.
    shell(&it, "echo 2 > file").await;
    it.snapshot("two").await.unwrap();
    let it = disk.cut(&[&it]).await.get("it").await.unwrap();
    let snapshots = it.snapshots().await.unwrap();
    assert_eq!(snapshots.last().unwrap().name, "two");
    it.start().await.unwrap();
    assert_eq!(shell(&it, "cat file").await, "2\n");

    shell(&it, "echo in memory > /dev/shm/file").await;
    end(it.clone(), it.pause()).await;
    let it = disk.cut(&[]).await.get("it").await.unwrap();
    assert_eq!(it.info().await.unwrap().state, WorkspaceState::Paused);
    it.start().await.unwrap();
    assert_eq!(shell(&it, "cat /dev/shm/file").await, "in memory\n");

    // A stop is a sync, too.
    shell(&it, "echo 3 > file").await;
    end(it.clone(), it.stop()).await;
    let it = disk.cut(&[]).await.get("it").await.unwrap();
    let fork = it.fork("two", |new| new.name("fork")).await.unwrap();
    let renamed = it.update(WorkspaceUpdate::new().name("renamed"));
    renamed.await.unwrap();
    let workspaces = disk.cut(&[]).await;
    let it = workspaces.get("renamed").await.unwrap();
    it.start().await.unwrap();
    assert_eq!(shell(&it, "cat file").await, "3\n");
    let fork = workspaces.get(fork.id()).await.unwrap();
    fork.start().await.unwrap();
    assert_eq!(shell(&fork, "cat file").await, "2\n");
    end(fork.clone(), fork.delete()).await;

    end(it.clone(), async { it.reset(BASELINE).await.map(drop) }).await;
    let workspaces = disk.cut(&[&it]).await;
    let it = workspaces.get("renamed").await.unwrap();
    it.start().await.unwrap();
    assert_eq!(shell(&it, "ls").await, "");
    end(it.clone(), it.delete()).await;
    assert!(workspaces.list().await.unwrap().is_empty());
    run("umount", &[&disk.folder]);
}
