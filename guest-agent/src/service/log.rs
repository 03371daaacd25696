use rustix::{fd::OwnedFd, io::Errno};
use vmcell_wire::{Kept, service::LogStart};

use crate::{process::Output, ring::Ring};

/// What a service prints, on both outputs, in all its runs.
pub(super) struct Log {
    output: Output,
    /// Where the output of the last run begins.
    run_start: u64,
}

/// How much of a log is read before others have their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Nobody but hosts reads it, who are not waited for.
    Fast,
    /// A probe looks for a line, and what it has not seen must not be
    /// overwritten.
    Probed,
    /// It has not looked at all that was read.
    Held,
}

impl Log {
    pub(super) fn new(keep: u32) -> Self {
        Self {
            output: Output::to_come(keep),
            run_start: 0,
        }
    }

    /// A run begins, of which this is the agent's end of the pipe.
    pub(super) fn begin_run(&mut self, pipe: OwnedFd) {
        self.run_start = self.output.ring().end();
        self.output.go_on(pipe);
    }

    /// Keeps so much from now on.
    pub(super) fn keep(&mut self, keep: u32) -> Result<(), Errno> {
        self.output.keep(keep)
    }

    pub(super) fn ring(&self) -> &Ring {
        self.output.ring()
    }

    pub(super) fn kept(&self) -> Kept {
        self.output.kept()
    }

    pub(super) fn run_start(&self) -> u64 {
        self.run_start
    }

    /// How much the last run has printed.
    pub(super) fn run_bytes(&self) -> u64 {
        self.output.ring().end().saturating_sub(self.run_start)
    }

    /// The kernel says that there is something, or there must be.
    pub(super) fn is_ready(&mut self) {
        self.output.is_ready();
    }

    /// Whether the run prints no more.
    pub(super) fn has_ended(&self) -> bool {
        self.output.has_ended()
    }

    /// Reads, as far as one turn allows. Answers whether there is something new.
    pub(super) fn read(&mut self, pace: Pace) -> bool {
        let before = self.output.ring().end();
        let had_ended = self.output.has_ended();
        let reads = match pace {
            Pace::Fast => 4,
            // One read never brings more than there is room for.
            Pace::Probed => 1,
            Pace::Held => 0,
        };
        for _ in 0..reads {
            self.output.collect();
        }
        self.output.ring().end() != before || self.output.has_ended() != had_ended
    }

    /// Whether there is more to read.
    pub(super) fn has_more(&self) -> bool {
        self.output.can_read()
    }

    /// Waits no longer for the end of the run's output, and what was cut was.
    pub(super) fn cut(&mut self) -> bool {
        self.output.cut();
        self.output.was_cut()
    }

    /// Nothing will be printed soon: gives back memory that is not needed.
    pub(super) fn rest(&mut self) {
        self.output.finish();
    }

    /// The offset at which reading begins.
    pub(super) fn place(&self, from: LogStart) -> u64 {
        let ring = self.output.ring();
        match from {
            LogStart::Offset(offset) => offset.clamp(ring.start(), ring.end()),
            LogStart::Lines(lines) => last_lines(ring, lines),
        }
    }
}

/// Where the last lines of a ring begin. An unfinished one counts.
fn last_lines(ring: &Ring, lines: u32) -> u64 {
    let [first, second] = ring.bytes_from(ring.start());
    let mut place = ring.end();
    let mut left = lines;
    for (index, byte) in first.iter().chain(second).rev().enumerate() {
        // The last byte ends a line, so it does not begin one more.
        if *byte == b'\n' && index > 0 {
            left = left.saturating_sub(1);
        }
        if left == 0 {
            break;
        }
        place = place.saturating_sub(1);
    }
    place
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ring(text: &[u8]) -> Ring {
        let mut ring = Ring::new(100);
        for byte in text {
            ring.room(ring.end()).unwrap()[0] = *byte;
            ring.wrote(1);
        }
        ring
    }

    fn tail(text: &[u8], lines: u32) -> alloc::vec::Vec<u8> {
        let ring = ring(text);
        ring.bytes_from(last_lines(&ring, lines)).concat()
    }

    #[test]
    fn the_last_lines_are_found() {
        assert_eq!(tail(b"", 3), b"");
        assert_eq!(tail(b"a\nb\nc\n", 0), b"");
        assert_eq!(tail(b"a\nb\nc\n", 1), b"c\n");
        assert_eq!(tail(b"a\nb\nc\n", 2), b"b\nc\n");
        assert_eq!(tail(b"a\nb\nc\n", 9), b"a\nb\nc\n");
        assert_eq!(tail(b"a\nb\nunfinished", 1), b"unfinished");
        assert_eq!(tail(b"a\nb\nunfinished", 2), b"b\nunfinished");
        assert_eq!(tail(b"\n\n\n", 2), b"\n\n");
    }

    proptest! {
        #[test]
        fn they_are_the_same_as_counted_from_the_front(
            text in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'x')], 0..300),
            lines in 0..20u32,
        ) {
            let kept = &text[text.len().saturating_sub(100)..];
            let whole: alloc::vec::Vec<&[u8]> = kept.split_inclusive(|byte| *byte == b'\n').collect();
            let wanted = whole[whole.len().saturating_sub(lines as usize)..].concat();
            prop_assert_eq!(tail(&text, lines), wanted);
        }
    }
}
