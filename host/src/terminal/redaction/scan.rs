use zeroize::Zeroizing;

use super::{MASK, secret::Secret};

/// A search for secrets in stored text.
pub(crate) struct SecretScan<'a> {
    secrets: &'a [Secret],
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
    pub(super) fn new(secrets: &'a [Secret], mode: ScanMode) -> Self {
        Self { secrets, mode }
    }

    pub(crate) fn mode(&self) -> ScanMode {
        self.mode
    }

    /// Returns the indexes of the letters that belong to a secret. For
    /// [`ScanMode::Completed`] the text must have no blanks.
    pub(crate) fn find(&self, text: &[char]) -> Vec<usize> {
        let mut found = Vec::new();
        for secret in self.secrets {
            match self.mode {
                ScanMode::Exact if secret.is_short() => {}
                ScanMode::Exact => {
                    let letters = secret.letters();
                    let positions = matches(text, letters, |a, b| a == b);
                    found.extend(positions.flat_map(|at| at..at + letters.len()));
                }
                ScanMode::Completed { .. } => {
                    let letters = secret.letters().iter().copied();
                    let letters = letters.filter(|letter| !letter.is_whitespace());
                    let letters = Zeroizing::new(letters.collect::<Vec<_>>());
                    let positions = matches(text, &letters, |a, b| a == b || is_masked(a));
                    // Other matches of such a short secret are likely other text.
                    let max_matches = if secret.is_short() { 1 } else { usize::MAX };
                    let positions = positions.rev().take(max_matches);
                    found.extend(positions.flat_map(|at| at..at + letters.len()));
                }
            }
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

/// Returns the indexes at which a needle occurs in a text.
fn matches(
    text: &[char],
    needle: &[char],
    is_same: impl Fn(char, char) -> bool,
) -> impl DoubleEndedIterator<Item = usize> {
    // An empty needle has no match.
    let windows = text.windows(needle.len().max(1)).enumerate();
    windows.filter_map(move |(at, window)| {
        let mut pairs = window.iter().zip(needle);
        let found = !needle.is_empty() && pairs.all(|(a, b)| is_same(*a, *b));
        found.then_some(at)
    })
}

/// Returns whether a letter may be a masked one of a secret. A character whose
/// bytes were masked in part appears as U+FFFD.
fn is_masked(letter: char) -> bool {
    letter == char::from(MASK) || letter == char::REPLACEMENT_CHARACTER
}
