//! Output that is read slowly, or not at all.

use sha2::{Digest, Sha256};
use vmcell_wire::{
    Channel, ExitCause, Position, Request, Selector, StreamId, terminal::UnreadOutput,
};

use super::helpers::*;
use crate::client::{Host, Listed, Reply, RunningAgent, Spec};

const KEEP: u32 = 16 * 1024;

/// Prints the numbers up to this one, in ten bytes each.
fn numbers(last: u32) -> Spec {
    let script = format!("stty -onlcr; seq -f %09.0f {last}");
    Spec::shell(&script).with(|spec| spec.start.keep = KEEP)
}

fn all_numbers(last: u32) -> Vec<u8> {
    let text: String = (1..=last).map(|number| format!("{number:09}\n")).collect();
    text.into_bytes()
}

fn listed(host: &mut Host, id: u32) -> Listed {
    let (list, _) = host.list(0);
    list.into_iter().find(|entry| entry.id == id).unwrap()
}

/// Waits until the agent stops reading a terminal because its ring is full.
fn until_full(host: &mut Host, id: u32) {
    loop {
        let (start, end) = listed(host, id).stdout;
        if end - start >= u64::from(KEEP) {
            return;
        }
    }
}

fn take(host: &Host, stream: StreamId, all: &mut Vec<u8>) -> u64 {
    all.extend(host.output(stream, Channel::Stdout));
    u64::try_from(all.len()).unwrap()
}

#[test]
fn sixteen_megabytes_reach_a_slow_reader_whole() {
    let agent = RunningAgent::start();
    let window = 32 * 1024;
    let mut host = agent.connect_with_window(window);
    host.credit_automatically = false;
    let count = 16 << 20;
    let script = format!(
        "stty -opost; yes 'a line that is not so short' | head -c {count} | \
         tee /dev/stderr | sha256sum >&3"
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("digest");
    let script = format!("exec 3>{}; {script}", path.display());
    let spec = Spec::shell(&script).with(|spec| spec.start.keep = KEEP);
    let (_, stream) = open_attached(&mut host, &spec);
    let mut digest = Sha256::new();
    let mut total = 0;
    while total < count {
        host.until(|reply| matches!(reply, Reply::Data(..)));
        let bytes = host.seen.remove(&(stream, Channel::Stdout)).unwrap();
        digest.update(&bytes);
        total += bytes.len();
        host.grant(stream, Channel::Stdout, u32::try_from(bytes.len()).unwrap());
    }
    let exit = host.exit(stream);
    assert_eq!((total, exit.outputs_cut), (count, false));
    let ours: String = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let theirs = std::fs::read_to_string(path).unwrap();
    assert!(theirs.starts_with(&ours), "{ours} {theirs}");
}

#[test]
fn a_kept_terminal_loses_nothing_however_often_links_break() {
    let agent = RunningAgent::start();
    let last = 300_000;
    let window = 20_000;
    let mut host = agent.connect_with_window(window);
    let (id, _) = open(&mut host, &numbers(last), UnreadOutput::Block);
    let mut stream = attach_writer(&mut host, id, 0, 1);
    let mut all = Vec::new();
    for round in 0..30 {
        host.until(|reply| matches!(reply, Reply::Data(..)));
        let offset = take(&host, stream, &mut all);
        host.close();
        host = agent.connect_with_window(window);
        if round % 3 == 0 {
            // No reader is attached until the program blocks.
            until_full(&mut host, id);
        }
        stream = attach_writer(&mut host, id, offset, round);
    }
    let exit = host.exit(stream);
    take(&host, stream, &mut all);
    assert_eq!(exit.stdout_bytes, u64::from(last) * 10);
    assert!(all == all_numbers(last));
}

#[test]
fn what_was_received_and_not_consumed_can_be_had_again() {
    let agent = RunningAgent::start();
    let window = 20_000;
    let mut host = agent.connect_with_window(window);
    let (id, _) = open(&mut host, &numbers(50_000), UnreadOutput::Block);
    for writer in 0..5 {
        let mut host = agent.connect_with_window(window);
        host.credit_automatically = false;
        let stream = attach_writer(&mut host, id, 0, writer);
        host.until_bytes(stream, 20_000);
        host.close();
    }
    let stream = attach_writer(&mut host, id, 0, 9);
    host.exit(stream);
    assert!(host.output(stream, Channel::Stdout) == all_numbers(50_000));
}

#[test]
fn a_kept_terminal_waits_for_somebody_to_come() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = open(&mut host, &numbers(50_000), UnreadOutput::Block);
    until_full(&mut host, id);
    let (start, end) = listed(&mut host, id).stdout;
    assert_eq!((start, end), (0, u64::from(KEEP)));
    let stream = attach_writer(&mut host, id, 0, 1);
    host.exit(stream);
    assert!(host.output(stream, Channel::Stdout) == all_numbers(50_000));
}

#[test]
fn who_comes_to_a_full_terminal_and_wants_the_rest_only_gets_it_going() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = open(&mut host, &numbers(50_000), UnreadOutput::Block);
    until_full(&mut host, id);
    let stream = attach_writer(&mut host, id, Position::NOW, 1);
    let exit = host.exit(stream);
    assert_eq!(exit.stdout_bytes, 500_000);
    let expected = all_numbers(50_000);
    assert!(host.output(stream, Channel::Stdout) == &expected[KEEP as usize..]);
}

#[test]
fn a_terminal_whose_output_is_dropped_goes_on_without_a_reader() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    host.credit_automatically = false;
    let (id, _) = open(&mut host, &numbers(50_000), UnreadOutput::DropOldest);
    let stream = attach_writer(&mut host, id, 0, 1);
    // While a reader is attached, it waits.
    host.until_bytes(stream, 65_536);
    host.close();
    let mut host = agent.connect();
    let exit = loop {
        if let Some(exit) = listed(&mut host, id).exit {
            break exit;
        }
    };
    assert_eq!(exit.stdout_bytes, 500_000);
    let stream = attach_writer(&mut host, id, 65_536, 1);
    assert_eq!(host.exit(stream).stdout_bytes, 500_000);
    let expected = all_numbers(50_000);
    let rest = host.output(stream, Channel::Stdout);
    assert!(expected.ends_with(rest));
    // The ring grew to the window of the first reader.
    assert_eq!(rest.len(), 65_536);
    let Some(Reply::Gap(_, _, gap)) = host.replies_on(stream).next() else {
        panic!("no gap");
    };
    assert_eq!(65_536 + *gap + 65_536, 500_000);
}

#[test]
fn a_full_terminal_that_nobody_reads_can_be_killed_and_read_later() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = open(&mut host, &numbers(1_000_000), UnreadOutput::Block);
    until_full(&mut host, id);
    let process = Selector::Id(id);
    let Reply::Exited(_, exit) = host.ask(&Request::Kill { process }) else {
        panic!("not killed");
    };
    assert_eq!(exit.cause, ExitCause::Killed);
    // Its exit status is final although it has no reader.
    let settled = loop {
        if let Some(exit) = listed(&mut host, id).exit {
            break exit;
        }
    };
    // What the kernel had buffered is included.
    assert!(!settled.outputs_cut, "{settled:?}");
    assert!(settled.stdout_bytes > u64::from(KEEP));
    let stream = attach_writer(&mut host, id, 0, 1);
    assert_eq!(host.exit(stream), settled);
    let read = host.output(stream, Channel::Stdout);
    assert_eq!(read.len() as u64, settled.stdout_bytes);
    assert!(all_numbers(10_000).starts_with(read));
}

#[test]
fn a_terminal_can_be_killed_while_its_reader_does_not_read() {
    let agent = RunningAgent::start();
    // It prints much only when its reader is attached, so that nothing is
    // dropped.
    let script = "stty -onlcr -echo; echo ready; read go; exec seq -f %09.0f 1000000";
    let spec = || Spec::shell(script).with(|spec| spec.start.keep = KEEP);
    for unread in [UnreadOutput::DropOldest, UnreadOutput::Block] {
        let mut host = agent.connect_with_window(KEEP);
        host.credit_automatically = false;
        let (id, _) = open(&mut host, &spec(), unread);
        let stream = attach_writer(&mut host, id, 0, 1);
        until_printed(&mut host, stream, "ready\n", 1);
        host.write_stdin(stream, b"\n");
        host.until_bytes(stream, KEEP as usize);
        let process = Selector::Id(id);
        let killed = host.ask(&Request::Kill { process });
        assert!(matches!(killed, Reply::Exited(_, exit) if exit.cause == ExitCause::Killed));
        // The reader continues, and misses nothing.
        host.credit_automatically = true;
        host.grant(stream, Channel::Stdout, KEEP);
        let exit = host.exit(stream);
        let read = host.output(stream, Channel::Stdout);
        assert_eq!(
            (read.len() as u64, exit.outputs_cut),
            (exit.stdout_bytes, false)
        );
        let numbers = read.strip_prefix(b"ready\n").unwrap();
        assert!(all_numbers(10_000).starts_with(numbers));
    }
}

#[test]
fn ended_terminals_keep_what_nobody_has_read_however_many_they_are() {
    let agent = RunningAgent::start();
    let mut host = agent.connect_with_window(1 << 20);
    // Together more than the agent keeps of other ended processes.
    let (count, size) = (34, 1 << 20);
    let script = format!("stty -opost; head -c {size} /dev/zero");
    let ids: Vec<u32> = (0..count)
        .map(|_| open(&mut host, &Spec::shell(&script), UnreadOutput::Block).0)
        .collect();
    while host.list(0).0.iter().any(|entry| entry.exit.is_none()) {}
    for id in ids {
        let stream = attach_writer(&mut host, id, 0, 1);
        host.exit(stream);
        assert_eq!(host.output(stream, Channel::Stdout).len(), size);
        host.seen.clear();
    }
}
