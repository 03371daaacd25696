//! What a decoder must do with any bytes at all.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use vmcell_wire::{
    Channel, Decoder, Event, Exec, Failure, FailureKind, Hello, Item, Outcome, Packed, PackedBuf,
    Peer, Request, Stage, Stdin, StreamId, WireError, encode,
    limits::{MAX_FAILURE_TEXT, MAX_PAYLOAD},
};

/// An owned mirror of everything a host can send.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Hello(String, u32),
    Ping,
    Exec(Vec<Vec<u8>>, Vec<u8>),
    Cancel,
    Data(Vec<u8>),
    End,
    Credit(u32),
    Unknown,
}

fn write(said: &Said, stream: StreamId, out: &mut Vec<u8>) {
    match said {
        Said::Hello(build, window) => {
            encode::hello(out, &Hello::new(build, *window, [3; 16])).unwrap();
        }
        Said::Ping => encode::open(out, stream, &Request::Ping).unwrap(),
        Said::Exec(argv, cwd) => {
            let mut packed = PackedBuf::new();
            assert!(argv.iter().all(|arg| packed.push(arg)));
            let exec = Exec {
                argv: packed.as_packed(),
                env: Packed::default(),
                cwd,
                stdin: Stdin::Empty,
            };
            encode::open(out, stream, &Request::Exec(exec)).unwrap();
        }
        Said::Cancel => encode::cancel(out, stream),
        Said::Data(bytes) => {
            let header = encode::data_header(stream, Channel::Stdin, bytes.len()).unwrap();
            out.extend_from_slice(&header);
            out.extend_from_slice(bytes);
        }
        Said::End => encode::end(out, stream, Channel::Stdin),
        Said::Credit(bytes) => encode::credit(out, stream, Channel::Stdout, *bytes),
        Said::Unknown => {
            // A request variant that only a later generation has.
            let header = vmcell_wire::Header {
                length: 3,
                stream: Some(stream),
                kind: vmcell_wire::Kind::Open,
            };
            out.extend_from_slice(&header.to_bytes());
            out.extend_from_slice(&[0x7f, 1, 2]);
        }
    }
}

/// Decodes `chunks` and joins the pieces of data frames again.
fn read(chunks: &[&[u8]]) -> Result<Vec<Said>, WireError> {
    let mut decoder = Decoder::new(Peer::Host);
    let mut heard: Vec<Said> = Vec::new();
    let mut inside_data = false;
    for chunk in chunks {
        let mut input = *chunk;
        loop {
            let continues = inside_data;
            let Some(item) = decoder.decode(&mut input)? else {
                break;
            };
            let said = match item {
                Item::Hello(hello) => Said::Hello(hello.build.into(), hello.window),
                Item::Open {
                    request: Request::Ping,
                    ..
                } => Said::Ping,
                Item::Open {
                    request: Request::Exec(exec),
                    ..
                } => Said::Exec(
                    exec.argv.iter().map(|arg| arg.to_bytes().into()).collect(),
                    exec.cwd.into(),
                ),
                Item::OpenUnknown { .. } => Said::Unknown,
                Item::Cancel { .. } => Said::Cancel,
                Item::Data { bytes, .. } => Said::Data(bytes.into()),
                Item::End { .. } => Said::End,
                Item::Credit { bytes, .. } => Said::Credit(bytes),
                other => panic!("a host cannot say {other:?}"),
            };
            match (heard.last_mut(), said) {
                (Some(Said::Data(so_far)), Said::Data(more)) if continues => so_far.extend(more),
                (_, said) => heard.push(said),
            }
            inside_data = decoder.pending_data().is_some();
        }
    }
    Ok(heard)
}

fn said() -> impl Strategy<Value = Said> {
    let argument = prop::collection::vec(1..=255u8, 0..40);
    prop_oneof![
        ("[a-z ]{0,60}", 0..=65536u32).prop_map(|(build, window)| Said::Hello(build, window)),
        Just(Said::Ping),
        (prop::collection::vec(argument.clone(), 0..6), argument)
            .prop_map(|(argv, cwd)| Said::Exec(argv, cwd)),
        Just(Said::Cancel),
        prop::collection::vec(any::<u8>(), 1..300).prop_map(Said::Data),
        Just(Said::End),
        (1..=u32::MAX).prop_map(Said::Credit),
        Just(Said::Unknown),
    ]
}

proptest! {
    #[test]
    fn any_split_decodes_to_what_was_said(
        conversation in prop::collection::vec(said(), 0..20),
        number in 1..=StreamId::MAX.get(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let stream = StreamId::new(number).unwrap();
        let mut bytes = Vec::new();
        for said in &conversation {
            write(said, stream, &mut bytes);
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut rest = &bytes[..];
        let mut taken = 0;
        for cut in cuts {
            let (chunk, tail) = rest.split_at(cut - taken);
            chunks.push(chunk);
            rest = tail;
            taken = cut;
        }
        chunks.push(rest);
        prop_assert_eq!(read(&chunks).unwrap(), conversation);
    }

    #[test]
    fn any_bytes_never_panic_and_never_hold_more_than_arrived(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        step in 1..200usize,
        from_guest in any::<bool>(),
    ) {
        let peer = if from_guest { Peer::Guest } else { Peer::Host };
        let mut decoder = Decoder::new(peer);
        'feeding: for chunk in bytes.chunks(step) {
            let mut input = chunk;
            loop {
                match decoder.decode(&mut input) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => break 'feeding,
                }
            }
            // A vector doubles; it never follows what a header claims.
            prop_assert!(decoder.held() <= 2 * bytes.len() + 64);
        }
    }

    #[test]
    fn a_hostile_length_allocates_nothing(length in any::<u32>(), kind in any::<u8>(), id in 0..4u8) {
        for peer in [Peer::Host, Peer::Guest] {
            let mut decoder = Decoder::new(peer);
            let mut header = length.to_le_bytes().to_vec();
            header.extend_from_slice(&[id, 0, 0, kind]);
            let outcome = decoder.decode(&mut &header[..]).is_ok();
            prop_assert_eq!(decoder.held(), 0);
            prop_assert!(!outcome || length <= MAX_PAYLOAD);
        }
    }
}

#[test]
fn what_a_peer_may_not_send_is_refused() {
    let mut from_guest = Vec::new();
    let stream = StreamId::new(1).unwrap();
    encode::event(&mut from_guest, stream, &Event::Started { pid: 1 }).unwrap();
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

    // Trailing bytes behind a message.
    let mut trailing = Vec::new();
    encode::close(&mut trailing, stream, &Outcome::Pong).unwrap();
    trailing[0] += 1;
    trailing.push(0);
    assert_eq!(decode(&trailing), Err(WireError::Malformed));

    // A text past its limit.
    let long = "x".repeat(MAX_FAILURE_TEXT + 1);
    let mut bytes = Vec::new();
    let failure = Failure::new(FailureKind::Other, Stage::Exec, &long);
    encode::close(&mut bytes, stream, &Outcome::Failed(failure)).unwrap();
    assert_eq!(decode(&bytes), Err(WireError::Malformed));

    // Credit of nothing.
    let mut bytes = Vec::new();
    encode::credit(&mut bytes, stream, Channel::Stdin, 0);
    assert_eq!(decode(&bytes), Err(WireError::Malformed));

    // Not a hello of ours.
    let mut bytes = Vec::new();
    let hello = Hello {
        magic: *b"nope",
        ..Hello::new("", 0, [0; 16])
    };
    encode::hello(&mut bytes, &hello).unwrap();
    assert_eq!(decode(&bytes), Err(WireError::NotVmcell));
}

#[test]
fn a_request_that_does_not_fit_is_not_written() {
    let mut argv = PackedBuf::new();
    assert!(argv.push(&vec![b'x'; MAX_PAYLOAD as usize]));
    let exec = Exec {
        argv: argv.as_packed(),
        env: Packed::default(),
        cwd: b"",
        stdin: Stdin::Empty,
    };
    let mut bytes = Vec::new();
    let refused = encode::open(&mut bytes, StreamId::new(1).unwrap(), &Request::Exec(exec));
    assert_eq!(refused, Err(WireError::TooLarge));
    assert!(bytes.is_empty());
}
