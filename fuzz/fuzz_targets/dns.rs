//! For arbitrary questions for names, the agent's answers are short, belong to their
//! questions and have what their headers say; and over TCP they are the same, however the
//! questions are split.
//!
//! The input is read as
//!
//! ```text
//! byte   0                  1 ..
//!        size of a piece    a message, or messages with their lengths before them
//! ```
#![no_main]

use std::net::{Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use vmcell_agent::fuzzing::{Asked, ask, ask_over_tcp};

const V4: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 1);
const V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);

/// The longest answer that fits into a datagram without extensions.
const MAX_ANSWER: usize = 512;

/// The most that may be held of a program that asks over TCP.
const MAX_HELD: usize = 64 * 1024;

fuzz_target!(|input: &[u8]| {
    let Some((&piece, rest)) = input.split_first() else {
        return;
    };
    check_answers(rest);
    // With a length, as over TCP.
    check_answers(rest.get(2..).unwrap_or_default());
    check_tcp(rest, piece.into());
});

fn check_answers(message: &[u8]) {
    match ask(message, V4, V6) {
        Asked::Ignored => {}
        Asked::Refused(answer) => {
            let header = header_of(&answer, message);
            assert_eq!(answer.len(), header.len() * 2);
            assert!((1..=5).contains(&(header[1] & 15)), "{header:?}");
            assert_eq!(header[2..], [0; 4]);
        }
        Asked::Question {
            name,
            found,
            not_found,
        } => {
            for (answer, code) in [(&found, 0), (&not_found, 3)] {
                let header = header_of(answer, message);
                assert_eq!(header[1] & 15, code);
                assert_eq!(header[2], 1, "it repeats the question");
                let question = answer_end(answer) - 12;
                assert_eq!(answer[12..][..question], message[12..][..question]);
                let records = &answer[12 + question..];
                match (header[3], records.len()) {
                    (0, 0) => {}
                    (1, 16) => assert_eq!(records[12..], V4.octets()),
                    (1, 28) => assert_eq!(records[12..], V6.octets()),
                    other => panic!("{other:?}"),
                }
            }
            let is_usual = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte)
            };
            if let Some(name) = name {
                assert!(name.len() <= 253 && name.bytes().all(is_usual), "{name:?}");
                assert!(!name.starts_with('.') && !name.contains(".."), "{name:?}");
            }
        }
    }
}

/// Returns the six fields of the header of an answer to this question.
fn header_of(answer: &[u8], question: &[u8]) -> [u16; 6] {
    assert!((12..=MAX_ANSWER).contains(&answer.len()));
    assert_eq!(answer[..2], question[..2], "its number");
    let field = |index: usize| u16::from_be_bytes([answer[2 * index], answer[2 * index + 1]]);
    let header = [0, 1, 2, 3, 4, 5].map(field);
    assert_ne!(header[1] & 0x8000, 0, "it is an answer");
    assert_eq!(header[4..], [0, 0]);
    header
}

/// Returns where the question of an answer ends.
fn answer_end(answer: &[u8]) -> usize {
    let mut place = 12;
    while answer[place] != 0 {
        place += 1 + usize::from(answer[place]);
    }
    place + 5
}

fn check_tcp(messages: &[u8], piece: usize) {
    let ask = |piece: usize| ask_over_tcp(messages.chunks(piece.max(1)));
    let whole = ask(messages.len()).expect("a socket holds the messages");
    let pieces = ask(piece).expect("a socket holds the messages");
    assert_eq!(whole.bytes, pieces.bytes);
    assert_eq!(whole.is_over, pieces.is_over);
    for answers in [&whole, &pieces] {
        assert!(answers.most_held <= MAX_HELD, "{}", answers.most_held);
    }
    let mut rest = &whole.bytes[..];
    while let Some((length, after)) = rest.split_first_chunk() {
        let (answer, after) = after.split_at(u16::from_be_bytes(*length).into());
        assert!((12..=MAX_ANSWER).contains(&answer.len()));
        rest = after;
    }
    assert!(rest.is_empty());
}
