//! Programs, keepers and VMMs that are killed while workspaces change.
//!
//! This program is the one that is killed, and the keeper, too: it starts itself with a
//! variable set, or with a word. It has this one test only, because it adopts and reaps all
//! processes that are left.
#![allow(clippy::unwrap_used)]

mod check;
mod program;
mod random;
mod task;
mod victim;

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use rustix::process::set_child_subreaper;
use vmcell::workspace::{Keeper, NewWorkspace, Workspaces};

use crate::{
    check::{check_all, no_process_is_left},
    program::{Program, work},
    random::Random,
    task::Task,
    victim::Victim,
};

/// Sets how often something is killed.
const KILLS: &str = "VMCELL_TEST_KILLS";

/// So many kills are at least one of each victim in each task.
const MANY_KILLS: u64 = 500;

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

/// Kills something while a program carries out a task. Returns which it was, and what the
/// program has synced before, if that must still be there.
fn kill_during(task: Task, folder: &Path, random: &mut Random) -> (Victim, Option<u64>) {
    let program = Program::start(task, folder, random);
    // Short times are as likely as long ones: some tasks take a millisecond.
    let longest = 1 << random.below(13);
    std::thread::sleep(Duration::from_millis(random.below(longest)));
    let victim = Victim::kill_one(&program, random);
    if victim != Victim::Program {
        // What the program does when it learns of it.
        std::thread::sleep(Duration::from_millis(random.below(500)));
    }
    (victim, program.kill())
}

#[test]
fn whatever_is_killed_the_workspaces_keep_what_was_synced() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if std::env::args().any(|word| word == KEEP) {
        let kept = runtime.block_on(Keeper::keep(std::future::pending()));
        return kept.unwrap();
    }
    if let Some(folder) = Program::folder() {
        return runtime.block_on(work(&folder));
    }
    let kills: u64 = std::env::var(KILLS).map_or(10, |text| text.parse().unwrap());
    set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    // Before, so that no program is killed while it builds the image.
    drop(new());
    let folder = tempfile::tempdir().unwrap();
    let workspaces = workspaces(folder.path());
    let mut random = Random::seeded();
    let (mut found, mut checked) = (0, 0);
    let mut seen: BTreeMap<(Victim, Task), u64> = BTreeMap::new();
    for number in 0..kills {
        let task = *random.choose(&Task::ALL);
        let (victim, synced) = kill_during(task, folder.path(), &mut random);
        println!("{number}: killed the {victim:?}, which was to {task:?}");
        *seen.entry((victim, task)).or_default() += 1;
        let is_there = runtime.block_on(check_all(&workspaces, folder.path(), synced));
        found += u64::from(is_there);
        checked += u64::from(is_there && synced.is_some());
        no_process_is_left();
        let unnamed = fs::read_dir(program::temporary(folder.path())).unwrap();
        assert_eq!(unnamed.count(), 0, "a temporary file is left");
    }
    println!("{found} workspaces, {checked} with a number, after {kills} kills: {seen:#?}");
    assert!(kills < 10 || found > 0);
    assert!(kills < MANY_KILLS || seen.len() == Victim::COUNT * Task::ALL.len());
    runtime.block_on(async {
        for info in workspaces.list().await.unwrap() {
            let workspace = workspaces.get(&info.id).await.unwrap();
            workspace.delete().await.unwrap();
        }
    });
    no_process_is_left();
    let left = fs::read_dir(folder.path().join("workspaces")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        left.iter().all(|name| name == "lock" || name == "listed"),
        "{left:?}"
    );
}
