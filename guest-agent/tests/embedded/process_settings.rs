use std::{env, fs, path::PathBuf};

use rustix::process::{Pid, Signal, getpid, getpriority_process, parent_process_death_signal};

/// What programs inherit or notice of a process, and an agent in it must not
/// change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProcessSettings {
    /// Blocked, ignored and caught signals, capabilities, and the umask.
    status: Vec<String>,
    limits: String,
    directory: PathBuf,
    niceness: i32,
    parent_death_signal: Option<Signal>,
    session: Option<Pid>,
}

impl ProcessSettings {
    /// Reads those of this process, which has one thread.
    pub(crate) fn read() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let kept = ["SigBlk:", "SigIgn:", "SigCgt:", "Cap", "Umask:", "Threads:"];
        let is_kept = |line: &&str| kept.iter().any(|name| line.starts_with(name));
        Self {
            status: status.lines().filter(is_kept).map(String::from).collect(),
            limits: fs::read_to_string("/proc/self/limits").unwrap(),
            directory: env::current_dir().unwrap(),
            niceness: getpriority_process(None).unwrap(),
            parent_death_signal: parent_process_death_signal().unwrap(),
            session: rustix::process::getsid(Some(getpid())).ok(),
        }
    }
}
