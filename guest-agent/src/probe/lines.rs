use alloc::vec::Vec;

use super::{Finding, pattern::Pattern};
use crate::ring::Ring;

/// Looks for a line in a log, as it comes.
pub(super) struct Lines {
    pattern: Pattern,
    /// Everything before it was looked at.
    offset: u64,
    /// The beginning of the line that is not complete yet.
    line: Vec<u8>,
    /// The beginning of this line was overwritten before it was looked at.
    is_partial: bool,
    is_behind: bool,
}

/// A longer line is known by its beginning.
const LONGEST: usize = 4096;

/// So much is looked at before others have their turn.
const BYTES_PER_TURN: usize = 16 * 1024;

impl Lines {
    pub(super) fn new(pattern: &str, offset: u64) -> Option<Self> {
        Some(Self {
            pattern: Pattern::new(pattern).ok()?,
            offset,
            line: Vec::new(),
            is_partial: false,
            is_behind: false,
        })
    }

    /// Looks at what is new.
    pub(super) fn next(&mut self, log: &Ring, has_ended: bool) -> Option<Finding> {
        if self.offset < log.start() {
            self.offset = log.start();
            self.line.clear();
            self.is_partial = true;
        }
        let mut left = BYTES_PER_TURN;
        let mut found = false;
        for piece in log.bytes_from(self.offset) {
            let piece = piece.get(..left).unwrap_or(piece);
            left = left.saturating_sub(piece.len());
            let count = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            self.offset = self.offset.saturating_add(count);
            found = found || self.look_at(piece);
        }
        self.is_behind = self.offset < log.end() && !found;
        if has_ended && !self.is_behind && !found {
            found = self.line_ends();
        }
        found.then_some(Finding::Success)
    }

    pub(super) fn is_behind(&self) -> bool {
        self.is_behind
    }

    fn look_at(&mut self, mut bytes: &[u8]) -> bool {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.add(bytes.get(..end).unwrap_or_default());
            if self.line_ends() {
                return true;
            }
            bytes = bytes.get(end.saturating_add(1)..).unwrap_or_default();
        }
        self.add(bytes);
        false
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = LONGEST.saturating_sub(self.line.len());
        self.line
            .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// Answers whether the line is the one that is looked for.
    fn line_ends(&mut self) -> bool {
        let is_whole = !core::mem::take(&mut self.is_partial);
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let found = is_whole && self.pattern.matches(line);
        self.line.clear();
        found
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn write(ring: &mut Ring, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = ring.room(ring.end()).unwrap();
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            ring.wrote(count);
            bytes = &bytes[count..];
        }
    }

    fn found(lines: &mut Lines, ring: &Ring) -> bool {
        loop {
            if lines.next(ring, false).is_some() {
                return true;
            }
            if !lines.is_behind() {
                return false;
            }
        }
    }

    #[test]
    fn only_whole_lines_count_until_there_will_be_no_more() {
        let mut ring = Ring::new(1000);
        let mut lines = Lines::new("^ready$", 0).unwrap();
        write(&mut ring, b"not ready\nready");
        assert!(!found(&mut lines, &ring));
        write(&mut ring, b" soon\nready");
        assert!(!found(&mut lines, &ring));
        assert_eq!(lines.next(&ring, true), Some(Finding::Success));
        write(&mut ring, b"\nready\r\n");
        assert!(found(&mut lines, &ring));
    }

    #[test]
    fn a_long_line_is_known_by_its_beginning() {
        let mut ring = Ring::new(100_000);
        let mut lines = Lines::new("end", 0).unwrap();
        write(&mut ring, &[b'x'; 5000]);
        write(&mut ring, b"end\n");
        assert!(!found(&mut lines, &ring));
        write(&mut ring, b"end");
        write(&mut ring, &[b'x'; 50_000]);
        write(&mut ring, b"\n");
        assert!(found(&mut lines, &ring));
    }

    #[test]
    fn what_was_overwritten_is_passed_over_and_its_rest_is_no_line() {
        let mut ring = Ring::new(100);
        let mut lines = Lines::new("^x*ready", 0).unwrap();
        write(&mut ring, &[b'x'; 150]);
        write(&mut ring, b"ready\n");
        assert!(!found(&mut lines, &ring));
        write(&mut ring, b"ready\n");
        assert!(found(&mut lines, &ring));
    }

    proptest! {
        /// However the bytes come, the same is found as in all of them.
        #[test]
        fn a_line_is_found_in_any_pieces(
            pieces in prop::collection::vec("[ab\n]{0,20}", 0..30),
        ) {
            let all = pieces.concat();
            let mut ring = Ring::new(10_000);
            let mut lines = Lines::new("^ab+a$", 0).unwrap();
            let mut seen = false;
            for piece in &pieces {
                write(&mut ring, piece.as_bytes());
                seen = seen || found(&mut lines, &ring);
            }
            seen = seen || lines.next(&ring, true).is_some();
            let is_it = |line: &str| {
                let inner = line.strip_prefix('a').and_then(|rest| rest.strip_suffix('a'));
                inner.is_some_and(|inner| !inner.is_empty() && inner.bytes().all(|b| b == b'b'))
            };
            prop_assert_eq!(seen, all.lines().any(is_it));
        }
    }

    #[test]
    fn a_turn_has_an_end() {
        let mut ring = Ring::new(100_000);
        let mut lines = Lines::new("never", 0).unwrap();
        write(&mut ring, &vec![b'\n'; 40_000]);
        assert_eq!(lines.next(&ring, false), None);
        assert_eq!((lines.offset, lines.is_behind()), (16 * 1024, true));
        assert!(!found(&mut lines, &ring));
        assert_eq!(lines.offset, 40_000);
    }
}
