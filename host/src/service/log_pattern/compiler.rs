use regex_syntax::{
    hir::{Class, ClassUnicode, Hir, HirKind, Literal, Look, Repetition},
    utf8::{Utf8Sequence, Utf8Sequences},
};
use vmcell_wire::{
    limits::{MAX_PATTERN_CLASSES, MAX_PATTERN_INSTRUCTIONS},
    service::log_pattern::{Assertion, ByteClass, Instruction, LogPatternBuf},
};

use super::LogPatternError;

/// Builds the program of an expression, in the order of its parts.
///
/// Greedy and lazy repetitions are the same, because only whether a line matches
/// is of interest, and groups leave no trace.
#[derive(Default)]
pub(super) struct Compiler {
    instructions: Vec<Instruction>,
    classes: Vec<ByteClass>,
}

impl Compiler {
    /// Adds an expression that follows what was added before.
    pub(super) fn add(&mut self, expression: &Hir) -> Result<(), LogPatternError> {
        match expression.kind() {
            HirKind::Empty => Ok(()),
            HirKind::Literal(Literal(bytes)) => {
                for byte in bytes {
                    self.push(Instruction::Byte(*byte))?;
                }
                Ok(())
            }
            HirKind::Class(Class::Bytes(class)) => {
                let ranges = class.iter().map(|range| (range.start(), range.end()));
                self.add_class(ranges)
            }
            HirKind::Class(Class::Unicode(class)) => self.add_characters(class),
            HirKind::Look(look) => {
                let assertion = assertion(*look)?;
                self.push(Instruction::Assert(assertion)).map(|_| ())
            }
            HirKind::Repetition(repetition) => self.add_repetition(repetition),
            HirKind::Capture(group) => self.add(&group.sub),
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.add(part)),
            HirKind::Alternation(parts) => self.add_alternation(parts, Self::add),
        }
    }

    /// Returns the finished program.
    pub(super) fn finish(mut self) -> Result<LogPatternBuf, LogPatternError> {
        self.instructions.push(Instruction::Match);
        LogPatternBuf::new(&self.instructions, &self.classes).map_err(|_| LogPatternError::TooLarge)
    }

    /// Adds an instruction and returns its index.
    fn push(&mut self, instruction: Instruction) -> Result<u16, LogPatternError> {
        let index = self.next()?;
        // The last one is the match.
        if self.instructions.len() + 1 >= MAX_PATTERN_INSTRUCTIONS {
            return Err(LogPatternError::TooLarge);
        }
        self.instructions.push(instruction);
        Ok(index)
    }

    /// Returns the index of the next instruction.
    fn next(&self) -> Result<u16, LogPatternError> {
        u16::try_from(self.instructions.len()).map_err(|_| LogPatternError::TooLarge)
    }

    /// Lets a jump or split continue at the next instruction.
    fn continue_here(&mut self, jump: u16) -> Result<(), LogPatternError> {
        let next = self.next()?;
        if let Some(Instruction::Jump(target) | Instruction::Split(target)) =
            self.instructions.get_mut(usize::from(jump))
        {
            *target = next;
        }
        Ok(())
    }

    fn add_class(
        &mut self,
        ranges: impl IntoIterator<Item = (u8, u8)>,
    ) -> Result<(), LogPatternError> {
        let mut class = ByteClass::default();
        for (start, end) in ranges {
            class.add(start..=end);
        }
        let known = self.classes.iter().position(|other| *other == class);
        let index = known.unwrap_or_else(|| {
            self.classes.push(class);
            self.classes.len() - 1
        });
        if index >= MAX_PATTERN_CLASSES {
            return Err(LogPatternError::TooLarge);
        }
        let index = u16::try_from(index).map_err(|_| LogPatternError::TooLarge)?;
        self.push(Instruction::Class(index)).map(|_| ())
    }

    /// Adds a set of characters in UTF-8, such as `ä|ö`.
    fn add_characters(&mut self, class: &ClassUnicode) -> Result<(), LogPatternError> {
        if let Some(class) = class.to_byte_class() {
            return self.add_class(class.iter().map(|range| (range.start(), range.end())));
        }
        let ranges = class.iter();
        let sequences = ranges.flat_map(|range| Utf8Sequences::new(range.start(), range.end()));
        self.add_alternation(sequences, |compiler, sequence: Utf8Sequence| {
            for range in sequence.as_slice() {
                if range.start == range.end {
                    compiler.push(Instruction::Byte(range.start))?;
                } else {
                    compiler.add_class([(range.start, range.end)])?;
                }
            }
            Ok(())
        })
    }

    fn add_alternation<T>(
        &mut self,
        parts: impl IntoIterator<Item = T>,
        add: impl Fn(&mut Self, T) -> Result<(), LogPatternError>,
    ) -> Result<(), LogPatternError> {
        let mut jumps = Vec::new();
        let mut parts = parts.into_iter().peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                add(self, part)?;
                break;
            }
            let split = self.push(Instruction::Split(0))?;
            add(self, part)?;
            jumps.push(self.push(Instruction::Jump(0))?);
            self.continue_here(split)?;
        }
        jumps
            .into_iter()
            .try_for_each(|jump| self.continue_here(jump))
    }

    fn add_repetition(&mut self, repetition: &Repetition) -> Result<(), LogPatternError> {
        let mut start = self.next()?;
        for _ in 0..repetition.min {
            start = self.next()?;
            self.add(&repetition.sub)?;
            // More of nothing is nothing and would take time.
            if self.next()? == start {
                return Ok(());
            }
        }
        let Some(max) = repetition.max else {
            if repetition.min > 0 {
                return self.push(Instruction::Split(start)).map(|_| ());
            }
            let split = self.push(Instruction::Split(0))?;
            self.add(&repetition.sub)?;
            self.push(Instruction::Jump(split))?;
            return self.continue_here(split);
        };
        let mut splits = Vec::new();
        for _ in repetition.min..max {
            splits.push(self.push(Instruction::Split(0))?);
            self.add(&repetition.sub)?;
        }
        splits
            .into_iter()
            .try_for_each(|split| self.continue_here(split))
    }
}

fn assertion(look: Look) -> Result<Assertion, LogPatternError> {
    match look {
        Look::Start => Ok(Assertion::Start),
        Look::End => Ok(Assertion::End),
        Look::WordAscii => Ok(Assertion::WordBoundary),
        Look::WordAsciiNegate => Ok(Assertion::NoWordBoundary),
        _ => Err(LogPatternError::UnsupportedAssertion),
    }
}
