use std::fmt;

use zeroize::Zeroizing;

use super::{
    automaton::{Automaton, START},
    encodings::{self, Pattern},
    filter::Filter,
    scan::{ScanMode, SecretScan},
};

/// Values that must not be shown, and all that is needed to find them.
///
/// All of it is zeroed when it is dropped.
pub(crate) struct SecretSet {
    values: Vec<Value>,
    pub(super) automaton: Automaton,
    /// `None` if values are so short that everything has to be searched.
    pub(super) filter: Option<Filter>,
    /// The length of the longest match.
    pub(super) longest: usize,
}

/// A value, as it is.
pub(super) struct Value {
    pub(super) bytes: Pattern,
    /// Its visible characters.
    pub(super) letters: Zeroizing<Vec<char>>,
}

/// The length of the lines that programs break encoded text into, at least.
const SHORTEST_LINE: usize = 60;

/// Shorter values are found only where their letters are adjacent. Otherwise every other
/// `a` would be masked.
pub(super) const MIN_LENGTH: usize = 4;

impl SecretSet {
    /// Returns a set of values. Those that are `encoded` are also found in the usual
    /// encodings.
    pub(crate) fn new<'a>(
        encoded: impl IntoIterator<Item = &'a [u8]>,
        plain: impl IntoIterator<Item = &'a [u8]>,
    ) -> Self {
        let encoded = encoded.into_iter().map(|value| (value, true));
        let values = encoded.chain(plain.into_iter().map(|value| (value, false)));
        let values: Vec<_> = values.filter(|(value, _)| !value.is_empty()).collect();
        let mut whole = Vec::new();
        let mut broken = Vec::new();
        for (value, is_encoded) in &values {
            let parts = encodings::plain(value).into_iter();
            whole.extend(parts.map(|part| Zeroizing::new(part.to_vec())));
            if *is_encoded {
                broken.extend(encodings::encoded(value));
            }
        }
        // Programs that encode also break lines: one of two halves is in one piece, or a line.
        let halves = broken
            .iter()
            .map(|pattern| pattern.len().div_ceil(2).min(SHORTEST_LINE));
        let least = whole.iter().map(|pattern| pattern.len()).chain(halves);
        let least = least.min().unwrap_or(0);
        let patterns = whole.iter().chain(&broken).map(|it| it.as_slice());
        Self {
            automaton: Automaton::new(patterns.clone()),
            filter: Filter::new(patterns.clone(), least),
            longest: patterns.map(<[u8]>::len).max().unwrap_or(0),
            values: values.iter().map(|(value, _)| Value::new(value)).collect(),
        }
    }

    /// Returns whether there is nothing to find.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the length of the longest text that a value is found in, with line ends.
    pub(crate) fn longest(&self) -> u64 {
        2 * self.longest as u64
    }

    /// Returns a search for secrets in stored text, or `None` without secrets.
    pub(crate) fn scan(&self, mode: ScanMode) -> Option<SecretScan<'_>> {
        (!self.is_empty()).then(|| SecretScan::new(self, mode))
    }

    /// Returns whether a match can begin with a byte.
    pub(super) fn can_begin_with(&self, byte: u8) -> bool {
        self.automaton.step(START, byte) != START
    }

    /// Returns the values.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.values.iter().map(|value| value.bytes.as_slice())
    }

    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }
}

impl Value {
    fn new(bytes: &[u8]) -> Self {
        let text = Zeroizing::new(String::from_utf8_lossy(bytes).into_owned());
        let visible = text.chars().filter(|letter| !letter.is_control());
        let mut letters = Zeroizing::new(Vec::with_capacity(bytes.len()));
        letters.extend(visible);
        Self {
            bytes: Zeroizing::new(bytes.to_vec()),
            letters,
        }
    }

    pub(super) fn is_short(&self) -> bool {
        self.bytes.len() < MIN_LENGTH
    }
}

impl fmt::Debug for SecretSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.values.len())
    }
}
