use vmcell_wire::{
    Attach, BufferedRange, CgroupLimits, Event, Exit, ExitCause, Outcome, Position, ProcessEntry,
    ProcessMode, ProcessTree, Request, Rlimit, RlimitsBuf, Selector, Start, Stdin,
};

use super::{close, event, exit, open, packed, plain_start};

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
