use alloc::{vec, vec::Vec};

use super::{
    class::is_word,
    program::{Look, Program, Step},
};

/// Follows all ways through a program at once.
pub(super) struct Machine {
    program: Program,
    /// Where it stands, with steps that take a byte only.
    places: Vec<usize>,
    /// Where it will stand behind the byte.
    next: Vec<usize>,
    /// Ways that are to be followed up to the next byte.
    ways: Vec<usize>,
    /// At which position a step was last come to, so that none is twice.
    seen: Vec<u64>,
    /// Counts all positions in all lines.
    position: u64,
}

impl Machine {
    pub(super) fn new(program: Program) -> Self {
        let seen = vec![0; program.steps.len()];
        Self {
            program,
            places: Vec::new(),
            next: Vec::new(),
            ways: Vec::new(),
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
            core::mem::swap(&mut self.places, &mut self.next);
            self.next.clear();
            // The places of before are ways now, and it may begin anywhere.
            self.ways.clear();
            self.ways.append(&mut self.places);
            self.ways.push(0);
            if self.follow(before, byte) {
                return true;
            }
            let Some(byte) = byte else {
                return false;
            };
            for place in &self.places {
                let takes = match self.program.steps.get(*place) {
                    Some(Step::Byte(wanted)) => *wanted == byte,
                    Some(Step::Class(number)) => {
                        let class = self.program.classes.get(usize::from(*number));
                        class.is_some_and(|class| class.contains(byte))
                    }
                    _ => false,
                };
                if takes {
                    self.next.push(place.saturating_add(1));
                }
            }
            before = Some(byte);
        }
    }

    /// Follows all ways up to the steps that take a byte. Answers whether one
    /// has come to the end.
    fn follow(&mut self, before: Option<u8>, after: Option<u8>) -> bool {
        while let Some(way) = self.ways.pop() {
            let (Some(step), Some(seen)) = (self.program.steps.get(way), self.seen.get_mut(way))
            else {
                continue;
            };
            if core::mem::replace(seen, self.position) == self.position {
                continue;
            }
            match *step {
                Step::Done => return true,
                Step::Byte(_) | Step::Class(_) => self.places.push(way),
                Step::Look(look) => {
                    if look.is_so(before, after) {
                        self.ways.push(way.saturating_add(1));
                    }
                }
                Step::Jump(distance) => self.ways.extend(there(way, distance)),
                Step::Split(one, other) => {
                    self.ways.extend(there(way, one));
                    self.ways.extend(there(way, other));
                }
            }
        }
        false
    }
}

fn there(way: usize, distance: i32) -> Option<usize> {
    way.checked_add_signed(isize::try_from(distance).ok()?)
}

impl Look {
    fn is_so(self, before: Option<u8>, after: Option<u8>) -> bool {
        let in_word = |byte: Option<u8>| byte.is_some_and(is_word);
        match self {
            Self::Start => before.is_none(),
            Self::End => after.is_none(),
            Self::Boundary => in_word(before) != in_word(after),
            Self::NoBoundary => in_word(before) == in_word(after),
        }
    }
}
