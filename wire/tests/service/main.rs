//! Messages about services and ports: their exact bytes, and that they decode to
//! what was encoded. `../golden.rs` explains how to read the bytes.
#![allow(clippy::unwrap_used)]

mod arbitrary;
mod golden;
mod limits;

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
        log_pattern::{Instruction, LogPatternBuf},
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

/// Returns the pattern that this text occurs in a line.
fn literal(text: &str) -> LogPatternBuf {
    let mut instructions: Vec<_> = text.bytes().map(Instruction::Byte).collect();
    instructions.push(Instruction::Match);
    LogPatternBuf::new(&instructions, &[]).unwrap()
}

fn decoded(peer: Peer, bytes: &[u8]) -> Result<(), WireError> {
    Decoder::new(peer).decode(&mut &bytes[..]).map(|_| ())
}
