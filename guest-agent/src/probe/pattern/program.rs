use alloc::{vec, vec::Vec};

use super::class::Class;

/// An instruction of the NFA. Targets are relative to the instruction itself,
/// so that instructions can be copied and moved together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// Consumes this byte.
    Byte(u8),
    /// Consumes a byte of the class with this index.
    Class(u16),
    /// Continues if this assertion holds.
    Assert(Assertion),
    /// Continues at a target.
    Jump(i32),
    /// Continues at both targets.
    Split(i32, i32),
    /// The expression matches.
    Match,
}

/// A zero-width assertion between two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assertion {
    Start,
    End,
    Boundary,
    NoBoundary,
}

/// A compiled expression.
pub(super) struct Program {
    pub(super) instructions: Vec<Instruction>,
    pub(super) classes: Vec<Class>,
}

/// The maximum number of instructions.
pub(super) const MAX_INSTRUCTIONS: usize = 1000;

/// The program exceeds [`MAX_INSTRUCTIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProgramTooLarge;

/// Consecutive instructions, the last of which continues after them.
#[derive(Clone, Debug, Default)]
pub(super) struct Fragment(Vec<Instruction>);

impl Fragment {
    pub(super) fn of(instruction: Instruction) -> Self {
        Self(vec![instruction])
    }

    pub(super) fn into_instructions(self) -> Vec<Instruction> {
        self.0
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Splits off everything from `index` on.
    pub(super) fn split_off(&mut self, index: usize) -> Self {
        Self(self.0.split_off(index.min(self.0.len())))
    }

    pub(super) fn append(&mut self, more: &Self) -> Result<(), ProgramTooLarge> {
        if self.len().saturating_add(more.len()) > MAX_INSTRUCTIONS {
            return Err(ProgramTooLarge);
        }
        self.0.extend_from_slice(&more.0);
        Ok(())
    }

    /// Returns the alternation of both.
    pub(super) fn or(self, other: &Self) -> Result<Self, ProgramTooLarge> {
        let mut either = Self::of(Instruction::Split(1, distance(self.len(), 2)?));
        either.append(&self)?;
        either.append(&Self::of(Instruction::Jump(distance(other.len(), 1)?)))?;
        either.append(other)?;
        Ok(either)
    }

    /// Returns the repetition of this, `least` to `most` times; without `most`
    /// without limit.
    pub(super) fn repeated(&self, least: u32, most: Option<u32>) -> Result<Self, ProgramTooLarge> {
        let mut all = Self::default();
        for _ in 0..least {
            // Repeating an empty fragment changes nothing and would take time.
            if self.0.is_empty() {
                break;
            }
            all.append(self)?;
        }
        match most {
            None => all.append(&self.zero_or_more()?)?,
            Some(most) => {
                let optional = self.optional()?;
                for _ in least..most {
                    if self.0.is_empty() {
                        break;
                    }
                    all.append(&optional)?;
                }
            }
        }
        Ok(all)
    }

    fn optional(&self) -> Result<Self, ProgramTooLarge> {
        let mut optional = Self::of(Instruction::Split(1, distance(self.len(), 1)?));
        optional.append(self)?;
        Ok(optional)
    }

    fn zero_or_more(&self) -> Result<Self, ProgramTooLarge> {
        let mut any = Self::of(Instruction::Split(1, distance(self.len(), 2)?));
        any.append(self)?;
        let back = distance(self.len(), 1)?.saturating_neg();
        any.append(&Self::of(Instruction::Jump(back)))?;
        Ok(any)
    }
}

fn distance(length: usize, more: usize) -> Result<i32, ProgramTooLarge> {
    i32::try_from(length.saturating_add(more)).map_err(|_| ProgramTooLarge)
}
