//! Programs of log probes from an untrusted peer: which are rejected, and that
//! those which are accepted can be run.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use vmcell_wire::{
    WireError,
    limits::{MAX_PATTERN_CLASSES, MAX_PATTERN_INSTRUCTIONS},
    service::log_pattern::{
        Assertion, ByteClass, Instruction, LogMatcher, LogPattern, LogPatternBuf,
    },
};

/// Returns the bytes of a program with these instructions and this many classes.
fn bytes(words: &[u16], classes: usize) -> Vec<u8> {
    let count = u16::try_from(words.len()).unwrap();
    let mut bytes = count.to_le_bytes().to_vec();
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes.resize(bytes.len() + 32 * classes, 0);
    bytes
}

fn error(bytes: &[u8]) -> Option<WireError> {
    LogPattern::from_bytes(bytes).err()
}

#[test]
fn only_programs_within_their_bounds_are_accepted() {
    for (words, classes) in [
        (&[0x0000][..], 0),
        (&[0x0000], 1),
        (&[0x10ff, 0x0000], 0),
        (&[0x2000, 0x2001, 0x0000], 2),
        (&[0x3000, 0x3001, 0x3002, 0x3003, 0x0000], 0),
        (&[0x4001, 0x5000, 0x0000], 0),
        (&[0x4000, 0x0000], 0),
        (&[0x5000, 0x5001, 0x0000], 0),
    ] {
        assert_eq!(error(&bytes(words, classes)), None, "{words:x?}");
    }
    for (words, classes) in [
        // It has no instruction, or continues after its last one.
        (&[][..], 0),
        (&[0x1061], 0),
        (&[0x0000, 0x4000], 0),
        // Operands out of range.
        (&[0x0001, 0x0000], 0),
        (&[0x1100, 0x0000], 0),
        (&[0x2000, 0x0000], 0),
        (&[0x2001, 0x0000], 1),
        (&[0x3004, 0x0000], 0),
        (&[0x4002, 0x0000], 0),
        (&[0x5fff, 0x0000], 0),
        // Unknown opcodes.
        (&[0x6000, 0x0000], 0),
        (&[0xf000, 0x0000], 0),
    ] {
        let malformed = Some(WireError::Malformed);
        assert_eq!(error(&bytes(words, classes)), malformed, "{words:x?}");
    }
    let whole = bytes(&[0x2000, 0x0000], 1);
    for length in 0..whole.len() {
        assert!(error(&whole[..length]).is_some(), "{length}");
    }
    let longer = [whole, vec![0]].concat();
    assert_eq!(error(&longer), Some(WireError::Malformed));
}

#[test]
fn a_program_has_its_limits() {
    let mut words = vec![0x1061; MAX_PATTERN_INSTRUCTIONS - 1];
    words.push(0);
    assert_eq!(error(&bytes(&words, MAX_PATTERN_CLASSES)), None);
    let too_many = bytes(&words, MAX_PATTERN_CLASSES + 1);
    assert_eq!(error(&too_many), Some(WireError::TooLarge));
    words.push(0);
    assert_eq!(error(&bytes(&words, 0)), Some(WireError::TooLarge));
    let many = vec![Instruction::Match; 70_000];
    assert_eq!(LogPatternBuf::new(&many, &[]), Err(WireError::TooLarge));
    for far in [Instruction::Jump(0x1000), Instruction::Split(u16::MAX)] {
        let program = LogPatternBuf::new(&[far, Instruction::Match], &[]);
        assert_eq!(program, Err(WireError::TooLarge));
    }
    let outside = LogPatternBuf::new(&[Instruction::Class(0), Instruction::Match], &[]);
    assert_eq!(outside, Err(WireError::Malformed));
}

#[test]
fn a_program_that_only_jumps_ends() {
    for words in [&[0x4000, 0x0000][..], &[0x5001, 0x4000, 0x0000]] {
        let bytes = bytes(words, 0);
        let mut matcher = LogMatcher::new(LogPattern::from_bytes(&bytes).unwrap());
        matcher.matches(&[b'x'; 1000]);
    }
}

#[test]
fn a_class_has_exactly_its_bytes() {
    let mut class = ByteClass::default();
    class.add(b'0'..=b'9');
    class.add(0xf0..=0xff);
    for byte in 0..=u8::MAX {
        let expected = byte.is_ascii_digit() || byte >= 0xf0;
        assert_eq!(class.contains(byte), expected, "{byte}");
    }
}

/// Generates words, most of which are valid instructions.
fn word() -> impl Strategy<Value = u16> {
    prop_oneof![
        1 => any::<u16>(),
        20 => (0..6u16, 0..40u16).prop_map(|(opcode, operand)| match opcode {
            0 => 0,
            3 => 0x3000 | (operand % 4),
            _ => (opcode << 12) | operand,
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever a peer sends is rejected, or can be run and encoded again.
    #[test]
    fn no_bytes_make_decoding_or_matching_panic(
        words in prop::collection::vec(word(), 0..40),
        classes in prop::collection::vec(any::<u8>(), 0..70),
        line in any::<Vec<u8>>(),
    ) {
        let mut ended = words;
        ended.push(0);
        let mut bytes = bytes(&ended, 0);
        bytes.extend_from_slice(&classes[..classes.len() / 32 * 32]);
        if let Ok(pattern) = LogPattern::from_bytes(&bytes) {
            LogMatcher::new(pattern).matches(&line);
            let instructions: Vec<_> = pattern.instructions().collect();
            let classes: Vec<_> = (0..).map_while(|class| pattern.class(class)).collect();
            let again = LogPatternBuf::new(&instructions, &classes).unwrap();
            prop_assert_eq!(again.as_pattern().as_bytes(), &bytes[..]);
        }
    }

    #[test]
    fn nor_do_arbitrary_bytes(bytes in any::<Vec<u8>>(), line in any::<Vec<u8>>()) {
        if let Ok(pattern) = LogPattern::from_bytes(&bytes) {
            LogMatcher::new(pattern).matches(&line);
        }
    }
}

#[test]
fn a_pattern_is_shown_as_its_instructions() {
    let pattern = LogPatternBuf::new(&[Instruction::Byte(b'a'), Instruction::Match], &[]).unwrap();
    let shown = format!("{pattern:?} {:?}", pattern.as_pattern());
    assert_eq!(shown, "[Byte(97), Match] [Byte(97), Match]");
}

#[test]
fn golden_bytes_of_a_log_pattern() {
    let mut digits = ByteClass::default();
    digits.add(b'0'..=b'9');
    let mut ends = ByteClass::default();
    ends.add(0..=0);
    ends.add(255..=255);
    let instructions = [
        Instruction::Assert(Assertion::Start),
        Instruction::Byte(b'x'),
        Instruction::Byte(0xff),
        Instruction::Class(0),
        Instruction::Class(1),
        Instruction::Split(9),
        Instruction::Assert(Assertion::WordBoundary),
        Instruction::Jump(1),
        Instruction::Match,
        Instruction::Assert(Assertion::NoWordBoundary),
        Instruction::Assert(Assertion::End),
        Instruction::Match,
    ];
    let pattern = LogPatternBuf::new(&instructions, &[digits, ends]).unwrap();
    let bytes = pattern.as_pattern().as_bytes();
    let expected = "0c00 0030 7810 ff10 0020 0120 0950 0230 0140 0000 0330 0130 0000 \
         000000000000ff03 0000000000000000 0000000000000000 0000000000000000 \
         0100000000000000 0000000000000000 0000000000000000 0000000000000080";
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected.replace(' ', ""));
    let decoded = LogPattern::from_bytes(bytes).unwrap();
    assert_eq!(decoded.instructions().collect::<Vec<_>>(), instructions);
    assert_eq!(
        (decoded.class(0), decoded.class(1)),
        (Some(digits), Some(ends))
    );
    assert_eq!((decoded.class(2), decoded.instruction(12)), (None, None));
}
