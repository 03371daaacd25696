use std::collections::VecDeque;

/// Limits the bytes of text, in addition to the number of lines.
const MAX_BYTES: usize = 4 << 20;

/// The lines that scrolled off the top of the screen, as text.
#[derive(Debug)]
pub(super) struct Scrollback {
    lines: VecDeque<Box<str>>,
    bytes: usize,
    max_lines: usize,
    /// How many of the last lines were not yet searched for secrets.
    unsearched: usize,
}

impl Scrollback {
    pub(super) fn new(max_lines: usize) -> Self {
        Self {
            lines: VecDeque::new(),
            bytes: 0,
            max_lines,
            unsearched: 0,
        }
    }

    /// Appends a line, which is only built if lines are kept.
    pub(super) fn push(&mut self, line: impl FnOnce() -> String) {
        if self.max_lines == 0 {
            return;
        }
        let line = line().into_boxed_str();
        self.bytes = self.bytes.saturating_add(line.len());
        self.lines.push_back(line);
        self.unsearched = self.unsearched.saturating_add(1);
        while self.lines.len() > self.max_lines || self.bytes > MAX_BYTES {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(oldest.len());
        }
    }

    pub(super) fn last(&self, count: usize) -> Vec<String> {
        let first = self.lines.len().saturating_sub(count);
        let lines = self.lines.iter().skip(first);
        lines.map(|line| line.to_string()).collect()
    }

    /// Returns how many of the last lines were not searched for secrets, and resets
    /// that number.
    pub(super) fn take_unsearched(&mut self) -> usize {
        std::mem::take(&mut self.unsearched)
    }

    /// Returns the last lines with their indexes.
    pub(super) fn numbered(&self, count: usize) -> impl Iterator<Item = (usize, &str)> {
        let first = self.lines.len().saturating_sub(count);
        let lines = self.lines.iter().enumerate().skip(first);
        lines.map(|(number, line)| (number, &**line))
    }

    /// Replaces the characters of a line at these positions.
    pub(super) fn replace(&mut self, number: usize, columns: &[usize], character: char) {
        let Some(line) = self.lines.get_mut(number) else {
            return;
        };
        let letters = line.chars().enumerate();
        let changed: String = letters
            .map(|(at, letter)| match columns.contains(&at) {
                true => character,
                false => letter,
            })
            .collect();
        self.bytes = self.bytes.saturating_sub(line.len());
        self.bytes = self.bytes.saturating_add(changed.len());
        *line = changed.into_boxed_str();
    }

    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.lines.shrink_to_fit();
        self.bytes = 0;
    }
}
