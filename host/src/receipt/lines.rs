//! Reads the lines of a log in bounded memory.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read},
};

/// No line is longer.
pub(super) const MAX_LINE: usize = 4 << 20;

/// A line of a log.
pub(super) enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// The rest of the file, which has no line end, or a line that is too long.
    Torn(Vec<u8>),
}

/// The lines of a log.
pub(super) struct Lines<R = File>(BufReader<R>);

impl<R: Read> Lines<R> {
    pub(super) fn new(file: R) -> Self {
        Self(BufReader::new(file))
    }

    /// Returns the next line, or `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        // With its end, and one more to find that it is too long.
        let limit = MAX_LINE as u64 + 2;
        (&mut self.0).take(limit).read_until(b'\n', &mut line)?;
        Ok(match line.pop() {
            None => None,
            Some(b'\n') if line.len() <= MAX_LINE => Some(Line::Whole(line)),
            Some(last) => {
                line.push(last);
                Some(Line::Torn(line))
            }
        })
    }
}
