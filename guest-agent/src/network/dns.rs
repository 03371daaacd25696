//! Questions for names, and their answers: RFC 1035.
//!
//! One question in a message, and answers that never exceed the 512 bytes of a
//! datagram. Extensions (EDNS) are ignored, as by a server that is older than they are.

use alloc::{string::String, vec::Vec};
use core::net::{Ipv4Addr, Ipv6Addr};

use vmcell_wire::limits::MAX_HOST_NAME;

/// A question of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// Chosen by the asker.
    pub(super) id: u16,
    flags: u16,
    /// The name, in small letters and without a dot at its end; `None` if it cannot be
    /// the name of a host.
    pub(super) name: Option<String>,
    kind: u16,
    /// The question as it was asked, for the answer to repeat.
    section: Vec<u8>,
}

/// Why a message is not a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadQuestion {
    /// It is none at all: it has no answer.
    Ignored,
    /// This is its answer.
    Answered(Vec<u8>),
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DnsAnswer {
    /// There is a host with this name. A question for something else than addresses
    /// has no data.
    Host(Ipv4Addr, Ipv6Addr),
    /// The name is there, and has no data.
    NoData,
    NoSuchName,
    /// The agent cannot answer now.
    Failure,
}

const HEADER: usize = 12;
const MAX_LABEL: u8 = 63;
/// With the lengths of its labels, and that of the root.
const MAX_ENCODED_NAME: usize = 255;

const IS_ANSWER: u16 = 0x8000;
const OPERATION: u16 = 0x7800;
const RECURSION_DESIRED: u16 = 0x0100;
const RECURSION_AVAILABLE: u16 = 0x0080;

const NO_ERROR: u16 = 0;
const FORMAT_ERROR: u16 = 1;
const SERVER_FAILURE: u16 = 2;
const NAME_ERROR: u16 = 3;
const NOT_IMPLEMENTED: u16 = 4;
const REFUSED: u16 = 5;

const A: u16 = 1;
const AAAA: u16 = 28;
const ANY: u16 = 255;
const INTERNET: u16 = 1;

/// How long a program may use an address without another question, in seconds.
const TIME_TO_LIVE: u32 = 60;

/// A pointer to the name of the question, behind the header.
const NAME_OF_QUESTION: u16 = 0xc00c;

impl Question {
    pub(super) fn parse(message: &[u8]) -> Result<Self, BadQuestion> {
        let (header, body) = message
            .split_first_chunk::<HEADER>()
            .ok_or(BadQuestion::Ignored)?;
        let [a, b, c, d, e, f, ..] = *header;
        let (id, flags) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        if flags & IS_ANSWER != 0 {
            return Err(BadQuestion::Ignored);
        }
        let bad = |code| {
            let mut answer = Vec::new();
            add_header(&mut answer, id, flags, code, [0, 0]);
            BadQuestion::Answered(answer)
        };
        if flags & OPERATION != 0 {
            return Err(bad(NOT_IMPLEMENTED));
        }
        if u16::from_be_bytes([e, f]) != 1 {
            return Err(bad(FORMAT_ERROR));
        }
        let (name, rest) = parse_name(body).ok_or_else(|| bad(FORMAT_ERROR))?;
        let Some(([a, b, c, d], rest)) = rest.split_first_chunk::<4>() else {
            return Err(bad(FORMAT_ERROR));
        };
        if ![INTERNET, ANY].contains(&u16::from_be_bytes([*c, *d])) {
            return Err(bad(REFUSED));
        }
        let length = body.len().saturating_sub(rest.len());
        Ok(Self {
            id,
            flags,
            name,
            kind: u16::from_be_bytes([*a, *b]),
            section: Vec::from(body.get(..length).unwrap_or_default()),
        })
    }

    /// Returns the message that answers it.
    pub(super) fn answer(&self, answer: DnsAnswer) -> Vec<u8> {
        let mut record = Vec::new();
        let code = match (answer, self.kind) {
            (DnsAnswer::Host(address, _), A | ANY) => {
                add_record(&mut record, A, &address.octets());
                NO_ERROR
            }
            (DnsAnswer::Host(_, address), AAAA) => {
                add_record(&mut record, AAAA, &address.octets());
                NO_ERROR
            }
            (DnsAnswer::Host(..) | DnsAnswer::NoData, _) => NO_ERROR,
            (DnsAnswer::NoSuchName, _) => NAME_ERROR,
            (DnsAnswer::Failure, _) => SERVER_FAILURE,
        };
        let mut message = Vec::new();
        let records = u16::from(!record.is_empty());
        add_header(&mut message, self.id, self.flags, code, [1, records]);
        message.extend_from_slice(&self.section);
        message.extend_from_slice(&record);
        message
    }
}

/// Returns the name at the front, and what follows it. `None`: it is malformed.
fn parse_name(mut bytes: &[u8]) -> Option<(Option<String>, &[u8])> {
    let mut name = String::new();
    let mut is_usual = true;
    let mut encoded = 0usize;
    loop {
        let (length, rest) = bytes.split_first()?;
        // Greater ones are pointers, which a question does not need.
        if *length > MAX_LABEL {
            return None;
        }
        let (label, rest) = rest.split_at_checked(usize::from(*length))?;
        bytes = rest;
        encoded = encoded.saturating_add(label.len()).saturating_add(1);
        if encoded > MAX_ENCODED_NAME {
            return None;
        }
        if label.is_empty() {
            let is_usual = is_usual && name.len() <= MAX_HOST_NAME;
            return Some((is_usual.then_some(name), bytes));
        }
        if !name.is_empty() {
            name.push('.');
        }
        for byte in label {
            is_usual &= byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            name.push(char::from(byte.to_ascii_lowercase()));
        }
    }
}

fn add_header(
    message: &mut Vec<u8>,
    id: u16,
    flags: u16,
    code: u16,
    [questions, answers]: [u16; 2],
) {
    let flags = (flags & (OPERATION | RECURSION_DESIRED)) | IS_ANSWER | RECURSION_AVAILABLE | code;
    for field in [id, flags, questions, answers, 0, 0] {
        message.extend(field.to_be_bytes());
    }
}

fn add_record(record: &mut Vec<u8>, kind: u16, data: &[u8]) {
    record.extend(NAME_OF_QUESTION.to_be_bytes());
    record.extend(kind.to_be_bytes());
    record.extend(INTERNET.to_be_bytes());
    record.extend(TIME_TO_LIVE.to_be_bytes());
    let length = u16::try_from(data.len()).unwrap_or(0);
    record.extend(length.to_be_bytes());
    record.extend_from_slice(data);
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    const V4: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 1);
    const V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);

    fn message(labels: &[&[u8]], kind: u16) -> Vec<u8> {
        let mut message = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in labels {
            message.push(u8::try_from(label.len()).unwrap());
            message.extend_from_slice(label);
        }
        message.push(0);
        message.extend(kind.to_be_bytes());
        message.extend([0, 1]);
        message
    }

    fn question(labels: &[&[u8]], kind: u16) -> Question {
        Question::parse(&message(labels, kind)).unwrap()
    }

    /// Returns the code of an answer, and its number of records.
    fn code_and_records(answer: &[u8]) -> (u8, u8) {
        (answer[3] & 15, answer[7])
    }

    #[test]
    fn a_name_is_in_small_letters_without_a_dot_at_its_end() {
        let asked = question(&[b"WWW", b"Example", b"com"], A);
        assert_eq!(asked.name.as_deref(), Some("www.example.com"));
        assert_eq!(question(&[], A).name.as_deref(), Some(""));
    }

    #[test]
    fn an_answer_repeats_the_question_and_has_one_address() {
        let asked = question(&[b"Example", b"com"], A);
        let answer = asked.answer(DnsAnswer::Host(V4, V6));
        let mut expected = message(&[b"Example", b"com"], A);
        expected[2..4].copy_from_slice(&[0x81, 0x80]);
        expected[7] = 1;
        expected.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 1, 1]);
        assert_eq!(answer, expected);
        let answer = question(&[b"a"], AAAA).answer(DnsAnswer::Host(V4, V6));
        assert_eq!(answer[answer.len() - 16..], V6.octets());
    }

    #[test]
    fn what_is_not_an_address_has_no_data() {
        for kind in [2, 12, 15, 16, 33, 64, 65] {
            let answer = question(&[b"a", b"b"], kind).answer(DnsAnswer::Host(V4, V6));
            assert_eq!(code_and_records(&answer), (0, 0));
        }
        let asked = question(&[b"a", b"b"], A);
        assert_eq!(code_and_records(&asked.answer(DnsAnswer::NoData)), (0, 0));
        assert_eq!(
            code_and_records(&asked.answer(DnsAnswer::NoSuchName)),
            (3, 0)
        );
        assert_eq!(code_and_records(&asked.answer(DnsAnswer::Failure)), (2, 0));
    }

    #[test]
    fn a_name_that_no_host_has_is_none() {
        for label in [&b"a b"[..], b"a.b", b"\0", b"\xff", b"a/b", b"\x1b[31m"] {
            assert_eq!(question(&[label, b"com"], A).name, None, "{label:?}");
        }
    }

    #[test]
    fn extensions_are_ignored() {
        let mut extended = message(&[b"a"], A);
        extended[11] = 1;
        extended.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
        let asked = Question::parse(&extended).unwrap();
        assert_eq!(asked, question(&[b"a"], A));
    }

    #[test]
    fn bad_questions_have_the_code_that_says_why() {
        let code = |message: &[u8]| match Question::parse(message) {
            Err(BadQuestion::Answered(answer)) => Some(answer[3] & 15),
            Err(BadQuestion::Ignored) => None,
            Ok(question) => panic!("{question:?}"),
        };
        let good = message(&[b"a", b"b"], A);
        let with = |index: usize, byte: u8| {
            let mut message = good.clone();
            message[index] = byte;
            message
        };
        assert_eq!(code(&good[..11]), None);
        assert_eq!(code(&with(2, 0x81)), None);
        assert_eq!(code(&with(2, 0x28)), Some(4));
        assert_eq!(code(&with(5, 0)), Some(1));
        assert_eq!(code(&with(5, 2)), Some(1));
        assert_eq!(code(&with(12, 64)), Some(1));
        assert_eq!(code(&with(12, 0xc0)), Some(1));
        assert_eq!(code(&good[..good.len() - 1]), Some(1));
        assert_eq!(code(&with(good.len() - 1, 3)), Some(5));
        assert_eq!(code(&message(&[&[b'a'; 63][..]; 4], A)), Some(1));
    }

    #[test]
    fn the_longest_name_is_parsed() {
        let asked = question(&[&[b'a'; 63], &[b'b'; 63], &[b'c'; 63], &[b'd'; 61]], A);
        assert_eq!(asked.name.map(|name| name.len()), Some(MAX_HOST_NAME));
    }

    proptest! {
        #[test]
        fn any_bytes_have_at_most_one_short_answer(bytes: Vec<u8>) {
            let answer = match Question::parse(&bytes) {
                Ok(question) => question.answer(DnsAnswer::Host(V4, V6)),
                Err(BadQuestion::Answered(answer)) => answer,
                Err(BadQuestion::Ignored) => return Ok(()),
            };
            prop_assert!(answer.len() <= 512);
            prop_assert_eq!(&answer[..2], &bytes[..2]);
        }

        #[test]
        fn a_damaged_question_does_not_panic(index in 0usize..30, byte: u8, length in 0usize..30) {
            let mut damaged = message(&[b"www", b"example", b"com"], A);
            damaged[index] = byte;
            damaged.truncate(length);
            let _ = Question::parse(&damaged).map(|question| question.answer(DnsAnswer::NoData));
        }
    }
}
