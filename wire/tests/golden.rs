//! The exact bytes of generation 1. A change here breaks compatibility with
//! released peers: append variants, never edit existing ones.
//!
//! How to read them (postcard's specification): an enum is the number of its
//! variant; integers of more than a byte are varints, 7 bits a byte, the lowest
//! first, so 300 is `ac02`; `u8`, `i8` and `bool` are a byte; an option is `00`
//! or `01` and its value; texts and bytes are preceded by their length, arrays
//! are not; a struct is its fields in order.
#![allow(clippy::unwrap_used)]

use vmcell_wire::{
    Attach, Attached, BufferedRange, Capabilities, CgroupLimits, Channel, Event, Exit, ExitCause,
    Failure, FailureKind, Hello, Outcome, Output, PackedStringsBuf, Position, ProcessEntry,
    ProcessMode, ProcessTree, Renew, Request, Resume, Rlimit, RlimitsBuf, Selector, Stage, Start,
    Stdin, StreamId, boot::Boot, boot::BootLink, encode, files::record, network, reset::ResetKey,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn frame(write: impl FnOnce(&mut Vec<u8>, StreamId)) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes, StreamId::new(0x0a0b0c).unwrap());
    hex(&bytes)
}

fn open(request: Request<'_>) -> String {
    frame(|out, stream| encode::open(out, stream, &request).unwrap())
}

fn event(event: Event<'_>) -> String {
    frame(|out, stream| encode::event(out, stream, &event).unwrap())
}

fn close(outcome: Outcome<'_>) -> String {
    frame(|out, stream| encode::close(out, stream, &outcome).unwrap())
}

fn packed(strings: &[&[u8]]) -> PackedStringsBuf {
    let mut packed = PackedStringsBuf::new();
    assert!(strings.iter().all(|string| packed.push(string)));
    packed
}

/// A minimal request to start a program.
fn plain_start(argv: &PackedStringsBuf) -> Start<'_> {
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
        mode: ProcessMode::Foreground,
        timeout_ms: 0,
        keep: 0,
        limits: CgroupLimits::default(),
    }
}

fn exit(cause: ExitCause) -> Exit {
    Exit {
        cause,
        user_us: 1,
        system_us: 2,
        peak_rss_kib: 3,
        wall_us: 4,
        stdout_bytes: 5,
        stderr_bytes: 6,
        outputs_cut: true,
        oom_kills: 7,
        tree_ended: Some(true),
    }
}

#[test]
fn hello() {
    let hello = Hello {
        capabilities: Capabilities::PROCESSES | Capabilities::POWER_OFF,
        ..Hello::new("test", 65536, [7; 16])
    };
    let text = frame(|out, _| encode::hello(out, &hello).unwrap());
    assert_eq!(
        text,
        concat!(
            "1e000000",
            "000000",
            "01", // header
            "766d6331",
            "01",
            "0474657374",
            "03",
            "808004", // magic, generation, build, ...
            "07070707070707070707070707070707",
        )
    );
}

#[test]
fn requests() {
    assert_eq!(open(Request::Ping), "010000000c0b0a0200");
    assert_eq!(
        open(Request::PowerOff { grace_ms: 300 }),
        "030000000c0b0a0202ac02"
    );
    assert_eq!(
        open(Request::Resume(Resume {
            ticket: 300,
            stdout: Position {
                offset: 128,
                window: 65536
            },
            stderr: Position {
                offset: 0,
                window: 1
            },
        })),
        concat!("0a0000000c0b0a02", "03", "ac02", "8001808004", "0001")
    );
    assert_eq!(
        open(Request::Signal {
            process: Selector::Pid(300),
            signal: 15
        }),
        concat!("050000000c0b0a02", "05", "01ac02", "0f")
    );
    assert_eq!(
        open(Request::Kill {
            process: Selector::Id(5)
        }),
        concat!("030000000c0b0a02", "06", "0005")
    );
    assert_eq!(
        open(Request::Detach {
            process: Selector::Tag("job")
        }),
        concat!("060000000c0b0a02", "07", "02036a6f62")
    );
    assert_eq!(
        open(Request::Forget {
            process: Selector::Tag("job")
        }),
        concat!("060000000c0b0a02", "08", "02036a6f62")
    );
    assert_eq!(
        open(Request::List { after: 300 }),
        concat!("030000000c0b0a02", "09", "ac02")
    );
    assert_eq!(
        open(Request::ListTrees { after: 300 }),
        concat!("030000000c0b0a02", "0f", "ac02")
    );
}

#[test]
fn start() {
    let argv = packed(&[b"ls", b"-l"]);
    assert_eq!(
        open(Request::Start(plain_start(&argv))),
        concat!(
            "190000000c0b0a02",
            "01",
            "00",
            "00",
            "066c73002d6c00", // ticket, tag, argv
            "00",
            "00",
            "00",
            "00",
            "00", // env, default_env, cwd, make_cwd, user
            "00",
            "00",
            "00", // umask, nice, rlimits
            "00",
            "00",
            "00",
            "00", // stdin, mode, timeout_ms, keep
            "000000",
        )
    );

    let env = packed(&[b"A=b"]);
    let mut rlimits = RlimitsBuf::new();
    rlimits.push(Rlimit {
        resource: 7,
        soft: 300,
        hard: u64::MAX,
    });
    let start = Start {
        ticket: u64::MAX,
        tag: "job",
        env: env.as_packed(),
        default_env: true,
        cwd: b"/tmp",
        make_cwd: true,
        user: "me:7",
        umask: Some(0o777),
        nice: -1,
        rlimits: rlimits.as_rlimits(),
        stdin: Stdin::Stream,
        mode: ProcessMode::Background,
        timeout_ms: 300,
        keep: 65536,
        limits: CgroupLimits {
            memory: 1 << 28,
            pids: 300,
            cpu_milli: 1500,
        },
        ..plain_start(&argv)
    };
    assert_eq!(
        open(Request::Start(start)),
        concat!(
            "4d0000000c0b0a02",
            "01",
            "ffffffffffffffffff01",
            "036a6f62",
            "066c73002d6c00", // ticket, tag, argv
            "04413d6200",
            "01",
            "042f746d70",
            "01",
            "046d653a37", // env, default_env, cwd, make_cwd, user
            "01ff03",
            "ff", // umask, nice: a byte in two's complement
            "11",
            "07",
            "2c01000000000000",
            "ffffffffffffffff", // rlimits: fixed width, not varints
            "01",
            "01",
            "ac02",
            "808004", // stdin, mode, timeout_ms, keep
            "8080808001",
            "ac02",
            "dc0b", // memory, pids, cpu_milli
        )
    );
}

#[test]
fn attach() {
    assert_eq!(
        open(Request::Attach(Attach {
            process: Selector::Id(300),
            stdout: None,
            stderr: None,
            stdin: false,
        })),
        concat!("070000000c0b0a02", "04", "00ac02", "00", "00", "00")
    );
    assert_eq!(
        open(Request::Attach(Attach {
            process: Selector::Tag("job"),
            stdout: Some(Position {
                offset: 0,
                window: 65536
            }),
            stderr: Some(Position {
                offset: Position::NOW,
                window: 1
            }),
            stdin: true,
        })),
        concat!(
            "180000000c0b0a02",
            "04",
            "02036a6f62",
            "0100808004",
            "01ffffffffffffffffff0101",
            "01"
        )
    );
}

#[test]
fn events() {
    assert_eq!(
        event(Event::Started { id: 5, pid: 300 }),
        concat!("040000000c0b0a03", "00", "05", "ac02")
    );
    let attached = Attached {
        id: 5,
        pid: 300,
        stdout: 128,
        stderr: 0,
        stdin: None,
    };
    assert_eq!(
        event(Event::Attached(attached)),
        concat!("080000000c0b0a03", "01", "05", "ac02", "8001", "00", "00")
    );
    let stdin = Position {
        offset: 300,
        window: 65536,
    };
    assert_eq!(
        event(Event::Attached(Attached {
            stdin: Some(stdin),
            ..attached
        })),
        concat!(
            "0d0000000c0b0a03",
            "01",
            "05",
            "ac02",
            "8001",
            "00",
            "01ac02808004"
        )
    );
    assert_eq!(
        event(Event::Gap {
            output: Output::Stdout,
            bytes: 300
        }),
        concat!("040000000c0b0a03", "02", "00", "ac02")
    );
    assert_eq!(
        event(Event::Gap {
            output: Output::Stderr,
            bytes: 1
        }),
        concat!("030000000c0b0a03", "02", "01", "01")
    );
}

#[test]
fn listed() {
    let argv = packed(&[b"ls"]);
    let running = ProcessEntry {
        id: 5,
        pid: 300,
        tag: "job",
        argv: argv.as_packed(),
        uid: 1000,
        mode: ProcessMode::Background,
        age_ms: 128,
        stdout: BufferedRange { start: 1, end: 300 },
        stderr: BufferedRange { start: 0, end: 0 },
        exit: None,
    };
    assert_eq!(
        event(Event::Listed(running)),
        concat!(
            "170000000c0b0a03",
            "03",
            "05",
            "ac02",
            "036a6f62",
            "036c7300", // id, pid, tag, argv
            "e807",
            "01",
            "8001",
            "01ac02",
            "0000", // uid, mode, age_ms, stdout, stderr
            "00",
        )
    );
    let ended = ProcessEntry {
        mode: ProcessMode::Foreground,
        exit: Some(exit(ExitCause::Code(255))),
        ..running
    };
    assert_eq!(
        event(Event::Listed(ended)),
        concat!(
            "230000000c0b0a03",
            "03",
            "05",
            "ac02",
            "036a6f62",
            "036c7300",
            "e807",
            "00",
            "8001",
            "01ac02",
            "0000",
            "01",
            "00ff",
            "010203040506",
            "01",
            "07",
            "0101", // cause, numbers, outputs_cut, oom_kills, tree_ended
        )
    );
    let names = packed(&[b"sh", b"x"]);
    let tree = ProcessTree {
        entry: ended,
        pids: &[0x2c, 1, 0, 0, 7, 0, 0, 0],
        names: names.as_packed(),
        more: true,
    };
    assert!(tree.descendants().eq([(300, &b"sh"[..]), (7, b"x")]));
    assert_eq!(
        event(Event::ListedTree(tree)),
        concat!(
            "330000000c0b0a03",
            "06",
            "05",
            "ac02",
            "036a6f62",
            "036c7300",
            "e807",
            "00",
            "8001",
            "01ac02",
            "0000",
            "01",
            "00ff",
            "010203040506",
            "01",
            "07",
            "0101",
            "082c01000007000000",
            "0573680078", // pids, names
            "00",
            "01", // more
        )
    );
}

#[test]
fn outcomes() {
    assert_eq!(
        close(Outcome::Failed(Failure::from_errno(2, Stage::Exec, "no"))),
        concat!("070000000c0b0a04", "00", "01", "02", "06", "026e6f")
    );
    assert_eq!(close(Outcome::Pong), "010000000c0b0a0401");
    assert_eq!(
        close(Outcome::Exited(exit(ExitCause::Signal(9)))),
        concat!(
            "0d0000000c0b0a04",
            "02",
            "0109",
            "010203040506",
            "01",
            "07",
            "0101"
        )
    );
    assert_eq!(close(Outcome::PoweringOff), "010000000c0b0a0403");
    assert_eq!(
        close(Outcome::Spawned { id: 5, pid: 300 }),
        concat!("040000000c0b0a04", "04", "05", "ac02")
    );
    assert_eq!(close(Outcome::Done), "010000000c0b0a0405");
    assert_eq!(close(Outcome::DiskClean), "010000000c0b0a0409");
    assert_eq!(
        close(Outcome::EndOfList { more: true }),
        concat!("020000000c0b0a04", "06", "01")
    );
}

#[test]
fn causes() {
    let causes = [
        (ExitCause::Code(255), "00ff"),
        (ExitCause::Signal(9), "0109"),
        (ExitCause::Timeout, "02"),
        (ExitCause::OutOfMemory, "03"),
        (ExitCause::Killed, "04"),
    ];
    for (cause, bytes) in causes {
        let length = 11 + bytes.len() / 2;
        assert_eq!(
            close(Outcome::Exited(exit(cause))),
            format!("{length:02x}0000000c0b0a0402{bytes}01020304050601070101")
        );
    }
    // `tree_ended`: false and unknown.
    for (tree_ended, length, bytes) in [(Some(false), 13, "0100"), (None, 12, "00")] {
        let exit = Exit {
            tree_ended,
            ..exit(ExitCause::Signal(9))
        };
        assert_eq!(
            close(Outcome::Exited(exit)),
            format!("{length:02x}0000000c0b0a040201090102030405060107{bytes}")
        );
    }
}

#[test]
fn failures() {
    let kinds = [
        FailureKind::Invalid,
        FailureKind::NotFound,
        FailureKind::Denied,
        FailureKind::Limit,
        FailureKind::Unsupported,
        FailureKind::Other,
        FailureKind::Conflict,
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        assert_eq!(
            close(Outcome::Failed(Failure::new(kind, Stage::Request, ""))),
            format!("050000000c0b0a0400{number:02x}000000")
        );
    }
    let stages = [
        Stage::Request,
        Stage::Cgroup,
        Stage::Pipes,
        Stage::Clone,
        Stage::Setup,
        Stage::WorkingDirectory,
        Stage::Exec,
        Stage::User,
        Stage::Limits,
        Stage::Process,
    ];
    for (number, stage) in stages.into_iter().enumerate() {
        let failure = Failure::new(FailureKind::Invalid, stage, "");
        assert_eq!(
            close(Outcome::Failed(failure)),
            format!("050000000c0b0a04000000{number:02x}00")
        );
    }
}

#[test]
fn flow() {
    assert_eq!(frame(encode::cancel), "000000000c0b0a05");
    assert_eq!(frame(encode::ack), "000000000c0b0a06");
    let channels = [Channel::Stdin, Channel::Stdout, Channel::Stderr];
    for (number, channel) in channels.into_iter().enumerate() {
        assert_eq!(
            frame(|out, stream| encode::end(out, stream, channel)),
            format!("000000000c0b0a2{number}")
        );
        assert_eq!(
            frame(|out, stream| encode::credit(out, stream, channel, 0x1234)),
            format!("040000000c0b0a3{number}34120000")
        );
        let header = encode::data_header(StreamId::MAX, channel, 0x40000).unwrap();
        assert_eq!(hex(&header), format!("00000400ffffff1{number}"));
    }
}

#[test]
fn reset() {
    let key = ResetKey::new([0x11, 1, 2, 0x11, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(
        hex(&key.reset([7; 16])),
        concat!(
            "110102ee0405060708090a0b0c0d0e0f", // no second 11
            "07070707070707070707070707070707",
        )
    );
}

#[test]
fn the_clock() {
    let set = Request::SetClock { wall_time_ns: 300 };
    assert_eq!(open(set), "030000000c0b0a020eac02");
    assert_eq!(Capabilities::CLOCK.bits(), 0x40);
}

#[test]
fn snapshots() {
    assert_eq!(open(Request::Freeze), "010000000c0b0a0210");
    assert_eq!(open(Request::Thaw), "010000000c0b0a0211");
    let renew = Renew {
        boot_id: [1; 16],
        reset_key: [3; 16],
        seed: [2; 32],
        wall_time_ns: 300,
        hostname: "cell",
    };
    assert_eq!(
        open(Request::Renew(renew)),
        format!(
            "480000000c0b0a0212{}{}{}ac020463656c6c",
            "01".repeat(16),
            "03".repeat(16),
            "02".repeat(32)
        )
    );
    assert_eq!(Capabilities::SNAPSHOTS.bits(), 0x400);
}

#[test]
fn network() {
    use network::{Answer, NetworkRequest, PREFIX_LEN, Refusal, Target, Want};

    let prefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 0, 104];
    assert_eq!(prefix.len(), PREFIX_LEN);
    let capture = NetworkRequest::Capture { prefixes: &prefix };
    assert_eq!(
        open(Request::Network(capture)),
        "140000000c0b0a0213001100000000000000000000ffff0a00000068"
    );
    let accept = NetworkRequest::Accept { ticket: 300 };
    assert_eq!(open(Request::Network(accept)), "040000000c0b0a021301ac02");
    let name = "a.b";
    let connect = |target| Want::Connect {
        ticket: 300,
        target,
        port: 443,
    };
    for (want, bytes) in [
        (Want::Ready, "0100000000"),
        (Want::Lookup { ticket: 1, name }, "06000000010103612e62"),
        (connect(Target::Name(name)), "0a00000002ac020003612e62bb03"),
        (
            connect(Target::V4([1, 2, 3, 4])),
            "0a00000002ac020101020304bb03",
        ),
        (
            connect(Target::V6([5; 16])),
            "1600000002ac020205050505050505050505050505050505bb03",
        ),
    ] {
        let mut out = Vec::new();
        record::encode(&mut out, &want).unwrap();
        assert_eq!(hex(&out), bytes, "{want:?}");
        assert_eq!(record::decode(&out[record::HEADER..]), Ok(want));
    }
    let refuse = |refusal| Answer::Refuse { ticket: 2, refusal };
    for (answer, bytes) in [
        (Answer::Allow { ticket: 2 }, "020000000002"),
        (refuse(Refusal::NotAllowed), "03000000010200"),
        (refuse(Refusal::Unreachable), "03000000010201"),
        (refuse(Refusal::Limit), "03000000010202"),
    ] {
        let mut out = Vec::new();
        record::encode(&mut out, &answer).unwrap();
        assert_eq!(hex(&out), bytes, "{answer:?}");
        assert_eq!(record::decode(&out[record::HEADER..]), Ok(answer));
    }
    assert_eq!(Capabilities::NETWORK.bits(), 0x800);
}

#[test]
fn the_number_of_processes() {
    assert_eq!(open(Request::CountProcesses), "010000000c0b0a0214");
    assert_eq!(
        close(Outcome::Processes { count: 300 }),
        concat!("030000000c0b0a04", "0b", "ac02")
    );
    assert_eq!(Capabilities::PROCESS_COUNT.bits(), 0x1000);
}

#[test]
fn the_secrets_of_a_new_identity_are_not_printed() {
    let renew = Renew {
        boot_id: [1; 16],
        reset_key: [113; 16],
        seed: [114; 32],
        wall_time_ns: 5,
        hostname: "cell",
    };
    let printed = format!("{:?}", Request::Renew(renew));
    assert!(printed.contains("cell"), "{printed}");
    assert!(!printed.contains("113") && !printed.contains("114"));
}

#[test]
fn boot_file() {
    let boot = Boot {
        boot_id: [1; 16],
        reset_key: [3; 16],
        seed: [2; 32],
        wall_time_ns: 300,
        hostname: "cell",
        root_device: "/dev/vda",
        link: BootLink::Serial,
        disk_is_persistent: true,
    };
    let vsock = BootLink::Vsock {
        port: 1024,
        ready_port: 300,
    };
    for (link, expected) in [(BootLink::Serial, "00"), (vsock, "018008ac02")] {
        let boot = Boot { link, ..boot };
        let bytes = boot.encode().unwrap();
        assert_eq!(
            hex(&bytes),
            format!(
                "{}{}{}ac020463656c6c082f6465762f766461{expected}01",
                "01".repeat(16),
                "03".repeat(16),
                "02".repeat(32)
            )
        );
        assert_eq!(Boot::decode(&bytes), Ok(boot));
    }
}
