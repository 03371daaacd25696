use alloc::{vec, vec::Vec};

use super::{Assertion, Instruction, LogPattern, LogPatternBuf};

/// Matches lines with a [program](super), without backtracking.
///
/// It follows all paths through the program at once and takes none twice at one
/// position, so a line takes at most as many steps as the program has
/// instructions, times the positions in the line, whatever the program.
pub struct LogMatcher {
    pattern: LogPatternBuf,
    paths: Paths,
}

/// How far the paths through a program have come.
struct Paths {
    /// The instructions to run before the next byte is consumed.
    pending: Vec<u16>,
    /// The instructions that consume the next byte.
    consuming: Vec<u16>,
    /// The position at which a path last reached each instruction.
    reached: Vec<u64>,
    /// Counts the positions in all lines, so that no two have the same number.
    position: u64,
    #[cfg(test)]
    steps: usize,
}

impl LogMatcher {
    /// Creates a matcher for many lines.
    pub fn new(pattern: LogPattern<'_>) -> Self {
        Self {
            pattern: pattern.into(),
            paths: Paths {
                pending: Vec::new(),
                consuming: Vec::new(),
                reached: vec![0; pattern.instructions.len()],
                position: 0,
                #[cfg(test)]
                steps: 0,
            },
        }
    }

    /// Returns whether the pattern matches anywhere in a line.
    pub fn matches(&mut self, line: &[u8]) -> bool {
        self.paths.match_line(self.pattern.as_pattern(), line)
    }
}

impl Paths {
    fn match_line(&mut self, pattern: LogPattern<'_>, line: &[u8]) -> bool {
        self.pending.clear();
        self.consuming.clear();
        self.position = self.position.saturating_add(1);
        let mut before = None;
        let mut bytes = line.iter().copied();
        loop {
            let after = bytes.next();
            // A match may begin at any position.
            self.reach(0);
            if self.run(pattern, before, after) {
                return true;
            }
            let Some(byte) = after else {
                return false;
            };
            self.position = self.position.saturating_add(1);
            self.consume(pattern, byte);
            before = after;
        }
    }

    /// Adds a path that continues at an instruction, unless there is one.
    fn reach(&mut self, index: u16) {
        if let Some(reached) = self.reached.get_mut(usize::from(index))
            && *reached != self.position
        {
            *reached = self.position;
            self.pending.push(index);
        }
    }

    /// Runs all instructions up to those that consume a byte. Returns whether
    /// the line matches.
    fn run(&mut self, pattern: LogPattern<'_>, before: Option<u8>, after: Option<u8>) -> bool {
        while let Some(index) = self.pending.pop() {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            let next = index.saturating_add(1);
            match pattern.instruction(index) {
                Some(Instruction::Match) => return true,
                Some(Instruction::Byte(_) | Instruction::Class(_)) => self.consuming.push(index),
                Some(Instruction::Assert(assertion)) if assertion.holds(before, after) => {
                    self.reach(next);
                }
                Some(Instruction::Jump(target)) => self.reach(target),
                Some(Instruction::Split(target)) => {
                    self.reach(target);
                    self.reach(next);
                }
                Some(Instruction::Assert(_)) | None => {}
            }
        }
        false
    }

    /// Continues the paths that consume this byte and ends the others.
    fn consume(&mut self, pattern: LogPattern<'_>, byte: u8) {
        while let Some(index) = self.consuming.pop() {
            let consumes = match pattern.instruction(index) {
                Some(Instruction::Byte(wanted)) => wanted == byte,
                Some(Instruction::Class(class)) => pattern
                    .class(class)
                    .is_some_and(|class| class.contains(byte)),
                _ => false,
            };
            if consumes {
                self.reach(index.saturating_add(1));
            }
        }
    }
}

impl Assertion {
    fn holds(self, before: Option<u8>, after: Option<u8>) -> bool {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_boundary = before.is_some_and(is_word) != after.is_some_and(is_word);
        match self {
            Self::Start => before.is_none(),
            Self::End => after.is_none(),
            Self::WordBoundary => is_boundary,
            Self::NoWordBoundary => !is_boundary,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::service::log_pattern::ByteClass;

    /// Generates valid programs, with loops of any kind.
    fn program() -> impl Strategy<Value = LogPatternBuf> {
        let assertion = prop_oneof![
            Just(Assertion::Start),
            Just(Assertion::End),
            Just(Assertion::WordBoundary),
            Just(Assertion::NoWordBoundary),
        ];
        let instruction = prop_oneof![
            1 => Just(Instruction::Match),
            4 => (b'a'..=b'c').prop_map(Instruction::Byte),
            4 => (0..2u16).prop_map(Instruction::Class),
            2 => assertion.prop_map(Instruction::Assert),
            4 => any::<u16>().prop_map(Instruction::Jump),
            8 => any::<u16>().prop_map(Instruction::Split),
        ];
        prop::collection::vec(instruction, 0..60).prop_map(|mut instructions| {
            instructions.push(Instruction::Match);
            let count = u16::try_from(instructions.len()).unwrap();
            for instruction in &mut instructions {
                if let Instruction::Jump(target) | Instruction::Split(target) = instruction {
                    *target %= count;
                }
            }
            let mut classes = [ByteClass::default(); 2];
            classes[0].add(b'a'..=b'b');
            classes[1].add(b'b'..=0xff);
            LogPatternBuf::new(&instructions, &classes).unwrap()
        })
    }

    proptest! {
        #[test]
        fn a_line_takes_no_more_steps_than_instructions_times_positions(
            pattern in program(),
            lines in prop::collection::vec("[abc_ ]{0,60}", 1..4),
        ) {
            let mut matcher = LogMatcher::new(pattern.as_pattern());
            let count = pattern.as_pattern().instructions().count();
            for line in lines {
                matcher.paths.steps = 0;
                let matches = matcher.matches(line.as_bytes());
                prop_assert!(matcher.paths.steps <= count * (line.len() + 1));
                // Nothing of a line is left for the next one.
                let mut fresh = LogMatcher::new(pattern.as_pattern());
                prop_assert_eq!(matches, fresh.matches(line.as_bytes()));
            }
        }
    }
}
