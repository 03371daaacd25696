/// An instruction of a [program](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// The line matches.
    Match,
    /// Consumes this byte.
    Byte(u8),
    /// Consumes a byte of the class with this index.
    Class(u16),
    /// Continues if this assertion holds.
    Assert(Assertion),
    /// Continues at the instruction with this index.
    Jump(u16),
    /// Continues at the instruction with this index and at the next one.
    Split(u16),
}

/// A condition on a position between two bytes, or before or after the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assertion {
    /// The start of the line.
    Start,
    /// The end of the line.
    End,
    /// A word character on exactly one side.
    WordBoundary,
    /// Word characters on both sides or on none.
    NoWordBoundary,
}

const OPERAND_BITS: u32 = 12;
const OPERAND_MASK: u16 = 0x0fff;

impl Instruction {
    /// Encodes the instruction. Returns `None` if its index does not fit.
    pub(super) fn encode(self) -> Option<u16> {
        let (opcode, operand): (u16, u16) = match self {
            Self::Match => (0, 0),
            Self::Byte(byte) => (1, byte.into()),
            Self::Class(class) => (2, class),
            Self::Assert(Assertion::Start) => (3, 0),
            Self::Assert(Assertion::End) => (3, 1),
            Self::Assert(Assertion::WordBoundary) => (3, 2),
            Self::Assert(Assertion::NoWordBoundary) => (3, 3),
            Self::Jump(target) => (4, target),
            Self::Split(target) => (5, target),
        };
        (operand <= OPERAND_MASK).then_some((opcode << OPERAND_BITS) | operand)
    }

    /// Decodes an instruction. Returns `None` if there is no such opcode or
    /// operand. Indices are not checked.
    pub(super) fn decode(word: u16) -> Option<Self> {
        let operand = word & OPERAND_MASK;
        Some(match (word >> OPERAND_BITS, operand) {
            (0, 0) => Self::Match,
            (1, _) => Self::Byte(u8::try_from(operand).ok()?),
            (2, _) => Self::Class(operand),
            (3, 0) => Self::Assert(Assertion::Start),
            (3, 1) => Self::Assert(Assertion::End),
            (3, 2) => Self::Assert(Assertion::WordBoundary),
            (3, 3) => Self::Assert(Assertion::NoWordBoundary),
            (4, _) => Self::Jump(operand),
            (5, _) => Self::Split(operand),
            _ => return None,
        })
    }
}
