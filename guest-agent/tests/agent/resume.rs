//! Broken links: nothing is lost and nothing arrives twice.

use crate::client::{Host, Reply, RunningAgent, Spec, code, wait_until_gone};
use vmcell_wire::{
    Channel, ExitCause, FailureKind, Position, Request, Resume, Selector, Stage, encode,
};

const NOT_FOUND: (FailureKind, Stage) = (FailureKind::NotFound, Stage::Process);

/// `n` lines of 10 bytes.
fn numbers(n: usize) -> Vec<u8> {
    (1..=n)
        .flat_map(|n| format!("{n:09}\n").into_bytes())
        .collect()
}

/// Appends the output of a stream to `all`, and returns its end offset.
fn take(host: &Host, stream: vmcell_wire::StreamId, all: &mut Vec<u8>) -> u64 {
    all.extend(host.output(stream, Channel::Stdout));
    all.len() as u64
}

#[test]
fn a_stream_that_breaks_many_times_has_every_byte_exactly_once() {
    for (window, keep) in [(64 * 1024, 0), (1 << 20, 16 * 1024), (1000, 16 * 1024)] {
        let agent = RunningAgent::start();
        let mut host = agent.connect_with_window(window);
        let spec = Spec::shell("seq -f %09.0f 200000").with(|spec| spec.start.keep = keep);
        let mut stream = host.start(&spec);
        let mut all = Vec::new();
        for _ in 0..20 {
            // In the middle of a transfer.
            host.until(|reply| matches!(reply, Reply::Data(..)));
            let offset = take(&host, stream, &mut all);
            host.close();
            host = agent.connect_with_window(window);
            stream = host.resume(spec.start.ticket, offset, 0);
            assert_eq!(host.attached(stream).stdout, offset);
        }
        let exit = host.exit(stream);
        take(&host, stream, &mut all);
        assert_eq!(exit.stdout_bytes, 2_000_000);
        assert_eq!(all.len(), 2_000_000);
        assert!(all == numbers(200_000));
    }
}

#[test]
fn what_the_host_did_not_consume_is_there_after_any_number_of_breaks() {
    let agent = RunningAgent::start();
    let window = 100_000;
    let mut host = agent.connect_with_window(window);
    host.credit_automatically = false;
    let spec = Spec::shell("seq -f %09.0f 100000").with(|spec| spec.start.keep = 16 * 1024);
    let mut stream = host.start(&spec);
    host.until_bytes(stream, window as usize);
    // All received data is dropped, again and again.
    for _ in 0..5 {
        host.close();
        host = agent.connect_with_window(window);
        host.credit_automatically = false;
        stream = host.resume(spec.start.ticket, 0, 0);
        host.until_bytes(stream, window as usize);
    }
    host.credit_automatically = true;
    host.grant(stream, Channel::Stdout, window);
    host.exit(stream);
    assert!(host.output(stream, Channel::Stdout) == numbers(100_000));
}

#[test]
fn a_host_that_has_unread_bytes_resumes_with_what_is_left_of_its_window() {
    let agent = RunningAgent::start();
    let window = 100_000u32;
    let mut host = agent.connect_with_window(window);
    host.credit_automatically = false;
    let spec = Spec::shell("seq -f %09.0f 100000");
    let stream = host.start(&spec);
    host.until_bytes(stream, 100_000);
    let mut all = Vec::new();
    let offset = take(&host, stream, &mut all);
    host.close();

    // Its user has consumed nothing, so its window is full.
    let mut host = agent.connect_with_window(window);
    host.credit_automatically = false;
    let full = |offset| Position { offset, window: 0 };
    let request = Request::Resume(Resume {
        ticket: spec.start.ticket,
        stdout: full(offset),
        stderr: full(0),
    });
    let stream = host.open(&request);
    host.attached(stream);
    // Now the user consumes what was received over the first link.
    host.grant(stream, Channel::Stdout, 50_000);
    host.grant(stream, Channel::Stdout, 50_000);
    host.until_bytes(stream, 100_000);
    // The link breaks before any of that arrived: it is all still available.
    host.close();
    let mut host = agent.connect_with_window(window);
    let stream = host.resume(spec.start.ticket, offset, 0);
    host.exit(stream);
    take(&host, stream, &mut all);
    assert!(all == numbers(100_000));
}

#[test]
fn an_exit_that_was_not_acknowledged_can_be_heard_again() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    host.acknowledge_automatically = false;
    let spec = Spec::shell("echo out; echo err >&2; exit 9");
    let stream = host.start(&spec);
    let exit = host.exit(stream);
    // Hosts can only name it by its ticket.
    assert_eq!(host.list(0).0, []);
    let process = Selector::Tag(&spec.tag);
    assert_eq!(host.refused(&Request::Kill { process }), NOT_FOUND);
    host.close();
    let mut host = agent.connect();
    let stream = host.resume(spec.start.ticket, 1, 4);
    assert_eq!(host.exit(stream), exit);
    assert_eq!(host.output(stream, Channel::Stdout), b"ut\n");
    assert_eq!(host.output(stream, Channel::Stderr), b"");
    // This time the host has acknowledged it.
    let late = host.resume(spec.start.ticket, 0, 0);
    let refused = Reply::Failed(late, FailureKind::NotFound, 0, Stage::Process);
    assert_eq!(host.outcome(late), refused);
}

#[test]
fn what_never_started_is_not_found() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["echo", "hi"]);
    let stream = host.resume(spec.start.ticket, 0, 0);
    let refused = Reply::Failed(stream, FailureKind::NotFound, 0, Stage::Process);
    assert_eq!(host.outcome(stream), refused);
    // So the host starts it.
    assert_eq!(code(&host.run(&spec).0), 0);
}

#[test]
fn standard_input_goes_on_where_it_was() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["cat"]).with_stdin();
    let mut stream = host.start(&spec);
    let input = numbers(30_000);
    let mut all = Vec::new();
    let (mut sent, mut credit) = (0, 256 * 1024);
    while all.len() + host.output(stream, Channel::Stdout).len() < input.len() {
        let count = credit.min(10_000).min(input.len() - sent);
        if count > 0 {
            host.write_stdin(stream, &input[sent..sent + count]);
            (sent, credit) = (sent + count, credit - count);
        }
        if sent % 70_000 == 0 || count == 0 {
            let offset = take(&host, stream, &mut all);
            host.close();
            host = agent.connect();
            stream = host.resume(spec.start.ticket, offset, 0);
            let stdin = host.attached(stream).stdin.unwrap();
            assert!(stdin.offset <= sent as u64);
            sent = usize::try_from(stdin.offset).unwrap();
            credit = stdin.window as usize;
        }
    }
    host.send(|out| encode::end(out, stream, Channel::Stdin));
    assert_eq!(code(&host.exit(stream)), 0);
    take(&host, stream, &mut all);
    assert!(all == input);
}

#[test]
fn input_that_has_ended_is_not_asked_for_again() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::shell("cat; exec sleep 1000").with_stdin();
    let stream = host.start(&spec);
    host.write_stdin(stream, b"all");
    host.send(|out| encode::end(out, stream, Channel::Stdin));
    host.until_bytes(stream, 3);
    host.close();
    let mut host = agent.connect();
    let stream = host.resume(spec.start.ticket, 3, 0);
    assert_eq!(host.attached(stream).stdin, None);
}

#[test]
fn nobody_resumes_so_the_process_ends() {
    let agent = RunningAgent::with_short_grace();
    let mut host = agent.connect();
    let spec = Spec::shell("sleep 1000 & echo $$ $!; wait");
    let stream = host.start(&spec);
    host.until(|reply| matches!(reply, Reply::Data(..)));
    let text = String::from_utf8(host.output(stream, Channel::Stdout).to_vec()).unwrap();
    host.close();
    for pid in text.split_whitespace() {
        wait_until_gone(pid.parse().unwrap());
    }
    let mut host = agent.connect();
    let stream = host.resume(spec.start.ticket, 0, 0);
    let refused = Reply::Failed(stream, FailureKind::NotFound, 0, Stage::Process);
    assert_eq!(host.outcome(stream), refused);
    assert_eq!(host.list(0).0, []);
}

#[test]
fn each_break_begins_a_new_grace() {
    let agent = RunningAgent::with_grace("1000");
    let mut host = agent.connect();
    let spec = Spec::new(&["cat"]).with_stdin();
    let mut stream = host.start(&spec);
    for _ in 0..2 {
        let canary = host.start_canary();
        host.close();
        host = agent.connect();
        stream = host.resume(spec.start.ticket, 0, 0);
        host.attached(stream);
        // Half of the grace time passes before the next break.
        host.run(&Spec::new(&["sleep", "0.5"]));
        host.close();
        // The grace time of the first break is over, that of the second is not.
        wait_until_gone(canary);
        host = agent.connect();
        stream = host.resume(spec.start.ticket, 0, 0);
        host.attached(stream);
    }
    host.send(|out| encode::end(out, stream, Channel::Stdin));
    assert_eq!(code(&host.exit(stream)), 0);
}

#[test]
fn a_process_without_a_link_waits_for_room_and_goes_on() {
    let agent = RunningAgent::start();
    let mut host = agent.connect_with_window(1000);
    host.credit_automatically = false;
    let spec = Spec::shell("seq -f %09.0f 500000; echo end >&2");
    let stream = host.start(&spec);
    host.until_bytes(stream, 1000);
    host.close();
    let mut host = agent.connect();
    // Everything that the agent keeps, and none of it was acknowledged.
    while host.list(0).0[0].stdout.1 < 1 << 20 {}
    let stream = host.resume(spec.start.ticket, 0, 0);
    host.exit(stream);
    assert!(host.output(stream, Channel::Stdout) == numbers(500_000));
    assert_eq!(host.output(stream, Channel::Stderr), b"end\n");
}

#[test]
fn a_second_resume_takes_the_process_from_the_first() {
    let agent = RunningAgent::start();
    let mut first = agent.connect();
    let mut second = agent.connect();
    let spec = Spec::new(&["cat"]).with_stdin();
    let old = first.start(&spec);
    first.write_stdin(old, b"hello");
    first.until_bytes(old, 5);
    let new = second.resume(spec.start.ticket, 0, 0);
    assert_eq!(second.attached(new).stdin.unwrap().offset, 5);
    let conflict = Reply::Failed(old, FailureKind::Conflict, 0, Stage::Process);
    assert_eq!(first.outcome(old), conflict);
    // The first one no longer controls it.
    first.send(|out| encode::cancel(out, old));
    first.write_stdin(old, b"ignored");
    first.close();
    second.write_stdin(new, b" world");
    second.send(|out| encode::end(out, new, Channel::Stdin));
    assert_eq!(code(&second.exit(new)), 0);
    assert_eq!(second.output(new, Channel::Stdout), b"hello world");
}

#[test]
fn a_flood_that_is_taken_over_stays_whole() {
    let agent = RunningAgent::start();
    let mut first = agent.connect_with_window(1 << 20);
    first.credit_automatically = false;
    let spec = Spec::shell("seq -f %09.0f 300000");
    let old = first.start(&spec);
    first.until_bytes(old, 10_000);
    // The rest of the first one's window is in its socket or being sent.
    let mut second = agent.connect();
    let new = second.resume(spec.start.ticket, 0, 0);
    second.exit(new);
    assert!(second.output(new, Channel::Stdout) == numbers(300_000));
    first.until(|reply| matches!(reply, Reply::Failed(id, ..) if *id == old));
    let seen = first.output(old, Channel::Stdout);
    assert!(numbers(300_000).starts_with(seen));
}

#[test]
fn a_detached_process_is_resumed_as_an_observer() {
    let agent = RunningAgent::with_short_grace();
    let mut host = agent.connect();
    let spec = Spec::shell("echo one; read go; echo two").with_stdin();
    let stream = host.start(&spec);
    host.until_bytes(stream, 4);
    let process = Selector::Tag(&spec.tag);
    host.ask(&Request::Detach { process });
    let canary = host.start_canary();
    host.close();
    wait_until_gone(canary);
    let mut host = agent.connect();
    let stream = host.resume(spec.start.ticket, 4, 0);
    assert_eq!(host.attached(stream).stdout, 4);
    host.ask(&Request::Kill { process });
    assert_eq!(host.exit(stream).cause, ExitCause::Killed);
}

#[test]
fn offsets_that_cannot_be_are_refused_and_harm_nobody() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::shell("echo hello; read go").with_stdin();
    let stream = host.start(&spec);
    host.until_bytes(stream, 6);
    let mut other = agent.connect();
    for offset in [7, u64::MAX - 1] {
        let stream = other.resume(spec.start.ticket, offset, 0);
        let refused = Reply::Failed(stream, FailureKind::Invalid, 0, Stage::Request);
        assert_eq!(other.outcome(stream), refused);
    }
    // It still belongs to its owner.
    host.send(|out| encode::end(out, stream, Channel::Stdin));
    assert_eq!(code(&host.exit(stream)), 1);
}
