//! The exact bytes of generation 1. A change here breaks every peer that is
//! already out there: append variants, never edit what stands.
#![allow(clippy::unwrap_used)]

use vmcell_wire::{
    Capabilities, Cause, Channel, Event, Exec, Exit, Failure, Hello, Outcome, PackedBuf, Request,
    Stage, Stdin, StreamId, boot::Boot, encode,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn frame(write: impl FnOnce(&mut Vec<u8>, StreamId)) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes, StreamId::new(0x0a0b0c).unwrap());
    hex(&bytes)
}

#[test]
fn hello() {
    let hello = Hello {
        capabilities: Capabilities::EXEC | Capabilities::POWER_OFF,
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
    assert_eq!(
        frame(|out, stream| encode::open(out, stream, &Request::Ping).unwrap()),
        "010000000c0b0a0200"
    );
    let mut argv = PackedBuf::new();
    assert!(argv.push(b"ls") && argv.push(b"-l"));
    let mut env = PackedBuf::new();
    assert!(env.push(b"A=b"));
    let exec = Request::Exec(Exec {
        argv: argv.as_packed(),
        env: env.as_packed(),
        cwd: b"/tmp",
        stdin: Stdin::Stream,
    });
    assert_eq!(
        frame(|out, stream| encode::open(out, stream, &exec).unwrap()),
        concat!(
            "130000000c0b0a02",
            "01",
            "066c73002d6c00",
            "04413d6200",
            "042f746d70",
            "01"
        )
    );
    assert_eq!(
        frame(|out, stream| {
            encode::open(out, stream, &Request::PowerOff { grace_ms: 300 }).unwrap();
        }),
        "030000000c0b0a0202ac02"
    );
}

#[test]
fn events_and_outcomes() {
    assert_eq!(
        frame(|out, stream| encode::event(out, stream, &Event::Started { pid: 300 }).unwrap()),
        "030000000c0b0a0300ac02"
    );
    let close =
        |outcome: Outcome<'_>| frame(|out, stream| encode::close(out, stream, &outcome).unwrap());
    assert_eq!(
        close(Outcome::Failed(Failure::from_errno(2, Stage::Exec, "no"))),
        concat!("070000000c0b0a04", "00", "01", "02", "06", "026e6f")
    );
    assert_eq!(close(Outcome::Pong), "010000000c0b0a0401");
    let exit = Exit {
        cause: Cause::Signal(9),
        user_us: 1,
        system_us: 2,
        peak_rss_kib: 3,
        wall_us: 4,
        stdout_bytes: 5,
        stderr_bytes: 6,
        outputs_cut: true,
        tree_ended: Some(true),
    };
    assert_eq!(
        close(Outcome::Exited(exit)),
        concat!(
            "0c0000000c0b0a04",
            "02",
            "0109",
            "010203040506",
            "01",
            "0101"
        )
    );
    assert_eq!(close(Outcome::PoweringOff), "010000000c0b0a0403");
}

#[test]
fn flow() {
    assert_eq!(frame(encode::cancel), "000000000c0b0a05");
    assert_eq!(
        frame(|out, stream| encode::end(out, stream, Channel::Stdin)),
        "000000000c0b0a20"
    );
    assert_eq!(
        frame(|out, stream| encode::credit(out, stream, Channel::Stderr, 0x1234)),
        "040000000c0b0a3234120000"
    );
    let header = encode::data_header(StreamId::MAX, Channel::Stdout, 0x40000).unwrap();
    assert_eq!(hex(&header), "00000400ffffff11");
}

#[test]
fn boot_file() {
    let boot = Boot {
        boot_id: [1; 16],
        seed: [2; 32],
        wall_time_ns: 300,
        hostname: "cell",
        root_device: "/dev/vda",
    };
    let bytes = boot.encode().unwrap();
    assert_eq!(
        hex(&bytes),
        format!(
            "{}{}ac020463656c6c082f6465762f766461",
            "01".repeat(16),
            "02".repeat(32)
        )
    );
    assert_eq!(Boot::decode(&bytes), Ok(boot));
}
