//! The scanner finds a mark at any position and in any split of the input, and
//! returns all other bytes unchanged.
#![allow(clippy::unwrap_used)]

use proptest::{prelude::*, sample::Index};
use vmcell_wire::{
    Channel, Decoder, Hello, Item, Peer, Request, StreamId, encode,
    reset::{RESET_PART, ResetKey, Scanned, Scanner},
};

type Mark = [u8; RESET_PART];

/// A result of a scanner, independent of how the input was split.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Other(Vec<u8>),
    Mark,
}

/// Appends the results of a scanner for `chunk` to `pieces`.
fn feed(scanner: &mut Scanner, chunk: &[u8], pieces: &mut Vec<Piece>) {
    let mut input = chunk;
    loop {
        match scanner.scan(&mut input) {
            Scanned::Mark => pieces.push(Piece::Mark),
            Scanned::Nothing => break,
            Scanned::Other(bytes) => add_other(pieces, bytes),
        }
    }
    assert!(input.is_empty(), "the scanner stopped before the end");
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Other(bytes) => bytes.len(),
            Self::Mark => RESET_PART,
        }
    }
}

fn add_other(pieces: &mut Vec<Piece>, bytes: &[u8]) {
    match pieces.last_mut() {
        _ if bytes.is_empty() => {}
        Some(Piece::Other(so_far)) => so_far.extend_from_slice(bytes),
        _ => pieces.push(Piece::Other(bytes.to_vec())),
    }
}

/// Returns the expected results of a scanner for all of `bytes`, by a naive
/// search. A scanner should hold back the longest suffix of the bytes that is a
/// prefix of the mark.
fn search(mark: &Mark, mut bytes: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    while let Some(at) = bytes.windows(RESET_PART).position(|window| window == mark) {
        add_other(&mut pieces, &bytes[..at]);
        pieces.push(Piece::Mark);
        bytes = &bytes[at + RESET_PART..];
    }
    let held = (0..RESET_PART)
        .rev()
        .find(|&count| bytes.ends_with(&mark[..count]))
        .unwrap();
    add_other(&mut pieces, &bytes[..bytes.len() - held]);
    pieces
}

/// Returns a byte that is not in the mark: after it nothing is held back.
fn byte_outside_mark(mark: &Mark) -> u8 {
    (0..=u8::MAX).find(|byte| !mark.contains(byte)).unwrap()
}

fn cut<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let mut chunks = Vec::new();
    let mut start = 0;
    for end in cuts.into_iter().chain([bytes.len()]) {
        chunks.push(&bytes[start..end]);
        start = end;
    }
    chunks
}

/// Part of the input before or after a mark.
#[derive(Clone, Debug)]
enum Fragment {
    Bytes(Vec<u8>),
    /// Part of the mark itself, which a scanner could mistake for it.
    OfMark(Index, Index),
    BeginningOfMark(Index),
}

fn fragments() -> impl Strategy<Value = Vec<Fragment>> {
    let fragment = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Fragment::Bytes),
        // Few distinct values, as in the marks with few distinct values.
        prop::collection::vec(0..3u8, 0..40).prop_map(Fragment::Bytes),
        any::<(Index, Index)>().prop_map(|(from, to)| Fragment::OfMark(from, to)),
        any::<Index>().prop_map(Fragment::BeginningOfMark),
    ];
    prop::collection::vec(fragment, 0..8)
}

fn assemble(fragments: &[Fragment], mark: &Mark) -> Vec<u8> {
    let mut bytes = Vec::new();
    for fragment in fragments {
        bytes.extend_from_slice(match fragment {
            Fragment::Bytes(bytes) => bytes,
            Fragment::OfMark(one, other) => {
                let (one, other) = (one.index(RESET_PART + 1), other.index(RESET_PART + 1));
                &mark[one.min(other)..one.max(other)]
            }
            Fragment::BeginningOfMark(end) => &mark[..end.index(RESET_PART)],
        });
    }
    bytes
}

/// Generates random marks, and marks of few distinct values, which overlap with
/// themselves.
fn marks() -> impl Strategy<Value = Mark> {
    prop_oneof![
        any::<Mark>(),
        prop::array::uniform16(0..2u8),
        prop::array::uniform16(0..3u8),
        // A short sequence repeated, with one byte changed.
        (any::<[u8; 4]>(), 1..=4usize, any::<Index>(), any::<u8>()).prop_map(
            |(run, length, place, odd)| {
                let mut mark: Mark = std::array::from_fn(|at| run[at % length]);
                mark[place.index(RESET_PART)] = odd;
                mark
            }
        ),
    ]
}

fn cuts() -> impl Strategy<Value = Vec<Index>> {
    prop::collection::vec(any::<Index>(), 0..30)
}

/// Returns whether these bytes complete a frame.
fn ends_frame(decoder: &mut Decoder, mut bytes: &[u8]) -> bool {
    let mut ended = false;
    while decoder.decode(&mut bytes).unwrap().is_some() {
        ended |= decoder.pending_data().is_none();
    }
    ended
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_reset_anywhere_parts_what_was_before_from_what_is_behind(
        random in marks(),
        before in fragments(),
        nonce in marks(),
        after in fragments(),
        cuts in cuts(),
    ) {
        let key = ResetKey::new(random);
        let mark = key.to_bytes();
        let before = assemble(&before, &mark);
        prop_assume!(!before.windows(RESET_PART).any(|window| window == mark));
        let mut tail = nonce.to_vec();
        tail.extend(assemble(&after, &mark));
        // Held back bytes at the end are covered by another test.
        tail.push(byte_outside_mark(&mark));
        prop_assume!(!tail.windows(RESET_PART).any(|window| window == mark));

        let mut bytes = before.clone();
        bytes.extend_from_slice(&key.reset(nonce));
        bytes.extend_from_slice(&tail[RESET_PART..]);

        let mut pieces = Vec::new();
        let mut scanner = Scanner::new(mark);
        for chunk in cut(&bytes, &cuts) {
            feed(&mut scanner, chunk, &mut pieces);
        }
        let mut expected = Vec::new();
        add_other(&mut expected, &before);
        expected.push(Piece::Mark);
        add_other(&mut expected, &tail);
        prop_assert_eq!(pieces, expected);
    }

    #[test]
    fn any_mark_is_found_where_a_plain_search_finds_it(
        mark in marks(),
        parts in prop::collection::vec(fragments(), 1..4),
        cuts in cuts(),
    ) {
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| assemble(part, &mark)).collect();
        let bytes = parts.join(&mark[..]);
        let mut scanner = Scanner::new(mark);
        let mut pieces = Vec::new();
        let mut arrived = 0;
        for chunk in cut(&bytes, &cuts) {
            feed(&mut scanner, chunk, &mut pieces);
            arrived += chunk.len();
            // At every split: no byte is lost, and none is held back needlessly.
            prop_assert_eq!(&pieces, &search(&mark, &bytes[..arrived]));
            let out: usize = pieces.iter().map(Piece::len).sum();
            prop_assert_eq!(scanner.held(), arrived - out);
        }
    }

    #[test]
    fn released_bytes_come_once_and_hide_no_mark(
        mark in marks(),
        parts in prop::collection::vec(fragments(), 1..4),
        cuts in cuts(),
        releases in prop::collection::vec(any::<bool>(), 31),
    ) {
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| assemble(part, &mark)).collect();
        let bytes = parts.join(&mark[..]);
        // The offsets at which marks end.
        let mut ends = Vec::new();
        let mut at = 0;
        for piece in search(&mark, &bytes) {
            at += piece.len();
            if piece == Piece::Mark {
                ends.push(at);
            }
        }
        let mut ends = ends.into_iter();

        let mut scanner = Scanner::new(mark);
        let mut arrived = 0;
        let mut out = 0;
        for (chunk, release) in cut(&bytes, &cuts).into_iter().zip(releases) {
            arrived += chunk.len();
            let mut pieces = Vec::new();
            feed(&mut scanner, chunk, &mut pieces);
            for piece in pieces {
                match piece {
                    Piece::Other(other) => {
                        prop_assert_eq!(&bytes[out..out + other.len()], &other[..]);
                        out += other.len();
                    }
                    Piece::Mark => {
                        let end = ends.next().unwrap();
                        // Of the mark itself only released bytes were returned.
                        prop_assert!(out >= end - RESET_PART && out < end);
                        out = end;
                    }
                }
            }
            prop_assert_eq!(scanner.held(), arrived - out);
            if release {
                let held = scanner.release();
                prop_assert_eq!(&bytes[out..arrived], held);
                out = arrived;
                prop_assert_eq!(scanner.held(), 0);
            }
        }
        prop_assert_eq!(ends.next(), None);
    }

    // As the agent reads a port.
    #[test]
    fn a_frame_is_heard_when_its_last_byte_is_there_whatever_the_key(
        inputs in prop::collection::vec(prop::collection::vec(0..3u8, 0..20), 1..20),
        random in prop_oneof![marks(), Just([0; RESET_PART])],
        begins in any::<Index>(),
        cuts in cuts(),
    ) {
        let stream = StreamId::new(0x020001).unwrap();
        let mut frames: Vec<Vec<u8>> = Vec::new();
        for input in &inputs {
            let mut frame = Vec::new();
            if input.is_empty() {
                encode::cancel(&mut frame, stream);
            } else {
                frame.extend(encode::data_header(stream, Channel::Stdin, input.len()).unwrap());
                frame.extend_from_slice(input);
            }
            frames.push(frame);
        }
        let whole = frames.concat();
        // A key whose prefix is a suffix of the message.
        let mut key = random;
        let tail = &whole[begins.index(whole.len())..];
        let count = tail.len().min(RESET_PART - 1);
        key[..count].copy_from_slice(&tail[..count]);
        key[RESET_PART - 1] = 0xff;
        let mut scanner = Scanner::new(key);
        let mut decoder = Decoder::new(Peer::Host);

        for frame in frames {
            let mut completed = false;
            for chunk in cut(&frame, &cuts) {
                let mut input = chunk;
                loop {
                    match scanner.scan(&mut input) {
                        Scanned::Other(bytes) => completed |= ends_frame(&mut decoder, bytes),
                        Scanned::Mark => prop_assert!(false, "there is no mark"),
                        Scanned::Nothing => break,
                    }
                }
                if decoder.missing() <= scanner.held() {
                    completed |= ends_frame(&mut decoder, scanner.release());
                }
            }
            prop_assert!(completed);
        }
    }

    #[test]
    fn a_key_has_its_first_byte_only_once(random in marks()) {
        let key = ResetKey::new(random);
        let bytes = key.to_bytes();
        prop_assert_eq!(bytes[0], random[0]);
        prop_assert_eq!(bytes.iter().filter(|byte| **byte == bytes[0]).count(), 1);
        // The agent creates the same key from the bytes in the boot file.
        prop_assert_eq!(ResetKey::new(bytes), key);
        // Bytes that already are a valid key are not changed.
        if random.iter().filter(|byte| **byte == random[0]).count() == 1 {
            prop_assert_eq!(bytes, random);
        }
    }

    #[test]
    fn a_frame_cut_off_anywhere_does_not_hide_the_newcomer(
        random in any::<Mark>(),
        nonce in marks(),
        input in prop::collection::vec(any::<u8>(), 1..100),
        stop in any::<Index>(),
        cuts in cuts(),
    ) {
        let key = ResetKey::new(random);
        let stream = StreamId::new(7).unwrap();
        let hello = Hello::new("newcomer", 65536, [3; 16]);

        let mut bytes = Vec::new();
        encode::open(&mut bytes, stream, &Request::Ping).unwrap();
        bytes.extend(encode::data_header(stream, Channel::Stdin, input.len()).unwrap());
        bytes.extend_from_slice(&input);
        bytes.truncate(stop.index(bytes.len() + 1));
        bytes.extend_from_slice(&key.reset(nonce));
        encode::hello(&mut bytes, &hello).unwrap();
        encode::open(&mut bytes, stream, &Request::Ping).unwrap();
        bytes.push(byte_outside_mark(&key.to_bytes()));

        let mut pieces = Vec::new();
        let mut scanner = Scanner::new(key.to_bytes());
        for chunk in cut(&bytes, &cuts) {
            feed(&mut scanner, chunk, &mut pieces);
        }
        let Some(Piece::Other(tail)) = pieces.last() else {
            return Err(TestCaseError::fail("nothing follows the key"));
        };
        let (answer, mut rest) = tail.split_first_chunk().unwrap();
        prop_assert_eq!(answer, &nonce);
        let mut decoder = Decoder::new(Peer::Host);
        prop_assert_eq!(decoder.decode(&mut rest), Ok(Some(Item::Hello(hello))));
        let ping = Item::Open { stream, request: Request::Ping };
        prop_assert_eq!(decoder.decode(&mut rest), Ok(Some(ping)));
    }
}

#[test]
fn a_nonce_that_begins_with_a_byte_twice_is_found_behind_that_byte() {
    let nonce = [7, 7, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut bytes = vec![7];
    bytes.extend_from_slice(&nonce);
    for size in 1..=bytes.len() {
        let mut scanner = Scanner::new(nonce);
        let mut pieces = Vec::new();
        for chunk in bytes.chunks(size) {
            feed(&mut scanner, chunk, &mut pieces);
        }
        assert_eq!(pieces, [Piece::Other(vec![7]), Piece::Mark]);
    }
}

#[test]
fn a_reset_that_was_cut_short_gives_way_to_the_next() {
    let key = ResetKey::new(std::array::from_fn(|at| 200 + at as u8));
    let [first, second] = [[1; RESET_PART], [2; RESET_PART]].map(|nonce| key.reset(nonce));
    for stop in 0..first.len() {
        let mut pieces = Vec::new();
        let mut scanner = Scanner::new(key.to_bytes());
        feed(&mut scanner, &first[..stop], &mut pieces);
        feed(&mut scanner, &second, &mut pieces);

        let mut expected = Vec::new();
        if stop >= RESET_PART {
            expected.push(Piece::Mark);
            add_other(&mut expected, &first[RESET_PART..stop]);
        } else {
            add_other(&mut expected, &first[..stop]);
        }
        expected.extend([Piece::Mark, Piece::Other(vec![2; RESET_PART])]);
        assert_eq!(pieces, expected, "after {stop} bytes");
    }
}

#[test]
fn the_end_of_a_frame_that_could_begin_a_key_waits_until_it_is_released() {
    let key = ResetKey::new(std::array::from_fn(|at| at as u8));
    let mut ping = Vec::new();
    encode::open(&mut ping, StreamId::new(7).unwrap(), &Request::Ping).unwrap();
    let (last, rest) = ping.split_last().unwrap();
    assert_eq!(*last, key.to_bytes()[0]);

    let mut scanner = Scanner::new(key.to_bytes());
    let mut pieces = Vec::new();
    feed(&mut scanner, &ping, &mut pieces);
    assert_eq!(pieces, [Piece::Other(rest.to_vec())]);
    assert_eq!(scanner.held(), 1);
    assert_eq!(scanner.release(), [*last]);
    assert_eq!(scanner.held(), 0);

    // It is returned only once, and the key that begins with it is still found.
    let key = key.to_bytes();
    feed(&mut scanner.clone(), &key[1..], &mut pieces);
    assert_eq!(pieces, [Piece::Other(rest.to_vec()), Piece::Mark]);
    pieces.clear();
    feed(&mut scanner, b"x", &mut pieces);
    assert_eq!(pieces, [Piece::Other(b"x".to_vec())]);
}
