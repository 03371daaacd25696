use std::{env, fs, path::PathBuf};

use rustix::process::{Signal, getpriority_process, parent_process_death_signal};

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
    /// The process group and the session, each 0 when its leader is outside the
    /// PID namespace.
    group_and_session: Vec<String>,
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
            group_and_session: group_and_session(),
        }
    }
}

/// Reads both from /proc, because rustix takes a session of 0 for impossible.
fn group_and_session() -> Vec<String> {
    let status = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, after_name) = status.rsplit_once(") ").unwrap();
    let fields = after_name.split(' ').skip(2).take(2);
    fields.map(String::from).collect()
}
