//! A program that is killed while it makes templates, takes snapshots and restores them.
//!
//! This program is the one that is killed, too: it starts itself with a variable set. It
//! has this one test only, because it adopts and reaps all processes that are left.
#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{WaitOptions, set_child_subreaper, wait};
use vmcell::{Template, Vm, VmBuilder};

/// Names the folder in which the program that is killed works.
const FOLDER: &str = "VMCELL_TEST_FOLDER";

/// Sets how often the program is killed.
const KILLS: &str = "VMCELL_TEST_KILLS";

/// The longest time after which it is killed: two rounds of its work.
const LIFETIME_MS: u64 = 4000;

fn builder() -> VmBuilder {
    let image = vmcell_rootfs::recipe::base().cached().unwrap().path;
    Vm::builder().image(image).memory_mib(128)
}

fn template_name(folder: &Path) -> String {
    let name = folder.file_name().unwrap().to_str().unwrap();
    format!("killed-{}", name.trim_start_matches('.'))
}

/// Works until it is killed.
async fn work(folder: PathBuf) {
    println!("begun");
    let pid = std::process::id();
    for round in 0.. {
        let name = template_name(&folder);
        let template = Template::builder(builder()).name(name);
        let template = template.prepare(format!("{pid} {round}"), |vm| async move {
            vm.files().write("/root/file", "made").await?;
            Ok(())
        });
        let template = template.get().await.unwrap();
        let vm = template.start().await.unwrap();
        let path = folder.join(format!("{pid}-{round}"));
        vm.snapshot(&path).await.unwrap();
        Vm::restore(&path).await.unwrap();
    }
}

/// Waits until no process is left.
fn reap_all() {
    let deadline = Instant::now() + Duration::from_secs(20);
    while wait(WaitOptions::NOHANG).is_ok() {
        assert!(Instant::now() < deadline, "a process is left");
        std::thread::yield_now();
    }
}

fn entries(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .unwrap()
        .as_encoded_bytes()
        .starts_with(b".")
}

async fn assert_whole(path: &Path) {
    let vm = Vm::restore(path).await.unwrap();
    assert_eq!(vm.files().read("/root/file").await.unwrap(), b"made");
}

#[test]
fn what_a_killed_program_leaves_is_whole_or_not_there() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Some(folder) = std::env::var_os(FOLDER) {
        runtime.block_on(work(folder.into()));
        return;
    }
    let kills: u64 = std::env::var(KILLS).map_or(10, |text| text.parse().unwrap());
    set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    // Before, so that no program is killed while it builds the image.
    drop(builder());
    let folder = tempfile::tempdir().unwrap();
    let mut snapshots = 0;
    let mut templates = 0;
    for kill in 0..kills {
        let mut program = Command::new(std::env::current_exe().unwrap())
            .args(["--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("begun")));
        let random = u64::from(std::process::id()) + kill * 2_654_435_761;
        std::thread::sleep(Duration::from_millis(random % LIFETIME_MS));
        program.kill().unwrap();
        drop(program);
        reap_all();
        runtime.block_on(async {
            for path in entries(folder.path())
                .into_iter()
                .filter(|path| !is_hidden(path))
            {
                assert_whole(&path).await;
                std::fs::remove_dir_all(path).unwrap();
                snapshots += 1;
            }
            let template = Template::find(&template_name(folder.path())).await.unwrap();
            if let Some(template) = template {
                assert_whole(&template.path).await;
                templates += 1;
            }
        });
        reap_all();
    }
    println!("{snapshots} snapshots, {templates} templates after {kills} kills");
    assert!(kills < 10 || snapshots + templates > 0);
    // The next snapshot and the next template remove what is left.
    runtime.block_on(async {
        let name = template_name(folder.path());
        let template = Template::builder(builder())
            .name(&name)
            .prepare("last", |_| async { Ok(()) });
        let template = template.get().await.unwrap();
        let vm = template.start().await.unwrap();
        let last = folder.path().join("last");
        vm.snapshot(&last).await.unwrap();
        assert_eq!(entries(folder.path()), BTreeSet::from([last]));
        let others = entries(template.path().parent().unwrap());
        let is_ours = |path: &PathBuf| is_hidden(path) && path.to_string_lossy().contains(&name);
        assert!(!others.iter().any(is_ours), "{others:?}");
        assert!(Template::remove(&name).await.unwrap());
    });
}
