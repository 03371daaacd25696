//! Peers of other versions: what is unknown to one is never the end of the link.
#![allow(clippy::unwrap_used)]

use vmcell_wire::{
    Capabilities, Decoder, Event, Failure, FailureKind, Header, Item, Kind, Outcome, Peer, Stage,
    StreamId, WireError, encode,
    terminal::{Size, TerminalState},
};

fn stream() -> StreamId {
    StreamId::new(3).unwrap()
}

/// Returns a frame with any payload, as a newer peer may send it.
fn frame(kind: Kind, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        length: payload.len() as u32,
        stream: Some(stream()),
        kind,
    };
    let mut frame = header.to_bytes().to_vec();
    frame.extend_from_slice(payload);
    frame
}

fn decode(frame: &[u8]) -> Result<Item<'static>, WireError> {
    let frame: &'static [u8] = Box::leak(frame.to_vec().into_boxed_slice());
    let decoder = Box::leak(Box::new(Decoder::new(Peer::Guest)));
    decoder.decode(&mut &frame[..]).map(Option::unwrap)
}

#[test]
fn an_event_of_a_newer_agent_is_unknown_and_the_link_goes_on() {
    let payload = [99, 1, 2, 3];
    let item = Item::Event {
        stream: stream(),
        event: Event::Unknown,
        payload: &[99, 1, 2, 3],
    };
    assert_eq!(decode(&frame(Kind::Event, &payload)), Ok(item));
}

#[test]
fn an_outcome_of_a_newer_agent_is_unknown_and_the_link_goes_on() {
    // A variant that does not exist, and a cause of an exit that does not exist.
    for payload in [&[99, 1][..], &[2, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0]] {
        let Ok(Item::Close { outcome, .. }) = decode(&frame(Kind::Close, payload)) else {
            panic!("{payload:?}");
        };
        assert_eq!(outcome, Outcome::Unknown);
    }
}

#[test]
fn a_failure_of_a_newer_agent_keeps_its_text() {
    let payload = [&[0, 99, 5, 98, 6][..], b"reason"].concat();
    let Ok(Item::Close { outcome, .. }) = decode(&frame(Kind::Close, &payload)) else {
        panic!("it must be understood");
    };
    let expected = Failure {
        kind: FailureKind::Other,
        errno: 5,
        stage: Stage::Unknown,
        text: "reason",
    };
    assert_eq!(outcome, Outcome::Failed(expected));
}

#[test]
fn a_message_that_is_cut_off_is_still_a_violation() {
    // `Exited` and `Started` without all of their fields.
    let close = frame(Kind::Close, &[2, 0, 0]);
    assert_eq!(decode(&close), Err(WireError::Malformed));
    let event = frame(Kind::Event, &[0, 1]);
    assert_eq!(decode(&event), Err(WireError::Malformed));
}

#[test]
fn what_is_unknown_cannot_be_sent() {
    let mut out = Vec::new();
    let failed = encode::close(&mut out, stream(), &Outcome::Unknown);
    assert_eq!(failed, Err(WireError::TooLarge));
    let failed = encode::event(&mut out, stream(), &Event::Unknown);
    assert_eq!(failed, Err(WireError::TooLarge));
    assert_eq!(out, []);
}

#[test]
fn an_older_host_gets_only_outcomes_that_it_knows() {
    let older = Capabilities::PROCESSES | Capabilities::POWER_OFF;
    let spawned = Outcome::Spawned { id: 1, pid: 2 };
    assert_eq!(spawned.for_host(older), spawned);
    assert_eq!(Outcome::DiskClean.for_host(older), Outcome::PoweringOff);
    let newest = Capabilities::ALL;
    assert_eq!(Outcome::DiskClean.for_host(newest), Outcome::DiskClean);
    let state = TerminalState {
        size: Size {
            columns: 80,
            rows: 24,
        },
        echo: true,
        canonical: true,
        foreground: None,
    };
    let (plain, read) = (Outcome::Terminal(state), Outcome::TerminalRead(state));
    let knows_terminals = older | Capabilities::TERMINALS;
    assert_eq!(read.for_host(knows_terminals), plain);
    assert_eq!(read.for_host(newest), read);
    assert_eq!(read.for_host(older), plain.for_host(older));
    // It asked for what it does not know: a failure is always understood.
    let Outcome::Failed(failure) = plain.for_host(older) else {
        panic!("it must be told");
    };
    assert_eq!(failure.kind, FailureKind::Unsupported);
}

#[test]
fn numbers_of_failures_are_their_places_in_the_list() {
    for (number, kind) in FailureKind::ALL.into_iter().enumerate() {
        let mut out = Vec::new();
        let failure = Failure::new(kind, Stage::ALL[number], "");
        encode::close(&mut out, stream(), &Outcome::Failed(failure)).unwrap();
        let number = number as u8;
        assert_eq!(out[Header::SIZE..], [0, number, 0, number, 0]);
    }
    for (number, stage) in Stage::ALL.into_iter().enumerate() {
        let mut out = Vec::new();
        let failure = Failure::new(FailureKind::Invalid, stage, "");
        encode::close(&mut out, stream(), &Outcome::Failed(failure)).unwrap();
        assert_eq!(out[Header::SIZE..], [0, 0, 0, number as u8, 0]);
    }
}
