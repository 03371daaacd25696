//! Messages about terminals: their exact bytes, and that they decode to what was
//! encoded. `golden.rs` explains how to read the bytes.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use vmcell_wire::{
    Capabilities, CgroupLimits, Decoder, Failure, FailureKind, Item, Outcome, PackedStringsBuf,
    Peer, Position, ProcessMode, Request, Selector, Stage, Start, Stdin, StreamId, WireError,
    encode,
    limits::{MAX_COMMAND, MAX_PATH},
    terminal::{
        AttachTerminal, Foreground, InputKind, OpenTerminal, Size, TerminalRequest, TerminalState,
        UnreadOutput, WriteInput,
    },
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn stream() -> StreamId {
    StreamId::new(0x0a0b0c).unwrap()
}

fn open(request: TerminalRequest<'_>) -> String {
    let mut bytes = Vec::new();
    encode::open(&mut bytes, stream(), &Request::Terminal(request)).unwrap();
    hex(&bytes)
}

fn close(outcome: Outcome<'_>) -> String {
    let mut bytes = Vec::new();
    encode::close(&mut bytes, stream(), &outcome).unwrap();
    hex(&bytes)
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

const SIZE: Size = Size {
    columns: 120,
    rows: 300,
};

#[test]
fn golden_bytes_of_opening() {
    let mut argv = PackedStringsBuf::new();
    assert!(argv.push(b"sh"));
    for (unread, last) in [
        (UnreadOutput::DropOldest, "00"),
        (UnreadOutput::Block, "01"),
    ] {
        let request = TerminalRequest::Open(OpenTerminal {
            start: start(&argv),
            size: SIZE,
            unread,
        });
        let expected = [
            "1b0000000c0b0a02",
            "0b", // Request::Terminal
            "00", // OpenTerminal
            "0000",
            "03736800", // ticket, tag, argv
            "0000000000",
            "000000",
            "00010000", // env to user, umask to rlimits, stdin to keep
            "000000",
            "78ac02", // limits, size
            last,
        ];
        assert_eq!(open(request), expected.concat());
    }
}

#[test]
fn golden_bytes_of_requests() {
    let process = Selector::Id(5);
    let typing = |kind| {
        open(TerminalRequest::WriteInput(WriteInput {
            process,
            bytes: b"hi",
            kind,
        }))
    };
    let output = Position {
        offset: Position::NOW,
        window: 65536,
    };
    let attach = TerminalRequest::Attach(AttachTerminal {
        process,
        output,
        writer: 300,
    });
    let resize = TerminalRequest::Resize {
        process,
        size: SIZE,
    };
    let signal = TerminalRequest::Signal { process, signal: 2 };
    let table = [
        (
            open(attach),
            "130000000c0b0a02 0b01 0005 ffffffffffffffffff01808004 ac02",
        ),
        (open(resize), "070000000c0b0a02 0b02 0005 78ac02"),
        (open(signal), "050000000c0b0a02 0b03 0005 02"),
        (
            typing(InputKind::QueryReply { writer: 300 }),
            "0a0000000c0b0a02 0b04 0005 026869 00ac02",
        ),
        (
            typing(InputKind::Secret),
            "080000000c0b0a02 0b04 0005 026869 01",
        ),
        (
            open(TerminalRequest::GetState { process }),
            "040000000c0b0a02 0b05 0005",
        ),
        (
            open(TerminalRequest::Rename {
                process,
                tag: "job",
            }),
            "080000000c0b0a02 0b06 0005 036a6f62",
        ),
        (
            open(TerminalRequest::List { after: 300 }),
            "040000000c0b0a02 0b07 ac02",
        ),
    ];
    for (bytes, expected) in table {
        assert_eq!(bytes, expected.replace(' ', ""));
    }
}

#[test]
fn golden_bytes_of_outcomes() {
    let without_foreground = TerminalState {
        size: SIZE,
        echo: true,
        canonical: false,
        foreground: None,
    };
    assert_eq!(
        close(Outcome::Terminal(without_foreground)),
        concat!("070000000c0b0a04", "07", "78ac02", "0100", "00")
    );
    assert_eq!(
        close(Outcome::TerminalRead(without_foreground)),
        concat!("070000000c0b0a04", "0a", "78ac02", "0100", "00")
    );
    let with_foreground = TerminalState {
        echo: false,
        canonical: true,
        foreground: Some(Foreground {
            pid: 300,
            command: b"vi",
            cwd: b"/w",
        }),
        ..without_foreground
    };
    assert_eq!(
        close(Outcome::Terminal(with_foreground)),
        concat!(
            "0f0000000c0b0a04",
            "07",
            "78ac02",
            "0001",
            "01ac02",
            "027669",
            "022f77"
        )
    );
    let failure = Failure::new(FailureKind::Invalid, Stage::Terminal, "");
    assert_eq!(
        close(Outcome::Failed(failure)),
        concat!("050000000c0b0a04", "00", "00", "00", "0b", "00")
    );
}

#[test]
fn terminals_need_an_agent_that_has_them() {
    let request = Request::Terminal(TerminalRequest::List { after: 0 });
    assert_eq!(request.capability(), Capabilities::TERMINALS);
    assert!(Capabilities::ALL.contains(Capabilities::TERMINALS));
}

fn decoded(peer: Peer, bytes: &[u8]) -> Result<(), WireError> {
    Decoder::new(peer).decode(&mut &bytes[..]).map(|_| ())
}

#[test]
fn a_foreground_with_a_text_past_its_limit_is_refused() {
    let refused = |command: usize, cwd: usize| {
        let state = TerminalState {
            size: SIZE,
            echo: true,
            canonical: true,
            foreground: Some(Foreground {
                pid: 1,
                command: &vec![b'x'; command],
                cwd: &vec![b'/'; cwd],
            }),
        };
        let mut bytes = Vec::new();
        encode::close(&mut bytes, stream(), &Outcome::Terminal(state)).unwrap();
        decoded(Peer::Guest, &bytes) == Err(WireError::Malformed)
    };
    assert!(!refused(MAX_COMMAND, MAX_PATH));
    assert!(refused(MAX_COMMAND + 1, MAX_PATH));
    assert!(refused(MAX_COMMAND, MAX_PATH + 1));
}

fn selector() -> impl Strategy<Value = Selector<'static>> {
    prop_oneof![
        any::<u32>().prop_map(Selector::Id),
        any::<u32>().prop_map(Selector::Pid),
        Just(Selector::Tag("shell")),
    ]
}

fn size() -> impl Strategy<Value = Size> {
    any::<(u16, u16)>().prop_map(|(columns, rows)| Size { columns, rows })
}

fn typed() -> impl Strategy<Value = InputKind> {
    prop_oneof![
        any::<u64>().prop_map(|writer| InputKind::QueryReply { writer }),
        Just(InputKind::Secret),
    ]
}

fn bytes(most: usize) -> impl Strategy<Value = &'static [u8]> {
    let bytes = prop::collection::vec(any::<u8>(), 0..most);
    bytes.prop_map(|bytes| &*bytes.leak())
}

fn opening() -> impl Strategy<Value = TerminalRequest<'static>> {
    let unread = prop_oneof![Just(UnreadOutput::DropOldest), Just(UnreadOutput::Block)];
    (any::<u64>(), size(), unread).prop_map(|(ticket, size, unread)| {
        let mut argv = PackedStringsBuf::new();
        assert!(argv.push(b"bash"));
        let argv: &'static PackedStringsBuf = Box::leak(Box::new(argv));
        let start = Start {
            ticket,
            ..start(argv)
        };
        TerminalRequest::Open(OpenTerminal {
            start,
            size,
            unread,
        })
    })
}

fn request() -> impl Strategy<Value = TerminalRequest<'static>> {
    prop_oneof![
        opening(),
        (selector(), any::<(u64, u32, u64)>()).prop_map(|(process, (offset, window, writer))| {
            TerminalRequest::Attach(AttachTerminal {
                process,
                output: Position { offset, window },
                writer,
            })
        }),
        (selector(), size()).prop_map(|(process, size)| TerminalRequest::Resize { process, size }),
        (selector(), any::<u8>())
            .prop_map(|(process, signal)| TerminalRequest::Signal { process, signal }),
        (selector(), bytes(100), typed()).prop_map(|(process, bytes, kind)| {
            TerminalRequest::WriteInput(WriteInput {
                process,
                bytes,
                kind,
            })
        }),
        selector().prop_map(|process| TerminalRequest::GetState { process }),
        selector().prop_map(|process| TerminalRequest::Rename {
            process,
            tag: "job"
        }),
        any::<u32>().prop_map(|after| TerminalRequest::List { after }),
    ]
}

fn state() -> impl Strategy<Value = TerminalState<'static>> {
    let foreground = (any::<u32>(), bytes(MAX_COMMAND), bytes(MAX_PATH))
        .prop_map(|(pid, command, cwd)| Foreground { pid, command, cwd });
    let foreground = prop::option::of(foreground);
    (size(), any::<(bool, bool)>(), foreground).prop_map(|(size, (echo, canonical), foreground)| {
        TerminalState {
            size,
            echo,
            canonical,
            foreground,
        }
    })
}

proptest! {
    #[test]
    fn what_a_host_says_is_understood(request in request()) {
        let request = Request::Terminal(request);
        let mut bytes = Vec::new();
        encode::open(&mut bytes, stream(), &request).unwrap();
        let mut decoder = Decoder::new(Peer::Host);
        let item = Item::Open { stream: stream(), request };
        prop_assert_eq!(decoder.decode(&mut &bytes[..]), Ok(Some(item)));
    }

    #[test]
    fn what_a_guest_says_is_understood(state in state()) {
        let outcome = Outcome::Terminal(state);
        let mut bytes = Vec::new();
        encode::close(&mut bytes, stream(), &outcome).unwrap();
        let mut decoder = Decoder::new(Peer::Guest);
        let payload = &bytes[8..];
        let item = Item::Close { stream: stream(), outcome, payload };
        prop_assert_eq!(decoder.decode(&mut &bytes[..]), Ok(Some(item)));
    }

    /// Decoding never panics, even on input from a malicious guest.
    #[test]
    fn damaged_messages_never_panic(
        state in state(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = Vec::new();
        encode::close(&mut bytes, stream(), &Outcome::Terminal(state)).unwrap();
        // After the header, which has its own tests.
        let (_, payload) = bytes.split_at_mut(8);
        for (place, byte) in damage {
            *place.get_mut(payload) = byte;
        }
        let _ = decoded(Peer::Guest, &bytes);
    }
}
