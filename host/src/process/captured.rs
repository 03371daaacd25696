use std::collections::VecDeque;

use super::{OverflowPolicy, Truncation};

/// One output, within the limit of what is kept.
#[derive(Debug)]
pub(super) struct CapturedOutput {
    limit: usize,
    overflow: OverflowPolicy,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl CapturedOutput {
    pub(super) fn new(limit: usize, overflow: OverflowPolicy) -> Self {
        Self {
            limit,
            overflow,
            head: Vec::new(),
            tail: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Adds bytes. Returns whether everything so far was kept.
    pub(super) fn add(&mut self, bytes: &[u8]) -> bool {
        let tail_limit = match self.overflow {
            OverflowPolicy::Kill | OverflowPolicy::Stop => 0,
            OverflowPolicy::HeadAndTail => self.limit / 2,
        };
        let head_room = (self.limit - tail_limit).saturating_sub(self.head.len());
        // After a gap everything belongs to the tail.
        let head_room = if self.dropped == 0 { head_room } else { 0 };
        let (head, rest) = bytes.split_at(bytes.len().min(head_room));
        self.head.extend_from_slice(head);
        let skipped = rest.len().saturating_sub(tail_limit);
        self.tail.extend(&rest[skipped..]);
        let excess = self.tail.len().saturating_sub(tail_limit);
        self.tail.drain(..excess);
        self.dropped += (skipped + excess) as u64;
        self.dropped == 0
    }

    /// Records bytes that the guest dropped.
    pub(super) fn gap(&mut self, bytes: u64) {
        self.dropped = self.dropped.saturating_add(bytes + self.tail.len() as u64);
        self.tail.clear();
    }

    /// Returns the bytes that were kept, and what is missing from them.
    pub(super) fn finish(mut self) -> (Vec<u8>, Option<Truncation>) {
        let gap = (self.dropped > 0).then_some(Truncation {
            at: self.head.len(),
            bytes: self.dropped,
        });
        let (front, back) = self.tail.as_slices();
        self.head.extend_from_slice(front);
        self.head.extend_from_slice(back);
        (self.head, gap)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_kept_and_what_is_dropped_is_all_there_was(
            limit in 0..40usize,
            overflow in prop_oneof![Just(OverflowPolicy::Stop), Just(OverflowPolicy::HeadAndTail)],
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..10),
        ) {
            let all = chunks.concat();
            let mut collected = CapturedOutput::new(limit, overflow);
            let mut complete = true;
            for chunk in &chunks {
                complete = collected.add(chunk);
            }
            let (kept, gap) = collected.finish();
            prop_assert_eq!(complete, gap.is_none());
            prop_assert_eq!(gap.is_none(), all.len() <= limit);
            match gap {
                None => prop_assert_eq!(kept, all),
                Some(gap) => {
                    prop_assert_eq!(kept.len(), limit);
                    prop_assert_eq!(gap.bytes as usize, all.len() - limit);
                    prop_assert_eq!(&kept[..gap.at], &all[..gap.at]);
                    prop_assert_eq!(&kept[gap.at..], &all[all.len() - (limit - gap.at)..]);
                }
            }
        }
    }
}
