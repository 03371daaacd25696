//! Compiled patterns of log probes.
//!
//! The host compiles a regular expression to a program for a nondeterministic
//! finite automaton. The agent checks the bounds of the program when it decodes
//! it, and runs it with a [`LogMatcher`]; it knows no regular expressions.
//!
//! ```text
//!  offset  size
//!  0       2      n: the number of instructions, little-endian
//!  2       2 n    the instructions, a little-endian word of 16 bits each
//!  2+2n    32 c   c classes
//!
//!   15    12 11                0
//!  ┌────────┬───────────────────┐
//!  │ opcode │      operand      │   a word
//!  └────────┴───────────────────┘
//!
//!  opcode        operand
//!  0  Match      0                   the line matches
//!  1  Byte       a byte              consumes this byte
//!  2  Class      index of a class    consumes a byte of this class
//!  3  Assert     0  start of line    continues if this holds here
//!                1  end of line
//!                2  word boundary
//!                3  no word boundary
//!  4  Jump       index of an         continues there
//!                instruction
//!  5  Split      index of an         continues there and with the next
//!                instruction         instruction
//! ```
//!
//! Byte `b` belongs to a class if bit `b % 8` of its byte `b / 8` is set, counted
//! from the least significant bit. The word characters of word boundaries are the
//! ASCII letters, the digits and `_`.
//!
//! There are at most [`MAX_PATTERN_INSTRUCTIONS`] instructions and
//! [`MAX_PATTERN_CLASSES`] classes. The first instruction is run first. The last
//! one is a `Match`, so that no path leaves the program.

mod class;
mod instruction;
mod matcher;

use alloc::{vec, vec::Vec};
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use class::ByteClass;
pub use instruction::{Assertion, Instruction};
pub use matcher::LogMatcher;

use crate::{
    error::WireError,
    limits::{MAX_PATTERN_CLASSES, MAX_PATTERN_INSTRUCTIONS},
};

/// A valid program in its [encoded form](self).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LogPattern<'a> {
    bytes: &'a [u8],
    instructions: &'a [[u8; 2]],
    classes: &'a [[u8; 32]],
}

impl<'a> LogPattern<'a> {
    /// Decodes a program.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] if it has too many instructions or classes,
    /// [`WireError::Malformed`] if it is invalid in another way.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, WireError> {
        let pattern = Self::split(bytes).ok_or(WireError::Malformed)?;
        if pattern.instructions.len() > MAX_PATTERN_INSTRUCTIONS
            || pattern.classes.len() > MAX_PATTERN_CLASSES
        {
            return Err(WireError::TooLarge);
        }
        if !pattern.is_valid() {
            return Err(WireError::Malformed);
        }
        Ok(pattern)
    }

    /// Returns the program in its encoded form.
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns an instruction by its index, or `None` after the last one.
    pub fn instruction(self, index: u16) -> Option<Instruction> {
        let word = self.instructions.get(usize::from(index))?;
        Instruction::decode(u16::from_le_bytes(*word))
    }

    /// Iterates over the instructions.
    pub fn instructions(self) -> impl Iterator<Item = Instruction> + use<'a> {
        let words = self.instructions.iter().copied().map(u16::from_le_bytes);
        words.map_while(Instruction::decode)
    }

    /// Returns a class by its index.
    pub fn class(self, index: u16) -> Option<ByteClass> {
        let bits = self.classes.get(usize::from(index))?;
        Some(ByteClass::from_bits(*bits))
    }

    /// Splits the bytes into their parts.
    fn split(bytes: &'a [u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk()?;
        let size = usize::from(u16::from_le_bytes(*count)).checked_mul(2)?;
        let (instructions, classes) = rest.split_at_checked(size)?;
        let (classes, excess) = classes.as_chunks();
        excess.is_empty().then_some(Self {
            bytes,
            instructions: instructions.as_chunks().0,
            classes,
        })
    }

    fn is_valid(self) -> bool {
        let are_valid = self.instructions.iter().all(|word| {
            match Instruction::decode(u16::from_le_bytes(*word)) {
                Some(Instruction::Class(class)) => usize::from(class) < self.classes.len(),
                Some(Instruction::Jump(target) | Instruction::Split(target)) => {
                    usize::from(target) < self.instructions.len()
                }
                Some(_) => true,
                None => false,
            }
        });
        are_valid && self.instructions().last() == Some(Instruction::Match)
    }
}

impl fmt::Debug for LogPattern<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.instructions()).finish()
    }
}

impl Serialize for LogPattern<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.bytes)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LogPattern<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&'a [u8]>::deserialize(deserializer)?;
        Self::from_bytes(bytes).map_err(|_| de::Error::custom("the program is invalid"))
    }
}

/// An owned [`LogPattern`].
///
/// ```
/// use vmcell_wire::service::log_pattern::{Assertion, Instruction, LogMatcher, LogPatternBuf};
///
/// // The regular expression `^o*k`.
/// let pattern = LogPatternBuf::new(
///     &[
///         Instruction::Assert(Assertion::Start),
///         Instruction::Split(4),
///         Instruction::Byte(b'o'),
///         Instruction::Jump(1),
///         Instruction::Byte(b'k'),
///         Instruction::Match,
///     ],
///     &[],
/// )?;
/// let mut matcher = LogMatcher::new(pattern.as_pattern());
/// assert!(matcher.matches(b"ook!"));
/// assert!(!matcher.matches(b"not ok"));
/// # Ok::<(), vmcell_wire::WireError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct LogPatternBuf(Vec<u8>);

impl LogPatternBuf {
    /// Encodes a program.
    ///
    /// # Errors
    /// See [`LogPattern::from_bytes`].
    pub fn new(instructions: &[Instruction], classes: &[ByteClass]) -> Result<Self, WireError> {
        let count = u16::try_from(instructions.len()).map_err(|_| WireError::TooLarge)?;
        let mut bytes = vec![];
        bytes.extend_from_slice(&count.to_le_bytes());
        for instruction in instructions {
            let word = instruction.encode().ok_or(WireError::TooLarge)?;
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for class in classes {
            bytes.extend_from_slice(&class.to_bits());
        }
        LogPattern::from_bytes(&bytes)?;
        Ok(Self(bytes))
    }

    /// Returns the program for use in a message.
    pub fn as_pattern(&self) -> LogPattern<'_> {
        // It was split before. A program without instructions would match no
        // line.
        LogPattern::split(&self.0).unwrap_or(LogPattern {
            bytes: &[],
            instructions: &[],
            classes: &[],
        })
    }
}

impl From<LogPattern<'_>> for LogPatternBuf {
    fn from(pattern: LogPattern<'_>) -> Self {
        Self(pattern.bytes.to_vec())
    }
}

impl fmt::Debug for LogPatternBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_pattern().fmt(f)
    }
}
