/// How many bytes wait at most for a program that asks and does not read.
const MAX_PENDING: usize = 4096;

/// What the terminal answers to programs that ask it something.
///
/// No answer holds anything that a program can choose but numbers of a few digits:
/// what is answered is typed into the program that reads next, and that may be a
/// shell.
#[derive(Debug, Default)]
pub(super) struct ReplyQueue {
    pending: Vec<u8>,
}

impl ReplyQueue {
    /// Adds an answer, unless too many wait already.
    pub(super) fn push(&mut self, answer: &str) {
        if self.pending.len().saturating_add(answer.len()) <= MAX_PENDING {
            self.pending.extend_from_slice(answer.as_bytes());
        }
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }
}
