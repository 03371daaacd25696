use std::fmt;

use zeroize::Zeroizing;

use super::{
    automaton::{Automaton, START},
    encodings,
    filter::Filter,
};

#[cfg(feature = "terminal")]
use super::{
    scan::{ScanMode, SecretScan},
    stored_value::StoredValue,
};

/// Values that must not be shown, and all that is needed to find them.
///
/// All of it is zeroed when it is dropped.
pub(crate) struct SecretSet {
    count: usize,
    #[cfg(feature = "terminal")]
    values: Vec<StoredValue>,
    pub(super) automaton: Automaton,
    /// `None` if values are so short that everything has to be searched.
    pub(super) filter: Option<Filter>,
    /// The length of the longest match.
    pub(super) longest: usize,
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
            count: values.len(),
            #[cfg(feature = "terminal")]
            values: values.iter().map(|(it, _)| StoredValue::new(it)).collect(),
        }
    }

    /// Returns whether there is nothing to find.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the length of the longest text that a value is found in, with line ends.
    pub(crate) fn longest(&self) -> u64 {
        2 * self.longest as u64
    }

    /// Returns a search for secrets in stored text, or `None` without secrets.
    #[cfg(feature = "terminal")]
    pub(crate) fn scan(&self, mode: ScanMode) -> Option<SecretScan<'_>> {
        (!self.is_empty()).then(|| SecretScan::new(self, mode))
    }

    /// Returns whether a match can begin with a byte.
    pub(super) fn can_begin_with(&self, byte: u8) -> bool {
        self.automaton.step(START, byte) != START
    }

    /// Returns the values.
    #[cfg(feature = "terminal")]
    pub(crate) fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.values.iter().map(|value| value.bytes.as_slice())
    }

    #[cfg(feature = "terminal")]
    pub(super) fn values(&self) -> &[StoredValue] {
        &self.values
    }
}

impl fmt::Debug for SecretSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.count)
    }
}
