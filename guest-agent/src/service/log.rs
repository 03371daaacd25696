use rustix::{fd::OwnedFd, io::Errno};
use vmcell_wire::{BufferedRange, service::LogStart};

use crate::{process::Output, ring::Ring};

/// The log of a service: both outputs of all its runs.
pub(super) struct Log {
    output: Output,
    /// Where the output of the last run begins.
    run_start: u64,
}

/// How much of a log is read in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadBudget {
    /// Only hosts read it, and the service does not wait for them.
    Full,
    /// A probe searches it, and must see every byte before it is overwritten.
    Single,
    /// A probe has not searched everything that was read.
    None,
}

impl Log {
    pub(super) fn new(keep: u32) -> Self {
        Self {
            output: Output::without_pipe(keep),
            run_start: 0,
        }
    }

    /// Starts the output of a run; `pipe` is the agent's end.
    pub(super) fn begin_run(&mut self, pipe: OwnedFd) {
        self.run_start = self.output.ring().end();
        self.output.set_pipe(pipe);
    }

    /// Changes how much is kept.
    pub(super) fn set_kept_size(&mut self, keep: u32) -> Result<(), Errno> {
        self.output.set_kept_size(keep)
    }

    pub(super) fn ring(&self) -> &Ring {
        self.output.ring()
    }

    pub(super) fn kept(&self) -> BufferedRange {
        self.output.kept()
    }

    pub(super) fn run_start(&self) -> u64 {
        self.run_start
    }

    /// Returns how many bytes the last run has printed.
    pub(super) fn run_bytes(&self) -> u64 {
        self.output.ring().end().saturating_sub(self.run_start)
    }

    /// Records that the pipe may have bytes.
    pub(super) fn on_ready(&mut self) {
        self.output.on_ready();
    }

    /// Returns whether the output of the run has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.output.has_ended()
    }

    /// Reads as far as `budget` allows. Returns whether there is anything new.
    pub(super) fn read(&mut self, budget: ReadBudget) -> bool {
        let before = self.output.ring().end();
        let had_ended = self.output.has_ended();
        let reads = match budget {
            ReadBudget::Full => 4,
            // One read never returns more than there is room for.
            ReadBudget::Single => 1,
            ReadBudget::None => 0,
        };
        for _ in 0..reads {
            self.output.read_pipe();
        }
        self.output.ring().end() != before || self.output.has_ended() != had_ended
    }

    /// Returns whether there may be more to read.
    pub(super) fn has_more(&self) -> bool {
        self.output.can_read()
    }

    /// Closes the pipe without waiting for the end of the output. Returns
    /// whether output was cut off.
    pub(super) fn truncate(&mut self) -> bool {
        self.output.truncate();
        self.output.was_truncated()
    }

    /// Frees memory that is not needed while the service does not run.
    pub(super) fn shrink(&mut self) {
        self.output.finish();
    }

    /// Returns the offset at which reading begins.
    pub(super) fn start_offset(&self, from: LogStart) -> u64 {
        let ring = self.output.ring();
        match from {
            LogStart::Offset(offset) => offset.clamp(ring.start(), ring.end()),
            LogStart::Lines(lines) => last_lines(ring, lines),
        }
    }
}

/// Returns where the last lines of a ring begin. An incomplete line counts.
fn last_lines(ring: &Ring, lines: u32) -> u64 {
    let [first, second] = ring.bytes_from(ring.start());
    let mut offset = ring.end();
    let mut left = lines;
    for (index, byte) in first.iter().chain(second).rev().enumerate() {
        // A newline at the very end does not start another line.
        if *byte == b'\n' && index > 0 {
            left = left.saturating_sub(1);
        }
        if left == 0 {
            break;
        }
        offset = offset.saturating_sub(1);
    }
    offset
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
