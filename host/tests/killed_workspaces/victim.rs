use std::fs;

use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::{program::Program, random::Random};

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Victim {
    Program,
    Keeper,
    Vmm,
}

impl Victim {
    pub(crate) const COUNT: usize = 3;

    /// Kills a process: the program, a keeper or the VMM of one. Without keepers, the
    /// program.
    pub(crate) fn kill_one(program: &Program, random: &mut Random) -> Self {
        // Those of programs that have ended are children of this one.
        let mut keepers = children(getpid());
        keepers.retain(|pid| *pid != program.pid());
        keepers.extend(children(program.pid()));
        let vmms: Vec<_> = keepers.iter().flat_map(|pid| children(*pid)).collect();
        let (victim, pid) = match random.below(Self::COUNT as u64) {
            1 if !keepers.is_empty() => (Self::Keeper, *random.choose(&keepers)),
            2 if !vmms.is_empty() => (Self::Vmm, *random.choose(&vmms)),
            _ => (Self::Program, program.pid()),
        };
        // Fails if it has ended.
        let _ = kill_process(pid, Signal::KILL);
        victim
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
