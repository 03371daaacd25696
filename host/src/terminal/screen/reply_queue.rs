/// Limits the pending bytes, for a program that queries but does not read.
const MAX_PENDING: usize = 4096;

/// Pending replies to the queries of programs.
///
/// A program controls nothing in a reply but numbers of a few digits: replies
/// become input of the program that reads next, which may be a shell.
#[derive(Debug, Default)]
pub(super) struct ReplyQueue {
    pending: Vec<u8>,
}

impl ReplyQueue {
    /// Appends a reply, or drops it if too many are pending.
    pub(super) fn push(&mut self, answer: &str) {
        if self.pending.len().saturating_add(answer.len()) <= MAX_PENDING {
            self.pending.extend_from_slice(answer.as_bytes());
        }
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }
}
