use zeroize::Zeroizing;

/// Finds many patterns at once in a stream of bytes (Aho and Corasick, 1975).
///
/// Each state is a beginning of a pattern: the longest one that the stream ends with. A
/// hostile stream costs no more than any other: each byte takes a constant number of
/// steps on average.
///
/// The bytes of the patterns are zeroed when it is dropped.
pub(super) struct Automaton {
    /// The last byte of each beginning.
    bytes: Zeroizing<Vec<u8>>,
    /// What each one goes on with: the first, and the next one with the same parent.
    first_child: Vec<u32>,
    sibling: Vec<u32>,
    /// The state after the first byte of a pattern. Most bytes are none.
    after_first: Zeroizing<Vec<u32>>,
    /// The longest other beginning of a pattern that it ends with.
    fallback: Vec<u32>,
    length: Vec<u32>,
    /// The length of the longest beginning that it ends with and that is not a whole match.
    unfinished: Vec<u32>,
    /// The length of the shortest pattern that this beginning may become.
    whole: Vec<u32>,
    /// The length of the longest pattern that it ends with.
    matched: Vec<u32>,
}

/// A state of an [`Automaton`].
pub(super) type State = u32;

/// No byte of the stream is part of a match.
pub(super) const START: State = 0;

impl Automaton {
    pub(super) fn new<'a>(patterns: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        // With no room to spare, vectors would move, and leave copies behind.
        let room = patterns.clone().map(<[u8]>::len).sum::<usize>() + 1;
        let mut this = Self {
            bytes: Zeroizing::new(Vec::with_capacity(room)),
            first_child: Vec::with_capacity(room),
            sibling: Vec::with_capacity(room),
            after_first: Zeroizing::new(vec![START; 256]),
            fallback: Vec::with_capacity(room),
            length: Vec::with_capacity(room),
            unfinished: Vec::new(),
            whole: Vec::new(),
            matched: Vec::with_capacity(room),
        };
        this.add_state(0, 0);
        for pattern in patterns {
            this.add_pattern(pattern);
        }
        this.link();
        this
    }

    /// Returns the state after one more byte.
    pub(super) fn step(&self, mut state: State, byte: u8) -> State {
        while state != START {
            if let Some(child) = self.child(state, byte) {
                return child;
            }
            state = self.fallback[state as usize];
        }
        self.after_first[usize::from(byte)]
    }

    /// Returns how many of the last bytes may be the beginning of a match.
    pub(super) fn unfinished(&self, state: State) -> usize {
        self.unfinished[state as usize] as usize
    }

    /// Returns how many bytes that beginning has if it becomes a match, at least.
    pub(super) fn whole(&self, state: State) -> usize {
        self.whole[state as usize] as usize
    }

    /// Returns how many of the last bytes are a match, or 0.
    pub(super) fn matched(&self, state: State) -> usize {
        self.matched[state as usize] as usize
    }

    fn child(&self, state: State, byte: u8) -> Option<State> {
        let mut child = self.first_child[state as usize];
        while child != START {
            if self.bytes[child as usize] == byte {
                return Some(child);
            }
            child = self.sibling[child as usize];
        }
        None
    }

    fn add_pattern(&mut self, pattern: &[u8]) {
        let mut state = START;
        for (index, byte) in pattern.iter().enumerate() {
            let known = match state {
                START => Some(self.after_first[usize::from(*byte)]).filter(|it| *it != START),
                _ => self.child(state, *byte),
            };
            state = known.unwrap_or_else(|| {
                let child = self.add_state(*byte, index as u32 + 1);
                if state == START {
                    self.after_first[usize::from(*byte)] = child;
                }
                self.sibling[child as usize] = self.first_child[state as usize];
                self.first_child[state as usize] = child;
                child
            });
        }
        self.matched[state as usize] = self.length[state as usize];
    }

    fn add_state(&mut self, byte: u8, length: u32) -> State {
        let state = self.bytes.len() as State;
        self.bytes.push(byte);
        self.length.push(length);
        self.first_child.push(START);
        self.sibling.push(START);
        self.fallback.push(START);
        self.matched.push(0);
        state
    }

    /// Finds the fallbacks, of shorter beginnings first.
    fn link(&mut self) {
        self.unfinished = vec![0; self.bytes.len()];
        let mut queue = Vec::with_capacity(self.bytes.len());
        queue.push(START);
        let mut next = 0;
        while let Some(parent) = queue.get(next).copied() {
            next += 1;
            let mut child = self.first_child[parent as usize];
            while child != START {
                if parent != START {
                    // It is shorter, and known therefore.
                    let byte = self.bytes[child as usize];
                    let fallback = self.step(self.fallback[parent as usize], byte);
                    self.fallback[child as usize] = fallback;
                    let matched = &mut self.matched;
                    if matched[child as usize] == 0 {
                        matched[child as usize] = matched[fallback as usize];
                    }
                }
                let fallback = self.fallback[child as usize];
                self.unfinished[child as usize] = match self.first_child[child as usize] {
                    START => self.unfinished[fallback as usize],
                    _ => self.length[child as usize],
                };
                queue.push(child);
                child = self.sibling[child as usize];
            }
        }
        self.measure(&queue);
    }

    /// Finds out what beginnings may become. `queue` has all of them, the shortest first.
    fn measure(&mut self, queue: &[State]) {
        // The shortest pattern that is longer than a beginning.
        let mut longer = vec![u32::MAX; self.bytes.len()];
        for state in queue.iter().rev().map(|state| *state as usize) {
            let mut child = self.first_child[state] as usize;
            while child != START as usize {
                let is_pattern = self.matched[child] == self.length[child];
                let pattern = if is_pattern {
                    self.length[child]
                } else {
                    longer[child]
                };
                longer[state] = longer[state].min(pattern);
                child = self.sibling[child] as usize;
            }
        }
        self.whole = vec![0; self.bytes.len()];
        for state in queue.iter().skip(1).map(|state| *state as usize) {
            self.whole[state] = match self.first_child[state] {
                START => self.whole[self.fallback[state] as usize],
                _ => longer[state],
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_knows_the_longest_match_and_the_longest_beginning(
            patterns in prop::collection::vec("[ab]{1,5}", 0..6),
            text in "[abc]{0,30}",
        ) {
            let automaton = Automaton::new(patterns.iter().map(String::as_bytes));
            let mut state = START;
            for end in 1..=text.len() {
                state = automaton.step(state, text.as_bytes()[end - 1]);
                let text = &text[..end];
                let matched = patterns.iter().filter(|it| text.ends_with(it.as_str()));
                let matched = matched.map(String::len).max().unwrap_or(0);
                prop_assert_eq!(automaton.matched(state), matched);
                let beginnings = patterns.iter().flat_map(|it| (1..it.len()).map(|to| &it[..to]));
                let longest = beginnings.filter(|it| text.ends_with(it)).map(str::len).max();
                prop_assert_eq!(automaton.unfinished(state), longest.unwrap_or(0));
                let beginning = &text[end - longest.unwrap_or(0)..];
                let whole = patterns.iter().filter(|it| {
                    it.len() > beginning.len() && it.starts_with(beginning)
                });
                let whole = whole.map(String::len).min().filter(|_| longest.is_some());
                prop_assert_eq!(automaton.whole(state), whole.unwrap_or(0));
            }
        }
    }
}
