//! ReadLog of services.

use vmcell_wire::{
    Channel, Output, Request,
    service::{LogStart, ReadLog, RestartPolicy, ServiceRequest},
};

use super::helpers::{
    ALL, Config, ask, log, look, open_log, outcome, restart, start, stop, text, until_over,
    until_printed,
};
use crate::client::{Reply, RunningAgent};

#[test]
fn both_outputs_are_one_in_the_order_in_which_they_were_written() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    start(&mut host, "web", &Config::new(script));
    let over = until_over(&mut host, "web");
    let expected = "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n";
    assert_eq!(log(&mut host, "web", ALL), expected);
    let exit = over.last_exit.unwrap();
    assert_eq!(exit.stdout_bytes, u64::try_from(expected.len()).unwrap());
    assert!(!exit.outputs_cut);
}

#[test]
fn a_log_is_read_from_anywhere() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    start(&mut host, "web", &Config::new("seq 5; printf unfinished"));
    until_over(&mut host, "web");
    for (from, expected) in [
        (LogStart::Lines(0), ""),
        (LogStart::Lines(1), "unfinished"),
        (LogStart::Lines(3), "4\n5\nunfinished"),
        (LogStart::Lines(u32::MAX), "1\n2\n3\n4\n5\nunfinished"),
        (LogStart::Offset(8), "5\nunfinished"),
        (LogStart::Offset(u64::MAX), ""),
    ] {
        assert_eq!(log(&mut host, "web", from), expected, "{from:?}");
    }
}

#[test]
fn a_log_goes_on_over_restarts_of_every_sort() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = Config::new("echo one; exec sleep 1000");
    start(&mut host, "web", &service);
    let stream = open_log(&mut host, "web", ALL, true);
    until_printed(&mut host, stream, "one\n", 1);
    restart(&mut host, "web");
    until_printed(&mut host, stream, "one\n", 2);
    stop(&mut host, "web");
    assert_eq!(outcome(&mut host, stream).phase, "Stopped");
    assert_eq!(text(&host, stream), "one\none\n");
    // Started with another spec, its offsets still continue.
    start(&mut host, "web", &Config::new("echo two"));
    let over = until_over(&mut host, "web");
    assert_eq!(over.log, (0, 12));
    assert_eq!(log(&mut host, "web", ALL), "one\none\ntwo\n");
}

#[test]
fn a_service_that_fills_its_log_keeps_the_newest() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = Config::new("seq -f %09.0f 20000").with(|c| c.program.start.keep = 16 * 1024);
    start(&mut host, "loud", &service);
    let over = until_over(&mut host, "loud");
    assert_eq!(over.log, (200_000 - 16 * 1024, 200_000));
    let whole: String = (1..=20000).map(|n| format!("{n:09}\n")).collect();
    let kept = &whole[200_000 - 16 * 1024..];
    let stream = open_log(&mut host, "loud", ALL, false);
    assert_eq!(host.attached(stream).stdout, over.log.0);
    outcome(&mut host, stream);
    assert_eq!(text(&host, stream), kept);
    assert!(
        host.replies_on(stream)
            .all(|reply| matches!(reply, Reply::Data(..)))
    );
    assert_eq!(
        log(&mut host, "loud", LogStart::Lines(2)),
        "000019999\n000020000\n"
    );
    // A smaller log keeps less of the earlier output.
    let quiet = Config::new("echo end").with(|c| c.program.start.keep = 64 * 1024);
    start(&mut host, "loud", &quiet);
    assert_eq!(until_over(&mut host, "loud").log, (over.log.0, 200_004));
    let small = Config::new("echo end").with(|c| c.program.start.keep = 1);
    start(&mut host, "loud", &small);
    let over = until_over(&mut host, "loud");
    assert_eq!(over.log, (200_008 - 16 * 1024, 200_008));
}

#[test]
fn a_reader_that_does_not_read_holds_nobody_up_and_is_told_what_it_lost() {
    let agent = RunningAgent::start();
    let mut host = agent.connect_with_window(1000);
    host.credit_automatically = false;
    let service = Config::new("seq -f %09.0f 20000").with(|c| c.program.start.keep = 16 * 1024);
    start(&mut host, "loud", &Config::idle());
    let stream = open_log(&mut host, "loud", ALL, true);
    stop(&mut host, "loud");
    // The log was empty, so the reader is done. Another one attaches in time.
    outcome(&mut host, stream);
    let service = service.with(|service| {
        let script = "echo begin; read x < /dev/zero & seq -f %09.0f 20000";
        service.program.argv[2] = script.as_bytes().to_vec();
    });
    start(&mut host, "loud", &service);
    let stream = open_log(&mut host, "loud", ALL, true);
    let attached = host.attached(stream).stdout;
    let mut other = agent.connect();
    let over = until_over(&mut other, "loud");
    assert_eq!(over.phase, "Stopped");
    assert_eq!(over.log.1, 200_006);
    host.grant(stream, Channel::Stdout, 1 << 20);
    outcome(&mut host, stream);
    let seen = host.output(stream, Channel::Stdout).len();
    let lost: u64 = host
        .replies_on(stream)
        .map(|reply| match reply {
            Reply::Gap(_, Output::Stdout, bytes) => *bytes,
            _ => 0,
        })
        .sum();
    assert_eq!(attached + u64::try_from(seen).unwrap() + lost, 200_006);
    assert!(lost > 0);
}

#[test]
fn who_reads_a_log_that_is_removed_reads_it_to_its_end() {
    let agent = RunningAgent::start();
    let mut host = agent.connect_with_window(10);
    host.credit_automatically = false;
    start(&mut host, "web", &Config::new("seq -f %09.0f 100"));
    until_over(&mut host, "web");
    let stream = open_log(&mut host, "web", ALL, true);
    host.until_bytes(stream, 10);
    assert!(matches!(
        ask(&mut host, ServiceRequest::Remove { name: "web" }),
        Reply::Done(_)
    ));
    // Its name is free.
    start(&mut host, "web", &Config::idle());
    assert_eq!(look(&mut host, "web").log, (0, 0));
    host.grant(stream, Channel::Stdout, 5000);
    assert_eq!(outcome(&mut host, stream).phase, "Stopped");
    assert_eq!(text(&host, stream).lines().count(), 100);
}

#[test]
fn a_reader_may_leave_at_any_time() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = Config::new("exec yes").policy(RestartPolicy::Always);
    start(&mut host, "loud", &service);
    let stream = open_log(&mut host, "loud", ALL, true);
    host.until_bytes(stream, 100_000);
    host.cancel(stream);
    assert!(matches!(host.outcome(stream), Reply::Done(_)));
    let mut other = agent.connect();
    let stream = open_log(&mut other, "loud", LogStart::Lines(1), true);
    other.until_bytes(stream, 100_000);
    other.close();
    assert_eq!(stop(&mut host, "loud").phase, "Stopped");
    let window = vmcell_wire::limits::MAX_WINDOW + 1;
    host.refused(&Request::Service(ServiceRequest::ReadLog(ReadLog {
        name: "loud",
        from: ALL,
        follow: false,
        window,
    })));
}
