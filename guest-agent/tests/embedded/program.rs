//! A program that embeds the agent, and has children of its own.

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, Command, Stdio, exit},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{
        Pid, PidfdFlags, WaitId, WaitIdOptions, getpid, pidfd_open, set_child_subreaper, waitid,
    },
};
use vmcell_agent::{
    Agent, Progress, Reaping,
    program::{has_children, reap},
    stdin_copy,
};

use crate::{
    client::{Host, Spec},
    process_settings::ProcessSettings,
    snapshots,
};

/// How the program and the agent share their children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Each reaps its own.
    Apart,
    /// Each reaps its own, and orphans become children of the program.
    Subreaper,
    /// The program reaps all, and hands them over.
    HandedOver,
    /// The program reaps all, also the agent's, and does not tell it.
    Stolen,
    /// The program starts a command, kills all and ends.
    KillAll,
    /// The program has cgroups, and takes new identities.
    Snapshots,
}

impl Mode {
    const ALL: [Self; 6] = [
        Self::Apart,
        Self::Subreaper,
        Self::HandedOver,
        Self::Stolen,
        Self::KillAll,
        Self::Snapshots,
    ];

    /// Returns the argument with which this program embeds the agent.
    pub(crate) fn argument(self) -> String {
        format!("--embed={self:?}")
    }

    pub(crate) fn from_argument(argument: &str) -> Option<Self> {
        let is_it = |mode: &Self| mode.argument() == argument;
        Self::ALL.into_iter().find(is_it)
    }

    fn reaping(self) -> Reaping {
        match self {
            Self::HandedOver => Reaping::HandedOver,
            _ => Reaping::OwnChildren,
        }
    }
}

/// How often a program that reaps all children looks for them.
const INTERVAL: Duration = Duration::from_millis(20);

/// The exit codes of the program's own children.
pub(crate) const OWN_CODE: i32 = 5;
const UNREAPED_CODE: i32 = 7;

/// Embeds the agent until this program is killed, or as the mode says.
pub(crate) fn run(mode: Mode) -> ! {
    match mode {
        Mode::Apart => run_apart(),
        Mode::Subreaper => {
            set_child_subreaper(Some(getpid())).unwrap();
            run_apart()
        }
        Mode::HandedOver | Mode::Stolen => run_reaping_all(mode),
        Mode::KillAll => {
            kill_all();
            exit(0)
        }
        Mode::Snapshots => snapshots::run(),
    }
}

/// Sleeps until the agent or the own child has something to do, and never looks
/// for other children. Prints the end of each own child.
#[expect(
    clippy::zombie_processes,
    reason = "one stays for the agent to leave it"
)]
fn run_apart() -> ! {
    let settings = ProcessSettings::read();
    let mut agent = build(Mode::Apart);
    let unreaped = start_own_child(UNREAPED_CODE);
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_child(&unreaped)), options).unwrap();
    loop {
        let mut own = start_own_child(OWN_CODE);
        let handle = pidfd_open(Pid::from_child(&own), PidfdFlags::empty()).unwrap();
        while !wait(&agent, Some(&handle), None) {
            assert_eq!(agent.turn().unwrap(), Progress::Serving);
            assert_eq!(ProcessSettings::read(), settings);
            let options = options | WaitIdOptions::NOHANG;
            let status = waitid(WaitId::Pid(Pid::from_child(&unreaped)), options).unwrap();
            assert_eq!(status.unwrap().exit_status(), Some(UNREAPED_CODE));
        }
        println!("own child: {}", own.wait().unwrap().code().unwrap());
    }
}

/// Reaps all children, and prints the end of each own child.
#[expect(clippy::zombie_processes, reason = "`reap` waits for them")]
fn run_reaping_all(mode: Mode) -> ! {
    let settings = ProcessSettings::read();
    let mut agent = build(mode);
    let mut own = start_own_child(OWN_CODE);
    loop {
        wait(&agent, None, Some(INTERVAL));
        while let Some(exit) = reap().unwrap() {
            let is_own = exit.pid == Pid::from_child(&own).as_raw_nonzero().get();
            let is_agents = mode == Mode::HandedOver && agent.child_ended(&exit);
            assert!(!is_own || !is_agents);
            if is_own {
                println!("own child: {}", exit.status >> 8);
                own = start_own_child(OWN_CODE);
            }
        }
        assert_eq!(agent.turn().unwrap(), Progress::Serving);
        assert_eq!(ProcessSettings::read(), settings);
    }
}

/// Starts a command, kills it, and takes turns until nothing of it is left.
fn kill_all() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut agent = Agent::builder()
        .socket(OwnedFd::from(theirs))
        .build()
        .unwrap();
    let mut host = Host::new(ours);
    host.say_hello(64 * 1024);
    host.start(&Spec::new(&["sleep", "1000"]));
    while !agent.has_children() {
        wait(&agent, None, None);
        assert_eq!(agent.turn().unwrap(), Progress::Serving);
    }
    agent.kill_all();
    while agent.has_children() {
        wait(&agent, None, None);
        assert_eq!(agent.turn().unwrap(), Progress::Serving);
    }
    drop(agent);
    assert!(!has_children());
}

fn build(mode: Mode) -> Agent {
    let built = Agent::builder()
        .listener(stdin_copy().unwrap())
        .reaping(mode.reaping())
        .build();
    built.unwrap_or_else(|error| {
        println!("not built: {error}");
        exit(1)
    })
}

/// Sleeps until the agent is to take a turn, or the other descriptor is ready, and
/// at most for `limit`. Returns whether the other descriptor is ready.
pub(crate) fn wait(agent: &Agent, other: Option<&OwnedFd>, limit: Option<Duration>) -> bool {
    let timeout = agent.timeout().into_iter().chain(limit).min();
    let timeout = timeout.map(|timeout| Timespec::try_from(timeout).unwrap());
    let mut wanted = vec![PollFd::new(agent, PollFlags::IN)];
    wanted.extend(other.map(|other| PollFd::new(other, PollFlags::IN)));
    poll(&mut wanted, timeout.as_ref()).unwrap();
    wanted
        .get(1)
        .is_some_and(|other| !other.revents().is_empty())
}

fn start_own_child(code: i32) -> Child {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("sleep 0.05; exit {code}")])
        .stdin(Stdio::null());
    command.spawn().unwrap()
}
