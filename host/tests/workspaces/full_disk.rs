//! A disk of the host that is full, at each write.
//!
//! The workspaces are in a file system in memory, whose size is set so that there is room
//! for a little more only, and a little more each time.

use std::{
    error::Error as _,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use vmcell::{
    Command, Error, Vm,
    workspace::{Workspace, WorkspaceState, WorkspaceUpdate, Workspaces},
};

use crate::{
    Store,
    keepers::keeper,
    namespaces::{block_on, is_inside, mount},
    new, shell,
};

/// What there is room for.
#[derive(Clone, Copy, Debug)]
enum Room {
    /// So many pages of files, in which a file system in memory counts.
    Pages(u64),
    /// So many files.
    Files(u64),
    Enough,
}

const ENOUGH_BYTES: u64 = 1 << 30;
const ENOUGH_FILES: u64 = 10_000;

impl Store {
    /// Workspaces with a keeper, on a disk whose size can be set.
    fn on_small_disk() -> Self {
        let root = tempfile::tempdir().unwrap();
        let options = format!("size={ENOUGH_BYTES},nr_inodes={ENOUGH_FILES}");
        let path = root.path().to_str().unwrap();
        mount(&["-t", "tmpfs", "-o", &options, "none", path]);
        // A size of 0 would be no limit.
        fs::write(root.path().join("other"), "a file").unwrap();
        Self {
            workspaces: Workspaces::at(root.path()).unwrap().keeper(keeper()),
            root,
        }
    }

    fn leave(&self, room: Room) {
        let used = rustix::fs::statvfs(self.root.path()).unwrap();
        let (mut bytes, mut files) = (ENOUGH_BYTES, ENOUGH_FILES);
        match room {
            Room::Pages(pages) => bytes = (used.f_blocks - used.f_bfree + pages) * used.f_frsize,
            Room::Files(count) => files = used.f_files - used.f_ffree + count,
            Room::Enough => {}
        }
        let options = format!("remount,size={bytes},nr_inodes={files}");
        mount(&["-o", &options, self.root.path().to_str().unwrap()]);
    }

    /// Does something where there is not enough room for it, and a little more each time.
    /// Each failure says why, and leaves the workspace in its state. Returns whether there
    /// was room in the end.
    async fn squeeze(
        &self,
        it: &Workspace,
        rooms: impl IntoIterator<Item = Room>,
        mut doing: impl AsyncFnMut() -> Result<(), Error>,
    ) -> bool {
        let before = it.info().await.unwrap();
        for room in rooms {
            self.leave(room);
            let done = doing().await;
            let after = it.info().await.unwrap();
            let list = self.workspaces.list().await.unwrap();
            self.leave(Room::Enough);
            match done {
                Ok(()) => return true,
                Err(error) => assert!(is_clear(&error), "{room:?}: {}", text(&error)),
            }
            assert_eq!((after.state, list.len()), (before.state, 1), "{room:?}");
            assert_eq!(
                (after.name, after.labels),
                (before.name.clone(), before.labels.clone())
            );
            assert_eq!(self.files(), [it.id()], "{room:?}");
        }
        false
    }
}

/// Returns an error with its causes.
fn text(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Returns whether an error says that the disk is full.
fn is_clear(error: &Error) -> bool {
    error.code() == "disk-full" || text(error).contains("No space left on device")
}

/// Waits until this program has no children: no keeper is left.
fn no_keeper_is_left() {
    let deadline = Instant::now() + Duration::from_secs(30);
    let has_children = |task: &Path| {
        let children = fs::read_to_string(task.join("children"));
        children.is_ok_and(|children| !children.is_empty())
    };
    let tasks = || fs::read_dir("/proc/self/task").unwrap().flatten();
    while tasks().any(|task| has_children(&task.path())) {
        assert!(Instant::now() < deadline, "a keeper is left");
        std::thread::yield_now();
    }
}

#[test]
fn a_workspace_for_which_there_is_no_room_leaves_nothing_behind() {
    const NAME: &str = "full_disk::a_workspace_for_which_there_is_no_room_leaves_nothing_behind";
    if is_inside(NAME, &["--user", "--map-root-user"]) {
        block_on(create_without_room());
    }
}

async fn create_without_room() {
    let store = Store::on_small_disk();
    let files = (0..7).map(Room::Files);
    // The last ones boot, and cannot write then.
    let pages = [0, 1, 2, 3, 16, 64, 100].map(Room::Pages);
    for room in files.chain(pages) {
        store.leave(room);
        let created = store.workspaces.create(new().name("it")).await;
        let list = store.workspaces.list().await.unwrap();
        store.leave(Room::Enough);
        let error = created.map(drop).unwrap_err();
        assert!(is_clear(&error), "{room:?}: {}", text(&error));
        assert!(list.is_empty(), "{room:?}");
        no_keeper_is_left();
        assert!(store.files().is_empty(), "{room:?}: {:?}", store.files());
    }
    let it = store.workspaces.create(new().name("it")).await.unwrap();
    store.leave(Room::Pages(0));
    it.delete().await.unwrap();
    no_keeper_is_left();
    assert!(store.files().is_empty());
}

#[test]
fn a_workspace_is_whole_when_the_disk_was_full() {
    const NAME: &str = "full_disk::a_workspace_is_whole_when_the_disk_was_full";
    if is_inside(NAME, &["--user", "--map-root-user"]) {
        block_on(change_without_room());
    }
}

#[test]
fn a_workspace_that_was_stopped_says_so_although_the_disk_is_full() {
    const NAME: &str = "full_disk::a_workspace_that_was_stopped_says_so_although_the_disk_is_full";
    if is_inside(NAME, &["--user", "--map-root-user"]) {
        block_on(stop_without_room());
    }
}

async fn stop_without_room() {
    let store = Store::on_small_disk();
    let it = store.workspaces.create(new()).await.unwrap();
    for room in [Room::Files(0), Room::Pages(0)] {
        for is_client in [false, true] {
            shell(&it, "sync").await;
            store.leave(room);
            let expected = match is_client {
                false => {
                    it.stop().await.unwrap();
                    "stopped"
                }
                // Its keeper records the end of its VM.
                true => {
                    Vm::attach(it.id()).await.unwrap().stop().await.unwrap();
                    "it was stopped"
                }
            };
            no_keeper_is_left();
            let info = it.info().await.unwrap();
            store.leave(Room::Enough);
            assert_eq!(info.state, WorkspaceState::Stopped);
            assert_eq!(info.stop_reason.as_deref(), Some(expected), "{room:?}");
            // The next time there is room for it again.
            it.start().await.unwrap();
        }
    }
    it.delete().await.unwrap();
}

/// What there is room for until something succeeds: a file more each time, then a page.
fn more_and_more() -> [Vec<Room>; 2] {
    [
        (0..12).map(Room::Files).collect(),
        (0..12).map(Room::Pages).collect(),
    ]
}

async fn change_without_room() {
    let store = Store::on_small_disk();
    let it = store.workspaces.create(new().name("it")).await.unwrap();
    shell(&it, "echo synced > file; sync").await;
    it.snapshot("synced").await.unwrap();

    // Running.
    for (number, rooms) in more_and_more().into_iter().enumerate() {
        let label = || WorkspaceUpdate::new().label("number", number.to_string());
        let update = async || it.update(label()).await.map(drop);
        assert!(store.squeeze(&it, rooms.clone(), update).await);
        let commands = it.info().await.unwrap().command_count;
        let exec = async || it.exec(Command::new("true")).await.map(drop);
        assert!(store.squeeze(&it, rooms.clone(), exec).await);
        assert_eq!(it.info().await.unwrap().command_count, commands + 1);
        let name = format!("running-{number}");
        let snapshot = async || it.snapshot(&name).await.map(drop);
        assert!(store.squeeze(&it, rooms, snapshot).await);
    }
    shell(&it, "echo in memory > /dev/shm/file").await;
    // With more room its VM would end, and could not be started.
    let rooms = [Room::Files(0), Room::Pages(0), Room::Pages(2)];
    let reset = async || it.reset("synced").await.map(drop);
    assert!(!store.squeeze(&it, rooms, reset).await);
    let pages = [0, 1, 2, 3, 4, 100, 1000].map(Room::Pages);
    let files = (0..8).map(Room::Files);
    let pause = async || it.pause().await;
    let rooms = pages.into_iter().chain(files);
    assert!(store.squeeze(&it, rooms, pause).await);

    // Paused.
    let rooms = [
        Room::Files(0),
        Room::Files(1),
        Room::Pages(0),
        Room::Pages(1),
    ];
    let start = async || it.start().await.map(drop);
    assert!(!store.squeeze(&it, rooms, start).await);
    let line = "cat file /dev/shm/file";
    assert_eq!(shell(&it, line).await, "synced\nin memory\n");

    // It can be stopped, whatever there is room for, running or paused.
    store.leave(Room::Files(0));
    it.stop().await.unwrap();
    store.leave(Room::Enough);
    it.start().await.unwrap();
    it.pause().await.unwrap();
    store.leave(Room::Pages(0));
    it.stop().await.unwrap();
    assert_eq!(it.info().await.unwrap().state, WorkspaceState::Stopped);
    store.leave(Room::Enough);

    // Stopped.
    let start = async || it.start().await.map(drop);
    let rooms = [Room::Files(0), Room::Pages(0)];
    assert!(!store.squeeze(&it, rooms, start).await);
    for (number, rooms) in more_and_more().into_iter().enumerate() {
        let name = format!("stopped-{number}");
        let snapshot = async || it.snapshot(&name).await.map(drop);
        assert!(store.squeeze(&it, rooms.clone(), snapshot).await);
        let reset = async || it.reset("synced").await.map(drop);
        assert!(store.squeeze(&it, rooms.clone(), reset).await);
        let fork = async || it.fork("synced", |new| new.name("fork")).await.map(drop);
        assert!(store.squeeze(&it, rooms, fork).await);
        let fork = store.workspaces.get("fork").await.unwrap();
        let disk = fork.disk().await.unwrap();
        assert_eq!(disk.read("/workspace/file").unwrap(), b"synced\n");
        drop(disk);
        store.leave(Room::Pages(0));
        fork.delete().await.unwrap();
        store.leave(Room::Enough);
    }

    it.start().await.unwrap();
    assert_eq!(shell(&it, "cat file").await, "synced\n");
    write_without_room(&store, &it).await;
    it.delete().await.unwrap();
    no_keeper_is_left();
    assert!(store.files().is_empty());
}

/// Makes a guest write more than there is room for. It gets an error, as of a disk that is
/// broken, and what was synced before stays.
async fn write_without_room(store: &Store, it: &Workspace) {
    store.leave(Room::Pages(50));
    let line = "dd if=/dev/urandom of=large bs=1M count=8 conv=fsync";
    let output = it.exec(Command::shell(line)).await.unwrap();
    assert!(!output.success(), "{output:?}");
    assert!(
        output.stderr_text().contains("Input/output error"),
        "{output:?}"
    );
    store.leave(Room::Enough);
    assert_eq!(it.info().await.unwrap().state, WorkspaceState::Running);
    // Its kernel may not write any more, so it is started again.
    it.stop().await.unwrap();
    let disk = it.disk().await.unwrap();
    assert_eq!(disk.read("/workspace/file").unwrap(), b"synced\n");
    drop(disk);
    it.start().await.unwrap();
    let line = "cat file; rm -f large; echo more > more; sync; cat more";
    assert_eq!(shell(it, line).await, "synced\nmore\n");
}
