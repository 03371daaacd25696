//! Messages about services and ports: their exact bytes, and that they decode to
//! what was encoded. `golden.rs` explains how to read the bytes.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use vmcell_wire::{
    BufferedRange, Capabilities, CgroupLimits, Decoder, Event, Exit, ExitCause, Failure,
    FailureKind, Item, Outcome, PackedStringsBuf, Peer, ProcessMode, Request, Stage, Start, Stdin,
    StreamId, WireError, encode,
    limits::{MAX_FAILURE_TEXT, MAX_SERVICE_NAME, MAX_TAG},
    service::{
        FailureReason, Http, LivenessProbe, LogStart, Phase, Probe, ReadLog, ReadinessProbe,
        Restart, RestartPolicy, ServiceRequest, ServiceState, Spec, StartService, StopPolicy,
        WaitFor, is_valid_name,
        log_pattern::{Assertion, ByteClass, Instruction, LogPattern, LogPatternBuf},
    },
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn stream() -> StreamId {
    StreamId::new(0x0a0b0c).unwrap()
}

fn open(request: Request<'_>) -> String {
    let mut bytes = Vec::new();
    encode::open(&mut bytes, stream(), &request).unwrap();
    hex(&bytes)
}

fn close(outcome: Outcome<'_>) -> String {
    let mut bytes = Vec::new();
    encode::close(&mut bytes, stream(), &outcome).unwrap();
    hex(&bytes)
}

fn event(event: Event<'_>) -> String {
    let mut bytes = Vec::new();
    encode::event(&mut bytes, stream(), &event).unwrap();
    hex(&bytes)
}

fn check(table: &[(String, &str)]) {
    for (bytes, expected) in table {
        assert_eq!(*bytes, expected.replace(' ', ""));
    }
}

fn packed(texts: &[&str]) -> PackedStringsBuf {
    let mut packed = PackedStringsBuf::new();
    assert!(texts.iter().all(|text| packed.push(text.as_bytes())));
    packed
}

fn start(argv: &PackedStringsBuf) -> Start<'_> {
    Start {
        ticket: 0,
        tag: "",
        argv: argv.as_packed(),
        env: Default::default(),
        default_env: false,
        cwd: b"",
        make_cwd: false,
        user: "",
        umask: None,
        nice: 0,
        rlimits: Default::default(),
        stdin: Stdin::Empty,
        mode: ProcessMode::Background,
        timeout_ms: 0,
        keep: 0,
        limits: CgroupLimits::default(),
    }
}

const RESTART: Restart = Restart {
    policy: RestartPolicy::OnFailure,
    pause_ms: 1,
    max_pause_ms: 300,
};

const STOP: StopPolicy = StopPolicy {
    signal: 15,
    grace_ms: 2,
};

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

/// Returns the pattern that this text occurs in a line.
fn literal(text: &str) -> LogPatternBuf {
    let mut instructions: Vec<_> = text.bytes().map(Instruction::Byte).collect();
    instructions.push(Instruction::Match);
    LogPatternBuf::new(&instructions, &[]).unwrap()
}

#[test]
fn golden_bytes_of_a_log_pattern() {
    let mut digits = ByteClass::default();
    digits.add(b'0'..=b'9');
    let mut ends = ByteClass::default();
    ends.add(0..=0);
    ends.add(255..=255);
    let instructions = [
        Instruction::Assert(Assertion::Start),
        Instruction::Byte(b'x'),
        Instruction::Byte(0xff),
        Instruction::Class(0),
        Instruction::Class(1),
        Instruction::Split(9),
        Instruction::Assert(Assertion::WordBoundary),
        Instruction::Jump(1),
        Instruction::Match,
        Instruction::Assert(Assertion::NoWordBoundary),
        Instruction::Assert(Assertion::End),
        Instruction::Match,
    ];
    let pattern = LogPatternBuf::new(&instructions, &[digits, ends]).unwrap();
    let bytes = pattern.as_pattern().as_bytes();
    let expected = "0c00 0030 7810 ff10 0020 0120 0950 0230 0140 0000 0330 0130 0000 \
         000000000000ff03 0000000000000000 0000000000000000 0000000000000000 \
         0100000000000000 0000000000000000 0000000000000000 0000000000000080";
    check(&[(hex(bytes), expected)]);
    let decoded = LogPattern::from_bytes(bytes).unwrap();
    assert_eq!(decoded.instructions().collect::<Vec<_>>(), instructions);
    assert_eq!(
        (decoded.class(0), decoded.class(1)),
        (Some(digits), Some(ends))
    );
    assert_eq!((decoded.class(2), decoded.instruction(12)), (None, None));
}

#[test]
fn services_and_ports_need_an_agent_that_has_them() {
    let request = Request::Service(ServiceRequest::List { after: "" });
    assert_eq!(request.capability(), Capabilities::SERVICES);
    assert_eq!(Request::Dial { port: 1 }.capability(), Capabilities::PORTS);
    assert_eq!(Capabilities::SERVICES.bits(), 16);
    assert_eq!(Capabilities::PORTS.bits(), 32);
    let both = Capabilities::SERVICES | Capabilities::PORTS;
    assert!(Capabilities::ALL.contains(both));
}

#[test]
fn names_are_short_and_plain() {
    let longest = "x".repeat(MAX_SERVICE_NAME);
    for name in ["a", "0", "web-1.main_x", &longest] {
        assert!(is_valid_name(name), "{name}");
    }
    let too_long = "x".repeat(MAX_SERVICE_NAME + 1);
    for name in [
        "", "-a", ".a", "_a", "a b", "a:b", "a/b", "ä", "a\n", &too_long,
    ] {
        assert!(!is_valid_name(name), "{name}");
    }
    // The tag of a service's process contains its name.
    assert!("service:".len() + MAX_SERVICE_NAME <= MAX_TAG);
}

fn decoded(peer: Peer, bytes: &[u8]) -> Result<(), WireError> {
    Decoder::new(peer).decode(&mut &bytes[..]).map(|_| ())
}

#[test]
fn a_state_with_a_text_past_its_limit_is_refused() {
    let name = "n".repeat(MAX_SERVICE_NAME);
    let text = "t".repeat(MAX_FAILURE_TEXT);
    let (long_name, long_text) = (format!("{name}n"), format!("{text}t"));
    let state = |name, phase| ServiceState {
        name,
        phase,
        since_ms: 0,
        pid: None,
        restarts: 0,
        last_exit: None,
        log: BufferedRange { start: 0, end: 0 },
    };
    let is_refused = |state: ServiceState<'_>| {
        let mut close = Vec::new();
        encode::close(&mut close, stream(), &Outcome::Service(state)).unwrap();
        let mut listed = Vec::new();
        encode::event(&mut listed, stream(), &Event::Service(state)).unwrap();
        let [close, listed] = [close, listed].map(|bytes| decoded(Peer::Guest, &bytes).is_err());
        assert_eq!(close, listed);
        close
    };
    let failure = |text| Failure::new(FailureKind::Other, Stage::Exec, text);
    let failed = Phase::Failed;
    for (short, long) in [
        (Phase::Waiting(&name), Phase::Waiting(&long_name)),
        (
            failed(FailureReason::DependencyFailed(&name)),
            failed(FailureReason::DependencyFailed(&long_name)),
        ),
        (
            failed(FailureReason::NotReady(&text)),
            failed(FailureReason::NotReady(&long_text)),
        ),
        (
            failed(FailureReason::NotAlive(&text)),
            failed(FailureReason::NotAlive(&long_text)),
        ),
        (
            failed(FailureReason::NotStarted(failure(&text))),
            failed(FailureReason::NotStarted(failure(&long_text))),
        ),
    ] {
        assert!(!is_refused(state(&name, short)), "{short:?}");
        assert!(is_refused(state(&name, long)), "{long:?}");
        assert!(is_refused(state(&long_name, short)), "{short:?}");
    }
}

fn text(most: usize) -> impl Strategy<Value = &'static str> {
    let text = prop::collection::vec(prop::char::range('!', '~'), 0..most);
    text.prop_map(|text| &*text.into_iter().collect::<String>().leak())
}

fn bytes(most: usize) -> impl Strategy<Value = &'static [u8]> {
    let bytes = prop::collection::vec(any::<u8>(), 0..most);
    bytes.prop_map(|bytes| &*bytes.leak())
}

fn request() -> impl Strategy<Value = Request<'static>> {
    let until = prop_oneof![Just(WaitFor::Ready), Just(WaitFor::Ended)];
    let from = prop_oneof![
        any::<u64>().prop_map(LogStart::Offset),
        any::<u32>().prop_map(LogStart::Lines),
    ];
    let logs = (text(60), from, any::<(bool, u32)>());
    let service = prop_oneof![
        (text(60), any::<(u64, bool)>(), bytes(200)).prop_map(|(name, (ticket, if_same), spec)| {
            ServiceRequest::Start(StartService {
                name,
                ticket,
                if_same,
                spec,
            })
        }),
        (text(60), until).prop_map(|(name, until)| ServiceRequest::Wait { name, until }),
        text(60).prop_map(|name| ServiceRequest::GetState { name }),
        text(60).prop_map(|name| ServiceRequest::Stop { name }),
        text(60).prop_map(|name| ServiceRequest::Restart { name }),
        text(60).prop_map(|name| ServiceRequest::Remove { name }),
        text(60).prop_map(|after| ServiceRequest::List { after }),
        logs.prop_map(|(name, from, (follow, window))| {
            ServiceRequest::ReadLog(ReadLog {
                name,
                from,
                follow,
                window,
            })
        }),
    ];
    prop_oneof![
        8 => service.prop_map(Request::Service),
        1 => any::<u16>().prop_map(|port| Request::Dial { port }),
    ]
}

fn phase() -> impl Strategy<Value = Phase<'static>> {
    let reason = prop_oneof![
        Just(FailureReason::Exited),
        text(MAX_FAILURE_TEXT).prop_map(FailureReason::NotReady),
        text(MAX_FAILURE_TEXT).prop_map(FailureReason::NotAlive),
        text(MAX_SERVICE_NAME).prop_map(FailureReason::DependencyFailed),
        (any::<u16>(), text(MAX_FAILURE_TEXT)).prop_map(|(errno, text)| {
            FailureReason::NotStarted(Failure::from_errno(errno, Stage::User, text))
        }),
    ];
    prop_oneof![
        text(MAX_SERVICE_NAME).prop_map(Phase::Waiting),
        Just(Phase::Starting),
        Just(Phase::Ready),
        Just(Phase::Running),
        Just(Phase::Restarting),
        Just(Phase::Stopping),
        Just(Phase::Stopped),
        reason.prop_map(Phase::Failed),
    ]
}

fn state() -> impl Strategy<Value = ServiceState<'static>> {
    let numbers = any::<(u64, Option<u32>, u32, u64, u64)>();
    (text(MAX_SERVICE_NAME), phase(), numbers).prop_map(
        |(name, phase, (since_ms, pid, restarts, start, end))| ServiceState {
            name,
            phase,
            since_ms,
            pid,
            restarts,
            last_exit: None,
            log: BufferedRange { start, end },
        },
    )
}

fn probe() -> impl Strategy<Value = Probe<'static>> {
    let http = (any::<(u16, u16, u16)>(), text(50), bytes(50));
    prop_oneof![
        bytes(50).prop_map(|path| Probe::File { path }),
        any::<u16>().prop_map(|port| Probe::Tcp { port }),
        bytes(50).prop_map(|path| Probe::Unix { path }),
        http.prop_map(|((port, min_status, max_status), path, body)| {
            Probe::Http(Http {
                port,
                path,
                min_status,
                max_status,
                body,
            })
        }),
        text(50).prop_map(|word| {
            let argv: &'static PackedStringsBuf = Box::leak(Box::new(packed(&[word])));
            Probe::Command {
                argv: argv.as_packed(),
            }
        }),
        text(50).prop_map(|text| {
            let pattern: &'static LogPatternBuf = Box::leak(Box::new(literal(text)));
            Probe::Log {
                pattern: pattern.as_pattern(),
            }
        }),
    ]
}

fn spec() -> impl Strategy<Value = Spec<'static>> {
    let policy = prop_oneof![
        Just(RestartPolicy::Never),
        Just(RestartPolicy::OnFailure),
        Just(RestartPolicy::Always),
    ];
    let ready = prop::option::of((probe(), any::<(u32, u32, u32, u32)>()));
    let alive = prop::option::of((probe(), any::<(u32, u32, u32)>()));
    let numbers = any::<(u32, u32, u8, u32)>();
    let parts = (policy, numbers, ready, alive, text(20));
    parts.prop_map(|(policy, numbers, ready, alive, word)| {
        let (pause_ms, max_pause_ms, signal, grace_ms) = numbers;
        let list: &'static PackedStringsBuf = Box::leak(Box::new(packed(&[word, "x"])));
        Spec {
            start: start(list),
            restart: Restart {
                policy,
                pause_ms,
                max_pause_ms,
            },
            stop: StopPolicy { signal, grace_ms },
            ready: ready.map(|(probe, (delay_ms, interval_ms, attempt_ms, timeout_ms))| {
                ReadinessProbe {
                    probe,
                    delay_ms,
                    interval_ms,
                    attempt_ms,
                    timeout_ms,
                }
            }),
            alive: alive.map(
                |(probe, (interval_ms, attempt_ms, failures))| LivenessProbe {
                    probe,
                    interval_ms,
                    attempt_ms,
                    failures,
                },
            ),
            needs: list.as_packed(),
        }
    })
}

proptest! {
    #[test]
    fn what_a_host_says_is_understood(request in request()) {
        let mut bytes = Vec::new();
        encode::open(&mut bytes, stream(), &request).unwrap();
        let mut decoder = Decoder::new(Peer::Host);
        let item = Item::Open { stream: stream(), request };
        prop_assert_eq!(decoder.decode(&mut &bytes[..]), Ok(Some(item)));
    }

    #[test]
    fn what_a_guest_says_is_understood(state in state()) {
        let outcome = Outcome::Service(state);
        let mut bytes = Vec::new();
        encode::close(&mut bytes, stream(), &outcome).unwrap();
        let mut decoder = Decoder::new(Peer::Guest);
        let payload = &bytes[8..];
        let item = Item::Close { stream: stream(), outcome, payload };
        prop_assert_eq!(decoder.decode(&mut &bytes[..]), Ok(Some(item)));
        let event = Event::Service(state);
        let mut bytes = Vec::new();
        encode::event(&mut bytes, stream(), &event).unwrap();
        let mut decoder = Decoder::new(Peer::Guest);
        let payload = &bytes[8..];
        let item = Item::Event { stream: stream(), event, payload };
        prop_assert_eq!(decoder.decode(&mut &bytes[..]), Ok(Some(item)));
    }

    /// Equal specs have equal bytes, and the reverse.
    #[test]
    fn a_spec_survives_being_kept(spec in spec()) {
        let bytes = spec.to_bytes().unwrap();
        let again = Spec::from_bytes(&bytes).unwrap();
        prop_assert_eq!(again, spec);
        prop_assert_eq!(again.to_bytes().unwrap(), bytes);
    }

    /// Decoding never panics, even on input from a malicious peer.
    #[test]
    fn damaged_messages_never_panic(
        state in state(),
        spec in spec(),
        request in request(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut closed = Vec::new();
        encode::close(&mut closed, stream(), &Outcome::Service(state)).unwrap();
        let mut opened = Vec::new();
        encode::open(&mut opened, stream(), &request).unwrap();
        let mut kept = spec.to_bytes().unwrap();
        for (place, byte) in damage {
            // After the headers, which have their own tests.
            *place.get_mut(&mut closed[8..]) = byte;
            *place.get_mut(&mut opened[8..]) = byte;
            *place.get_mut(&mut kept) = byte;
        }
        let _ = decoded(Peer::Guest, &closed);
        let _ = decoded(Peer::Host, &opened);
        let _ = Spec::from_bytes(&kept);
    }
}
