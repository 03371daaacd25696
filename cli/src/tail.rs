//! Collects the end of an output.

use std::collections::VecDeque;

use vmcell::Command;

/// The last bytes of an output, at most as many as a guest may keep.
#[derive(Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    /// How many bytes came before.
    pub(crate) dropped: u64,
}

impl Tail {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(Command::MAX_KEPT as usize);
        self.bytes.drain(..excess);
        self.dropped += excess as u64;
    }

    /// Records a gap. What came before it is dropped, so that the text is
    /// contiguous.
    pub(crate) fn gap(&mut self, bytes: u64) {
        self.dropped = self.dropped.saturating_add(bytes + self.bytes.len() as u64);
        self.bytes.clear();
    }

    pub(crate) fn into_text(self) -> String {
        String::from_utf8_lossy(&Vec::from(self.bytes)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_an_output_is_kept() {
        let mut tail = Tail::default();
        tail.gap(5);
        tail.add(b"before");
        tail.gap(10);
        tail.add(&vec![b'x'; Command::MAX_KEPT as usize]);
        tail.add(b"end");
        assert_eq!(tail.dropped, 5 + 6 + 10 + 3);
        let text = tail.into_text();
        assert_eq!(text.len(), Command::MAX_KEPT as usize);
        assert!(text.ends_with("xend"));
    }
}
