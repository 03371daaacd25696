use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::limits::MAX_XATTRS;

/// A packed list of extended attributes. Each one is the length of its name (a
/// byte), the name, the length of its value (two bytes, little-endian), the value.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Xattrs<'a>(&'a [u8]);

impl<'a> Xattrs<'a> {
    /// No attributes.
    pub const NONE: Self = Self(&[]);

    /// Iterates over names and values in order.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut rest = self.0;
        core::iter::from_fn(move || take(&mut rest))
    }

    /// Returns whether the list is empty.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() > MAX_XATTRS {
            return None;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let (name, _) = take(&mut rest)?;
            if name.is_empty() || name.contains(&0) {
                return None;
            }
        }
        Some(Self(bytes))
    }
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (length, after) = rest.split_first()?;
    let (name, after) = after.split_at_checked(usize::from(*length))?;
    let (length, after) = after.split_first_chunk()?;
    let (value, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *rest = after;
    Some((name, value))
}

impl fmt::Debug for Xattrs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for Xattrs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Xattrs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&'a [u8]>::deserialize(deserializer)?;
        Self::from_bytes(bytes).ok_or_else(|| de::Error::custom("malformed attributes"))
    }
}

/// Builds [`Xattrs`].
///
/// ```
/// use vmcell_wire::files::XattrsBuf;
///
/// let mut xattrs = XattrsBuf::new();
/// assert!(xattrs.push(b"user.colour", b"blue"));
/// assert!(!xattrs.push(b"", b"a name is needed"));
/// assert_eq!(xattrs.as_xattrs().iter().count(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XattrsBuf(Vec<u8>);

impl XattrsBuf {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends an attribute. Returns false, and appends nothing, if the name is
    /// invalid or the attribute does not fit.
    #[must_use]
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> bool {
        let (Ok(name_length), Ok(value_length)) =
            (u8::try_from(name.len()), u16::try_from(value.len()))
        else {
            return false;
        };
        let length = name.len().saturating_add(value.len()).saturating_add(3);
        let fits = self.0.len().saturating_add(length) <= MAX_XATTRS;
        if name.is_empty() || name.contains(&0) || !fits {
            return false;
        }
        self.0.push(name_length);
        self.0.extend_from_slice(name);
        self.0.extend_from_slice(&value_length.to_le_bytes());
        self.0.extend_from_slice(value);
        true
    }

    /// Empties the list and keeps its memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the attributes for use in a message.
    pub fn as_xattrs(&self) -> Xattrs<'_> {
        Xattrs(&self.0)
    }
}
