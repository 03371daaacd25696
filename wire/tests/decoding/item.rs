//! Generates all items that a peer can send, and encodes them.

use proptest::prelude::*;
use vmcell_wire::{
    Attach, Attached, BufferedRange, CgroupLimits, Channel, Event, Exit, ExitCause, Failure,
    Header, Hello, Item, Kind, Outcome, Output, PackedStrings, PackedStringsBuf, Peer, Position,
    ProcessEntry, ProcessMode, Renew, Request, Resume, Rlimit, Rlimits, RlimitsBuf, Selector,
    Stage, Start, Stdin, StreamId, TrustStore, encode, network::NetworkRequest,
};

/// Leaks a value for messages to borrow from, so that tests need no owned
/// variants of the messages.
fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn text(pattern: &'static str) -> impl Strategy<Value = &'static str> {
    pattern.prop_map(|text| leak(text).as_str())
}

fn packed() -> impl Strategy<Value = PackedStrings<'static>> {
    let string = prop::collection::vec(1..=255u8, 0..40);
    prop::collection::vec(string, 0..6).prop_map(|strings| {
        let mut packed = PackedStringsBuf::new();
        assert!(strings.iter().all(|string| packed.push(string)));
        leak(packed).as_packed()
    })
}

fn rlimits() -> impl Strategy<Value = Rlimits<'static>> {
    prop::collection::vec(any::<(u8, u64, u64)>(), 0..4).prop_map(|limits| {
        let mut packed = RlimitsBuf::new();
        for (resource, soft, hard) in limits {
            packed.push(Rlimit {
                resource,
                soft,
                hard,
            });
        }
        leak(packed).as_rlimits()
    })
}

fn stdin() -> impl Strategy<Value = Stdin> {
    prop_oneof![Just(Stdin::Empty), Just(Stdin::Stream)]
}

fn mode() -> impl Strategy<Value = ProcessMode> {
    prop_oneof![Just(ProcessMode::Foreground), Just(ProcessMode::Background)]
}

fn position() -> impl Strategy<Value = Position> {
    any::<(u64, u32)>().prop_map(|(offset, window)| Position { offset, window })
}

fn selector() -> impl Strategy<Value = Selector<'static>> {
    prop_oneof![
        any::<u32>().prop_map(Selector::Id),
        any::<u32>().prop_map(Selector::Pid),
        text("\\PC{0,20}").prop_map(Selector::Tag),
    ]
}

fn start() -> impl Strategy<Value = Start<'static>> {
    let names = (any::<u64>(), text("\\PC{0,20}"), text("[a-z:0-9]{0,20}"));
    let directory = prop::collection::vec(any::<u8>(), 0..40).prop_map(|cwd| leak(cwd).as_slice());
    let program = (packed(), packed(), directory, rlimits(), stdin());
    let switches = any::<(bool, bool, Option<u16>, i8)>();
    let bounds = (mode(), any::<(u64, u32, u64, u32, u32)>());
    (names, program, switches, bounds).prop_map(|(names, program, switches, bounds)| {
        let (ticket, tag, user) = names;
        let (argv, env, cwd, rlimits, stdin) = program;
        let (default_env, make_cwd, umask, nice) = switches;
        let (mode, (timeout_ms, keep, memory, pids, cpu_milli)) = bounds;
        Start {
            ticket,
            tag,
            argv,
            env,
            default_env,
            cwd,
            make_cwd,
            user,
            umask,
            nice,
            rlimits,
            stdin,
            mode,
            timeout_ms,
            keep,
            limits: CgroupLimits {
                memory,
                pids,
                cpu_milli,
            },
        }
    })
}

fn attach() -> impl Strategy<Value = Attach<'static>> {
    let outputs = || prop::option::of(position());
    (selector(), outputs(), outputs(), any::<bool>()).prop_map(
        |(process, stdout, stderr, stdin)| Attach {
            process,
            stdout,
            stderr,
            stdin,
        },
    )
}

fn request() -> impl Strategy<Value = Request<'static>> {
    prop_oneof![
        Just(Request::Ping),
        start().prop_map(Request::Start),
        any::<u32>().prop_map(|grace_ms| Request::PowerOff { grace_ms }),
        (any::<u64>(), position(), position()).prop_map(|(ticket, stdout, stderr)| {
            Request::Resume(Resume {
                ticket,
                stdout,
                stderr,
            })
        }),
        attach().prop_map(Request::Attach),
        (selector(), any::<u8>()).prop_map(|(process, signal)| Request::Signal { process, signal }),
        selector().prop_map(|process| Request::Kill { process }),
        selector().prop_map(|process| Request::Detach { process }),
        selector().prop_map(|process| Request::Forget { process }),
        any::<u32>().prop_map(|after| Request::List { after }),
        Just(Request::Freeze),
        Just(Request::Thaw),
        Just(Request::CountProcesses),
        (packed(), packed())
            .prop_map(|(mounts, env)| Request::SetTrustStore(TrustStore { mounts, env })),
        renew().prop_map(Request::Renew),
        any::<Vec<u8>>().prop_map(|prefixes| {
            let prefixes = leak(prefixes);
            Request::Network(NetworkRequest::Capture { prefixes })
        }),
        any::<u32>().prop_map(|ticket| Request::Network(NetworkRequest::Accept { ticket })),
    ]
}

fn renew() -> impl Strategy<Value = Renew<'static>> {
    let name = text("\\PC{0,20}");
    let bytes = any::<([u8; 16], [u8; 16], [u8; 32])>();
    (bytes, any::<u64>(), name).prop_map(|((boot_id, reset_key, seed), wall_time_ns, hostname)| {
        Renew {
            boot_id,
            reset_key,
            seed,
            wall_time_ns,
            hostname,
        }
    })
}

fn exit() -> impl Strategy<Value = Exit> {
    let cause = prop_oneof![
        any::<u8>().prop_map(ExitCause::Code),
        any::<u8>().prop_map(ExitCause::Signal),
        Just(ExitCause::Timeout),
        Just(ExitCause::OutOfMemory),
        Just(ExitCause::Killed),
    ];
    (cause, any::<[u64; 6]>(), any::<(bool, u32, Option<bool>)>()).prop_map(
        |(cause, numbers, (outputs_cut, oom_kills, tree_ended))| {
            let [
                user_us,
                system_us,
                peak_rss_kib,
                wall_us,
                stdout_bytes,
                stderr_bytes,
            ] = numbers;
            Exit {
                cause,
                user_us,
                system_us,
                peak_rss_kib,
                wall_us,
                stdout_bytes,
                stderr_bytes,
                outputs_cut,
                oom_kills,
                tree_ended,
            }
        },
    )
}

fn entry() -> impl Strategy<Value = ProcessEntry<'static>> {
    let names = (any::<[u32; 3]>(), text("[a-z]{0,64}"), packed());
    let state = (mode(), any::<[u64; 5]>(), prop::option::of(exit()));
    (names, state).prop_map(
        |(([id, pid, uid], tag, argv), (mode, [age_ms, a, b, c, d], exit))| ProcessEntry {
            id,
            pid,
            tag,
            argv,
            uid,
            mode,
            age_ms,
            stdout: BufferedRange { start: a, end: b },
            stderr: BufferedRange { start: c, end: d },
            exit,
        },
    )
}

fn event() -> impl Strategy<Value = Event<'static>> {
    let output = prop_oneof![Just(Output::Stdout), Just(Output::Stderr)];
    prop_oneof![
        any::<(u32, u32)>().prop_map(|(id, pid)| Event::Started { id, pid }),
        (any::<(u32, u32, u64, u64)>(), prop::option::of(position())).prop_map(
            |((id, pid, stdout, stderr), stdin)| {
                Event::Attached(Attached {
                    id,
                    pid,
                    stdout,
                    stderr,
                    stdin,
                })
            }
        ),
        (output, any::<u64>()).prop_map(|(output, bytes)| Event::Gap { output, bytes }),
        entry().prop_map(Event::Listed),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome<'static>> {
    prop_oneof![
        (any::<u16>(), text("\\PC{0,60}")).prop_map(|(errno, text)| {
            Outcome::Failed(Failure::from_errno(errno, Stage::Process, text))
        }),
        Just(Outcome::Pong),
        exit().prop_map(Outcome::Exited),
        Just(Outcome::PoweringOff),
        any::<(u32, u32)>().prop_map(|(id, pid)| Outcome::Spawned { id, pid }),
        Just(Outcome::Done),
        Just(Outcome::DiskClean),
        any::<bool>().prop_map(|more| Outcome::EndOfList { more }),
        any::<u32>().prop_map(|count| Outcome::Processes { count }),
    ]
}

fn stream() -> impl Strategy<Value = StreamId> {
    (1..=StreamId::MAX.get()).prop_map(|number| StreamId::new(number).unwrap())
}

/// Generates every item that a peer can send, with data frames whole.
fn item(peer: Peer) -> BoxedStrategy<Item<'static>> {
    let (sending, crediting) = match peer {
        Peer::Host => (vec![Channel::Stdin], vec![Channel::Stdout, Channel::Stderr]),
        Peer::Guest => (vec![Channel::Stdout, Channel::Stderr], vec![Channel::Stdin]),
    };
    let sending = prop::sample::select(sending);
    let crediting = prop::sample::select(crediting);
    let bytes = prop::collection::vec(any::<u8>(), 1..300).prop_map(|bytes| leak(bytes).as_slice());
    let both = prop_oneof![
        (text("[a-z ]{0,60}"), 0..=65536u32)
            .prop_map(|(build, window)| Item::Hello(Hello::new(build, window, [3; 16]))),
        (stream(), sending.clone(), bytes).prop_map(|(stream, channel, bytes)| Item::Data {
            stream,
            channel,
            bytes
        }),
        (stream(), sending).prop_map(|(stream, channel)| Item::End { stream, channel }),
        (stream(), crediting, 1..=u32::MAX).prop_map(|(stream, channel, bytes)| Item::Credit {
            stream,
            channel,
            bytes
        }),
    ];
    match peer {
        Peer::Host => prop_oneof![
            both,
            (stream(), request()).prop_map(|(stream, request)| Item::Open { stream, request }),
            stream().prop_map(|stream| Item::OpenUnknown { stream }),
            stream().prop_map(|stream| Item::Cancel { stream }),
            stream().prop_map(|stream| Item::Ack { stream }),
        ]
        .boxed(),
        Peer::Guest => prop_oneof![
            both,
            (stream(), event()).prop_map(|(stream, event)| event_item(stream, event)),
            (stream(), outcome()).prop_map(|(stream, outcome)| close_item(stream, outcome)),
        ]
        .boxed(),
    }
}

/// Generates a peer, and items that it can send.
pub(crate) fn conversation() -> impl Strategy<Value = (Peer, Vec<Item<'static>>)> {
    prop_oneof![Just(Peer::Host), Just(Peer::Guest)]
        .prop_flat_map(|peer| (Just(peer), prop::collection::vec(item(peer), 0..20)))
}

/// Encodes an item.
pub(crate) fn write(item: &Item<'_>, out: &mut Vec<u8>) {
    match *item {
        Item::Hello(hello) => encode::hello(out, &hello).unwrap(),
        Item::Open { stream, request } => encode::open(out, stream, &request).unwrap(),
        // A request variant that only a later generation has.
        Item::OpenUnknown { stream } => raw(out, stream, Kind::Open, &[0x7f, 1, 2]),
        Item::Event { stream, event, .. } => encode::event(out, stream, &event).unwrap(),
        Item::Close {
            stream, outcome, ..
        } => encode::close(out, stream, &outcome).unwrap(),
        Item::Cancel { stream } => encode::cancel(out, stream),
        Item::Ack { stream } => encode::ack(out, stream),
        Item::Data {
            stream,
            channel,
            bytes,
        } => {
            out.extend(encode::data_header(stream, channel, bytes.len()).unwrap());
            out.extend_from_slice(bytes);
        }
        Item::End { stream, channel } => encode::end(out, stream, channel),
        Item::Credit {
            stream,
            channel,
            bytes,
        } => encode::credit(out, stream, channel, bytes),
    }
}

/// Appends a frame with an arbitrary payload.
fn raw(out: &mut Vec<u8>, stream: StreamId, kind: Kind, payload: &[u8]) {
    let header = Header {
        length: payload.len() as u32,
        stream: Some(stream),
        kind,
    };
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(payload);
}
fn event_item(stream: StreamId, event: Event<'static>) -> Item<'static> {
    let mut frame = Vec::new();
    encode::event(&mut frame, stream, &event).unwrap();
    let payload = &leak(frame)[Header::SIZE..];
    Item::Event {
        stream,
        event,
        payload,
    }
}

fn close_item(stream: StreamId, outcome: Outcome<'static>) -> Item<'static> {
    let mut frame = Vec::new();
    encode::close(&mut frame, stream, &outcome).unwrap();
    let payload = &leak(frame)[Header::SIZE..];
    Item::Close {
        stream,
        outcome,
        payload,
    }
}
