//! The decoder with arbitrary input.
#![allow(clippy::unwrap_used)]

use proptest::{prelude::*, sample::Index};
use vmcell_wire::{
    Attach, Attached, BufferedRange, CgroupLimits, Channel, Decoder, Event, Exit, ExitCause,
    Failure, FailureKind, Header, Hello, Item, Kind, Outcome, Output, PackedStrings,
    PackedStringsBuf, Peer, Position, ProcessEntry, ProcessMode, Request, Resume, Rlimit, Rlimits,
    RlimitsBuf, Selector, Stage, Start, Stdin, StreamId, WireError, encode,
    limits::{MAX_COMMAND, MAX_FAILURE_TEXT, MAX_PAYLOAD, MAX_TAG},
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
    ]
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

/// Decodes until the end or the first error, and checks the size of the buffer.
fn hold_no_more_than_arrived(peer: Peer, bytes: &[u8], step: usize) -> Result<(), TestCaseError> {
    let mut decoder = Decoder::new(peer);
    for chunk in bytes.chunks(step) {
        let mut input = chunk;
        loop {
            match decoder.decode(&mut input) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return Ok(()),
            }
        }
        // A vector doubles its capacity, independent of what a header claims.
        prop_assert!(decoder.buffer_capacity() <= 2 * bytes.len() + 64);
    }
    Ok(())
}

fn conversation() -> impl Strategy<Value = (Peer, Vec<Item<'static>>)> {
    prop_oneof![Just(Peer::Host), Just(Peer::Guest)]
        .prop_flat_map(|peer| (Just(peer), prop::collection::vec(item(peer), 0..20)))
}

fn write(item: &Item<'_>, out: &mut Vec<u8>) {
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

fn cut<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let mut chunks = Vec::new();
    let mut start = 0;
    for end in cuts.into_iter().chain([bytes.len()]) {
        chunks.push(&bytes[start..end]);
        start = end;
    }
    chunks
}

proptest! {
    #[test]
    fn any_split_decodes_to_what_was_said(
        (peer, conversation) in conversation(),
        cuts in prop::collection::vec(any::<Index>(), 0..40),
    ) {
        let mut bytes = Vec::new();
        for item in &conversation {
            write(item, &mut bytes);
        }
        let mut expected = conversation.iter();
        let mut decoder = Decoder::new(peer);
        // The bytes of the current data frame so far.
        let mut gathered = Vec::new();
        for mut chunk in cut(&bytes, &cuts) {
            while let Some(item) = decoder.decode(&mut chunk).unwrap() {
                let Item::Data { stream, channel, bytes } = item else {
                    prop_assert!(gathered.is_empty());
                    prop_assert_eq!(Some(&item), expected.next());
                    continue;
                };
                gathered.extend_from_slice(bytes);
                if decoder.pending_data().is_none() {
                    let whole = Item::Data { stream, channel, bytes: &gathered };
                    prop_assert_eq!(Some(&whole), expected.next());
                    gathered.clear();
                }
            }
        }
        prop_assert_eq!(None, expected.next());
    }

    #[test]
    fn who_reads_what_is_missing_never_reads_past_a_frame((peer, conversation) in conversation()) {
        let mut decoder = Decoder::new(peer);
        for item in &conversation {
            let mut frame = Vec::new();
            write(item, &mut frame);
            let mut rest = &frame[..];
            while !rest.is_empty() {
                let missing = match decoder.missing() {
                    // Between frames nothing is missing; a header is next.
                    0 => Header::SIZE,
                    missing => missing,
                };
                prop_assert!(missing <= rest.len());
                let (mut chunk, after) = rest.split_at(missing);
                rest = after;
                let item = decoder.decode(&mut chunk).unwrap();
                prop_assert_eq!(item.is_some(), rest.is_empty());
            }
            prop_assert_eq!(decoder.missing(), 0);
        }
    }

    #[test]
    fn any_bytes_never_panic_and_never_hold_more_than_arrived(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        step in 1..200usize,
        from_guest in any::<bool>(),
    ) {
        let peer = if from_guest { Peer::Guest } else { Peer::Host };
        hold_no_more_than_arrived(peer, &bytes, step)?;
    }

    #[test]
    fn damaged_messages_never_panic_and_never_hold_more_than_arrived(
        (peer, conversation) in conversation(),
        damages in prop::collection::vec(any::<(Index, u8)>(), 1..8),
        step in 1..200usize,
    ) {
        let mut bytes = Vec::new();
        for item in &conversation {
            write(item, &mut bytes);
        }
        for (place, damage) in damages {
            if !bytes.is_empty() {
                *place.get_mut(&mut bytes) = damage;
            }
        }
        hold_no_more_than_arrived(peer, &bytes, step)?;
    }

    #[test]
    fn a_hostile_length_allocates_nothing(
        length in prop_oneof![any::<u32>(), 0..=MAX_PAYLOAD],
        kind in prop_oneof![any::<u8>(), 0..=0x07u8, 0x10..=0x33u8],
        id in 0..4u8,
    ) {
        for peer in [Peer::Host, Peer::Guest] {
            let mut decoder = Decoder::new(peer);
            let mut header = length.to_le_bytes().to_vec();
            header.extend_from_slice(&[id, 0, 0, kind]);
            let outcome = decoder.decode(&mut &header[..]).is_ok();
            prop_assert_eq!(decoder.buffer_capacity(), 0);
            prop_assert!(!outcome || length <= MAX_PAYLOAD);
            // Cancel, Ack and the ends have no payload.
            let bare = matches!(kind, 0x05 | 0x06 | 0x20..=0x22);
            prop_assert!(!outcome || !bare || length == 0);
        }
    }

    #[test]
    fn a_message_cut_short_is_refused(
        (peer, conversation) in conversation(),
        stop in any::<Index>(),
    ) {
        for item in conversation {
            let expected = match item {
                // Not an error of the link: it may be a request of a newer host.
                Item::Open { stream, .. } => Ok(Some(Item::OpenUnknown { stream })),
                Item::Hello(_) | Item::Event { .. } | Item::Close { .. } => {
                    Err(WireError::Malformed)
                }
                _ => continue,
            };
            let mut frame = Vec::new();
            write(&item, &mut frame);
            let length = frame.len() - Header::SIZE;
            if length > 1 {
                let shorter = 1 + stop.index(length - 1);
                frame.truncate(Header::SIZE + shorter);
                frame[..4].copy_from_slice(&(shorter as u32).to_le_bytes());
                let mut decoder = Decoder::new(peer);
                prop_assert_eq!(decoder.decode(&mut &frame[..]), expected);
            }
        }
    }

    #[test]
    fn resource_limits_come_whole_or_not_at_all(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let mut message = vec![bytes.len() as u8];
        message.extend_from_slice(&bytes);
        let limits = postcard::from_bytes::<Rlimits<'_>>(&message);
        prop_assert_eq!(limits.is_ok(), bytes.len() % 17 == 0);
        if let Ok(limits) = limits {
            let mut again = RlimitsBuf::new();
            limits.iter().for_each(|limit| again.push(limit));
            prop_assert_eq!(again.as_rlimits(), limits);
            prop_assert_eq!(limits.iter().count(), bytes.len() / 17);
        }
    }
}

#[test]
fn what_a_peer_may_not_send_is_refused() {
    let mut from_guest = Vec::new();
    let stream = StreamId::new(1).unwrap();
    encode::event(&mut from_guest, stream, &Event::Started { id: 1, pid: 1 }).unwrap();
    let refused = Decoder::new(Peer::Host)
        .decode(&mut &from_guest[..])
        .unwrap_err();
    assert_eq!(refused, WireError::UnexpectedKind(0x03));

    let mut from_host = Vec::new();
    encode::open(&mut from_host, stream, &Request::Ping).unwrap();
    let refused = Decoder::new(Peer::Guest)
        .decode(&mut &from_host[..])
        .unwrap_err();
    assert_eq!(refused, WireError::UnexpectedKind(0x02));

    // Only a host acknowledges outcomes.
    from_host.clear();
    encode::ack(&mut from_host, stream);
    let refused = Decoder::new(Peer::Guest)
        .decode(&mut &from_host[..])
        .unwrap_err();
    assert_eq!(refused, WireError::UnexpectedKind(0x06));

    // Standard input never flows from the guest.
    let header = encode::data_header(stream, Channel::Stdin, 1).unwrap();
    assert!(Decoder::new(Peer::Guest).decode(&mut &header[..]).is_err());
}

#[test]
fn malformed_messages_are_refused() {
    let stream = StreamId::new(1).unwrap();
    let decode = |bytes: &[u8]| {
        Decoder::new(Peer::Guest)
            .decode(&mut &bytes[..])
            .map(|item| item.is_some())
    };

    // Trailing bytes after a message.
    let mut trailing = Vec::new();
    encode::close(&mut trailing, stream, &Outcome::Pong).unwrap();
    trailing[0] += 1;
    trailing.push(0);
    assert_eq!(decode(&trailing), Err(WireError::Malformed));

    // A text that exceeds its limit.
    let long = "x".repeat(MAX_FAILURE_TEXT + 1);
    let mut bytes = Vec::new();
    let failure = Failure::new(FailureKind::Other, Stage::Exec, &long);
    encode::close(&mut bytes, stream, &Outcome::Failed(failure)).unwrap();
    assert_eq!(decode(&bytes), Err(WireError::Malformed));

    // Credit of zero bytes.
    let mut bytes = Vec::new();
    encode::credit(&mut bytes, stream, Channel::Stdin, 0);
    assert_eq!(decode(&bytes), Err(WireError::Malformed));

    // A hello with another magic.
    let mut bytes = Vec::new();
    let hello = Hello {
        magic: *b"nope",
        ..Hello::new("", 0, [0; 16])
    };
    encode::hello(&mut bytes, &hello).unwrap();
    assert_eq!(decode(&bytes), Err(WireError::NotVmcell));
}

#[test]
fn a_listed_process_with_a_text_past_its_limit_is_refused() {
    let stream = StreamId::new(1).unwrap();
    let refused = |tag: usize, command: usize| {
        let mut argv = PackedStringsBuf::new();
        // Two strings: the limit applies to the list, not to each string.
        assert!(argv.push(b"") && argv.push(&vec![b'x'; command - 2]));
        assert_eq!(argv.as_packed().byte_len(), command);
        let entry = ProcessEntry {
            id: 1,
            pid: 1,
            tag: &"x".repeat(tag),
            argv: argv.as_packed(),
            uid: 0,
            mode: ProcessMode::Background,
            age_ms: 0,
            stdout: BufferedRange { start: 0, end: 0 },
            stderr: BufferedRange { start: 0, end: 0 },
            exit: None,
        };
        let mut bytes = Vec::new();
        encode::event(&mut bytes, stream, &Event::Listed(entry)).unwrap();
        match Decoder::new(Peer::Guest).decode(&mut &bytes[..]) {
            Ok(item) => {
                let event = Event::Listed(entry);
                let payload = &bytes[Header::SIZE..];
                let expected = Item::Event {
                    stream,
                    event,
                    payload,
                };
                assert_eq!(item, Some(expected));
                false
            }
            Err(error) => {
                assert_eq!(error, WireError::Malformed);
                true
            }
        }
    };
    assert!(!refused(MAX_TAG, MAX_COMMAND));
    assert!(refused(MAX_TAG + 1, MAX_COMMAND));
    assert!(refused(MAX_TAG, MAX_COMMAND + 1));
}

#[test]
fn a_start_with_a_list_that_is_cut_off_is_not_understood() {
    let stream = StreamId::new(1).unwrap();
    let mut argv = PackedStringsBuf::new();
    assert!(argv.push(b"true"));
    let mut rlimits = RlimitsBuf::new();
    rlimits.push(Rlimit {
        resource: 0xee,
        soft: 0xeeee_eeee_eeee_eeee,
        hard: 0xeeee_eeee_eeee_eeee,
    });
    let start = Start {
        rlimits: rlimits.as_rlimits(),
        ..plain_start(argv.as_packed())
    };
    let mut bytes = Vec::new();
    encode::open(&mut bytes, stream, &Request::Start(start)).unwrap();
    let understood = |bytes: &[u8]| match Decoder::new(Peer::Host).decode(&mut &bytes[..]) {
        Ok(Some(Item::Open { .. })) => true,
        Ok(Some(Item::OpenUnknown { .. })) => false,
        other => panic!("{other:?}"),
    };
    assert!(understood(&bytes));

    // Without the last byte of the limit; both lengths are adjusted.
    let mut cut = bytes.clone();
    let limit = cut.windows(17).position(|at| at == [0xee; 17]).unwrap();
    cut.remove(limit);
    cut[limit - 1] -= 1;
    cut[0] -= 1;
    assert!(!understood(&cut));

    // The same for the zero byte at the end of the arguments.
    let mut cut = bytes.clone();
    let end = cut.windows(5).position(|at| at == b"true\0").unwrap() + 4;
    cut.remove(end);
    cut[end - 5] -= 1;
    cut[0] -= 1;
    assert!(!understood(&cut));
}

#[test]
fn a_request_that_does_not_fit_is_not_written() {
    let mut argv = PackedStringsBuf::new();
    assert!(argv.push(&vec![b'x'; MAX_PAYLOAD as usize]));
    let request = Request::Start(plain_start(argv.as_packed()));
    let mut bytes = Vec::new();
    let refused = encode::open(&mut bytes, StreamId::new(1).unwrap(), &request);
    assert_eq!(refused, Err(WireError::TooLarge));
    assert!(bytes.is_empty());
}

fn plain_start(argv: PackedStrings<'_>) -> Start<'_> {
    Start {
        ticket: 1,
        tag: "plain",
        argv,
        env: PackedStrings::default(),
        default_env: true,
        cwd: b"",
        make_cwd: false,
        user: "",
        umask: None,
        nice: 0,
        rlimits: Rlimits::default(),
        stdin: Stdin::Empty,
        mode: ProcessMode::Foreground,
        timeout_ms: 0,
        keep: 0,
        limits: CgroupLimits::default(),
    }
}
