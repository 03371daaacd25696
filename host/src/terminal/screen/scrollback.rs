use std::collections::VecDeque;

/// How many bytes of text are kept at most, whatever the number of lines.
const MAX_BYTES: usize = 4 << 20;

/// The lines that left the screen at its top, as text.
#[derive(Debug)]
pub(super) struct Scrollback {
    lines: VecDeque<Box<str>>,
    bytes: usize,
    max_lines: usize,
}

impl Scrollback {
    pub(super) fn new(max_lines: usize) -> Self {
        Self {
            lines: VecDeque::new(),
            bytes: 0,
            max_lines,
        }
    }

    /// Takes a line, which is only made if there is a place for it.
    pub(super) fn push(&mut self, line: impl FnOnce() -> String) {
        if self.max_lines == 0 {
            return;
        }
        let line = line().into_boxed_str();
        self.bytes = self.bytes.saturating_add(line.len());
        self.lines.push_back(line);
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

    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.lines.shrink_to_fit();
        self.bytes = 0;
    }
}
