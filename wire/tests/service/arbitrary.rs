//! Any message decodes to what was encoded, and none panics.

use super::*;

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
