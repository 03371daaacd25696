//! InputKind input arrives once and in order, whichever writer it comes from.

use sha2::{Digest, Sha256};
use vmcell_wire::{
    Channel, FailureKind, Position, Request, Selector, Stage, StreamId, encode,
    terminal::{AttachTerminal, InputKind, TerminalRequest, UnreadOutput},
};

use super::helpers::*;
use crate::client::{Host, Reply, RunningAgent, Spec};

/// Reads `count` bytes from a terminal in raw mode, and prints their digest.
fn digest_of_typing(count: usize) -> Spec {
    Spec::without_echo(&format!("stty raw; echo go; head -c {count} | sha256sum"))
}

/// Reads `count` bytes and prints them.
fn print_typing(count: usize) -> Spec {
    Spec::without_echo(&format!("stty raw; echo go; head -c {count} | cat"))
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes in which no two pieces are equal.
fn noise(count: usize) -> Vec<u8> {
    (0..count.div_ceil(32))
        .flat_map(|number| Sha256::digest(number.to_le_bytes()))
        .take(count)
        .collect()
}

/// Attaches as a writer, and returns how much of its input has arrived and how
/// much more it may send.
fn reattach_writer(host: &mut Host, id: u32, writer: u64) -> (StreamId, usize, usize) {
    let window = host.window;
    let stream = host.open(&Request::Terminal(TerminalRequest::Attach(
        AttachTerminal {
            process: Selector::Id(id),
            output: Position { offset: 0, window },
            writer,
        },
    )));
    let stdin = host.attached(stream).stdin.unwrap();
    let arrived = usize::try_from(stdin.offset).unwrap();
    (stream, arrived, usize::try_from(stdin.window).unwrap())
}

#[test]
fn a_megabyte_is_typed_to_a_program_that_takes_its_time() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let bytes = noise(1 << 20);
    let (_, stream) = open_attached(&mut host, &digest_of_typing(bytes.len()));
    until_printed(&mut host, stream, "go", 1);
    host.type_all(stream, &bytes);
    host.exit(stream);
    let text = printed(&host, stream);
    assert!(text.contains(&hex(&bytes)), "{text}");
}

#[test]
fn what_is_typed_ahead_waits_for_the_program() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    // More than the kernel accepts, and the program does not read yet.
    let bytes = noise(200_000);
    let spec = Spec::without_echo("stty raw; kill -STOP $$; head -c 200000 | sha256sum");
    let (id, stream) = open_attached(&mut host, &spec);
    until_printed(&mut host, stream, "ready", 1);
    until_stopped(look(&mut host, id).foreground.unwrap().0);
    host.type_all(stream, &bytes);
    // Nothing gets in between, and other requests do not wait for the writer.
    let secret = type_as(&mut host, id, b"word\n", InputKind::Secret);
    assert!(matches!(
        secret,
        Reply::Failed(_, FailureKind::Conflict, _, Stage::Terminal)
    ));
    let answer = type_as(
        &mut host,
        id,
        b"answer",
        InputKind::QueryReply { writer: 1 },
    );
    assert!(matches!(answer, Reply::Done(_)));
    assert!(matches!(
        signal(&mut host, id, libc::SIGCONT),
        Reply::Done(_)
    ));
    host.exit(stream);
    assert!(printed(&host, stream).contains(&hex(&bytes)));
}

#[test]
fn two_may_type_at_once_and_each_keeps_its_order() {
    let agent = RunningAgent::start();
    let (mut one, mut two) = (agent.connect(), agent.connect());
    let count = 300_000;
    let (id, _) = open(&mut one, &print_typing(2 * count), UnreadOutput::Block);
    let first = attach_writer(&mut one, id, 0, 1);
    until_printed(&mut one, first, "go", 1);
    let typist = std::thread::spawn(move || {
        let second = attach_writer(&mut two, id, 0, 2);
        let large: Vec<u8> = (b'A'..=b'Z').cycle().take(count).collect();
        two.type_all(second, &large);
        two.exit(second);
    });
    let small: Vec<u8> = (b'a'..=b'z').cycle().take(count).collect();
    one.type_all(first, &small);
    one.exit(first);
    typist.join().unwrap();
    let typed = one.output(first, Channel::Stdout);
    let only = |range: std::ops::RangeInclusive<u8>| {
        let letters = typed.iter().rev().take(2 * count).rev();
        letters
            .copied()
            .filter(|byte| range.contains(byte))
            .collect::<Vec<_>>()
    };
    assert!(only(b'a'..=b'z') == small);
    let large: Vec<u8> = (b'A'..=b'Z').cycle().take(count).collect();
    assert!(only(b'A'..=b'Z') == large);
}

#[test]
fn a_writer_whose_link_breaks_goes_on_at_the_byte_that_is_missing() {
    let agent = RunningAgent::start();
    let bytes = noise(1 << 20);
    let mut host = agent.connect();
    let (id, stream) = open_attached(&mut host, &digest_of_typing(bytes.len()));
    until_printed(&mut host, stream, "go", 1);
    host.close();
    let mut breaks = 0;
    loop {
        // The link breaks in the middle of a frame.
        let mut host = agent.connect();
        let (stream, arrived, window) = reattach_writer(&mut host, id, 7);
        let rest = &bytes[arrived..];
        let end = rest.len().min(100_000).min(window);
        host.send(|out| {
            let header = encode::data_header(stream, Channel::Stdin, end).unwrap();
            out.extend_from_slice(&header);
            out.extend_from_slice(&rest[..end.saturating_sub(33_333)]);
        });
        if arrived >= bytes.len() / 2 {
            break;
        }
        // The agent has handled it before it answers this.
        let canary = agent.connect().ask(&Request::Ping);
        assert!(matches!(canary, Reply::Pong(_)));
        host.close();
        breaks += 1;
    }
    assert!(breaks > 2, "{breaks}");
    let mut host = agent.connect();
    let (stream, arrived, _) = reattach_writer(&mut host, id, 7);
    host.type_all(stream, &bytes[arrived..]);
    host.exit(stream);
    assert!(printed(&host, stream).contains(&hex(&bytes)));
}

#[test]
fn a_stream_whose_link_is_dead_unnoticed_is_replaced() {
    let agent = RunningAgent::start();
    let mut former = agent.connect();
    let (id, stream) = open_attached(&mut former, &Spec::new(&["cat"]));
    former.write_stdin(stream, b"one\n");
    until_printed(&mut former, stream, "one\n", 2);
    let mut host = agent.connect();
    let (next, arrived, _) = reattach_writer(&mut host, id, 1);
    assert_eq!(arrived, 4);
    assert!(matches!(
        former.outcome(stream),
        Reply::Failed(_, FailureKind::Conflict, _, Stage::Process)
    ));
    // What it still sends is dropped.
    former.write_stdin(stream, b"two\n");
    former.ask(&Request::Ping);
    host.write_stdin(next, b"three\n");
    until_printed(&mut host, next, "three\n", 2);
    assert_eq!(printed(&host, next), "one\none\nthree\nthree\n");
}

#[test]
fn more_writers_than_there_may_be_are_refused() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = open(&mut host, &Spec::new(&["cat"]), UnreadOutput::DropOldest);
    let streams: Vec<_> = (0..64)
        .map(|writer| attach_writer(&mut host, id, 0, writer))
        .collect();
    let one_more = Request::Terminal(TerminalRequest::Attach(AttachTerminal {
        process: Selector::Id(id),
        output: Position {
            offset: 0,
            window: host.window,
        },
        writer: 64,
    }));
    assert_eq!(
        host.refused(&one_more),
        (FailureKind::Limit, Stage::Terminal)
    );
    host.cancel(streams[9]);
    host.outcome(streams[9]);
    attach_writer(&mut host, id, 0, 64);
}

#[test]
fn only_the_first_answers_the_program() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = open(&mut host, &print_typing(8), UnreadOutput::Block);
    let first = attach_writer(&mut host, id, 0, 1);
    let second = attach_writer(&mut host, id, 0, 2);
    until_printed(&mut host, second, "go", 1);
    let answer = |host: &mut Host, writer, text: &str| {
        let reply = type_as(host, id, text.as_bytes(), InputKind::QueryReply { writer });
        assert!(matches!(reply, Reply::Done(_)));
    };
    answer(&mut host, 1, "AB");
    answer(&mut host, 2, "no");
    answer(&mut host, 3, "no");
    host.cancel(first);
    host.outcome(first);
    answer(&mut host, 1, "no");
    answer(&mut host, 2, "CD");
    // It reattaches, and keeps its earlier position.
    attach_writer(&mut host, id, 0, 1);
    answer(&mut host, 2, "no");
    answer(&mut host, 1, "EFGH");
    host.exit(second);
    assert!(printed(&host, second).ends_with("go\nABCDEFGH"));
}

#[test]
fn a_secret_is_not_shown_and_what_follows_is() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "read secret; echo ${#secret}; read line; echo [$line]";
    let (id, stream) = open_attached(&mut host, &Spec::shell(&format!("echo ready; {script}")));
    until_printed(&mut host, stream, "ready", 1);
    let reply = type_as(&mut host, id, b"hunter2\n", InputKind::Secret);
    assert!(matches!(reply, Reply::Done(_)));
    // This is not mistaken for a password prompt.
    assert!(look(&mut host, id).echo);
    until_printed(&mut host, stream, "7\n", 1);
    host.write_stdin(stream, b"shown\n");
    host.exit(stream);
    let text = printed(&host, stream);
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.ends_with("shown\n[shown]\n"), "{text}");
}

#[test]
fn a_secret_for_a_program_that_hides_it_itself_changes_nothing() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "
import getpass
for number in range(2): print('got', len(getpass.getpass()), flush=True)
";
    let (id, stream) = open_attached(&mut host, &Spec::new(&["python3", "-c", script]));
    for number in 1..=2 {
        until_printed(&mut host, stream, "Password: ", number);
        assert!(!look(&mut host, id).echo);
        type_as(&mut host, id, b"hunter2\n", InputKind::Secret);
        until_printed(&mut host, stream, "got 7\n", number);
    }
    host.exit(stream);
    assert!(!printed(&host, stream).contains("hunter2"));
}

#[test]
fn a_shell_that_gets_a_secret_has_its_terminal_as_before() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, stream) = open_attached(&mut host, &Spec::bash());
    until_printed(&mut host, stream, "$ ", 1);
    for round in 0..10 {
        host.write_stdin(stream, b"read secret\n");
        // It turns line editing off for that, which happens after the echo.
        while !look(&mut host, id).canonical {}
        let reply = type_as(&mut host, id, b"hunter2\n", InputKind::Secret);
        assert!(matches!(reply, Reply::Done(_)), "{reply:?}");
        until_printed(&mut host, stream, "$ ", 2 * round + 2);
        command(
            &mut host,
            stream,
            "stty -a | grep -ow -e '-*echo'",
            2 * round + 3,
        );
    }
    let text = printed(&host, stream);
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(text.matches("\necho\n").count(), 10, "{text}");
}

#[test]
fn a_secret_waits_for_nobody_who_does_not_read_lines() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::shell("echo ready; kill -STOP $$; cat");
    let (id, stream) = open_attached(&mut host, &spec);
    until_printed(&mut host, stream, "ready", 1);
    until_stopped(look(&mut host, id).foreground.unwrap().0);
    host.write_stdin(stream, b"ahead\n");
    until_printed(&mut host, stream, "ahead\n", 1);
    let reply = type_as(&mut host, id, b"hunter2\n", InputKind::Secret);
    assert!(matches!(
        reply,
        Reply::Failed(_, FailureKind::Conflict, _, Stage::Terminal)
    ));
    assert!(look(&mut host, id).echo);
    signal(&mut host, id, libc::SIGCONT);
    until_printed(&mut host, stream, "ahead\n", 2);
    assert!(matches!(
        type_as(&mut host, id, b"hunter2\n", InputKind::Secret),
        Reply::Done(_)
    ));
    // Once, by the program.
    until_printed(&mut host, stream, "\nhunter2\n", 1);
    assert_eq!(printed(&host, stream).matches("hunter2").count(), 1);
}

#[test]
fn a_secret_longer_than_a_line_is_refused() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (id, _) = open_attached(&mut host, &Spec::new(&["cat"]));
    let reply = type_as(&mut host, id, &[b'x'; 4096], InputKind::Secret);
    assert!(matches!(
        reply,
        Reply::Failed(_, FailureKind::Invalid, _, Stage::Terminal)
    ));
}
