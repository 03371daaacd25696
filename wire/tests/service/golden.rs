//! Exact bytes.

use super::*;

#[test]
fn golden_bytes_of_requests() {
    let service = |request| open(Request::Service(request));
    let start = ServiceRequest::Start(StartService {
        name: "web",
        ticket: 300,
        if_same: true,
        spec: b"\x01\x02",
    });
    let wait = |until| service(ServiceRequest::Wait { name: "web", until });
    let logs = |from| {
        service(ServiceRequest::ReadLog(ReadLog {
            name: "web",
            from,
            follow: true,
            window: 65536,
        }))
    };
    let name = "web";
    check(&[
        (
            service(start),
            "0c0000000c0b0a02 0c00 03776562 ac02 01 020102",
        ),
        (wait(WaitFor::Ready), "070000000c0b0a02 0c01 03776562 00"),
        (wait(WaitFor::Ended), "070000000c0b0a02 0c01 03776562 01"),
        (
            service(ServiceRequest::GetState { name }),
            "060000000c0b0a02 0c02 03776562",
        ),
        (
            service(ServiceRequest::Stop { name }),
            "060000000c0b0a02 0c03 03776562",
        ),
        (
            service(ServiceRequest::Restart { name }),
            "060000000c0b0a02 0c04 03776562",
        ),
        (
            service(ServiceRequest::Remove { name }),
            "060000000c0b0a02 0c05 03776562",
        ),
        (
            service(ServiceRequest::List { after: "" }),
            "030000000c0b0a02 0c06 00",
        ),
        (
            logs(LogStart::Offset(300)),
            "0d0000000c0b0a02 0c07 03776562 00ac02 01 808004",
        ),
        (
            logs(LogStart::Lines(5)),
            "0c0000000c0b0a02 0c07 03776562 0105 01 808004",
        ),
        (
            open(Request::Dial { port: 8080 }),
            "030000000c0b0a02 0d 903f",
        ),
    ]);
}

#[test]
fn golden_bytes_of_answers() {
    let state = |phase| ServiceState {
        name: "web",
        phase,
        since_ms: 300,
        pid: Some(7),
        restarts: 2,
        last_exit: None,
        log: BufferedRange { start: 1, end: 300 },
    };
    let closed = |phase| close(Outcome::Service(state(phase)));
    let failed = |reason| closed(Phase::Failed(reason));
    let failure = Failure::new(FailureKind::NotFound, Stage::Exec, "x");
    // name, phase, since_ms, pid, restarts, last_exit, log.
    for (phase, number) in [
        (Phase::Starting, "01"),
        (Phase::Ready, "02"),
        (Phase::Running, "03"),
        (Phase::Restarting, "04"),
        (Phase::Stopping, "05"),
        (Phase::Stopped, "06"),
    ] {
        let bytes = format!("0f0000000c0b0a04 08 03776562 {number} ac02 0107 02 00 01ac02");
        check(&[(closed(phase), &bytes)]);
    }
    check(&[
        (
            closed(Phase::Waiting("db")),
            "120000000c0b0a04 08 03776562 00026462 ac02 0107 02 00 01ac02",
        ),
        (
            failed(FailureReason::Exited),
            "100000000c0b0a04 08 03776562 0700 ac02 0107 02 00 01ac02",
        ),
        (
            failed(FailureReason::NotReady("x")),
            "120000000c0b0a04 08 03776562 07010178 ac02 0107 02 00 01ac02",
        ),
        (
            failed(FailureReason::NotAlive("x")),
            "120000000c0b0a04 08 03776562 07020178 ac02 0107 02 00 01ac02",
        ),
        (
            failed(FailureReason::DependencyFailed("x")),
            "120000000c0b0a04 08 03776562 07030178 ac02 0107 02 00 01ac02",
        ),
        (
            failed(FailureReason::NotStarted(failure)),
            "150000000c0b0a04 08 03776562 07040100060178 ac02 0107 02 00 01ac02",
        ),
    ]);
    let exit = Exit {
        cause: ExitCause::Code(3),
        user_us: 1,
        system_us: 2,
        peak_rss_kib: 3,
        wall_us: 4,
        stdout_bytes: 5,
        stderr_bytes: 0,
        outputs_cut: false,
        oom_kills: 0,
        tree_ended: Some(true),
    };
    let listed = ServiceState {
        pid: None,
        last_exit: Some(exit),
        ..state(Phase::Stopped)
    };
    check(&[
        (
            event(Event::Service(listed)),
            "1a0000000c0b0a03 04 03776562 06 ac02 00 02 01 0003 01020304 0500 00 00 0101 01ac02",
        ),
        (event(Event::Connected), "010000000c0b0a03 05"),
        (
            close(Outcome::Failed(Failure::from_errno(111, Stage::Dial, ""))),
            "050000000c0b0a04 00 01 6f 0d 00",
        ),
        (
            close(Outcome::Failed(Failure::new(
                FailureKind::Conflict,
                Stage::Service,
                "",
            ))),
            "050000000c0b0a04 00 06 00 0c 00",
        ),
    ]);
}

#[test]
fn golden_bytes_of_a_spec() {
    let (argv, needs) = (packed(&["sh"]), packed(&["db"]));
    let spec = |probe| {
        let spec = Spec {
            start: start(&argv),
            restart: RESTART,
            stop: STOP,
            ready: Some(ReadinessProbe {
                probe,
                delay_ms: 1,
                interval_ms: 2,
                attempt_ms: 3,
                timeout_ms: 4,
            }),
            alive: Some(LivenessProbe {
                probe: Probe::Tcp { port: 1 },
                interval_ms: 5,
                attempt_ms: 6,
                failures: 7,
            }),
            needs: needs.as_packed(),
        };
        hex(&spec.to_bytes().unwrap())
    };
    // ticket to argv, env to user, umask to rlimits, stdin to keep, limits.
    let program = "0000 03736800 0000000000 000000 00010000 000000";
    let ending = "01 02 03 04 01 0101 05 06 07 03646200";
    let http = Http {
        port: 80,
        path: "/",
        min_status: 200,
        max_status: 399,
        body: b"ok",
    };
    let up = literal("up");
    for (probe, expected) in [
        (Probe::File { path: b"/x" }, "00 022f78"),
        (Probe::Tcp { port: 8080 }, "01 903f"),
        (Probe::Unix { path: b"/x" }, "02 022f78"),
        (Probe::Http(http), "03 50 012f c801 8f03 026f6b"),
        (
            Probe::Command {
                argv: argv.as_packed(),
            },
            "04 03736800",
        ),
        (
            Probe::Log {
                pattern: up.as_pattern(),
            },
            "05 08 0300 7510 7010 0000",
        ),
    ] {
        let whole = format!("{program} 01 01 ac02 0f 02 01 {expected} {ending}");
        check(&[(spec(probe), &whole)]);
    }
    let bare = Spec {
        start: start(&argv),
        restart: RESTART,
        stop: STOP,
        ready: None,
        alive: None,
        needs: Default::default(),
    };
    let bytes = bare.to_bytes().unwrap();
    check(&[(hex(&bytes), &format!("{program} 01 01 ac02 0f 02 00 00 00"))]);
    assert_eq!(Spec::from_bytes(&bytes), Ok(bare));
}
