//! The exact bytes of generation 1. A change here breaks compatibility with
//! released peers: append variants, never edit existing ones.
//!
//! How to read them (postcard's specification): an enum is the number of its
//! variant; integers of more than a byte are varints, 7 bits a byte, the lowest
//! first, so 300 is `ac02`; `u8`, `i8` and `bool` are a byte; an option is `00`
//! or `01` and its value; texts and bytes are preceded by their length, arrays
//! are not; a struct is its fields in order.
#![allow(clippy::unwrap_used)]

mod boot;
mod credit;
mod event;
mod hello;
mod network;
mod outcome;
mod process;
mod renew;
mod request;
mod reset;
mod secret;
mod trust_store;

use vmcell_wire::{
    CgroupLimits, Event, Exit, ExitCause, Outcome, PackedStringsBuf, ProcessMode, Request, Start,
    Stdin, StreamId, encode,
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
