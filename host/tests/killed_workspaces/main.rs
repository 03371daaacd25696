//! Programs, keepers and VMMs that are killed while workspaces change.
//!
//! This program is the one that is killed, and the keeper, too: it starts itself with a
//! variable set, or with a word. It has this one test only, because it adopts and reaps all
//! processes that are left.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, wait};
use vmcell::{
    End, Error, Vm,
    workspace::{BASELINE, Keeper, NewWorkspace, Workspace, Workspaces},
};

/// Names the folder in which the program that is killed works.
const FOLDER: &str = "VMCELL_TEST_FOLDER";

/// Sets how often something is killed.
const KILLS: &str = "VMCELL_TEST_KILLS";

/// The longest time after which something is killed.
const LIFETIME_MS: u64 = 5000;

/// The word with which this program is a keeper. The name of the test contains it.
const KEEP: &str = "keep";

fn workspaces(folder: &Path) -> Workspaces {
    let keeper = Keeper::new(std::env::current_exe().unwrap());
    let keeper = keeper.arg(KEEP).arg("--nocapture");
    Workspaces::at(folder).unwrap().keeper(keeper)
}

fn new() -> NewWorkspace {
    let image = vmcell_rootfs::recipe::base().cached().unwrap().path;
    NewWorkspace::new(image).memory_mib(128)
}

/// An id that no other test has at the same time, because its folder is new.
fn id_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// Changes workspaces until it is killed. Prints `synced N` when N is on the disk of the
/// workspace `main`, and `forget` before it does something that may take it away.
async fn work(folder: PathBuf) {
    let workspaces = workspaces(&folder);
    let id = id_of(&folder);
    let mut random = Random(std::process::id().into());
    println!("begun");
    loop {
        // Later ones are larger, also those of the next program.
        let number = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros();
        let workspace = match workspaces.get("main").await {
            Ok(workspace) => workspace,
            // With the id of earlier ones.
            Err(_) => match random.below(2) {
                0 => workspaces.create(new().id(&id).name("main")).await,
                _ => workspaces.create_stopped(new().id(&id).name("main")).await,
            }
            .unwrap(),
        };
        if random.below(2) == 0 {
            workspace.start().await.unwrap();
            let line = format!("echo {number} > count && sync");
            let command = vmcell::Command::shell(line);
            assert!(workspace.exec(command).await.unwrap().success());
            println!("synced {number}");
        }
        match random.below(8) {
            0 => workspace.stop().await.unwrap(),
            1 => drop(workspace.start().await.unwrap()),
            2 => {
                workspace.start().await.unwrap();
                workspace.pause().await.unwrap();
            }
            3 => {
                workspace.start().await.unwrap();
                let name = format!("s{}", random.below(5));
                let _ = workspace.delete_snapshot(&name).await;
                // A chain of layers has its limit.
                let _ = workspace.snapshot(&name).await;
            }
            4 => {
                println!("forget");
                workspace.reset(BASELINE).await.unwrap();
            }
            5 => {
                let fork = workspace.fork(BASELINE, |new| new).await.unwrap();
                fork.start().await.unwrap();
                fork.delete().await.unwrap();
            }
            6 => {
                println!("forget");
                workspace.delete().await.unwrap();
            }
            _ => drop(workspace.diff(BASELINE).await.unwrap()),
        }
    }
}

/// The program that is killed, and what it has printed.
struct Program {
    process: Child,
    /// What must be on the disk of the workspace `main`.
    synced: Arc<Mutex<Option<u64>>>,
    reading: std::thread::JoinHandle<()>,
}

impl Program {
    fn start(folder: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--nocapture"])
            .env(FOLDER, folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("begun")));
        let synced = Arc::new(Mutex::new(None));
        let seen = synced.clone();
        let reading = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let number = line
                    .strip_prefix("synced ")
                    .map(|text| text.parse().unwrap());
                if number.is_some() || line == "forget" {
                    *seen.lock().unwrap() = number;
                }
            }
        });
        Self {
            process,
            synced,
            reading,
        }
    }

    /// Kills it. Returns what it has synced.
    fn kill(mut self) -> Option<u64> {
        // Fails if it has ended, because its keeper was killed.
        let _ = self.process.kill();
        self.process.wait().unwrap();
        self.reading.join().unwrap();
        *self.synced.lock().unwrap()
    }
}

/// Returns the children of a process.
fn children(pid: Pid) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let text: String = lists.collect();
    let pids = text
        .split_ascii_whitespace()
        .map(|pid| pid.parse().unwrap());
    pids.filter_map(Pid::from_raw).collect()
}

/// Kills a keeper, or the VMM of one.
async fn kill_keeper(workspaces: &Workspaces, random: &mut Random) {
    let ours = workspaces.list().await.unwrap();
    let is_ours = |id: &str| ours.iter().any(|info| info.id == id);
    let vms = Vm::list().await.unwrap();
    let mut ours = vms.iter().filter(|vm| is_ours(&vm.id));
    let Some(keeper) = ours.find_map(|vm| vm.owner_pid) else {
        return;
    };
    let keeper = Pid::from_raw(keeper.try_into().unwrap()).unwrap();
    let victim = match (random.below(2), children(keeper).first()) {
        (0, Some(vmm)) => *vmm,
        _ => keeper,
    };
    // Fails if it has ended.
    let _ = kill_process(victim, Signal::KILL);
}

/// Waits until no process is left.
fn reap_all() {
    let deadline = Instant::now() + Duration::from_secs(30);
    while wait(WaitOptions::NOHANG).is_ok() {
        assert!(Instant::now() < deadline, "a process is left");
        std::thread::yield_now();
    }
}

/// Waits until keepers have finished what a program has begun that was killed.
async fn settle(workspaces: &Workspaces, folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        workspaces.list().await.unwrap();
        let entries = fs::read_dir(folder.join("workspaces")).unwrap().flatten();
        let mut folders = entries.filter(|entry| entry.path().is_dir());
        if folders.all(|entry| entry.path().join("workspace.json").exists()) {
            return;
        }
        assert!(Instant::now() < deadline, "a workspace is half there");
        tokio::task::yield_now().await;
    }
}

/// Uses a workspace, and returns the number on its disk.
async fn use_workspace(workspace: &Workspace) -> Option<u64> {
    let output = loop {
        workspace.start().await.unwrap();
        let command = vmcell::Command::shell("cat count || true");
        match workspace.exec(command).await {
            // Its VMM was killed, and its keeper has not noticed before.
            Err(Error::Gone(End::Died)) => {}
            output => break output.unwrap(),
        }
    };
    let number = output.stdout_text().trim().parse().ok();
    workspace.snapshot("check").await.unwrap();
    workspace.delete_snapshot("check").await.unwrap();
    workspace.stop().await.unwrap();
    number
}

#[test]
fn whatever_is_killed_the_workspaces_keep_what_was_synced() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if std::env::args().any(|word| word == KEEP) {
        let kept = runtime.block_on(Keeper::keep(std::future::pending()));
        return kept.unwrap();
    }
    if let Some(folder) = std::env::var_os(FOLDER) {
        return runtime.block_on(work(folder.into()));
    }
    let kills: u64 = std::env::var(KILLS).map_or(10, |text| text.parse().unwrap());
    set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    // Before, so that no program is killed while it builds the image.
    drop(new());
    let folder = tempfile::tempdir().unwrap();
    let workspaces = workspaces(folder.path());
    let mut random = Random(std::process::id().into());
    let (mut checked, mut found) = (0, 0);
    for _ in 0..kills {
        let program = Program::start(folder.path());
        std::thread::sleep(Duration::from_millis(random.below(LIFETIME_MS)));
        if random.below(2) == 0 {
            runtime.block_on(kill_keeper(&workspaces, &mut random));
            // What the program does when it learns of it.
            std::thread::sleep(Duration::from_millis(random.below(500)));
        }
        let synced = program.kill();
        runtime.block_on(async {
            settle(&workspaces, folder.path()).await;
            for info in workspaces.list().await.unwrap() {
                let workspace = workspaces.get(&info.id).await.unwrap();
                let number = use_workspace(&workspace).await;
                match info.name.as_deref() {
                    Some("main") => {
                        found += 1;
                        if synced.is_some() {
                            assert!(number >= synced, "{number:?} {synced:?} {info:?}");
                            checked += 1;
                        }
                    }
                    // A fork that was not deleted.
                    _ => workspace.delete().await.unwrap(),
                }
            }
        });
        reap_all();
    }
    println!("{found} workspaces, {checked} with a number, after {kills} kills");
    assert!(kills < 10 || found > 0);
    runtime.block_on(async {
        for info in workspaces.list().await.unwrap() {
            let workspace = workspaces.get(&info.id).await.unwrap();
            workspace.delete().await.unwrap();
        }
    });
    reap_all();
    let left = fs::read_dir(folder.path().join("workspaces")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        left.iter().all(|name| name == "lock" || name == "listed"),
        "{left:?}"
    );
}
