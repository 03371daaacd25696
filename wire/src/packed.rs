use alloc::vec::Vec;
use core::{ffi::CStr, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A packed list of strings, each followed by a zero byte.
///
/// This is the form that `execve(2)` needs. It takes at most one allocation for
/// any number of strings, and its strings cannot contain zero bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct PackedStrings<'a>(&'a [u8]);

impl<'a> PackedStrings<'a> {
    /// Iterates over the strings in order.
    pub fn iter(self) -> impl Iterator<Item = &'a CStr> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let string = CStr::from_bytes_until_nul(rest).ok()?;
            rest = rest.get(string.to_bytes_with_nul().len()..)?;
            Some(string)
        })
    }

    /// Returns the list in these bytes; `None` if the last string is not
    /// terminated.
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        matches!(bytes.last(), None | Some(0)).then_some(Self(bytes))
    }

    /// Returns the strings with their zero bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns whether the list is empty.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the size of the strings in bytes, including their zero bytes.
    pub fn byte_len(self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for PackedStrings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for PackedStrings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for PackedStrings<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&'a [u8]>::deserialize(deserializer)?;
        Self::from_bytes(bytes)
            .ok_or_else(|| de::Error::custom("the last string is not terminated"))
    }
}

/// Builds a [`PackedStrings`] list.
///
/// ```
/// use vmcell_wire::PackedStringsBuf;
///
/// let mut argv = PackedStringsBuf::new();
/// assert!(argv.push(b"echo"));
/// assert!(argv.push(b"hello"));
/// assert!(!argv.push(b"a zero \0 byte"));
/// assert_eq!(argv.as_packed().iter().collect::<Vec<_>>(), [c"echo", c"hello"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedStringsBuf(Vec<u8>);

impl PackedStringsBuf {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends a string. Returns false, and appends nothing, if it contains a
    /// zero byte.
    #[must_use]
    pub fn push(&mut self, string: &[u8]) -> bool {
        if string.contains(&0) {
            return false;
        }
        self.0.extend_from_slice(string);
        self.0.push(0);
        true
    }

    /// Empties the list and keeps its memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the list for use in a message.
    pub fn as_packed(&self) -> PackedStrings<'_> {
        PackedStrings(&self.0)
    }
}

impl From<PackedStrings<'_>> for PackedStringsBuf {
    fn from(packed: PackedStrings<'_>) -> Self {
        Self(packed.0.to_vec())
    }
}
