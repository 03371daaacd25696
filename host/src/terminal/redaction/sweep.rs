use zeroize::Zeroizing;

use super::{MASK, secret::Secret};

/// A search for secrets in text that is kept already.
pub(crate) struct Sweep<'a> {
    secrets: &'a [Secret],
    kind: SweepKind,
}

/// What counts as a secret in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SweepKind {
    /// All of its letters, one behind the other.
    Exact,
    /// A secret was just completed whose beginning is in the text already. Its
    /// letters may stand apart, and some may be masked. They are in the last so
    /// many lines.
    Completed { lines: usize },
}

impl<'a> Sweep<'a> {
    pub(super) fn new(secrets: &'a [Secret], kind: SweepKind) -> Self {
        Self { secrets, kind }
    }

    pub(crate) fn kind(&self) -> SweepKind {
        self.kind
    }

    /// Finds the letters that belong to a secret, by their places in the text. A
    /// text for [`SweepKind::Completed`] has no blanks in it.
    pub(crate) fn find(&self, text: &[char]) -> Vec<usize> {
        let mut found = Vec::new();
        for secret in self.secrets {
            match self.kind {
                SweepKind::Exact if secret.is_brief() => {}
                SweepKind::Exact => {
                    let letters = secret.letters();
                    let places = matches(text, letters, |a, b| a == b);
                    found.extend(places.flat_map(|at| at..at + letters.len()));
                }
                SweepKind::Completed { .. } => {
                    let letters = secret.letters().iter().copied();
                    let letters = letters.filter(|letter| !letter.is_whitespace());
                    let letters = Zeroizing::new(letters.collect::<Vec<_>>());
                    let places = matches(text, &letters, |a, b| a == b || is_masked(a));
                    // Of one that is so short, others are not its letters.
                    let most = if secret.is_brief() { 1 } else { usize::MAX };
                    let places = places.rev().take(most);
                    found.extend(places.flat_map(|at| at..at + letters.len()));
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

/// Where a needle is in a text.
fn matches(
    text: &[char],
    needle: &[char],
    is_same: impl Fn(char, char) -> bool,
) -> impl DoubleEndedIterator<Item = usize> {
    // An empty one is nowhere.
    let windows = text.windows(needle.len().max(1)).enumerate();
    windows.filter_map(move |(at, window)| {
        let mut pairs = window.iter().zip(needle);
        let found = !needle.is_empty() && pairs.all(|(a, b)| is_same(*a, *b));
        found.then_some(at)
    })
}

/// Whether a letter may stand for one of a secret. A character that was masked in
/// part is shown as U+FFFD.
fn is_masked(letter: char) -> bool {
    letter == char::from(MASK) || letter == char::REPLACEMENT_CHARACTER
}
