//! Messages that are refused, one by one.

use vmcell_wire::{
    BufferedRange, CgroupLimits, Channel, Decoder, Event, Failure, FailureKind, Header, Hello,
    Item, Outcome, PackedStrings, PackedStringsBuf, Peer, ProcessEntry, ProcessMode, Request,
    Rlimit, Rlimits, RlimitsBuf, Stage, Start, Stdin, StreamId, WireError, encode,
    limits::{MAX_COMMAND, MAX_FAILURE_TEXT, MAX_PAYLOAD, MAX_TAG},
};

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
