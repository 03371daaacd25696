//! Several readers of one terminal.

use vmcell_wire::{Channel, terminal::UnreadOutput};

use super::helpers::*;
use crate::client::{Reply, RunningAgent, Spec};

fn numbers() -> Spec {
    let script = "read x; stty -onlcr; seq -f %09.0f 100000";
    Spec::without_echo(script).with(|spec| spec.start.keep = 16 * 1024)
}

#[test]
fn all_who_watch_see_the_same() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = open(&mut host, &Spec::bash(), UnreadOutput::Block);
    let mut other = agent.connect();
    let first = attach_writer(&mut host, id, 0, 1);
    let second = attach_writer(&mut host, id, 0, 2);
    let third = attach_writer(&mut other, id, 0, 3);
    until_printed(&mut host, first, "$ ", 1);
    host.write_stdin(first, b"echo one; ");
    until_printed(&mut host, second, "echo one; ", 1);
    host.write_stdin(second, b"echo two; ");
    until_printed(&mut other, third, "echo two; ", 1);
    other.write_stdin(third, b"exit 5\n");
    let exits = [host.exit(first), host.exit(second), other.exit(third)];
    assert!(exits.iter().all(|exit| *exit == exits[0]), "{exits:?}");
    let text = printed(&host, first);
    assert!(text.contains("\none\ntwo\n"), "{text}");
    assert_eq!(printed(&host, second), text);
    assert_eq!(printed(&other, third), text);
}

#[test]
fn the_program_waits_for_the_fastest_and_the_others_are_told_what_they_miss() {
    let agent = RunningAgent::start();
    let (mut fast, mut slow) = (agent.connect(), agent.connect_with_window(16 * 1024));
    slow.credit_automatically = false;
    let (id, _) = open(&mut fast, &numbers(), UnreadOutput::Block);
    let lazy = attach_writer(&mut slow, id, 0, 1);
    let quick = attach_writer(&mut fast, id, 0, 2);
    until_printed(&mut fast, quick, "ready", 1);
    fast.write_stdin(quick, b"\n");
    let exit = fast.exit(quick);
    let seen = fast.output(quick, Channel::Stdout).to_vec();
    assert_eq!(seen.len() as u64, exit.stdout_bytes);
    // The slow one continues when everything is printed.
    slow.until_bytes(lazy, 16 * 1024);
    slow.credit_automatically = true;
    slow.grant(lazy, Channel::Stdout, 16 * 1024);
    assert_eq!(slow.exit(lazy), exit);
    let mut offset = 0;
    let (mut missed, mut read) = (0, 0);
    let got = slow.output(lazy, Channel::Stdout);
    for reply in slow.replies_on(lazy) {
        match reply {
            Reply::Gap(_, _, bytes) => {
                offset += usize::try_from(*bytes).unwrap();
                missed += bytes;
            }
            Reply::Data(_, _, count) => {
                assert!(got[read..read + count] == seen[offset..offset + count]);
                offset += count;
                read += count;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(missed > 0);
    assert_eq!(offset, seen.len());
}

#[test]
fn when_the_fastest_leaves_the_others_are_waited_for() {
    let agent = RunningAgent::start();
    let (mut fast, mut slow) = (agent.connect(), agent.connect_with_window(16 * 1024));
    slow.credit_automatically = false;
    let (id, _) = open(&mut fast, &numbers(), UnreadOutput::DropOldest);
    let quick = attach_writer(&mut fast, id, 0, 2);
    let lazy = attach_writer(&mut slow, id, 0, 1);
    until_printed(&mut fast, quick, "ready", 1);
    fast.write_stdin(quick, b"\n");
    fast.until_bytes(quick, 300_000);
    let before = fast.output(quick, Channel::Stdout).len() as u64;
    fast.close();
    slow.until_bytes(lazy, 16 * 1024);
    slow.credit_automatically = true;
    slow.grant(lazy, Channel::Stdout, 16 * 1024);
    let exit = slow.exit(lazy);
    let got = slow.output(lazy, Channel::Stdout);
    let gap: u64 = slow
        .replies_on(lazy)
        .filter_map(|reply| match reply {
            Reply::Gap(_, _, bytes) => Some(*bytes),
            _ => None,
        })
        .sum();
    assert_eq!(got.len() as u64 + gap, exit.stdout_bytes);
    // What it missed was printed while the other was attached.
    assert!(
        gap > 0 && 16 * 1024 + gap <= before + 64 * 1024,
        "{gap} {before}"
    );
    assert!(got.ends_with(b"000099999\n000100000\n"));
}
