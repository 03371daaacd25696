//! The agent without descriptors left, and the descriptor limits of its
//! children.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use vmcell_wire::{Channel, Hello, Request, encode};

use crate::client::{Reply, RunningAgent, code};

/// Limits the descriptors of a running agent, and returns the limit it had.
fn limit(agent: &RunningAgent, current: Option<u64>) -> Option<u64> {
    let pid = Pid::from_child(&agent.child);
    let maximum = getrlimit(Resource::Nofile).maximum;
    let old = prlimit(Some(pid), Resource::Nofile, Rlimit { current, maximum });
    old.unwrap().current
}

#[test]
fn a_connection_that_found_no_descriptor_is_taken_when_there_is_one() {
    let agent = RunningAgent::start();
    let mut first = agent.connect();
    // Every new descriptor would have a higher number.
    let usual = limit(&agent, Some(3));
    let mut second = agent.connect_without_hello();
    second.send(|out| encode::hello(out, &Hello::new("test", 65536, [0; 16])).unwrap());
    // The agent has seen the connection when it has seen what came later.
    let ping = first.open(&Request::Ping);
    first.until(|reply| *reply == Reply::Pong(ping));
    limit(&agent, usual);
    second.until(|reply| matches!(reply, Reply::Hello));
}

#[test]
fn the_agent_may_have_more_descriptors_than_its_children() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let given = getrlimit(Resource::Nofile);
    let pid = Pid::from_child(&agent.child);
    let maximum = given.maximum;
    let current = given.current;
    let raised = prlimit(Some(pid), Resource::Nofile, Rlimit { current, maximum }).unwrap();
    assert!(raised.current >= given.current.map(|limit| limit.min(65536)));
    let stream = host.exec(&["sh", "-c", "ulimit -Sn; ulimit -Hn"]);
    assert_eq!(code(&host.exit(stream)), 0);
    let shown =
        |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
    let expected = format!("{}\n{}\n", shown(given.current), shown(given.maximum));
    let printed = host.output(stream, Channel::Stdout);
    assert_eq!(String::from_utf8_lossy(printed), expected);
}
