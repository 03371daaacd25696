//! Whatever a guest sends and the users of a session do meanwhile: no wait is for ever, what
//! the host sends is valid, it holds no more than has arrived, users get the bytes that the
//! guest has sent, a truncated output is never taken for a complete one, and nothing of this
//! depends on how the guest's bytes are split.
//!
//! The input is read as
//!
//! ```text
//! byte   0                          1                  2 ..
//!        bit 7: a greeting          size of a piece    the greeting, or steps
//!        bit 0: a serial port
//!        bits 1, 2: the window
//! ```
//!
//! and a step as
//!
//! ```text
//! byte   0                    1 ..
//!        what: its low four   its parameters
//!        bits; the stream:
//!        the other bits
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmcell::fuzzing::{GuestSession, SessionEnd};
use vmcell_wire::{
    Attached, BufferedRange, Channel, Event, Exit, ExitCause, Failure, FailureKind, Outcome,
    Output, PackedStrings, Position, ProcessEntry, ProcessMode, Stage, StreamId, encode,
};

/// The most steps of an input: a fuzzer tries what they can do, and not how many fit.
const MAX_STEPS: usize = 100;

/// The kind of frames with data of standard output. The next one is that of standard error.
const DATA: u8 = 0x11;

/// What the host may hold of a stream for a frame of which only the header has arrived.
const MAX_PENDING: usize = 512 * 1024;

fuzz_target!(|input: &[u8]| {
    let Some((&[options, piece], rest)) = input.split_first_chunk() else {
        return;
    };
    let piece = usize::from(piece).max(1);
    if options & 0x80 != 0 {
        return greet(rest, piece);
    }
    let whole = play(options, rest, usize::MAX);
    let pieces = play(options, rest, piece);
    assert_eq!(whole, pieces);
});

/// Checks a guest that sends this instead of a hello.
fn greet(greeting: &[u8], piece: usize) {
    for is_used in [false, true] {
        let whole = GuestSession::greet(greeting, usize::MAX, is_used);
        assert_eq!(whole, GuestSession::greet(greeting, piece, is_used));
        let (Ok(text) | Err(text)) = whole;
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
}

/// Takes the bytes of an input one after the other.
struct Steps<'a>(&'a [u8]);

impl<'a> Steps<'a> {
    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    fn number(&mut self) -> u64 {
        let mut number = [0; 8];
        // Most are small.
        let bytes = match self.byte() {
            length @ 248.. => self.bytes(usize::from(length - 247)),
            small => return small.into(),
        };
        number[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(number)
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(self.0.len().min(count));
        self.0 = rest;
        bytes
    }
}

fn play(options: u8, steps: &[u8], piece: usize) -> SessionEnd {
    let window = [1, 4096, 64 * 1024, 1024 * 1024][usize::from(options >> 1 & 3)];
    let mut session = GuestSession::connect(options & 1 != 0, window, piece);
    let mut steps = Steps(steps);
    let mut cancelled = [false; 8];
    let mut opened = 0;
    let mut sent = 0;
    for _ in 0..MAX_STEPS {
        if steps.0.is_empty() {
            break;
        }
        let step = steps.byte();
        let index = usize::from(step >> 4) % opened.max(1);
        let stream = session.id(index);
        let mut frames = Vec::new();
        match step & 15 {
            0 => opened = session.open(steps.byte()),
            1 => {
                let (kind, length) = (steps.byte(), steps.byte());
                frames = frame(kind, stream, steps.bytes(length.into()));
            }
            2 => {
                // So long that it may be read directly to where it belongs.
                let kind = DATA + steps.byte() % 2;
                let length = (1 + usize::from(steps.byte())) * 256;
                frames = frame(kind, stream, &pattern(length, sent));
            }
            3 => session.read(index, steps.byte().into()),
            4 => session.write(index, (steps.number() % 100_000) as usize),
            5 => session.end_input(index),
            6 => {
                cancelled[index] = true;
                session.cancel(index);
            }
            7 => session.drop_stream(index),
            8 => session.reset_link(),
            9 => frames = started(stream, &mut steps),
            10 => frames = attached(stream, &mut steps),
            11 => frames = gap(stream, &mut steps),
            12 => encode::credit(&mut frames, stream, Channel::Stdin, steps.number() as u32),
            13 => encode::end(&mut frames, stream, channel(steps.byte())),
            14 => frames = closed(stream, &mut steps),
            _ => frames = listed(stream, &mut steps),
        }
        if !frames.is_empty() {
            sent += frames.len();
            session.send(&frames);
        }
        let most = 64 * sent + opened * MAX_PENDING;
        assert!(session.memory_used() <= most, "{}", session.memory_used());
    }
    let end = session.finish(steps.0);
    check(&end, cancelled);
    end
}

fn check(end: &SessionEnd, cancelled: [bool; 8]) {
    assert!(
        !end.error.is_empty() && !end.error.chars().any(char::is_control),
        "{end:?}"
    );
    for (index, (got, [stdout, stderr])) in end.streams.iter().zip(&end.sent).enumerate() {
        match end.was_reset {
            false => {
                assert!(
                    stdout.starts_with(&got.stdout),
                    "stream {index}: other bytes"
                );
                assert!(
                    stderr.starts_with(&got.stderr),
                    "stream {index}: other bytes"
                );
            }
            true => {
                assert!(got.stdout.len() <= stdout.len());
                assert!(got.stderr.len() <= stderr.len());
            }
        }
        if let Some(printed) = got.exit_bytes
            && !cancelled[index]
            && !(got.stdout.is_empty() && got.missing == 0)
        {
            let read = got.start + got.stdout.len() as u64 + got.missing;
            assert_eq!(read, printed, "stream {index} is not complete");
        }
    }
}

fn channel(number: u8) -> Channel {
    match number % 2 {
        0 => Channel::Stdout,
        _ => Channel::Stderr,
    }
}

/// Returns a frame, whatever it contains.
fn frame(kind: u8, stream: StreamId, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(&stream.get().to_le_bytes()[..3]);
    frame.push(kind);
    frame.extend_from_slice(payload);
    frame
}

/// Returns bytes that are others at each place.
fn pattern(length: usize, place: usize) -> Vec<u8> {
    (0..length)
        .map(|index| ((place + index) as u32).wrapping_mul(2_654_435_761) as u8)
        .collect()
}

fn event(stream: StreamId, event: &Event<'_>) -> Vec<u8> {
    let mut frame = Vec::new();
    // One that is too long is none.
    let _ = encode::event(&mut frame, stream, event);
    frame
}

fn started(stream: StreamId, steps: &mut Steps<'_>) -> Vec<u8> {
    let (id, pid) = (steps.number() as u32, steps.number() as u32);
    match steps.byte() % 2 {
        0 => event(stream, &Event::Started { id, pid }),
        _ => event(stream, &Event::Connected),
    }
}

fn attached(stream: StreamId, steps: &mut Steps<'_>) -> Vec<u8> {
    let (stdout, stderr) = (steps.number(), steps.number());
    let stdin = (steps.byte() % 2 == 0).then(|| Position {
        offset: steps.number(),
        window: steps.number() as u32,
    });
    let attached = Attached {
        id: 5,
        pid: 9,
        stdout,
        stderr,
        stdin,
    };
    event(stream, &Event::Attached(attached))
}

fn gap(stream: StreamId, steps: &mut Steps<'_>) -> Vec<u8> {
    let output = match channel(steps.byte()) {
        Channel::Stderr => Output::Stderr,
        _ => Output::Stdout,
    };
    let bytes = steps.number();
    event(stream, &Event::Gap { output, bytes })
}

fn closed(stream: StreamId, steps: &mut Steps<'_>) -> Vec<u8> {
    let mut frame = Vec::new();
    let exit = |steps: &mut Steps<'_>| Exit {
        cause: ExitCause::Code(0),
        user_us: 0,
        system_us: 0,
        peak_rss_kib: 0,
        wall_us: 0,
        stdout_bytes: steps.number(),
        stderr_bytes: steps.number(),
        outputs_cut: false,
        oom_kills: 0,
        tree_ended: Some(true),
    };
    let failure = |kind| Failure {
        kind,
        errno: 2,
        stage: Stage::Request,
        text: "it is not there",
    };
    let outcome = match steps.byte() % 6 {
        0 => Outcome::Exited(exit(steps)),
        1 => Outcome::Failed(failure(FailureKind::NotFound)),
        2 => Outcome::Failed(failure(FailureKind::Invalid)),
        3 => Outcome::EndOfList {
            more: steps.byte() % 2 == 0,
        },
        4 => Outcome::Done,
        _ => Outcome::Pong,
    };
    let _ = encode::close(&mut frame, stream, &outcome);
    frame
}

fn listed(stream: StreamId, steps: &mut Steps<'_>) -> Vec<u8> {
    let range = BufferedRange { start: 0, end: 0 };
    let entry = ProcessEntry {
        id: steps.number() as u32,
        pid: 100,
        tag: "tag",
        argv: PackedStrings::default(),
        uid: 0,
        mode: ProcessMode::Background,
        age_ms: 1,
        stdout: range,
        stderr: range,
        exit: None,
    };
    event(stream, &Event::Listed(entry))
}
