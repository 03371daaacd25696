use proptest::prelude::*;

use super::*;

const KIB: usize = 1024;

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn size(columns: u16) -> TerminalSize {
    TerminalSize { columns, rows: 30 }
}

#[test]
fn what_was_printed_can_be_read_by_cursor() {
    let mut transcript = Transcript::new(64 * KIB, 100);
    assert_eq!(transcript.read(0, 10).offset, 100);
    transcript.push(b"hello ", at(0));
    transcript.push(b"world", at(100));
    assert_eq!((transcript.start(), transcript.end()), (100, 111));
    let all = transcript.read(0, usize::MAX);
    assert_eq!((all.offset, &all.bytes[..]), (100, &b"hello world"[..]));
    let some = transcript.read(104, 4);
    assert_eq!((some.offset, &some.bytes[..]), (104, &b"o wo"[..]));
    assert_eq!(some.end(), 108);
    let none = transcript.read(111, 10);
    assert_eq!((none.offset, none.bytes.len()), (111, 0));
    let beyond = transcript.read(u64::MAX, 10);
    assert_eq!((beyond.offset, beyond.bytes.len()), (111, 0));
}

#[test]
fn lost_bytes_show_in_the_offsets() {
    let mut transcript = Transcript::new(64 * KIB, 0);
    transcript.push(b"before", at(0));
    transcript.gap(1000);
    assert_eq!(transcript.read(6, 10).bytes.len(), 0);
    transcript.push(b"after", at(1));
    let before = transcript.read(0, 100);
    assert_eq!(&before.bytes[..], b"before", "no piece has a gap in it");
    let after = transcript.read(before.end(), 100);
    assert_eq!((after.offset, &after.bytes[..]), (1006, &b"after"[..]));
    let events: Vec<_> = transcript.events().map(|(_, event)| event).collect();
    assert_eq!(
        events,
        [
            Event::Output(b"before"),
            Event::Lost(1000),
            Event::Output(b"after")
        ]
    );
}

#[test]
fn bytes_have_the_times_of_their_coming() {
    let mut transcript = Transcript::new(64 * KIB, 0);
    transcript.resized(size(80), at(0));
    transcript.push(b"a", at(1));
    transcript.push(b"b", at(5));
    transcript.push(b"c", at(6));
    transcript.resized(size(100), at(7));
    transcript.push(b"d", at(7));
    let events: Vec<_> = transcript.events().collect();
    assert_eq!(
        events,
        [
            (at(0), Event::Resize(size(80))),
            (at(1), Event::Output(b"ab")),
            (at(6), Event::Output(b"c")),
            (at(7), Event::Resize(size(100))),
            (at(7), Event::Output(b"d")),
        ]
    );
}

#[test]
fn the_size_at_the_start_is_known_when_the_beginning_is_gone() {
    let mut transcript = Transcript::new(160, 0);
    transcript.resized(size(80), at(0));
    transcript.push(&[b'a'; 100], at(0));
    transcript.resized(size(90), at(10));
    transcript.push(&[b'b'; 1000], at(20));
    transcript.resized(size(100), at(30));
    let (_, first) = transcript.events().next().unwrap();
    assert_eq!(first, Event::Resize(size(90)));
    let (_, last) = transcript.events().last().unwrap();
    assert_eq!(last, Event::Resize(size(100)));
}

#[test]
fn a_long_trickle_keeps_its_bytes_and_forgets_some_times() {
    let mut transcript = Transcript::new(1024 * KIB, 0);
    let bytes: Vec<u8> = (0..200_000_u32).map(|count| (count % 251) as u8).collect();
    for (step, byte) in (0..).zip(&bytes) {
        transcript.push(&[*byte], at(10 * step));
        assert!(transcript.chunks.len() <= MAX_CHUNKS);
    }
    assert_eq!(transcript.read(0, usize::MAX).bytes, bytes);
    let times: Vec<_> = transcript.events().map(|(at, _)| at).collect();
    assert!(times.is_sorted());
    assert!(times.len() > MAX_CHUNKS / 4);
}

#[test]
fn many_gaps_and_sizes_take_little_memory() {
    let mut transcript = Transcript::new(1024 * KIB, 0);
    for step in 0..100_000 {
        transcript.gap(u64::MAX / 200_000);
        transcript.resized(size(80), at(step));
        transcript.push(b"x", at(step));
    }
    assert!(transcript.chunks.len() <= MAX_CHUNKS);
    assert!(transcript.sizes.len() <= MAX_SIZES);
    transcript.gap(u64::MAX);
    transcript.push(b"y", at(0));
    assert_eq!(transcript.end(), u64::MAX);
}

#[test]
fn much_output_is_taken_fast_and_its_end_is_kept() {
    let mut transcript = Transcript::new(4 * KIB * KIB, 0);
    let piece = vec![7; 100_000];
    for step in 0..1000 {
        transcript.push(&piece, at(step));
    }
    assert_eq!(transcript.end(), 100_000_000);
    let kept = transcript.end() - transcript.start();
    assert!((4_000_000..=4_194_304).contains(&kept), "{kept}");
}

#[derive(Clone, Debug)]
enum Act {
    Push(Vec<u8>),
    Gap(u8),
}

proptest! {
    /// The oracle keeps every byte with its offset.
    #[test]
    fn every_read_is_what_was_printed_there(
        limit in 0..300_usize,
        acts in prop::collection::vec(
            prop_oneof![
                4 => prop::collection::vec(any::<u8>(), 0..60).prop_map(Act::Push),
                1 => any::<u8>().prop_map(Act::Gap),
            ],
            0..40,
        ),
        max_bytes in 1..50_usize,
    ) {
        let mut transcript = Transcript::new(limit, 7);
        let mut oracle = Vec::new();
        let mut end = 7;
        for (step, act) in (0..).zip(&acts) {
            match act {
                Act::Push(bytes) => {
                    transcript.push(bytes, at(3 * step));
                    for byte in bytes {
                        oracle.push((end, *byte));
                        end += 1;
                    }
                }
                Act::Gap(lost) => {
                    transcript.gap(u64::from(*lost));
                    end += u64::from(*lost);
                }
            }
            prop_assert!(transcript.kept_bytes <= limit);
        }
        prop_assert_eq!(transcript.end(), end);
        let expected: Vec<_> = oracle.iter().filter(|(at, _)| *at >= transcript.start()).copied().collect();
        prop_assert!(expected.len() + limit.div_ceil(16) >= oracle.len().min(limit));
        let mut read = Vec::new();
        let mut cursor = 0;
        loop {
            let piece = transcript.read(cursor, max_bytes);
            if piece.bytes.is_empty() {
                break;
            }
            prop_assert!(piece.bytes.len() <= max_bytes);
            read.extend((piece.offset..).zip(piece.bytes.iter().copied()));
            cursor = piece.end();
        }
        prop_assert_eq!(read, expected);
    }
}

#[test]
fn what_is_masked_is_so_in_every_chunk_that_is_kept() {
    let mut transcript = Transcript::new(64 * KIB, 100);
    transcript.push(b"hun", at(0));
    transcript.push(b"ter", at(100));
    transcript.push(b"2 more", at(200));
    transcript.gap(5);
    transcript.push(b"after", at(300));
    transcript.mask(0..101, b'*');
    transcript.mask(102..107, b'*');
    transcript.mask(111..118, b'*');
    transcript.mask(1000..2000, b'*');
    assert_eq!(transcript.read(100, 100).bytes, "*u***** mor*");
    assert_eq!(transcript.read(112, 100).bytes, "*fter");
    assert_eq!(transcript.end(), 122);
}
