use std::collections::VecDeque;

use zeroize::Zeroizing;

use super::{
    MASK,
    automaton::START,
    secret_set::{MIN_LENGTH, SecretSet},
};

/// A search for secrets in stored text.
pub(crate) struct SecretScan<'a> {
    secrets: &'a SecretSet,
    mode: ScanMode,
}

/// What counts as an occurrence of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanMode {
    /// All of its letters, adjacent.
    Exact,
    /// A secret was just completed, and its beginning is in the text already. Its
    /// letters are in the last `lines` lines, may be separated by blanks, and some
    /// may be masked.
    Completed { lines: usize },
}

impl<'a> SecretScan<'a> {
    pub(super) fn new(secrets: &'a SecretSet, mode: ScanMode) -> Self {
        Self { secrets, mode }
    }

    pub(crate) fn mode(&self) -> ScanMode {
        self.mode
    }

    /// Returns the indexes of the letters that belong to a secret. For
    /// [`ScanMode::Completed`] the text must have no blanks.
    pub(crate) fn find(&self, text: &[char]) -> Vec<usize> {
        match self.mode {
            ScanMode::Exact => self.find_exact(text),
            ScanMode::Completed { .. } => self.find_completed(text),
        }
    }

    fn find_exact(&self, text: &[char]) -> Vec<usize> {
        let mut found = Vec::new();
        // The letter that each of the last bytes is of.
        let mut letters: VecDeque<usize> = VecDeque::new();
        let automaton = &self.secrets.automaton;
        let mut state = START;
        for (index, letter) in text.iter().enumerate() {
            for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                if letters.len() >= self.secrets.longest {
                    letters.pop_front();
                }
                letters.push_back(index);
                state = automaton.step(state, byte);
                let matched = automaton.matched(state);
                if matched >= MIN_LENGTH {
                    let first = letters.len().saturating_sub(matched);
                    found.extend(letters.range(first..));
                }
            }
        }
        found
    }

    fn find_completed(&self, text: &[char]) -> Vec<usize> {
        let mut found = Vec::new();
        for secret in self.secrets.values() {
            let letters = secret.letters.iter().copied();
            let letters = letters.filter(|letter| !letter.is_whitespace());
            let letters = Zeroizing::new(letters.collect::<Vec<_>>());
            let positions = matches(text, &letters);
            // Other matches of such a short secret are likely other text.
            let max_matches = if secret.is_short() { 1 } else { usize::MAX };
            let positions = positions.rev().take(max_matches);
            found.extend(positions.flat_map(|at| at..at + letters.len()));
        }
        found
    }

    /// Masks secrets in a text.
    pub(crate) fn mask(&self, text: &mut String) {
        let mut letters = Zeroizing::new(text.chars().collect::<Vec<_>>());
        let found = self.find(&letters);
        if found.is_empty() {
            return;
        }
        for at in found {
            letters[at] = char::from(MASK);
        }
        *text = letters.iter().collect();
    }
}

/// Returns the indexes at which the letters of a secret are, of which some may be masked.
fn matches(text: &[char], letters: &[char]) -> impl DoubleEndedIterator<Item = usize> {
    // Without letters there is no match.
    let windows = text.windows(letters.len().max(1)).enumerate();
    windows.filter_map(move |(at, window)| {
        let mut pairs = window.iter().zip(letters);
        let is_same = pairs.all(|(a, b)| a == b || is_masked(*a));
        (!letters.is_empty() && is_same).then_some(at)
    })
}

/// Returns whether a letter may be a masked one of a secret. A character whose
/// bytes were masked in part appears as U+FFFD.
fn is_masked(letter: char) -> bool {
    letter == char::from(MASK) || letter == char::REPLACEMENT_CHARACTER
}
