use alloc::vec::Vec;

use vmcell_wire::service::log_pattern::{LogMatcher, LogPattern};

use super::ProbeResult;
use crate::ring::Ring;

/// A probe that searches a log for a matching line as it grows.
pub(super) struct LogProbe {
    matcher: LogMatcher,
    /// Everything before this offset was searched.
    offset: u64,
    /// The start of the incomplete line.
    line: Vec<u8>,
    /// Whether the start of this line was overwritten before it was read.
    is_partial: bool,
    is_behind: bool,
}

/// Only this many bytes of a longer line are searched.
const MAX_LINE: usize = 4096;

/// How much is searched in one turn.
const BYTES_PER_TURN: usize = 16 * 1024;

impl LogProbe {
    pub(super) fn new(pattern: LogPattern<'_>, offset: u64) -> Self {
        Self {
            matcher: LogMatcher::new(pattern),
            offset,
            line: Vec::new(),
            is_partial: false,
            is_behind: false,
        }
    }

    /// Searches the new part of the log. `has_ended`: the log will not grow.
    pub(super) fn poll(&mut self, log: &Ring, has_ended: bool) -> Option<ProbeResult> {
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
            found = found || self.search(piece);
        }
        self.is_behind = self.offset < log.end() && !found;
        if has_ended && !self.is_behind && !found {
            found = self.end_line();
        }
        found.then_some(ProbeResult::Success)
    }

    pub(super) fn is_behind(&self) -> bool {
        self.is_behind
    }

    fn search(&mut self, mut bytes: &[u8]) -> bool {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.add(bytes.get(..end).unwrap_or_default());
            if self.end_line() {
                return true;
            }
            bytes = bytes.get(end.saturating_add(1)..).unwrap_or_default();
        }
        self.add(bytes);
        false
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.line.len());
        self.line
            .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// Ends the line. Returns whether it matches.
    fn end_line(&mut self) -> bool {
        let is_whole = !core::mem::take(&mut self.is_partial);
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let found = is_whole && self.matcher.matches(line);
        self.line.clear();
        found
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;
    use vmcell_wire::service::log_pattern::{
        Assertion,
        Instruction::{self, Assert, Byte, Jump, Match, Split},
        LogPatternBuf,
    };

    use super::*;

    /// Returns a probe from the start of a log, with the instructions before a
    /// match.
    fn probe(instructions: &[&[Instruction]]) -> LogProbe {
        let instructions = [instructions.concat(), vec![Match]].concat();
        let pattern = LogPatternBuf::new(&instructions, &[]).unwrap();
        LogProbe::new(pattern.as_pattern(), 0)
    }

    fn text(text: &str) -> Vec<Instruction> {
        text.bytes().map(Byte).collect()
    }

    const START: Instruction = Assert(Assertion::Start);
    const END: Instruction = Assert(Assertion::End);

    fn write(ring: &mut Ring, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = ring.room(ring.end()).unwrap();
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            ring.wrote(count);
            bytes = &bytes[count..];
        }
    }

    fn found(lines: &mut LogProbe, ring: &Ring) -> bool {
        loop {
            if lines.poll(ring, false).is_some() {
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
        let mut lines = probe(&[&[START], &text("ready"), &[END]]);
        write(&mut ring, b"not ready\nready");
        assert!(!found(&mut lines, &ring));
        write(&mut ring, b" soon\nready");
        assert!(!found(&mut lines, &ring));
        assert_eq!(lines.poll(&ring, true), Some(ProbeResult::Success));
        write(&mut ring, b"\nready\r\n");
        assert!(found(&mut lines, &ring));
    }

    #[test]
    fn a_long_line_is_known_by_its_beginning() {
        let mut ring = Ring::new(100_000);
        let mut lines = probe(&[&text("end")]);
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
        // `^x*ready`
        let mut lines = probe(&[&[START, Split(4), Byte(b'x'), Jump(1)], &text("ready")]);
        write(&mut ring, &[b'x'; 150]);
        write(&mut ring, b"ready\n");
        assert!(!found(&mut lines, &ring));
        write(&mut ring, b"ready\n");
        assert!(found(&mut lines, &ring));
    }

    proptest! {
        /// However the bytes are split, the result is the same as for all of
        /// them.
        #[test]
        fn a_line_is_found_in_any_pieces(
            pieces in prop::collection::vec("[ab\n]{0,20}", 0..30),
        ) {
            let all = pieces.concat();
            let mut ring = Ring::new(10_000);
            // `^ab+a$`
            let repeated = [START, Byte(b'a'), Byte(b'b'), Split(2), Byte(b'a'), END];
            let mut lines = probe(&[&repeated]);
            let mut seen = false;
            for piece in &pieces {
                write(&mut ring, piece.as_bytes());
                seen = seen || found(&mut lines, &ring);
            }
            seen = seen || lines.poll(&ring, true).is_some();
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
        let mut lines = probe(&[&text("never")]);
        write(&mut ring, &vec![b'\n'; 40_000]);
        assert_eq!(lines.poll(&ring, false), None);
        assert_eq!((lines.offset, lines.is_behind()), (16 * 1024, true));
        assert!(!found(&mut lines, &ring));
        assert_eq!(lines.offset, 40_000);
    }
}
