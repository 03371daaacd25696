use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use vmcell_wire::Request;

use crate::{
    client::{Host, Reply, RunningAgent},
    program::{Mode, OWN_CODE},
};

/// This program again, which embeds an agent, and a host that is connected to it.
pub(crate) struct RunningProgram {
    pub(crate) agent: RunningAgent,
    pub(crate) host: Host,
}

/// How long a state may take to be reached; longer means that something is broken.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the command that embeds the agent. It has signals that are blocked,
/// among them SIGCHLD, and one that is ignored.
pub(crate) fn command(mode: Mode, ignored_signal: &str) -> Command {
    let mut command = Command::new("env");
    command
        .arg("--block-signal=USR1,CHLD")
        .arg(format!("--ignore-signal={ignored_signal}"))
        .arg(env::current_exe().unwrap())
        .arg(mode.argument())
        .current_dir("/tmp")
        .stdout(Stdio::piped());
    command
}

impl RunningProgram {
    pub(crate) fn start(mode: Mode) -> Self {
        let agent = RunningAgent::run(&mut command(mode, "HUP"));
        let host = agent.connect();
        Self { agent, host }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.agent.child.id()
    }

    /// Checks that the program still receives the ends of its own children.
    pub(crate) fn check_own_children(mut self) {
        let printed = BufReader::new(self.agent.child.stdout.take().unwrap());
        let mut lines = printed.lines();
        for _ in 0..3 {
            assert_eq!(
                lines.next().unwrap().unwrap(),
                format!("own child: {OWN_CODE}")
            );
        }
    }

    /// Has the agent take turns until a condition holds.
    pub(crate) fn until(&mut self, condition: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !condition(self) {
            assert!(began.elapsed() < TIMEOUT, "the state was not reached");
            assert!(matches!(self.host.ask(&Request::Ping), Reply::Pong(_)));
        }
    }

    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid()))
            .unwrap()
            .count()
    }

    /// Returns the commands of the agent that are not reaped. Each has a session of
    /// its own.
    pub(crate) fn commands(&self) -> Vec<u32> {
        let children = self.children().into_iter();
        children
            .filter(|pid| field(*pid, SESSION) == Some(pid.to_string()))
            .collect()
    }

    /// Returns the processes that the agent has forked for its own work: those with
    /// the program's own file.
    pub(crate) fn forks(&self) -> Vec<u32> {
        let file = |pid| fs::read_link(format!("/proc/{pid}/exe")).ok();
        let own = file(self.pid());
        let children = self.children().into_iter();
        children.filter(|pid| file(*pid) == own).collect()
    }

    fn children(&self) -> Vec<u32> {
        let pid = self.pid();
        let all = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        all.split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect()
    }
}

/// The fields of proc_pid_stat(5) behind the name, from 0 on.
pub(crate) const STATE: usize = 0;
pub(crate) const PARENT: usize = 1;
const SESSION: usize = 3;

/// Returns a field of a process's state, if there is such a process.
pub(crate) fn field(pid: u32, number: usize) -> Option<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = line.rsplit_once(") ")?;
    fields.split(' ').nth(number).map(String::from)
}
