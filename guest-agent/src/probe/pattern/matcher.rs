use alloc::{vec, vec::Vec};

use super::{
    class::is_word,
    program::{Assertion, Instruction, Program},
};

/// Simulates a program as an NFA: follows all paths at once.
pub(super) struct Matcher {
    program: Program,
    /// The instructions that consume a byte which the simulation has reached.
    current: Vec<usize>,
    /// The instructions to continue with after the next byte.
    next: Vec<usize>,
    /// The instructions still to be followed before the next byte.
    pending: Vec<usize>,
    /// The position at which each instruction was last reached, so that none is
    /// followed twice.
    seen: Vec<u64>,
    /// Counts all positions in all lines.
    position: u64,
}

impl Matcher {
    pub(super) fn new(program: Program) -> Self {
        let seen = vec![0; program.instructions.len()];
        Self {
            program,
            current: Vec::new(),
            next: Vec::new(),
            pending: Vec::new(),
            seen,
            position: 0,
        }
    }

    pub(super) fn matches(&mut self, line: &[u8]) -> bool {
        self.next.clear();
        let mut before = None;
        let mut bytes = line.iter().copied();
        loop {
            let byte = bytes.next();
            self.position = self.position.wrapping_add(1);
            core::mem::swap(&mut self.current, &mut self.next);
            self.next.clear();
            // Continue with those after the last byte; a match may also begin
            // here.
            self.pending.clear();
            self.pending.append(&mut self.current);
            self.pending.push(0);
            if self.follow(before, byte) {
                return true;
            }
            let Some(byte) = byte else {
                return false;
            };
            for index in &self.current {
                let takes = match self.program.instructions.get(*index) {
                    Some(Instruction::Byte(wanted)) => *wanted == byte,
                    Some(Instruction::Class(number)) => {
                        let class = self.program.classes.get(usize::from(*number));
                        class.is_some_and(|class| class.contains(byte))
                    }
                    _ => false,
                };
                if takes {
                    self.next.push(index.saturating_add(1));
                }
            }
            before = Some(byte);
        }
    }

    /// Follows all paths up to the instructions that consume a byte. Returns
    /// whether one has reached the match.
    fn follow(&mut self, before: Option<u8>, after: Option<u8>) -> bool {
        while let Some(index) = self.pending.pop() {
            let (Some(instruction), Some(seen)) = (
                self.program.instructions.get(index),
                self.seen.get_mut(index),
            ) else {
                continue;
            };
            if core::mem::replace(seen, self.position) == self.position {
                continue;
            }
            match *instruction {
                Instruction::Match => return true,
                Instruction::Byte(_) | Instruction::Class(_) => self.current.push(index),
                Instruction::Assert(assertion) => {
                    if assertion.holds(before, after) {
                        self.pending.push(index.saturating_add(1));
                    }
                }
                Instruction::Jump(distance) => self.pending.extend(target(index, distance)),
                Instruction::Split(one, other) => {
                    self.pending.extend(target(index, one));
                    self.pending.extend(target(index, other));
                }
            }
        }
        false
    }
}

fn target(index: usize, distance: i32) -> Option<usize> {
    index.checked_add_signed(isize::try_from(distance).ok()?)
}

impl Assertion {
    fn holds(self, before: Option<u8>, after: Option<u8>) -> bool {
        let in_word = |byte: Option<u8>| byte.is_some_and(is_word);
        match self {
            Self::Start => before.is_none(),
            Self::End => after.is_none(),
            Self::Boundary => in_word(before) != in_word(after),
            Self::NoBoundary => in_word(before) == in_word(after),
        }
    }
}
