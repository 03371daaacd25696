//! A program that embeds the agent, and has a child of its own.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vmcell_agent::{Agent, Progress, Reaping, program::reap, stdin_copy};

/// How the program and the agent share their children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Each reaps its own.
    Apart,
    /// The program reaps all, and hands them over.
    HandedOver,
    /// The program reaps all, also the agent's, and does not tell it.
    Stolen,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::Apart, Self::HandedOver, Self::Stolen];
}

/// How often the program looks after its own child.
const INTERVAL: Duration = Duration::from_millis(20);

/// Runs until it is killed. What happens to its own child is printed.
pub(crate) fn run(mode: Mode) -> ! {
    let mut agent = Agent::builder()
        .listener(stdin_copy().unwrap())
        .reaping(match mode {
            Mode::Apart | Mode::Stolen => Reaping::OwnChildren,
            Mode::HandedOver => Reaping::HandedOver,
        })
        .build()
        .unwrap();
    let mut own = start_own_child();
    loop {
        let timeout = agent
            .timeout()
            .map_or(INTERVAL, |timeout| timeout.min(INTERVAL));
        let timeout = Timespec::try_from(timeout).unwrap();
        poll(&mut [PollFd::new(&agent, PollFlags::IN)], Some(&timeout)).unwrap();
        match mode {
            Mode::Apart => {
                if let Some(status) = own.try_wait().unwrap() {
                    println!("own child: {}", status.code().unwrap());
                    own = start_own_child();
                }
            }
            Mode::HandedOver | Mode::Stolen => {
                while let Some(exit) = reap().unwrap() {
                    let is_agents = mode == Mode::HandedOver && agent.child_ended(&exit);
                    assert_eq!(is_agents, mode == Mode::HandedOver && exit.pid != pid(&own));
                    if exit.pid == pid(&own) {
                        println!("own child: {}", exit.status >> 8);
                        own = start_own_child();
                    }
                }
            }
        }
        assert_eq!(agent.turn().unwrap(), Progress::Serving);
    }
}

fn start_own_child() -> Child {
    let mut command = Command::new("sh");
    command
        .args(["-c", "sleep 0.05; exit 5"])
        .stdin(Stdio::null());
    command.spawn().unwrap()
}

fn pid(child: &Child) -> i32 {
    child.id().try_into().unwrap()
}
